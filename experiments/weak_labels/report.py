"""Tables and figures of the study of weak labels."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from ml_collections import ConfigDict

from experiments.weak_labels.methods import METHODS
from jaxface.reports import figures
from jaxface.reports.figures import Curve
from jaxface.reports.html import Picture, Section
from jaxface.reports.tables import Cell, Table, percent_spread

Arrays = Mapping[str, np.ndarray]
_BY_RIDGE: dict[str, Any] = {"x_label": "ridge, in units of the mean eigenvalue", "log_x": True}


def error_table(config: ConfigDict, arrays: Mapping[int, Arrays]) -> Table:
    """Error of every method at every group size."""
    sizes = list(arrays)
    rows: list[tuple[Cell, ...]] = [
        (METHODS[name].title, *(percent_spread(arrays[size][f"error/{name}"]) for size in sizes))
        for name in config.methods
    ]
    return Table(
        ("method", *(f"groups of {size}" for size in sizes)),
        rows,
        f"Identification error %, mean ± standard deviation over {config.num_draws} random groupings",
    )


def errors(config: ConfigDict, arrays: Mapping[int, Arrays]) -> Section:
    """Figures 2 (left), 3 and 4: error against group size."""
    pictures = []
    for kind, linear in (("linear", True), ("kernel", False)):
        names = [name for name in config.methods if METHODS[name].is_linear == linear or name == "np_per"]
        lines = [_curve(name, arrays) for name in names]
        figure = figures.curves(
            lines, x_label="images in a group", y_label="identification error %", title=f"{kind.capitalize()} methods"
        )
        caption = "Band: one standard deviation over the groupings."
        pictures.append(Picture(f"error_{kind}.svg", figures.to_svg(figure), caption))
    settings = _settings(config, arrays)
    return Section(
        "Error against group size",
        (
            "A group is a handful of images known to show one person; two groups may show the same one. Eigenfaces use "
            "no labels and Fisherfaces all names: the two bound the gain that groups can give.",
            *pictures,
            "Settings are chosen on held-out groups of the first grouping, never on probes.",
            settings,
        ),
    )


def rca(arrays: Mapping[int, Arrays]) -> Section:
    """Figure 2 (right), and RCA with a ridge instead of the PCA."""
    widths, ridges = [], []
    for size, found in arrays.items():
        widths.append(Curve(f"probes, groups of {size}", found["widths"], 100 * found["probe error"]))
        ridges.append(Curve(f"groups of {size}", found["ridges"], 100 * found["ridge error"]))
    by_width = figures.curves(widths, x_label="PCA axes m", y_label="error %", title="RCA depends on its PCA")
    by_ridge = figures.curves(ridges, y_label="error %", title="RCA with a ridge", **_BY_RIDGE)
    return Section(
        "Where RCA loses",
        (
            "RCA whitens the scatter within groups, which is singular with fewer images than pixels. After a PCA to m "
            "axes it is regular, and the error depends on m. With a ridge instead, RCA keeps the directions in which "
            "no group varies and which PCA throws away. As the ridge vanishes, its distances become those of NP-PER.",
            Picture("rca_width.svg", figures.to_svg(by_width), "Ten groupings."),
            Picture("rca_ridge.svg", figures.to_svg(by_ridge), "Ten groupings."),
            *_limit(arrays),
        ),
    )


def _limit(arrays: Mapping[int, Arrays]) -> list[Picture | str]:
    """How ridge RCA tends to NP-PER, at the group sizes that leave NP-PER a direction."""
    gaps = [
        Curve(f"groups of {size}", found["ridges"], found["gap"])
        for size, found in arrays.items()
        if not np.isnan(found["gap"]).any()
    ]
    if not gaps:
        return ["These vectors have too few dimensions for linear NP-PER: in every direction some group varies."]
    title = "As the ridge vanishes: NP-PER"
    figure = figures.curves(gaps, y_label="relative gap of squared distances", title=title, log_y=True, **_BY_RIDGE)
    return [Picture("rca_limit.svg", figures.to_svg(figure), "Mean absolute difference, each in units of its mean.")]


def clustering(config: ConfigDict, arrays: Mapping[int, Arrays]) -> Section:
    """Table 1."""
    rows: list[tuple[Cell, ...]] = []
    for size, found in arrays.items():
        for name in config.clustering.methods:
            for start in config.clustering.starts:
                quality = found[f"clusters/{name}/{start}"]
                rows.append(
                    (int(size), METHODS[name].title, start, percent_spread(quality[0]), percent_spread(quality[1]))
                )
    study = config.clustering
    return Section(
        "Clusters",
        (
            "k-means on the grouped images after each projection, as many clusters as people. Purity: the share of "
            "images that belong to the commonest person of their cluster. Accuracy: the share that lie in the "
            "commonest cluster of their person.",
            Table(
                ("images in a group", "method", "start", "purity %", "accuracy %"),
                rows,
                f"Mean ± standard deviation over {study.num_restarts} runs on each of {study.num_draws} groupings",
            ),
        ),
    )


def videos(config: ConfigDict, sizes: Sequence[int], arrays: Mapping[int, Arrays]) -> Section:
    """Figure 6, on simulated videos."""
    lines: list[Curve] = []
    rows: list[tuple[Cell, ...]] = []
    for name in config.videos.methods:
        mean = np.array([100 * arrays[size][name].mean() for size in sizes])
        lines.append(Curve(METHODS[name].title, list(sizes), mean))
        rows.append((METHODS[name].title, *(percent_spread(arrays[size][name]) for size in sizes)))
    figure = figures.curves(lines, x_label="frames in a group", y_label="identification error %", title="Videos")
    study = config.videos
    return Section(
        "Groups cut from videos",
        (
            f"{study.num_people} simulated faces drift, turn and talk in videos, and sometimes jump. The frames "
            "between two jumps are a group, up to a largest number. Training and test frames come from different "
            "videos.",
            Picture("videos.svg", figures.to_svg(figure), f"Mean over {study.num_draws} sets of videos."),
            Table(
                ("method", *(f"groups of {size}" for size in sizes)),
                rows,
                f"Identification error %, mean ± standard deviation over {study.num_draws} sets of videos",
            ),
        ),
    )


def _curve(name: str, arrays: Mapping[int, Arrays]) -> Curve:
    errors = [100 * each[f"error/{name}"] for each in arrays.values()]
    mean = np.array([values.mean() for values in errors])
    deviation = np.array([values.std(ddof=1) if values.size > 1 else 0.0 for values in errors])
    low, high = (np.clip(mean + sign * deviation, 0, 100) for sign in (-1, 1))
    return Curve(METHODS[name].title, list(arrays), mean, low, high)


def _settings(config: ConfigDict, arrays: Mapping[int, Arrays]) -> Table:
    rows: list[tuple[Cell, ...]] = []
    for name in config.methods:
        for key in METHODS[name].settings:
            unit = " x median distance" if key == "bandwidth" else ""
            rows.append((METHODS[name].title, key + unit, *(float(each[f"{key}/{name}"]) for each in arrays.values())))
    return Table(("method", "setting", *(f"groups of {size}" for size in arrays)), rows, "Chosen settings")
