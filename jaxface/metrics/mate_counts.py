"""Identification from a list of trials: the ranks of the mates without a matrix of scores."""

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from jaxface.core import checks
from jaxface.metrics import arguments
from jaxface.metrics.arguments import Array, Index

__all__ = ["MateCounts", "counts_from_trials"]


class MateCounts(NamedTuple):
    """What identification needs to know of each probe."""

    mates: Array  # [q] best score of the probe's own person; NaN where the probe is not compared with this person
    best: Array  # [q] best score of anybody
    higher: Index  # [q] other people above the mate; -1 where there is no mate
    tied: Index  # [q] other people level with the mate; -1 where there is no mate
    compared: Index  # [q] other people that the probe is compared with


def counts_from_trials(
    scores: npt.ArrayLike, gallery_ids: npt.ArrayLike, probes: npt.ArrayLike, probe_ids: npt.ArrayLike
) -> MateCounts:
    """The counts of `cmc_from_counts` and `open_set_from_counts` for each probe of a list of trials, `[p]` each.

    gallery_ids: who is enrolled in each trial; probes: which probe is compared, as 0 ... q - 1; probe_ids: whom the
    probe shows. The counts are comparable where every probe is `compared` with everybody else of the gallery.
    """
    sizes = checks.shapes(
        scores=(scores, "p"), gallery_ids=(gallery_ids, "p"), probes=(probes, "p"), probe_ids=(probe_ids, "p")
    )
    checks.at_least("the number of trials", sizes["p"], 1)
    values = arguments.numbers("scores", scores)
    arguments.not_nan(scores=values)
    people, own = arguments.identities("gallery_ids", gallery_ids), arguments.identities("probe_ids", probe_ids)
    probe = np.asarray(checks.dense_labels("probes", np.asarray(probes), sizes["p"]), np.int64)
    checks.every_label("probes", probe, int(probe.max()) + 1)
    order = np.lexsort((people, probe))
    is_first = np.ones(order.size, bool)
    is_first[1:] = (np.diff(probe[order]) != 0) | (people[order][1:] != people[order][:-1])
    starts = np.flatnonzero(is_first)
    best_of_person = np.maximum.reduceat(values[order], starts)  # of each probe and person
    owner, is_mate = probe[order][starts], (people == own)[order][starts]
    mates = np.full(owner[-1] + 1, np.nan)
    mates[owner[is_mate]] = best_of_person[is_mate]

    def count(of: Any) -> Index:
        return np.bincount(owner[of & ~is_mate], minlength=mates.size)

    has_mate = ~np.isnan(mates)
    higher, tied = count(best_of_person > mates[owner]), count(best_of_person == mates[owner])
    return MateCounts(
        mates=mates,
        best=np.maximum.reduceat(best_of_person, np.searchsorted(owner, np.arange(mates.size))),
        higher=np.where(has_mate, higher, -1),
        tied=np.where(has_mate, tied, -1),
        compared=count(np.ones(owner.size, bool)),
    )
