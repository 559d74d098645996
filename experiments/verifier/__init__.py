"""A verifier of one's own: fitted, chosen and calibrated on some people, measured on others, saved.

study       from one set of people to the report and the saved file
sides       who fits, calibrates and tests: folds, lists of people, or a trial list
candidates  the fit, choice and scores of every kind
evidence    every kind on the people of all folds, with intervals
strangers   the saved verifier among enrolled people and strangers
streamed    the same study of vectors that stay on the disk, with a report of its own
report      tables and figures
"""
