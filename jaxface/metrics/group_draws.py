"""Resamples of groups of people, from counts: for pairs that are too many to keep.

People are dealt into groups, and pairs stay within a group. A group keeps the counts of its scores (see `streaming`)
and the sums of its losses, so memory does not grow with its pairs. A resample draws whole groups with replacement: its
counts are sums. People of one group are drawn together, so fifty groups are needed where fifty people would be few.
"""

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from jaxface.core import checks
from jaxface.metrics import arguments, calibration, draws, resampling, streaming
from jaxface.metrics.arguments import Array
from jaxface.metrics.draws import FAR_GRID, Draws
from jaxface.metrics.streaming import Counts

__all__ = ["GroupCounts", "count_group", "resample_groups"]


class GroupCounts(NamedTuple):
    """The scores of the pairs within a group, or of g groups with a leading axis."""

    genuine: Counts  # [b + 2], in bins of edges [b + 1]
    impostor: Counts  # [b + 2]
    losses: Array  # [2], sums of bits over genuine and over impostor pairs, if scores are log-likelihood ratios


def count_group(scores: npt.ArrayLike, is_same: npt.ArrayLike, edges: npt.ArrayLike) -> GroupCounts:
    """Counts the scores of all pairs `[p]` of a group in bins of `edges` `[b + 1]`."""
    genuine, impostor = streaming.count(scores, is_same, edges)
    same = arguments.mask("is_same", is_same)
    loss = calibration.pair_loss(arguments.numbers("scores", scores), same)
    return GroupCounts(genuine, impostor, np.array([loss[same].sum(), loss[~same].sum()]))


def resample_groups(
    counts: GroupCounts,
    *,
    rng: "np.random.Generator",
    num_resamples: int = 1000,
    far: npt.ArrayLike = (0.01, 0.001),
    band_far: npt.ArrayLike = FAR_GRID,
) -> Draws:
    """The statistics of `draws.resample_subjects` with groups in the place of people, exact to the bin.

    counts: of g groups, `[g, ...]` each, all with the same edges.
    rng, num_resamples, far, band_far: as of `resample_subjects`; a threshold is not known to counts.

    `Draws.num_people` is the number of groups.
    """
    sizes = checks.shapes(
        genuine=(counts.genuine, "g b"), impostor=(counts.impostor, "g b"), losses=(counts.losses, "g l")
    )
    checks.between("counts", np.concatenate([counts.genuine, counts.impostor]), 0, np.inf)
    draws.check_sampling(sizes["g"], num_resamples)
    rates = draws.Rates.of(far, band_far)
    whole = rates.statistics(_weighed(counts, np.ones((1, sizes["g"]))))
    blocks = resampling.multiplicities(sizes["g"], num_resamples, rng)
    resampled = draws.joined([rates.statistics(_weighed(counts, block)) for block in blocks], num_resamples)
    return Draws(whole, resampled, rates.far, rates.band_far, None, sizes["g"], num_resamples - resampled.eer.size)


def _weighed(counts: GroupCounts, multiplicity: Array) -> resampling.Weighted:
    """The ROCs and sums of resamples with multiplicities `[r, g]`."""
    vr, far = (_accepted(multiplicity @ kind) for kind in (counts.genuine, counts.impostor))
    genuine, impostor = vr[:, -1].copy(), far[:, -1].copy()
    with np.errstate(invalid="ignore"):
        vr, far = vr / genuine[:, None], far / impostor[:, None]
    features = [_features(multiplicity, counts.losses[:, kind]) for kind in (0, 1)]
    return resampling.Weighted(far, vr, genuine, impostor, *features)


def _accepted(counts: Array) -> Array:
    """Numbers `[r, b + 3]` of scores at or above each threshold, from counts `[r, b + 2]`."""
    accepted = np.zeros((len(counts), counts.shape[1] + 1))
    np.cumsum(counts[:, ::-1], axis=1, out=accepted[:, 1:])
    return accepted


def _features(multiplicity: Array, losses: Array) -> Array:
    """Finite losses, infinite ones, and right decisions `[3, r]` from losses `[g]`; no threshold is known."""
    is_infinite = np.isinf(losses)
    finite = multiplicity @ np.where(is_infinite, 0.0, losses)
    return np.stack([finite, multiplicity @ is_infinite.astype(float), np.zeros_like(finite)])
