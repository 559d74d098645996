"""Tables and figures of the study of feature maps."""

import statistics
from collections.abc import Mapping
from typing import Any

import numpy as np
from ml_collections import ConfigDict

from experiments.kernel_maps import applications, cost, inverse, pictures, ridge
from experiments.kernel_maps.pictures import NAMES, Arrays, over_draws
from jaxface.features import MAPS
from jaxface.metrics import intervals
from jaxface.metrics.intervals import Interval
from jaxface.reports import figures
from jaxface.reports.figures import Curve
from jaxface.reports.html import Block, Picture, Section
from jaxface.reports.tables import Cell, Estimate, Table, with_interval


def headline(config: ConfigDict, found: Mapping[str, Arrays]) -> Table:
    """One line for each question."""
    sizes, largest = config.estimates.sizes, config.cost.dims[-1]
    fastfood = found["estimates"]["fastfood"][:, -1]
    speed = cost.ratios(found["cost"], "fastfood", "projection")
    expansion = max(config.inverse.expansions)
    rows: list[tuple[Cell, ...]] = [
        (f"error of the kernel by Fastfood, {sizes[-1]} frequencies", with_interval(over_draws(fastfood), digits=4)),
        (f"Fastfood beside a dense product, d = {largest}", _times(np.median(speed[-1]))),
        ("Fastfood is the faster one from d on", _crossover(config, found["cost"], "projection")),
        *(
            (
                f"images come back to 1e-3 up to |x| / sigma: {name}",
                pictures.reach(found["inverse"], name, expansion),
            )
            for name in inverse.METHODS
        ),
        (
            "identification error %, exact Gaussian kernel",
            applications.percent(found["ridge"], found["ridge"][ridge.GAUSSIAN]),
        ),
        (
            f"the same by Fastfood, {config.ridge.sizes[-1]} frequencies",
            applications.percent(found["ridge"], found["ridge"]["error/fastfood"][:, -1]),
        ),
    ]
    return Table(("what", "value"), rows, "The page in short")


def results(config: ConfigDict, found: Mapping[str, Arrays]) -> dict[str, Any]:
    """The headline numbers."""
    numbers: dict[str, Any] = {
        f"error of the kernel, {name}, {size} frequencies": float(found["estimates"][name][:, k].mean())
        for name in (*MAPS, "random phase", "sine, the Gaussian")
        for k, size in enumerate(config.estimates.sizes)
    }
    expansion = max(config.inverse.expansions)
    for k, length in enumerate(config.inverse.ratios):
        reported = 100 * float(found["inverse"][f"share/arcsin, clipped/{expansion}"][k].mean())
        numbers[f"folded % as reported, |x| / sigma = {length:g}"] = reported
    for k, d in enumerate(config.cost.dims):
        ratio = np.median(cost.ratios(found["cost"], "fastfood", "projection")[k])
        numbers[f"dense time over Fastfood's, d = {d}"] = float(ratio)
    for name in (ridge.PIXELS, ridge.GAUSSIAN, ridge.SINE):
        numbers[f"error %, {name}"] = 100 * float(found["ridge"][name].mean())
    for name in (*MAPS, ridge.SINE_MAP):
        numbers[f"error %, {name}"] = 100 * float(found["ridge"][f"error/{name}"][:, -1].mean())
    return numbers


def sections(config: ConfigDict, found: Mapping[str, Arrays]) -> tuple[Section, ...]:
    """The body of the report."""
    return (
        _estimates(config, found["estimates"]),
        _cost(config, found["cost"]),
        _inverse(config, found["inverse"]),
        applications.identification(config, found["ridge"]),
        applications.learned(config, found["learning"]),
    )


def _estimates(config: ConfigDict, found: Arrays) -> Section:
    sizes = config.estimates.sizes
    forms = ("fastfood", "random phase", "sine, its own kernel", "sine, the Gaussian")
    titles = dict(zip(forms, ("pairs of cosine and sine", "one cosine, random phase", *forms[2:]), strict=True))
    lines = {titles[name]: found[name] for name in forms}
    rows: list[tuple[Cell, ...]] = [
        (
            NAMES[name],
            size,
            where or "images",
            with_interval(over_draws(found[key][:, k]), digits=4),
            _ratio(found, key, k),
        )
        for where in ("", "components")
        for name in MAPS
        for k, size in ((len(sizes) - 1, sizes[-1]),)
        for key in (("small " if where else "") + name,)
    ]
    return Section(
        "How well they estimate a kernel",
        (
            f"Gaussian kernel at the median distance, mean value {float(found['mean kernel']):.2f}. The error is the "
            f"root mean square over all pairs of {config.estimates.num_images} different images; bands and intervals "
            f"are 95 % of the mean over {config.estimates.num_draws} draws. In theory, independent "
            "frequencies give (1 - k^2) / sqrt(2 f) for each pair.",
            pictures.of_maps(found, prefix="", title="The images", name="maps.svg"),
            pictures.of_maps(
                found,
                prefix="small ",
                name="maps_small.svg",
                title=f"Their {config.estimates.small_dim} leading principal components",
            ),
            "Errors fall with the root of the number of frequencies. Orthogonal rows, which SORF has as well, gain "
            "as blocks of d frequencies become full, because such rows cover all directions evenly. Fastfood varies "
            "somewhat more than independent rows. The rows of SORF have one length: this causes a bias of order 1 / d, "
            "which does not fall and is visible for small d.",
            pictures.error_curves(found["sizes"], lines, title="Forms of Fastfood", name="forms.svg"),
            "A random phase costs variance. The sine alone falls on its own kernel and not on the Gaussian.",
            Table(
                ("map", "frequencies", "points", "error", "mean square beside kitchen sinks"),
                rows,
                "Pairs of cosine and sine, 95 % intervals over draws",
            ),
        ),
    )


def _cost(config: ConfigDict, found: Arrays) -> Section:
    dims = np.asarray(config.cost.dims)
    lines = []
    for work in cost.WORK:
        for name in cost.STRUCTURED:
            low, middle, high = np.quantile(cost.ratios(found, name, work), (0.25, 0.5, 0.75), axis=1)
            lines.append(Curve(f"{NAMES[name]}, {work}", dims, middle, low, high))
    figure = figures.curves(
        lines, x_label="dimension d", y_label="dense time / its time", title="Beside a dense product", log_x=True,
        log_y=True, reference=1.0,
    )  # fmt: skip
    memory = figures.curves(
        [
            Curve(NAMES.get(name, name), dims, found[f"bytes/{name}"] / 2**20)
            for name in (cost.DENSE, *cost.STRUCTURED)
        ],
        x_label="dimension d", y_label="parameters, MB", title="Memory", log_x=True, log_y=True,
    )  # fmt: skip
    rows: list[tuple[Cell, ...]] = [
        (
            int(d), int(config.cost.expansion * d),
            *(Estimate(1000 * float(np.median(found[f"{name}/{work}"][k])), digits=2) for work in cost.WORK
              for name in (cost.DENSE, "fastfood")),
            with_interval(Interval(*np.quantile(ratio[k], (0.5, 0.25, 0.75)))),
            Estimate(float(found[f"bytes/{cost.DENSE}"][k] / found["bytes/fastfood"][k]), digits=0),
        )
        for ratio in (cost.ratios(found, "fastfood", "projection"),)
        for k, d in enumerate(dims)
    ]  # fmt: skip
    crossings = [f"{work}: {_crossover(config, found, work)}" for work in cost.WORK]
    return Section(
        "What they cost",
        (
            f"{config.cost.num_vectors} vectors in float32, f = {config.cost.expansion} d, on the machine that made "
            "this page: median of repeats in turn, quartiles as bands. The dense side is one matrix product.",
            Picture("time.svg", figures.to_svg(figure), "Above 1 the structured map is the faster one."),
            "From this dimension on Fastfood is the faster one, of those tried: " + "; ".join(crossings) + ".",
            Picture("memory.svg", figures.to_svg(memory), "Parameters of a map."),
            Table(
                ("d", "f", "V x: dense, ms", "V x: Fastfood", "sin V x: dense", "sin V x: Fastfood",
                 "V x: dense / Fastfood", "parameters: dense / Fastfood"),
                rows,
                "Median; the ratio with its quartiles",
            ),
        ),
    )  # fmt: skip


def _inverse(config: ConfigDict, found: Arrays) -> Section:
    ratios = np.asarray(config.inverse.ratios)
    expansion = max(config.inverse.expansions)
    folded = found[f"folded/{expansion}"].mean(axis=1)
    expected = [2 * statistics.NormalDist().cdf(-np.pi / 2 / ratio) for ratio in ratios]
    shares = {
        f"reported by {name}": found[f"share/{name}/{expansion}"].mean(axis=1)
        for name in ("arcsin, clipped", "sine, Gauss-Newton")
    }
    figure = figures.curves(
        [
            Curve("in truth", ratios, folded),
            Curve("V x ~ N(0, |x|^2 / sigma^2)", ratios, expected),
            *(Curve(name, ratios, share) for name, share in shares.items()),
        ],
        x_label="|x| / sigma", y_label="share of |V x| beyond pi / 2", title="What the validity report says",
    )  # fmt: skip
    rows: list[tuple[Cell, ...]] = [
        (
            float(ratio), Estimate(100 * float(folded[k]), digits=2),
            *(_two_digits(np.median(found[f"{what}/{name}/{expansion}"][k])) for name in inverse.METHODS
              for what in ("error", "residual")),
        )
        for k, ratio in enumerate(ratios)
    ]  # fmt: skip
    columns = [f"{name}: {what}" for name in inverse.METHODS for what in ("error", "residual")]
    blocks: list[Block] = [
        f"{config.inverse.num_images} faces minus their mean, of one length; |x| / sigma sets the bandwidth. An "
        "inverse is exact for |V x| within pi / 2 for the sine, within pi for pairs; beyond, entries fail one by one.",
        *(pictures.of_round_trips(found, each) for each in config.inverse.expansions),
        "Keeping cosine and sine doubles the exact range. Beyond it, clipping distorts the image, and Gauss-Newton "
        "recovers the image as long as its start is near enough. The residual tells the two cases apart: it is small "
        "exactly where the image is right.",
        pictures.there_and_back(found),
        Picture("validity.svg", figures.to_svg(figure), "Mean over the images."),
        "A clipped inverse cannot detect folded entries: its image is too short, and the reported share too low. "
        "Read the residual.",
        Table(("|x| / sigma", "folded %", *columns), rows, f"Medians over the images, {expansion} times"),
    ]
    return Section("The way back to the image", blocks)


def _two_digits(value: float) -> float:
    return float(f"{value:.1e}")


def _ratio(found: Arrays, key: str, k: int) -> Cell:
    """Mean square error beside that of kitchen sinks on the same points, a geometric mean over draws."""
    prefix = "small " if key.startswith("small ") else ""
    if key == f"{prefix}kitchen_sinks":
        return Estimate(1.0, digits=2)
    logs = [2 * np.log(found[name][:, k]) for name in (key, f"{prefix}kitchen_sinks")]
    log_ratio = intervals.paired_interval(*logs, test_to_train=0.0, within=intervals.SIGNED)
    return with_interval(Interval(*np.exp(np.array(log_ratio))))


def _times(ratio: float) -> str:
    return f"{ratio:.1f} times as fast" if ratio >= 1 else f"{1 / ratio:.1f} times as slow"


def _crossover(config: ConfigDict, found: Arrays, work: str) -> str:
    ratio = np.median(cost.ratios(found, "fastfood", work), axis=1)
    place = cost.crossover(np.asarray(config.cost.dims), ratio)
    return "none tried" if place is None else str(place)
