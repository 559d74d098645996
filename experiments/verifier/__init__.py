"""A verifier of one's own: fitted, chosen and calibrated on some people, measured on others, saved.

study       from one set of people to the report and the saved file
candidates  the people of a split, and the fit, choice and measures of every kind
report      tables and figures
"""
