"""Using a saved verifier.

study   pairs of a file, or probes among enrolled people
report  the page
"""
