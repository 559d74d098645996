"""Tables and figures of the LFW protocol."""

import math
from pathlib import Path

import numpy as np
from ml_collections import ConfigDict

from experiments.common.publish import publish
from experiments.verify_lfw import embedded
from jaxface.data import lfw
from jaxface.losses import calibration
from jaxface.metrics import calibration as calibration_metrics
from jaxface.metrics import verification
from jaxface.metrics.bootstrap import SubjectIntervals, subject_bootstrap
from jaxface.metrics.lfw import best_threshold, lfw_accuracy
from jaxface.reports import figures
from jaxface.reports.figures import Curve
from jaxface.reports.html import Picture, Section
from jaxface.reports.tables import Cell, Estimate, Spread, Table, percent, percent_interval, with_interval
from jaxface.runtime.workdir import Workdir

_SHOWN = (0, 1, 2, 4, 8)  # of images, and the fused score
_DIGITS = 2  # of per cent: embeddings leave some tenths


def table(config: ConfigDict, arrays: dict[str, np.ndarray]) -> tuple[Table, dict[str, float]]:
    """Accuracy, EER and Cllr of every method, for the page and for results.json."""
    rows: list[tuple[Cell, ...]] = []
    results: dict[str, float] = {}
    for method, scores in zip(embedded.methods_of(config), arrays["scores"], strict=True):
        if config.view == 2:
            accuracy = lfw_accuracy(scores, arrays["is_same"], arrays["fold"])
            value, error = float(accuracy.mean), float(accuracy.standard_error)
            shown: Cell = Spread(value, error, _DIGITS, scale=100.0, kind="SE")
            results[f"standard error, {method}"] = error
        else:
            threshold = best_threshold(scores, arrays["is_same"])
            value = float(((scores >= threshold) == arrays["is_same"]).mean())
            shown = percent(value, digits=_DIGITS)
        curve = verification.roc(scores, arrays["is_same"])
        llr, numbers = _calibration(method, scores, arrays)
        numbers["min Cllr"] = calibration_metrics.min_cllr(curve)
        over = _over_people(config, scores, arrays)
        of_ratio: Cell = "–" if llr is None else with_interval(_over_people(config, llr, arrays).cllr, digits=3)
        raw = Estimate(numbers.get("raw Cllr", math.nan), digits=3)
        least = with_interval(over.min_cllr, digits=3)
        rows.append((method, shown, percent_interval(over.eer, digits=_DIGITS), raw, of_ratio, least))
        results |= {f"accuracy, {method}": value, f"EER, {method}": verification.eer(curve)}
        results |= {f"{name}, {method}": number for name, number in numbers.items()}
    title = (
        "View 2: mean and standard error over ten folds; thresholds from the other nine"
        if config.view == 2
        else "View 1: the best threshold of the test half itself, for choosing settings only"
    )
    title += f". EER, calibrated Cllr and min Cllr: 95 % intervals by {config.num_resamples:,} resamples of the people"
    return Table(("method", "accuracy %", "EER %", "Cllr, raw", "Cllr, calibrated", "min Cllr"), rows, title), results


def _calibration(
    method: str, scores: np.ndarray, arrays: dict[str, np.ndarray]
) -> tuple[np.ndarray | None, dict[str, float]]:
    """Ratios `[pairs]` calibrated on the other folds, None with one fold, and their Cllr.

    Raw log-likelihood ratios have a Cllr of their own; a cosine has none.
    """
    is_same = arrays["is_same"]
    numbers = {} if "osine" in method else {"raw Cllr": calibration_metrics.cllr(scores, is_same)}
    folds = np.unique(arrays["fold"])
    if len(folds) < 2:
        return None, numbers
    calibrated = np.empty_like(scores)
    for fold in folds:
        is_out = arrays["fold"] == fold
        affine, _ = calibration.fit(scores[~is_out].astype(np.float32), is_same[~is_out])
        calibrated[is_out] = np.asarray(calibration.calibrate(affine, scores[is_out].astype(np.float32)))
    return calibrated, numbers | {"calibrated Cllr": calibration_metrics.cllr(calibrated, is_same)}


def _over_people(config: ConfigDict, scores: np.ndarray, arrays: dict[str, np.ndarray]) -> SubjectIntervals:
    """Intervals by resampling people, the same ones for every method."""
    rng = np.random.default_rng(config.seed)
    people = arrays["people"], arrays["others"]
    return subject_bootstrap(scores, arrays["is_same"], *people, rng=rng, num_resamples=config.num_resamples)


def page(config: ConfigDict, workdir: Workdir, arrays: dict[str, np.ndarray], headline: Table) -> None:
    """The table, and the ROC of some methods."""
    lines = []
    names = embedded.methods_of(config)
    shown = range(len(names)) if config.embeddings is not None else sorted({*_SHOWN, len(names) - 1})
    for k in shown:
        roc = verification.roc(arrays["scores"][k], arrays["is_same"])
        lines.append(Curve(names[k], roc.far, roc.vr))
    mirrored = (
        "The rows with mirror images use the mean of the features of a face and of its mirror image; the last row adds "
        "their scores."
        if config.fused_features
        else ""
    )
    publish(
        workdir,
        title="Labeled Faces in the Wild, unrestricted",
        lead=_lead(config),
        headline=headline,
        sections=[
            Section(
                "What each step adds",
                (
                    "People of the test fold are in no part of the training. Moments are the estimate from which EM "
                    "starts. The length-normalised rows first scale features to one length. " + mirrored,
                    Picture("roc.svg", figures.to_svg(figures.roc(lines, title="All folds")), "ROC of all test pairs."),
                    "The protocol draws the pairs; one person contributes at most "
                    f"{100 * float(arrays['largest share']):.1f} % of the genuine ones.",
                    "Cllr measures whether scores are right as log-likelihood ratios. Raw ratios are over-confident on "
                    "real features; an affine calibration fitted on the other folds, whose people are others, corrects "
                    "them. Cosines are no ratios and have a Cllr only after it. min Cllr is what the best monotone "
                    "calibration would reach.",
                ),
            ),
            _ranks(config, arrays),
            _few(config, arrays),
            _traces(config, arrays),
        ],
        credits=(lfw.CREDIT,),
    )


def _ranks(config: ConfigDict, arrays: dict[str, np.ndarray]) -> Section:
    """Accuracy of the low-rank form of the Joint Bayes score, against its rank."""
    ranks = arrays["ranks"].tolist()
    accuracy = np.array([_accuracy(config, scores, arrays) for scores in arrays["of rank"]])
    mean, error = 100 * accuracy.T
    curve = Curve("Joint Bayes", np.array(ranks), mean, mean - error, mean + error)
    figure = figures.curves([curve], x_label="rank of T_mu kept", y_label="accuracy %", log_x=True)
    rows: list[tuple[Cell, ...]] = [
        (rank, Spread(value, spread, _DIGITS, scale=100.0, kind="SE"), Estimate(float(bound), digits=2))
        for rank, (value, spread), bound in zip(ranks, accuracy.tolist(), arrays["bounds"], strict=True)
    ]
    return Section(
        "The rank of the score",
        (
            "The score of the model after EM with the leading directions of its identity covariance alone: A and B of "
            "(13) as thin factors. The bound is on the mean change of ratios of pairs from the model itself.",
            Picture("ranks.svg", figures.to_svg(figure), "The band is one standard error over folds."),
            Table(("rank", "accuracy %", "bound, nats"), rows, "Low-rank scores, all folds"),
        ),
    )


def _few(config: ConfigDict, arrays: dict[str, np.ndarray]) -> Section:
    """What models with few directions of T_mu do to the likelihood, and to the accuracy."""
    known, new = arrays["likelihoods"].mean(axis=0)
    rows: list[tuple[Cell, ...]] = []
    for k, (rank, scores) in enumerate(zip(arrays["few ranks"].tolist(), arrays["of few"], strict=True)):
        value, spread = _accuracy(config, scores, arrays)
        eer = percent(verification.eer(verification.roc(scores, arrays["is_same"])), digits=_DIGITS)
        ratio, _ = _calibration("", scores, arrays)
        cost = math.nan if ratio is None else calibration_metrics.cllr(ratio, arrays["is_same"])
        nats = (Estimate(float(each[k] - each[-1]), digits=2) for each in (known, new))
        shown = Spread(value, spread, _DIGITS, scale=100.0, kind="SE")
        rows.append((rank, *nats, shown, eer, Estimate(cost, digits=3)))
    head = ("directions", "nats, training image", "nats, new image", "accuracy %", "EER %", "Cllr, calibrated")
    return Section(
        "Models of few directions",
        (
            "Here EM itself has so many directions of T_mu, which it may turn, and the noise takes the rest. "
            "Log-likelihoods are of an image, less that of the model with all directions; new images are those of the "
            "test fold. The last row is the model of the table above, after its own number of steps.",
            Table(head, rows, "Means over folds"),
        ),
    )


def _accuracy(config: ConfigDict, scores: np.ndarray, arrays: dict[str, np.ndarray]) -> tuple[float, float]:
    """Mean and standard error; of View 1 the accuracy at the best threshold, without an error."""
    if config.view == 2:
        found = lfw_accuracy(scores, arrays["is_same"], arrays["fold"])
        return float(found.mean), float(found.standard_error)
    threshold = best_threshold(scores, arrays["is_same"])
    return float(((scores >= threshold) == arrays["is_same"]).mean()), math.nan


def _traces(config: ConfigDict, arrays: dict[str, np.ndarray]) -> Section:
    """How the log-likelihood rose in every fold."""
    rise = arrays["traces"] - arrays["traces"][:, :1]
    lines = [Curve(f"fold {k + 1}", np.arange(len(each)), each) for k, each in enumerate(rise)]
    least, most = rise[:, -1].min(), rise[:, -1].max()
    figure = figures.curves(lines, x_label="iteration of EM", y_label="nats an image", markers=False)
    return Section(
        "How EM went",
        (
            f"The log-likelihood of the training images less that of the start from moments, {config.e_step} E-step. "
            f"In the end it is higher by {least:.2f} to {most:.2f} nats an image.",
            Picture("traces.svg", figures.to_svg(figure), "It never falls."),
        ),
    )


def _lead(config: ConfigDict) -> str:
    """What was compared."""
    if config.embeddings is not None:
        return (
            f"View {config.view}; the embeddings of {Path(config.embeddings).name} with all their dimensions. Their "
            "network may have learnt from outside data, perhaps of the same people; the methods here have not."
        )
    kinds = ", ".join(name for name, _ in config.image_steps)
    return f"View {config.view}, no outside data; features: {kinds}, {config.num_components} dimensions."
