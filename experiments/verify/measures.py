"""Error and calibration of every method over the splits, and the model that a user keeps."""

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
from ml_collections import ConfigDict

from experiments.common import trials
from experiments.common.inputs import Vectors
from experiments.verify import saved, transfer
from experiments.verify.transfer import METHODS, TRANSFER, Fitted, Problem
from jaxface.core.fitinfo import raise_if_failed
from jaxface.losses import calibration
from jaxface.losses.calibration import Affine
from jaxface.metrics import calibration as calibration_metrics
from jaxface.metrics import verification
from jaxface.runtime.log import JsonlWriter, progress

MEASURES = ("EER", "raw Cllr", "Cllr", "min Cllr")


class Compared(NamedTuple):
    """All methods on the test people of one split."""

    fitted: Fitted
    affines: list[Affine]  # one for each method, fitted to the calibration people
    measures: np.ndarray  # [measures, methods]
    calibrated: np.ndarray  # scores [methods, pairs]
    is_same: np.ndarray  # [pairs]


def measure(
    config: ConfigDict, source: Vectors, target: Vectors, rng: np.random.Generator, writer: JsonlWriter | None = None
) -> dict[str, np.ndarray]:
    """Every measure `[measures, methods, sizes, splits]`, the chosen weights, and the scores of all splits.

    The measures of a split go to `writer` as soon as they are known. `largest share` `[splits]` is the largest part
    that one person has in the genuine test pairs. The transfer model of the first split is there in its parts
    (`saved.parts`), with the rows of the target that it has not seen.
    """
    sizes = tuple(config.target_people)
    problems: list[Problem] = []
    rows: list[list[Compared]] = []
    for problem in progress(transfer.draws(config, source, target, rng), "splits", total=config.num_splits):
        problems.append(problem)
        rows.append([compare(config, problem, size) for size in sizes])
        if writer is not None:
            writer.scalars(len(rows) - 1, _named(np.stack([each.measures for each in rows[-1]], axis=-1), sizes))
    arrays = _over_splits(rows, sizes)
    arrays["largest share"] = np.array([trials.share_of(problem.ids["test"]) for problem in problems])
    if source.images is not None and target.images is not None:
        arrays["pictures"] = _pictures((source.images, source.ids), (target.images, target.ids))
    kept = rows[0][sizes.index(max(sizes))]
    model, affine = kept.fitted.models[TRANSFER], kept.affines[TRANSFER]
    first = problems[0]
    return arrays | saved.parts(first.source.reduction, model, affine) | {"unseen": first.split.test}


def compare(config: ConfigDict, problem: Problem, size: int) -> Compared:
    """All methods fitted to `size` training people, calibrated on held-out people and tested on others."""
    fitted = transfer.fit(config, problem, size)
    tested, is_same = transfer.score(problem, fitted, "test")
    held, held_same = transfer.score(problem, fitted, "held_out")
    affines = [calibrated_on(scores, held_same) for scores in held]
    calibrated = [np.asarray(calibration.calibrate(*each)) for each in zip(affines, tested, strict=True)]
    measures = [measures_of(*each, is_same) for each in zip(tested, calibrated, strict=True)]
    return Compared(fitted, affines, np.array(measures).T, np.stack(calibrated), is_same)


def calibrated_on(scores: np.ndarray, is_same: np.ndarray) -> Affine:
    """The affine calibration fitted to pairs of held-out people."""
    affine, info = calibration.fit(scores, is_same)
    raise_if_failed(info, "calibration")
    return affine


def measures_of(raw: np.ndarray, calibrated: np.ndarray, is_same: np.ndarray) -> tuple[float, float, float, float]:
    """EER, Cllr of raw scores and of calibrated ones, and min Cllr."""
    curve = verification.roc(raw, is_same)
    as_they_are, after = (calibration_metrics.cllr(scores, is_same) for scores in (raw, calibrated))
    return verification.eer(curve), as_they_are, after, calibration_metrics.min_cllr(curve)


def _over_splits(rows: Sequence[Sequence[Compared]], sizes: Sequence[int]) -> dict[str, np.ndarray]:
    """The results `[splits][sizes]` as arrays with the splits last; scores of all splits in one row."""

    def stacked(value: Callable[[Compared], np.ndarray], *axes: int) -> np.ndarray:
        whole = np.array([[value(compared) for compared in row] for row in rows])
        return np.ascontiguousarray(whole.transpose(axes))

    arrays = {
        "measures": stacked(lambda each: each.measures, 2, 3, 1, 0),
        "weights": stacked(lambda each: each.fitted.chosen, 2, 1, 0),
        "held_out": stacked(lambda each: each.fitted.held_out, 1, 0, 2),
    }
    for k, size in enumerate(sizes):
        arrays[f"calibrated scores {size}"] = np.concatenate([row[k].calibrated for row in rows], axis=-1)
        arrays[f"is_same {size}"] = np.concatenate([row[k].is_same for row in rows])
    return arrays


def _named(values: np.ndarray, sizes: Sequence[int]) -> dict[str, float]:
    """Measures `[measures, methods, sizes]` of one split by name."""
    return {
        f"{measure}, {method}, {size} people": float(values[i, m, k])
        for i, measure in enumerate(MEASURES)
        for m, method in enumerate(METHODS)
        for k, size in enumerate(sizes)
    }


def _pictures(*sides: tuple[np.ndarray, np.ndarray]) -> np.ndarray:
    """One image of some people on each side `[sides, people, h, w]`; blank if a side has fewer people."""
    shape = sides[0][0].shape[1:3]
    sheet = np.ones((len(sides), 8, *shape), np.float32)
    for row, (images, ids) in enumerate(sides):
        for column, person in enumerate(np.unique(ids)[:8]):
            image = images[np.flatnonzero(ids == person)[0]]
            if image.shape == shape:
                sheet[row, column] = image
    return sheet
