"""The page of a fine-tuning study."""

from collections.abc import Mapping

import numpy as np
from ml_collections import ConfigDict

from experiments.common import trials
from experiments.common.publish import publish
from experiments.verify import report as transfer_report
from experiments.verify.saved import Saved
from jaxface.reports import figures
from jaxface.reports.figures import Curve
from jaxface.reports.html import Picture, Section
from jaxface.reports.tables import Cell, Table
from jaxface.runtime.workdir import Workdir

VERSIONS = ("as EM leaves it", "fine-tuned, stopped by held-out people", "fine-tuned to the last step")


def page(
    config: ConfigDict, workdir: Workdir, arrays: Mapping[str, np.ndarray], model: Saved, credits: tuple[str, ...]
) -> None:
    """Every version on the test people, and the losses along the way."""
    measures = arrays["measures"]
    rows: list[tuple[Cell, ...]] = [
        (version, *(transfer_report.estimate(config, i, each[v]) for i, each in enumerate(measures)))
        for v, version in enumerate(VERSIONS)
    ]
    paired: list[tuple[Cell, ...]] = [
        (VERSIONS[v], *(transfer_report.estimate(config, i, each[v], each[0]) for i, each in enumerate(measures)))
        for v in (1, 2)
    ]
    header = ("EER %", "Cllr, raw", "Cllr, calibrated", "min Cllr")
    steps = config.num_steps * np.arange(config.num_segments + 1)
    lines = [Curve(name, steps, arrays[name].mean(axis=-1)) for name in ("training loss", "held-out loss")]
    figure = figures.curves(
        lines, x_label="steps of L-BFGS", y_label=f"{config.loss} of raw scores", title="Loss along the way"
    )
    publish(
        workdir,
        title="Fine-tuning Joint Bayes",
        lead=f"From {config.start!r}, {max(config.target_people)} people to train on; mean over {config.num_splits} "
        "splits of the people, intervals widened for the people that splits share. "
        + trials.rule(config.max_images, float(arrays["largest share"].max())),
        headline=Table(("model", *header), rows, "Test people, never seen"),
        sections=(
            Section(
                "Before and after",
                (
                    "The likelihood rewards a good model of every image; the loss rewards good scores only. With few "
                    "people to train on it overfits, so held-out people choose the step.",
                    Picture("loss.svg", figures.to_svg(figure), "Mean over the splits."),
                    "Raw scores are those of the model; the calibration of each version is fitted to held-out people, "
                    "who are neither trained nor tested. min Cllr is what the best monotone calibration would reach.",
                    Table(("model", *header), paired, "Difference to the model that EM leaves; negative is better"),
                ),
            ),
            transfer_report.saved_model(workdir, model, what="fine-tuned model"),
        ),
        credits=credits,
    )
