"""Tables and figures of the study of images in groups."""

from collections.abc import Mapping
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


def rca(config: ConfigDict, arrays: Mapping[int, Arrays]) -> Section:
    """Figure 2 (right), and RCA with a ridge instead of the PCA."""
    by_width = []
    for name, title in (("training", "RCA on its training images"), ("probe", "RCA on probes")):
        lines = [
            Curve(f"groups of {size}", found["widths"], 100 * found[f"{name} error"]) for size, found in arrays.items()
        ]
        by_width.append(figures.curves(lines, x_label="PCA axes m", y_label=f"{name} error %", title=title))
    ridges = [Curve(f"groups of {size}", found["ridges"], 100 * found["ridge error"]) for size, found in arrays.items()]
    by_ridge = figures.curves(ridges, y_label="error %", title="RCA with a ridge", **_BY_RIDGE)
    note = "Ten groupings. Each grouped image in turn is left out of the gallery of grouped images."
    blocks: list[Any] = [
        "RCA whitens the scatter within groups, which is singular with fewer images than pixels. After a PCA to m "
        "axes it is regular, and the error depends on m. The paper takes the m with the least error on the training "
        "images; this study the m that keeps held-out groups together. With a ridge instead, RCA keeps the directions "
        "in which no group varies and which PCA throws away. As the ridge vanishes, its distances become those of "
        "NP-PER.",
        Picture("rca_training.svg", figures.to_svg(by_width[0]), note),
        Picture("rca_width.svg", figures.to_svg(by_width[1]), "Ten groupings."),
    ]
    if "rca" in config.methods:
        blocks.append(_choices_of_width(arrays))
    blocks += [Picture("rca_ridge.svg", figures.to_svg(by_ridge), "Ten groupings."), *_limit(arrays)]
    return Section("Where RCA loses", blocks)


def _choices_of_width(arrays: Mapping[int, Arrays]) -> Table:
    """What three rules for m choose, and what it costs on probes."""
    rows: list[tuple[Cell, ...]] = []
    for size, found in arrays.items():
        widths, of_probes = found["widths"], 100 * found["probe error"]
        of_training, best = int(np.argmin(found["training error"])), int(np.argmin(of_probes))
        rows.append(
            (int(size), "least training error, as in the paper", int(widths[of_training]), of_probes[of_training])
        )
        rows.append((int(size), "held-out groups", int(found["width/rca"]), 100 * float(found["error/rca"].mean())))
        rows.append((int(size), "least error on probes: a bound", int(widths[best]), of_probes[best]))
    return Table(("images in a group", "rule", "m", "error on probes %"), rows, "Choosing the width of the PCA")


def scatter(found: Arrays) -> Section:
    """(12): what groups miss of the scatter within people, against their size."""
    names = {"": "these images", "simulated ": "simulated images"}
    missed, shape = [], []
    for key, title in names.items():
        sizes = found[f"{key}sizes"]
        missed.append(Curve(title, sizes, found[f"{key}missed"].mean(axis=1)))
        missed.append(Curve(f"{title}, expected", sizes, found[f"{key}expected"]))
        shape.append(Curve(title, sizes, found[f"{key}shape"].mean(axis=1)))
    options: dict[str, Any] = {"x_label": "images in a group", "log_x": True, "log_y": True}
    of_scale = figures.curves(missed, y_label="tr(S_w - S_g) / tr S_w", title="Scatter that groups miss", **options)
    of_shape = figures.curves(
        shape, y_label="relative distance of covariances", title="What a scale does not repair", **options
    )
    return Section(
        "Scatter within groups for scatter within people",
        (
            "RCA and NP-PER take the scatter within groups for that within people. Equation (12) says what is missing: "
            "the squared distances of the groups' means from the means of their people. For random groups the mean of "
            "its trace is (R - C) / (n - C) of the whole, with R groups, C people and n images: it vanishes like 1 / "
            "N as groups of N images grow. That part is a scale and turns no direction. The second figure compares "
            "S_g / (n - R) with S_w / (n - C), two unbiased estimates of one covariance. Groups that hold all images "
            "of a person miss nothing and are not drawn.",
            Picture("scatter_error.svg", figures.to_svg(of_scale), "Mean over groupings of all images of each person."),
            Picture("scatter_shape.svg", figures.to_svg(of_shape), "Distance by the Frobenius norm, relative."),
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


def curves(arrays: Mapping[int, Arrays], scatter: Arrays) -> dict[str, float]:
    """The points of the figures that have no table: RCA against its width, and what groups miss."""
    points = {
        f"{of} error %, rca with {width} axes, groups of {size}": 100 * float(error)
        for size, found in arrays.items()
        for of in ("training", "probe")
        for width, error in zip(found["widths"], found[f"{of} error"], strict=True)
    }
    for images in ("", "simulated "):
        for kind in ("missed", "shape"):
            for size, values in zip(scatter[f"{images}sizes"], scatter[f"{images}{kind}"], strict=True):
                if np.isfinite(values).all():  # a group of one image has no shape
                    points[f"scatter, {images}{kind} %, groups of {size}"] = 100 * float(values.mean())
    return points


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
