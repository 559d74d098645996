"""Scores of any system: error rates, calibration and comparisons on the same trials.

study     from files of trials and scores to the report
systems   what a run evaluates: the trials, the scores of each system, the people
norms     scores normalised by a cohort, as further systems
measures  the numbers of a system, cross-validated calibration, intervals and differences
report    tables and figures
"""
