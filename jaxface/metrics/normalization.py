"""Score normalisation: a score relative to the scores of the same image against strangers, the cohort.

    z: (S - mu_e) / sd_e        t: (S - mu_t) / sd_t        s: (z + t) / 2

mu and sd are the mean and standard deviation of the scores against the cohort: of the gallery's side (e) or of the
probe's (t). Adaptive norms take only the largest `num_best` scores of each row, some hundred. Scores are a matrix
`[g, q]` with moments `[g]` and `[q]`, or trials `[p]` with moments `[p]` of either side.

A norm repairs scores that differ from image to image for reasons outside the model. On data that follow the model it
loses, because the log-likelihood ratio is optimal there: show the raw score beside it. A normalised
score is no log-likelihood ratio: calibrate it on people who are in no cohort and in no trial.
"""

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from jaxface.core import checks
from jaxface.metrics import arguments
from jaxface.metrics.arguments import Array

__all__ = ["CohortMoments", "cohort_moments", "s_norm", "t_norm", "z_norm", "zt_norm"]

_FLOOR = 1e-6  # least spread of a row, relative to that of all scores of the cohort


class CohortMoments(NamedTuple):
    """Mean and standard deviation of the scores of each of n images against a cohort."""

    mean: Array  # [n]
    spread: Array  # [n]

    def of(self, rows: npt.ArrayLike) -> "CohortMoments":
        """The moments of some rows `[p]`, one for each trial."""
        index = np.asarray(rows)
        return CohortMoments(self.mean[index], self.spread[index])


def cohort_moments(scores: npt.ArrayLike, *, num_best: int | None = None) -> CohortMoments:
    """Moments of scores `[n, c]` of n images against c images of the cohort; of the `num_best` largest only, if given.

    Nobody of the trials may be in the cohort. The spread of a row is at least a millionth of the spread of all scores,
    because duplicates could leave a row without any.
    """
    sizes = checks.shapes(scores=(scores, "n c"))
    values = arguments.numbers("scores", scores)
    checks.finite(scores=values)
    checks.at_least("the size of the cohort", sizes["c"], 2)
    if num_best is not None:
        checks.at_least("num_best", num_best, 2)
        checks.at_most("num_best", num_best, sizes["c"], "the size of the cohort")
        values = -np.partition(-values, num_best - 1, axis=1)[:, :num_best]
    floor = _FLOOR * float(np.std(np.asarray(scores, np.float64))) or 1.0
    return CohortMoments(values.mean(axis=1), np.maximum(values.std(axis=1), floor))


def z_norm(scores: npt.ArrayLike, of_gallery: CohortMoments) -> Array:
    """`(S - mu_e) / sd_e`: removes the offset and scale of the gallery's side."""
    return _normalized(scores, of_gallery, 0)


def t_norm(scores: npt.ArrayLike, of_probes: CohortMoments) -> Array:
    """`(S - mu_t) / sd_t`: removes the offset and scale of the probe's side."""
    return _normalized(scores, of_probes, -1)


def s_norm(scores: npt.ArrayLike, of_gallery: CohortMoments, of_probes: CohortMoments) -> Array:
    """The mean of both; with moments of the best of a cohort it is the adaptive s-norm."""
    return (z_norm(scores, of_gallery) + t_norm(scores, of_probes)) / 2.0


def zt_norm(
    scores: npt.ArrayLike,
    of_gallery: CohortMoments,
    cohort_probes: npt.ArrayLike,
    of_cohort: CohortMoments,
    *,
    num_best: int | None = None,
) -> Array:
    """z-norm of scores `[g, q]` and of the cohort's scores, then t-norm by the z-normed cohort.

    cohort_probes: scores `[c, q]` of the cohort, in the role of the gallery, against the probes.
    of_cohort: moments `[c]` of the cohort's own scores against the cohort.
    """
    strangers = z_norm(cohort_probes, of_cohort)
    return t_norm(z_norm(scores, of_gallery), cohort_moments(strangers.T, num_best=num_best))


def _normalized(scores: npt.ArrayLike, moments: CohortMoments, axis: int) -> Array:
    """Scores `[g, q]` or `[p]` in units of moments along an axis."""
    values = arguments.numbers("scores", scores)
    arguments.not_nan(scores=values)
    if values.ndim not in (1, 2) or moments.mean.shape != (values.shape[axis],):
        side = "gallery" if axis == 0 else "probes"
        raise ValueError(
            f"moments must have an entry for each of the {side}: scores {list(values.shape)} and moments "
            f"{list(moments.mean.shape)} do not fit."
        )
    mean, spread = moments
    if values.ndim == 2:
        place = (slice(None), None) if axis == 0 else (None, slice(None))
        mean, spread = mean[place], spread[place]
    return np.asarray((values - mean) / spread)
