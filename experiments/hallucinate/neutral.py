"""Do reconstructions turn neutral? How much of the variation within people is left, against that between people.

The paper says that most reconstructions are neutral in expression. Expressions have no labels here. Whatever made them
disappear would lower the variance within a person, and a method that only blurs lowers the variance between people
too. So the measure, over the pixels that are not seen, is

    R = (W / B of the reconstructions) / (W / B of the originals)

with W the variance within people and B the variance between people, both by the analysis of variance of unequal
groups. R < 1: variation within people is lost, and more of it than of that between people. It counts every variation
within people, such as light and pose, of which expression is a part.
"""

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np

from experiments.hallucinate.found import Found
from jaxface.metrics.intervals import FEWEST, Interval
from jaxface.reports.html import Section
from jaxface.reports.tables import Cell, Table, with_interval


class Sums(NamedTuple):
    """What the variances of resampled people are made of; people with at least two images."""

    means: np.ndarray  # [c, d]
    within: np.ndarray  # [c], squared distances of the images of a person from their mean
    counts: np.ndarray  # [c], images of a person


def sums(x: np.ndarray, ids: np.ndarray) -> Sums:
    """Sums over the images x `[n, d]` of every person with at least two of them."""
    people, index, counts = np.unique(ids, return_inverse=True, return_counts=True)
    means = np.zeros((people.size, x.shape[1]))
    np.add.at(means, index, x)
    means /= counts[:, None]
    within = np.bincount(index, ((x - means[index]) ** 2).sum(axis=1))
    several = counts >= 2
    return Sums(means[several] - means[several].mean(axis=0), within[several], counts[several])


def variances(of: Sums, weights: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """W and B `[t]` of draws of people, weights `[t, c]`, how often each was drawn; summed over pixels.

    B is the variance of the means of people less the part that W has in it, `W mean(1 / n_i)`.
    """
    num = weights.sum(axis=1)
    within = (weights @ of.within) / (weights @ (of.counts - 1))
    center = weights @ of.means / num[:, None]
    spread = (weights @ (of.means**2).sum(axis=1) - num * (center**2).sum(axis=1)) / (num - 1)
    return within, spread - within * (weights @ (1 / of.counts)) / num


class Neutral(NamedTuple):
    """What a method leaves of the variances of the originals, with intervals over people."""

    within: Interval
    between: Interval
    ratio: Interval  # R


def measured(
    originals: np.ndarray, images: np.ndarray, ids: np.ndarray, *, num_resamples: int, seed: int
) -> Neutral | None:
    """The measure for images `[n, d]` of the originals `[n, d]`; None with too few people of two images."""
    before, after = sums(originals, ids), sums(images, ids)
    num = before.counts.size
    if num < FEWEST:
        return None
    rng = np.random.default_rng((seed, 8))
    draws = rng.multinomial(num, np.full(num, 1 / num), size=num_resamples)
    weights = np.concatenate([np.ones((1, num)), draws])
    (w0, b0), (w1, b1) = variances(before, weights), variances(after, weights)
    values = w1 / w0, b1 / b0, (w1 / b1) / (w0 / b0)
    return Neutral(*(Interval(each[0], *np.quantile(each[1:], (0.025, 0.975))) for each in values))


def table(found: Found, *, num_resamples: int, seed: int) -> Table:
    """The measure of every method on the pixels that are not seen."""
    hidden = ~found.mask
    rows: list[tuple[Cell, ...]] = []
    for name, images in found.images.items():
        each = measured(
            found.originals[:, hidden], images[:, hidden], found.ids, num_resamples=num_resamples, seed=seed
        )
        if each is not None:
            rows.append((found.names.labels[name], *(with_interval(part) for part in each), verdict(each.ratio)))
    columns = ("method", "variance within people left", "between people left", "R", "in words")
    return Table(columns, rows, "Pixels that are not seen; people with two images or more; 95 % intervals over people")


def verdict(ratio: Interval) -> str:
    """R in words."""
    if ratio.high < 1:
        return "people vary less among themselves"
    return "people vary more among themselves" if ratio.low > 1 else "not decided"


def section(found: Found, *, num_resamples: int, seed: int) -> Section:
    """The section of the report."""
    return Section(
        "Do reconstructions turn neutral?",
        (
            "The paper finds most reconstructions neutral in expression. What expressions and other changes do to a "
            "face is the variance within people, W; what people differ in is the variance between people, B. A method "
            "that only blurs lowers both. R is W / B of the reconstructions over W / B of the originals, on the "
            "pixels that are not seen: below 1, variation within people is lost beyond the blur. It counts light and "
            "pose as well as expression, and what the seen pixels show of them is reconstructed.",
            table(found, num_resamples=num_resamples, seed=seed),
        ),
    )


def headline(found: Found, *, num_resamples: int, seed: int) -> Mapping[str, float]:
    """R by method."""
    hidden = ~found.mask
    settings = {"num_resamples": num_resamples, "seed": seed}
    values = {
        name: measured(found.originals[:, hidden], images[:, hidden], found.ids, **settings)
        for name, images in found.images.items()
    }
    return {name: float(each.ratio.estimate) for name, each in values.items() if each is not None}
