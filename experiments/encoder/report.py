"""Tables and figures of the encoder."""

from collections.abc import Mapping

import numpy as np
from ml_collections import ConfigDict

from experiments.common.publish import publish
from experiments.verify.measures import MEASURES
from experiments.verify.report import RANGES
from jaxface.data import LabeledImages
from jaxface.metrics import intervals
from jaxface.reports import figures, sheets
from jaxface.reports.figures import Curve
from jaxface.reports.html import Picture, Section
from jaxface.reports.tables import Cell, Table, intervals_over, percent_interval, with_interval
from jaxface.runtime.workdir import Workdir

VERSIONS = ("PCA and Joint Bayes by EM", "trained, step chosen by held-out people", "trained to the last step")


def page(config: ConfigDict, workdir: Workdir, arrays: Mapping[str, np.ndarray], faces: LabeledImages) -> None:
    """The page."""
    publish(
        workdir,
        title="An encoder trained through the likelihood ratio",
        lead=f"{config.train_people} people of {len(faces.names)} train, {config.held_out_people} choose the step and "
        f"calibrate, {config.test_people} test. Every step sees {config.images_a_person} photos of "
        f"{config.people_a_batch} people, as pairs and as sets.",
        headline=_table(config, arrays, None),
        sections=[_training(config, arrays), _saliency(arrays)],
        credits=(faces.credit,),
    )


def _table(config: ConfigDict, arrays: Mapping[str, np.ndarray], less: int | None) -> Table:
    """The measures of every version, or their differences to the version `less`."""
    ratio = config.test_people / (config.train_people + config.held_out_people)
    rows: list[tuple[Cell, ...]] = []
    for v, version in enumerate(VERSIONS):
        if v == less:
            continue
        cells = []
        for i, (measure, within) in enumerate(zip(MEASURES, RANGES, strict=True)):
            values = arrays["measures"][i, v]
            if less is None:
                found = intervals.split_interval(values, test_to_train=ratio, within=within)
            else:
                other = arrays["measures"][i, less]
                found = intervals.paired_interval(values, other, test_to_train=0.0, within=within)
            cells.append(percent_interval(found) if measure == "EER" else with_interval(found))
        rows.append((version, *cells))
    what = "Pairs of people never seen" if less is None else f"Less {VERSIONS[less]}, same splits"
    head = ("version", "EER %" if less is None else "EER, points", "Cllr, raw", "Cllr, calibrated", "min Cllr")
    return Table(head, rows, f"{what}; {intervals_over(config.num_splits, 'random splits')}")


def _training(config: ConfigDict, arrays: Mapping[str, np.ndarray]) -> Section:
    steps = config.steps_a_segment * np.arange(config.num_segments + 1)
    held = Curve("calibrated Cllr of held-out people", steps, arrays["held-out loss"].mean(axis=-1))
    trace = arrays["training loss"].mean(axis=-1).reshape(config.num_segments, -1).mean(axis=1)
    middle = steps[:-1] + config.steps_a_segment / 2
    lines = [held, Curve("training loss, nats", middle, trace)]
    figure = figures.curves(lines, x_label="steps", y_label="loss", title="Mean over the splits", log_y=True)
    return Section(
        "Does training help?",
        (
            "The training loss falls at every learning rate that is small enough; the loss of other people need not. "
            f"Pairs have at most {config.max_images} photos of a person.",
            Picture(
                "losses.svg", figures.to_svg(figure), "The step is chosen where the curve of held-out people is lowest."
            ),
            _table(config, arrays, 0),
        ),
    )


def _saliency(arrays: Mapping[str, np.ndarray]) -> Section:
    """Both photos of a pair beside the derivative of its ratio by their pixels."""
    pictures = []
    for is_same, title in ((True, "One person, least ratios"), (False, "Two people, largest ratios")):
        chosen = np.flatnonzero(arrays["pair is same"] == is_same)
        shown = arrays["pairs"][chosen]
        gray = np.where(np.array([False, True, False, True])[None, :, None, None], (shown + 1) / 2, shown)
        labels = [f"{ratio:+.1f} nats" for ratio in arrays["pair ratios"][chosen]]
        pictures.append(
            sheets.sheet(
                f"saliency_{'same' if is_same else 'different'}.png",
                gray,
                row_labels=labels,
                column_labels=("photo", "derivative", "photo", "derivative"),
                title=title,
                caption="Where the derivative is light, more light raises the ratio; grey says nothing.",
            )
        )
    return Section(
        "What the ratio sees",
        (
            "The derivative of a pair's log-likelihood ratio by every pixel of both photos, of the hardest pairs of "
            "the first split's test people.",
            *pictures,
        ),
    )
