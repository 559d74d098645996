"""Sections on what the maps are used for: identification, and maps that learn."""

import numpy as np
from ml_collections import ConfigDict

from experiments.kernel_maps import ridge
from experiments.kernel_maps.pictures import NAMES, Arrays, over_draws
from jaxface.features import MAPS
from jaxface.metrics import intervals
from jaxface.metrics.intervals import Interval
from jaxface.reports import figures
from jaxface.reports.figures import Curve
from jaxface.reports.html import Picture, Section
from jaxface.reports.tables import Cell, Estimate, Table, percent_interval


def identification(config: ConfigDict, found: Arrays) -> Section:
    """Errors of kernel ridge regression, and how often a map answers as its exact kernel."""
    sizes = config.ridge.sizes
    lines = [Curve(NAMES[name], sizes, 100 * found[f"error/{name}"].mean(axis=0)) for name in MAPS]
    exact = 100 * float(found[ridge.GAUSSIAN].mean())
    error = figures.curves(
        lines, x_label="frequencies", y_label="identification error %", title="Kernel ridge through the maps",
        log_x=True, reference=exact,
    )  # fmt: skip
    same = figures.curves(
        [
            Curve(NAMES.get(name, name), sizes, 100 * found[f"agreement/{name}"].mean(axis=0))
            for name in (*MAPS, ridge.SINE_MAP)
        ],
        x_label="frequencies", y_label="same answer as the exact kernel %", title="Agreement", log_x=True,
    )  # fmt: skip
    plain: list[tuple[Cell, ...]] = [
        (name, "–", percent(found, found[name]), "–", "–") for name in (ridge.PIXELS, ridge.GAUSSIAN, ridge.SINE)
    ]
    mapped: list[tuple[Cell, ...]] = [
        (
            NAMES.get(name, name), size, percent(found, found[f"error/{name}"][:, k]),
            _percent_less(found, found[f"error/{name}"][:, k], found[own]),
            Estimate(100 * float(found[f"agreement/{name}"][:, k].mean())),
        )
        for name, own in (*((kind, ridge.GAUSSIAN) for kind in MAPS), (ridge.SINE_MAP, ridge.SINE))
        for k, size in enumerate(sizes)
    ]  # fmt: skip
    return Section(
        "Identification by kernel ridge regression",
        (
            f"{config.ridge.num_train} training images a person, {config.ridge.num_splits} random splits, bandwidth "
            "and ridge chosen on held-out images with the exact kernel; every split draws its own maps. The dotted "
            "line is the exact kernel.",
            Picture("ridge.svg", figures.to_svg(error), "Mean over the splits."),
            Picture("agreement.svg", figures.to_svg(same), "Share of the probes that get the same name."),
            f"At the bandwidth where it can be inverted the sine is nearly linear: its exact kernel gives "
            f"{100 * found['sine and pixels agree'].mean():.1f} % of the probes the name that ridge regression on the "
            "pixels gives them.",
            Table(
                ("kernel or map", "frequencies", "error %", "less that of its exact kernel", "same answers %"),
                [*plain, *mapped],
                "95 % intervals over splits, widened for the images that splits share",
            ),
        ),
    )


def learned(config: ConfigDict, found: Arrays) -> Section:
    """Errors of the kernel before and after training."""
    rows: list[tuple[Cell, ...]] = []
    for k, size in enumerate(config.learning.sizes):
        worth = size * float((found["others, drawn"][:, k] / found["others, learned"][:, k]).mean()) ** 2
        rows.append(
            (
                size,
                *(
                    _thousandths(over_draws(found[f"{who}, {what}"][:, k]))
                    for who in ("seen", "others")
                    for what in ("drawn", "learned")
                ),
                Estimate(worth, digits=0),
            )
        )
    steps = np.arange(1, config.learning.num_iters + 1)
    figure = figures.curves(
        [
            Curve(f"{size} frequencies", steps, np.sqrt(found["loss"][:, k].mean(axis=0)))
            for k, size in enumerate(config.learning.sizes)
        ],
        x_label="step of Adam", y_label="error of the kernel", title="Pairs of the people seen", log_y=True,
        markers=False,
    )  # fmt: skip
    return Section(
        "Maps that learn",
        (
            "S, G and B of Fastfood are ordinary arrays. Adam trains them to give the Gaussian kernel of the images "
            "of half of the people; the same frequencies then estimate the kernel of the other half. The number of "
            "drawn frequencies with the error of a learned map on new people follows from error ~ 1 / sqrt f.",
            Picture("learning.svg", figures.to_svg(figure), "Mean over the draws."),
            Table(
                (
                    "frequencies",
                    "seen: drawn",
                    "seen: learned",
                    "others: drawn",
                    "others: learned",
                    "worth so many drawn",
                ),
                rows,
                "Root mean square error of the kernel in thousandths, 95 % intervals over draws and halves",
            ),
        ),
    )


def percent(found: Arrays, values: np.ndarray) -> Estimate:
    """A rate over the splits."""
    ratio = float(found["test to train"][0])
    return percent_interval(intervals.split_interval(values, test_to_train=ratio, within=intervals.RATE))


def _percent_less(found: Arrays, values: np.ndarray, other: np.ndarray) -> Estimate:
    """The difference of two rates over the splits."""
    ratio = float(found["test to train"][0])
    return percent_interval(intervals.paired_interval(values, other, test_to_train=ratio, within=intervals.RATE))


def _thousandths(interval: Interval) -> Estimate:
    return Estimate(float(interval.estimate), float(interval.low), float(interval.high), digits=1, scale=1000)
