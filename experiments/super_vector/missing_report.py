"""Tables of the study of missing views."""

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np
from ml_collections import ConfigDict

from jaxface.metrics import intervals
from jaxface.reports.html import Section
from jaxface.reports.tables import Cell, Table, intervals_over, percent_interval

METHODS = ("joined views, mean in the gaps", "joined views, predicted in the gaps", "latent vector", "super vector")

Condition = tuple[float, float]  # the shares of the views that are missing in training and at test


class Measured(NamedTuple):
    """Errors by the number of training images a person."""

    conditions: tuple[Condition, ...]
    errors: Mapping[int, np.ndarray]  # [conditions, methods, splits]
    ratios: Mapping[int, float]  # test images for each training image


def conditions(config: ConfigDict) -> tuple[Condition, ...]:
    """Nothing missing, and every share in training, at test and in both."""
    gaps = [pair for share in config.missing.shares for pair in ((share, 0.0), (0.0, share), (share, share))]
    return ((0.0, 0.0), *gaps)


def words(condition: Condition) -> str:
    """A condition as the head of a column."""
    train, test = (f"{100 * share:.0f} %" for share in condition)
    if train == test:
        return "nothing missing" if condition[0] == 0 else f"{train}, both"
    return f"{train}, training" if condition[1] == 0 else f"{test}, test"


def headline(config: ConfigDict, made: Measured) -> Table:
    """Errors under every condition with the most training images."""
    return _errors(config, made, max(made.errors))


def sections(config: ConfigDict, made: Measured) -> tuple[Section, ...]:
    """Errors, and what the gaps cost."""
    return tuple(
        Section(
            f"{num_train} images a person",
            (
                "The columns say which share of the views is missing, and where: in the training images, which are "
                "also the gallery, in the probes, or in both.",
                _errors(config, made, num_train),
                "Error minus that of the same vector with nothing missing, on the same splits:",
                _losses(config, made, num_train),
                "Error of the super vector minus that of the other vectors under the same condition:",
                _gaps(config, made, num_train),
            ),
        )
        for num_train in made.errors
    )


def results(made: Measured) -> dict[str, float]:
    """The headline numbers."""
    return {
        f"error %, {method}, {words(condition)}, {num_train} images": 100 * float(errors[c, m].mean())
        for num_train, errors in made.errors.items()
        for c, condition in enumerate(made.conditions)
        for m, method in enumerate(METHODS)
    }


def _errors(config: ConfigDict, made: Measured, num_train: int) -> Table:
    rows: list[tuple[Cell, ...]] = []
    for m, method in enumerate(METHODS):
        rows.append((method, *(_rate(each[m], made.ratios[num_train]) for each in made.errors[num_train])))
    caption = f"Identification error %, nearest neighbour by the cosine, {num_train} images a person; "
    return _table(config, made.conditions, rows, caption)


def _losses(config: ConfigDict, made: Measured, num_train: int) -> Table:
    errors = made.errors[num_train]
    rows: list[tuple[Cell, ...]] = []
    for m, method in enumerate(METHODS):
        rows.append((method, *(_difference(each[m], errors[0, m]) for each in errors[1:])))
    return _table(config, made.conditions[1:], rows, "Loss by missing views, points, for these images; ")


def _gaps(config: ConfigDict, made: Measured, num_train: int) -> Table:
    rows: list[tuple[Cell, ...]] = []
    for m, method in enumerate(METHODS[:-1]):
        rows.append((method, *(_difference(each[-1], each[m]) for each in made.errors[num_train])))
    return _table(config, made.conditions, rows, "Super vector minus another vector, points, for these images; ")


def _table(config: ConfigDict, columns: tuple[Condition, ...], rows: list[tuple[Cell, ...]], caption: str) -> Table:
    return Table(("vector", *map(words, columns)), rows, caption + intervals_over(config.num_splits, "random splits"))


def _rate(values: np.ndarray, ratio: float) -> Cell:
    return percent_interval(intervals.split_interval(values, test_to_train=ratio, within=intervals.RATE))


def _difference(first: np.ndarray, second: np.ndarray) -> Cell:
    return percent_interval(intervals.paired_interval(first, second, test_to_train=0.0, within=intervals.RATE))
