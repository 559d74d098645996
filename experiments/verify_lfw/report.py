"""Tables and figures of the LFW protocol."""

import numpy as np
from ml_collections import ConfigDict

from experiments.common.publish import publish
from experiments.verify_lfw import protocol
from jaxface.data import lfw
from jaxface.losses import calibration
from jaxface.metrics import calibration as calibration_metrics
from jaxface.metrics import verification
from jaxface.metrics.lfw import best_threshold, lfw_accuracy
from jaxface.reports import figures
from jaxface.reports.figures import Curve
from jaxface.reports.html import Picture, Section
from jaxface.reports.tables import Cell, Table
from jaxface.runtime.workdir import Workdir

_SHOWN = (0, 1, 2, 4, 8)  # and the fused score


def table(config: ConfigDict, arrays: dict[str, np.ndarray]) -> tuple[Table, dict[str, float]]:
    """Accuracy, EER and Cllr of every method, for the page and for results.json."""
    rows: list[tuple[Cell, ...]] = []
    results: dict[str, float] = {}
    for method, scores in zip(protocol.methods(config), arrays["scores"], strict=True):
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
    """Cllr of raw log-likelihood ratios, which a cosine is not, and of scores calibrated on the other folds."""
    raw = "–" if "osine" in method else f"{calibration_metrics.cllr(scores, arrays['is_same']):.2f}"
    folds = np.unique(arrays["fold"])
    if len(folds) < 2:
        return raw, "–"
    calibrated = np.empty_like(scores)
    for fold in folds:
        is_out = arrays["fold"] == fold
        affine, _ = calibration.fit(scores[~is_out].astype(np.float32), arrays["is_same"][~is_out])
        calibrated[is_out] = np.asarray(calibration.calibrate(affine, scores[is_out].astype(np.float32)))
    return raw, f"{calibration_metrics.cllr(calibrated, arrays['is_same']):.2f}"


def page(config: ConfigDict, workdir: Workdir, arrays: dict[str, np.ndarray], headline: Table) -> None:
    """The table, and the ROC of some methods."""
    lines = []
    names = protocol.methods(config)
    for k in sorted({*_SHOWN, len(names) - 1}):
        roc = verification.roc(arrays["scores"][k], arrays["is_same"])
        lines.append(Curve(names[k], roc.far, roc.vr))
    publish(
        workdir,
        title="Labeled Faces in the Wild, unrestricted",
        lead=f"View {config.view}, no outside data; features: {', '.join(name for name, _ in config.image_steps)}, "
        f"{config.num_components} dimensions.",
        headline=headline,
        sections=[
            Section(
                "What each step adds",
                (
                    "People of the test fold are in no part of the training. Moments are the estimate from which EM "
                    "starts. The length-normalised rows first scale whitened features to one length. The rows with "
                    "mirror images use the mean of the features of a face and of its mirror image; the last row adds "
                    "their scores.",
                    Picture("roc.svg", figures.to_svg(figures.roc(lines, title="All folds")), "ROC of all test pairs."),
                    "The protocol draws the pairs; one person contributes at most "
                    f"{100 * float(arrays['largest share']):.1f} % of the genuine ones.",
                    "Cllr measures whether scores are right as log-likelihood ratios. Raw ratios are over-confident on "
                    "real features; an affine calibration fitted on the other folds corrects them.",
                ),
            )
        ],
        credits=(lfw.CREDIT,),
    )
