"""A verifier of one's own: fitted, chosen and calibrated on some people, measured on others, saved.

study       from one set of people to the report and the saved file
candidates  the people of a fold, and the fit, choice and scores of every kind
evidence    every kind on the people of all folds, with intervals
strangers   the saved verifier among enrolled people and strangers
report      tables and figures
"""
