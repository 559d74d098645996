"""Scores of any system: how good, how well calibrated, and which of several is better on the same trials.

    python -m experiments.evaluate --config=configs/evaluate.py --workdir=runs/evaluated --config.trials=SCORES.csv
    python -m experiments.evaluate --config=configs/evaluate.py --workdir=runs/compared --config.trials=TRIALS.txt \
        --config.systems="('mine=mine.txt', 'theirs=theirs.txt')"
    python -m experiments.evaluate --config=configs/evaluate.py --workdir=runs/two \
        --config.genuine=GENUINE.txt --config.impostor=IMPOSTOR.txt

Seconds; with intervals some seconds a system. SCORES.csv has a column that says which pairs show one person and one or
more columns of scores, under any names.
"""

from ml_collections import ConfigDict
from ml_collections.config_dict import placeholder

from configs import common


def get_config(variant: str | None = None) -> ConfigDict:
    """The whole study; see the fields."""
    config = common.base(x64=True)
    config.trials = placeholder(str)  # CSV, TSV, semicolons or spaces; LFW's pairs.txt, VoxCeleb's and NIST's lists
    config.genuine = placeholder(str)  # instead of trials: one score a line of pairs that show one person
    config.impostor = placeholder(str)  # and of pairs that do not
    config.systems = ()  # further files of scores, "NAME=FILE" each: lines `a b score`, or a score a line
    config.cohorts = ()  # "NAME=FILE", lines `file cohort score` for all files of the trials: the s-norm of a system
    config.cohort_best = placeholder(int)  # of the cohort, the nearest alone: some hundred; None takes all
    config.fuse = False  # all systems together, as one more
    config.columns = ConfigDict(
        {
            "a": placeholder(str),  # names or numbers of columns, where the usual names do not tell
            "b": placeholder(str),
            "same": placeholder(str),
            "person_a": placeholder(str),  # people, for intervals; else from the names of the files
            "person_b": placeholder(str),
            "scores": (),  # the systems among the columns; () takes every column of numbers without a role
        }
    )
    config.delimiter = placeholder(str)  # None: the tab, comma or semicolon of the first line, else spaces
    config.distances = ()  # systems whose small scores mean one person
    config.reference = placeholder(str)  # the system that others are compared with; None: the first
    config.far = (0.01, 0.001)  # false accept rates: thresholds and verification rates
    config.prior = 0.5  # of one person, before looking; of the costs and the decisions
    config.cost_miss = 1.0
    config.cost_false_accept = 1.0
    config.num_folds = 5  # of people, to calibrate on some and test on others
    config.num_resamples = 1000  # of people, for the intervals
    return common.variant(config, variant, {})
