"""Joint Bayesian verification with transfer.

domains   the two sides: source and target people
camera    a simulated change of camera: the same faces, small, noisy and coarse
photos    images as PNG files
transfer  splits, and the models: source only, target only, pooled and transfer
measures  error and calibration of every method over the splits
saved     the model of the first split, and the people that it has not seen
study     the measures of all splits, the saved model and the report
report    tables and figures
"""
