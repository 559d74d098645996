"""Using a saved verifier.

study           one of the two tasks
verification    pairs of a file: one person or two
identification  probes among enrolled people
report          the page and the CSV
"""
