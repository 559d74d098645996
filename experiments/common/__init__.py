"""Parts that studies share.

inputs       from a config to faces and vectors
fields       wrong values in a config are found before the first stage
models       fitted models among the arrays of a stage, and their files
people       who of a set takes part in a study
publish      a report into the folder of a run
ratios       Cllr after a calibration on other people, min Cllr, intervals over people
recognition  nearest-neighbour errors of many splits in one program
trials       which pairs are scored, in words, and their EER
verdicts     the interval of a difference in words
"""
