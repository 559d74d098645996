"""Which pairs a study scores: all of unseen people, of whom nobody gives more than so many images."""

import numpy as np

from jaxface.data import pairs
from jaxface.metrics import verification


def rule(max_images: int, share: float, *, is_listed: bool = False) -> str:
    """The rule in words for a report, with the largest part that one person has in the genuine pairs.

    Pairs that a file lists are scored as they are.
    """
    which = (
        "The listed pairs are scored"
        if is_listed
        else f"All pairs of the test people are scored, at most {max_images} images of a person, spread evenly over "
        "those there are"
    )
    return f"{which}; one person makes at most {100 * share:.2g} % of the genuine pairs."


def eer(scores: np.ndarray, ids: np.ndarray) -> float:
    """EER of all pairs of rows, from their scores `[n, n]` and the people shown `[n]`."""
    trial = pairs.all_pairs(ids)
    return verification.eer(verification.roc(scores[trial.first, trial.second], trial.is_same))


def share_of(ids: np.ndarray) -> float:
    """The largest part that one person has in the genuine pairs of all pairs of rows."""
    return pairs.largest_share(ids, pairs.all_pairs(ids))
