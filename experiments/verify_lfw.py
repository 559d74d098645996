"""The LFW protocol with Joint Bayes: accuracy of every step of the pipeline, and whether its ratios are calibrated.

python -m experiments.verify_lfw --config=configs/verify_lfw.py --config.data.root=LFW --workdir=runs/lfw
"""

from collections.abc import Callable, Mapping, Sequence
from functools import cache, partial
from typing import Any

import numpy as np
from ml_collections import ConfigDict

from experiments import fields
from experiments.publish import publish
from experiments.verification import lfw_protocol
from experiments.verification.lfw_protocol import Trial
from jaxface.data import Listing, lfw
from jaxface.losses import calibration
from jaxface.metrics import calibration as calibration_metrics
from jaxface.metrics import verification
from jaxface.metrics.lfw import best_threshold, lfw_accuracy
from jaxface.reports import figures
from jaxface.reports.figures import Curve
from jaxface.reports.html import Picture, Section
from jaxface.reports.tables import Cell, Table
from jaxface.runtime import launch
from jaxface.runtime.workdir import Workdir

_SHOWN = (0, 1, 2, 4, 8)  # and the fused score


def run(config: ConfigDict, workdir: Workdir) -> dict[str, Any]:
    """Encodes the images, scores every fold as a stage of its own, and reports."""
    if config.view not in (1, 2):
        raise ValueError(f"config.view must be 1 (to choose settings) or 2 (to report); got {config.view}.")
    fields.counts(config, "num_components", "lda_components", "num_iters")
    if config.data.root is None:
        raise ValueError("--config.data.root is missing: name the folder that holds LFW's images and pairs.txt.")
    workdir.uses(data=config.data.root)
    listing, trials = lfw_protocol.trials(config)
    main = partial(lfw_protocol.features, listing, tuple(config.crop), config.image_steps, "main", mirrored=False)
    folds = _scored(workdir, listing, trials, "main", main, partial(lfw_protocol.fold_scores, config))
    more = []
    for name, crop, steps in config.fused_features:
        encode = partial(lfw_protocol.features, listing, tuple(crop), steps, name, mirrored=True)
        more.append(_scored(workdir, listing, trials, name, encode, partial(lfw_protocol.best_scores, config)))
    together = [
        {**fold, "scores": np.stack([*fold["scores"], *(other[k]["scores"] for other in more)])}
        for k, fold in enumerate(folds)
    ]
    arrays = lfw_protocol.summary(config, together)
    table, results = _table(config, arrays)
    _publish(workdir, config, arrays, table)
    return results


def _scored(
    workdir: Workdir,
    listing: Listing,
    trials: Sequence[Trial],
    name: str,
    encode: Callable[[], np.ndarray],
    score: Callable[[np.ndarray, np.ndarray, Trial], np.ndarray],
) -> list[Mapping[str, np.ndarray]]:
    """The scores of every fold on one kind of features, a stage each; images are encoded when a stage needs them."""
    encoded = cache(encode)

    def fold(trial: Trial) -> dict[str, np.ndarray]:
        scores = score(encoded(), listing.ids, trial)
        return {"scores": scores, "is_same": trial.pairs.is_same, "people": listing.ids[trial.pairs.first]}

    return [workdir.stage(f"{name}-{k}", partial(fold, trial)) for k, trial in enumerate(trials)]


def _table(config: ConfigDict, arrays: dict[str, np.ndarray]) -> tuple[Table, dict[str, float]]:
    rows: list[tuple[Cell, ...]] = []
    results: dict[str, float] = {}
    for method, scores in zip(lfw_protocol.methods(config), arrays["scores"], strict=True):
        if config.view == 2:
            accuracy = lfw_accuracy(scores, arrays["is_same"], arrays["fold"])
            shown, value = f"{100 * accuracy.mean:.1f} ± {100 * accuracy.standard_error:.1f}", accuracy.mean
        else:
            threshold = best_threshold(scores, arrays["is_same"])
            value = float(((scores >= threshold) == arrays["is_same"]).mean())
            shown = f"{100 * value:.1f}"
        eer = verification.eer(verification.roc(scores, arrays["is_same"]))
        rows.append((method, shown, f"{100 * eer:.1f}", *_calibration(method, scores, arrays)))
        results[f"accuracy, {method}"] = value
        results[f"EER, {method}"] = eer
    title = (
        "View 2: mean and standard error over ten folds; thresholds from the other nine"
        if config.view == 2
        else "View 1: the best threshold of the test half itself, for choosing settings only"
    )
    return Table(("method", "accuracy %", "EER %", "Cllr, raw", "Cllr, calibrated"), rows, title), results


def _calibration(method: str, scores: np.ndarray, arrays: dict[str, np.ndarray]) -> tuple[str, str]:
    """Cllr of log-likelihood ratios as they are, and calibrated on the other folds; a cosine has no raw one."""
    raw = "–" if "osine" in method else f"{calibration_metrics.cllr(scores, arrays['is_same']):.2f}"
    folds = np.unique(arrays["fold"])
    if len(folds) < 2:
        return raw, "–"
    mended = np.empty_like(scores)
    for fold in folds:
        out = arrays["fold"] == fold
        affine, _ = calibration.fit(scores[~out].astype(np.float32), arrays["is_same"][~out])
        mended[out] = np.asarray(calibration.calibrate(affine, scores[out].astype(np.float32)))
    return raw, f"{calibration_metrics.cllr(mended, arrays['is_same']):.2f}"


def _publish(workdir: Workdir, config: ConfigDict, arrays: dict[str, np.ndarray], table: Table) -> None:
    lines = []
    names = lfw_protocol.methods(config)
    for k in sorted({*_SHOWN, len(names) - 1}):
        roc = verification.roc(arrays["scores"][k], arrays["is_same"])
        lines.append(Curve(names[k], roc.far, roc.vr))
    publish(
        workdir,
        title="Labeled Faces in the Wild, unrestricted",
        lead=f"View {config.view}, no outside data; features: {', '.join(name for name, _ in config.image_steps)}, "
        f"{config.num_components} dimensions.",
        headline=table,
        sections=[
            Section(
                "What each step adds",
                (
                    "People of the test fold are in no part of the training. Moments is where EM starts. The "
                    "length-normalised rows scale whitened features to one length first. The rows with mirror images "
                    "take the mean of the features of a face and of its mirror image; the last adds their scores.",
                    Picture("roc.svg", figures.to_svg(figures.roc(lines, title="All folds")), "ROC of all test pairs."),
                    "The protocol draws the pairs; one person makes at most "
                    f"{100 * float(arrays['largest share']):.1f} % of the genuine ones.",
                    "Cllr asks what the ratios claim: raw they claim too much on real features; two numbers fitted on "
                    "the other folds mend that.",
                ),
            )
        ],
        credits=(lfw.CREDIT,),
    )


if __name__ == "__main__":
    launch.main(run)
