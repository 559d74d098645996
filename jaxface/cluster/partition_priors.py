"""Priors on partitions: what merging two clusters of a and b images adds to the log prior, with K clusters before.

    threshold      log prior tau K: -tau, the least log-likelihood ratio of a merge
    ewens          K log alpha + sum lgamma(m): -log alpha + lgamma(a + b) - lgamma(a) - lgamma(b)
    pitman_yor     the same with a discount s: -log(alpha + s (K - 1)) + T(a + b) - T(a) - T(b), T(m) the logarithm of
                   (1 - s) (2 - s) ... (m - 1 - s)
    pairwise_odds  theta for every pair of images of one cluster: theta a b
    product        of several priors: the sum of what they add

Ewens and Pitman-Yor are distributions over the partitions of any number of images. The sum of what all merges add is
the log prior of the partition less that of all images apart.
"""

import math
from collections.abc import Callable
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from jaxface.core import checks

__all__ = ["Prior", "concentration", "ewens", "pairwise_odds", "pitman_yor", "product", "threshold"]

_HALVINGS = 200  # of an interval of logarithms: more than float64 resolves


class Prior(NamedTuple):
    """What a merge adds to the log prior: `of_sizes(a, b) + of_number(K)`."""

    of_sizes: Callable[[npt.NDArray[np.int64], npt.NDArray[np.int64]], np.ndarray]  # sizes of any shapes that broadcast
    of_number: Callable[[int], float]  # of clusters before the merge; it must not fall as K falls


def threshold(tau: float) -> Prior:
    """A merge needs a log-likelihood ratio above `tau` nats; -tau is the log prior odds of a merge."""
    checks.between("tau", tau, -math.inf, math.inf, closed_low=False, closed_high=False)
    return Prior(_nothing, lambda _: -tau)


def ewens(alpha: float) -> Prior:
    """The Chinese restaurant process: a new image begins a cluster with odds alpha : images so far."""
    return pitman_yor(alpha, discount=0.0)


def pitman_yor(alpha: float, *, discount: float) -> Prior:
    """Ewens' prior with a power law of cluster sizes; `discount` in [0, 1), 0 for Ewens."""
    checks.positive("alpha", alpha)
    checks.between("discount", discount, 0.0, 1.0, closed_high=False)

    def of_sizes(a: npt.NDArray[np.int64], b: npt.NDArray[np.int64]) -> np.ndarray:
        most = int(np.max(a, initial=1)) + int(np.max(b, initial=1))
        steps = np.log(np.arange(1, most) - discount)
        log_rising = np.concatenate([[0.0, 0.0], np.cumsum(steps)])  # [m]: the sum of log(k - discount), 1 <= k < m
        return log_rising[np.add(a, b)] - log_rising[a] - log_rising[b]

    return Prior(of_sizes, lambda number: -math.log(alpha + discount * (number - 1)))


def pairwise_odds(theta: float) -> Prior:
    """Every pair of images of one cluster adds `theta` nats: the log prior odds of a pair."""
    checks.between("theta", theta, -math.inf, math.inf, closed_low=False, closed_high=False)
    return Prior(lambda a, b: theta * np.multiply(a, b).astype(np.float64), lambda _: 0.0)


def product(*priors: Prior) -> Prior:
    """Several priors together, such as Ewens' and the threshold that is minus the offset of a calibration."""
    return Prior(
        lambda a, b: sum((each.of_sizes(a, b) for each in priors), start=_nothing(a, b)),
        lambda number: sum(each.of_number(number) for each in priors),
    )


def concentration(num_people: float, *, num_images: int) -> float:
    """Ewens' alpha that expects `num_people` clusters in `num_images`: `sum alpha / (alpha + i)`, i < num_images."""
    checks.at_least("num_images", num_images, 2)
    checks.between("num_people", num_people, 1.0, float(num_images), closed_low=False, closed_high=False)
    before = np.arange(num_images)
    low, high = -700.0, 700.0
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        # 1 / (1 + i / alpha), as alpha / (alpha + i) has no digits for a tiny alpha.
        expected = (1 / (1 + before * math.exp(-middle))).sum()
        low, high = (middle, high) if expected < num_people else (low, middle)
    return math.exp((low + high) / 2)


def _nothing(a: npt.NDArray[np.int64], b: npt.NDArray[np.int64]) -> np.ndarray:
    return np.zeros(np.broadcast_shapes(np.shape(a), np.shape(b)))
