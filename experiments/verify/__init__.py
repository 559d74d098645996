"""Joint Bayesian verification with transfer.

photos    images as PNG files
camera    a simulated change of camera: the same faces, small, noisy and coarse
transfer  source only, target only, pooled and transfer against the number of target people
study     the measures of all splits, and the model of the first one
report    tables and figures
"""
