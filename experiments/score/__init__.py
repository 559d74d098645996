"""Using a saved verifier.

study           one of the two tasks
verification    pairs of a file: one person or two
identification  probes among enrolled people
false_accepts   a threshold for a rate of false accepts, from strangers
report          the page and the CSV
"""
