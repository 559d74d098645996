"""The LFW protocol: accuracy on each fold at the threshold the other folds choose."""

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from jaxface.core import checks
from jaxface.metrics import arguments, verification
from jaxface.metrics.arguments import Array

__all__ = ["best_threshold", "lfw_accuracy"]


class LfwAccuracy(NamedTuple):
    """Mean accuracy +- standard error over the folds, and the accuracy of each fold."""

    mean: float
    standard_error: float  # std(ddof=1) / sqrt(number of folds)
    accuracy: Array  # [f], by rising fold label
    threshold: Array  # [f]


def lfw_accuracy(scores: npt.ArrayLike, is_same: npt.ArrayLike, folds: npt.ArrayLike) -> LfwAccuracy:
    """Cross-validated accuracy of scores `[p]` with labels `[p]` and fold labels `[p]` (LFW View 2 has ten).

    The standard error treats folds as independent; their training parts overlap, so it is the protocol's
    number rather than an interval. For one, resample people with `bootstrap.subject_bootstrap`.
    """
    values, same = arguments.labeled(scores, is_same)
    checks.shapes(scores=(values, "p"), folds=(folds, "p"))
    fold_of_pair = arguments.identities("folds", folds)
    names = np.unique(fold_of_pair)
    checks.at_least("the number of folds", names.size, 2)
    threshold, accuracy = np.empty(names.size), np.empty(names.size)
    for i, name in enumerate(names):
        held_out = fold_of_pair == name
        threshold[i] = best_threshold(values[~held_out], same[~held_out])
        accuracy[i] = np.mean((values[held_out] >= threshold[i]) == same[held_out])
    standard_error = accuracy.std(ddof=1) / np.sqrt(names.size)
    return LfwAccuracy(float(accuracy.mean()), float(standard_error), accuracy, threshold)


def best_threshold(scores: npt.ArrayLike, is_same: npt.ArrayLike) -> float:
    """The threshold with the most right decisions; of several the highest, which accepts the fewest impostors.

    It is one of the scores (or +inf), so the decisions do not change under a rising transform of the scores.
    Scores of +inf are accepted whatever the threshold.
    """
    values, same = arguments.labeled(scores, is_same)
    curve = verification.roc(values, same)
    num_genuine = np.count_nonzero(same)
    # Whole numbers, so that equal accuracies compare equal.
    gained = np.rint(curve.vr * num_genuine) - np.rint(curve.far * (same.size - num_genuine))
    first = int(np.isposinf(curve.thresholds[1]))  # skips 'accept nobody' where no threshold does that
    return float(curve.thresholds[first + np.argmax(gained[first:])])
