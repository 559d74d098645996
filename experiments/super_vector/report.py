"""Tables and figures of the study of super vectors."""

from collections.abc import Callable, Mapping

import numpy as np
from ml_collections import ConfigDict

from experiments.common import ratios, trials
from experiments.common.verdicts import verdict
from experiments.super_vector import across_report, codes
from experiments.super_vector.codes import BASELINE, METHODS, SUPER
from experiments.super_vector.recognize import CLASSIFIERS, PAIR_SCORES, PAIRED
from jaxface.metrics import intervals
from jaxface.metrics.intervals import Interval
from jaxface.reports import figures
from jaxface.reports.figures import Curve
from jaxface.reports.html import Picture, Section
from jaxface.reports.tables import Cell, Table, intervals_over, percent_interval

Measured = Mapping[str, np.ndarray]  # by one number of training images, or across views
Arrays = Mapping[int, Measured]  # by the number of training images
_MEASURES = (*CLASSIFIERS, *(f"EER, {name}" for name in PAIR_SCORES))  # errors of identification, then of verification
_CHALLENGERS = (SUPER[2], SUPER[0])


def headline(config: ConfigDict, arrays: Arrays) -> Table:
    """Identification error of every vector by the nearest neighbour, at the default size."""
    rows: list[tuple[Cell, ...]] = [
        (method, *(_cell(measured, measured["errors"][0, m, 0]) for measured in arrays.values()))
        for m, method in enumerate(METHODS)
    ]
    return Table(
        ("vector", *(f"{num_train} images a person" for num_train in arrays)),
        rows,
        f"Identification error %, nearest neighbour by the cosine, {_size(config.num_components, config.latent_dim)}; "
        + intervals_over(config.num_splits, "random splits"),
    )


def sections(config: ConfigDict, arrays: Arrays, across: Measured | None) -> tuple[Section, ...]:
    """The body of the report."""
    body = [_classifiers(arrays), _differences(config, arrays), *_sizes(config, arrays)]
    body.append(_verification(config, arrays))
    return (*body, *([] if across is None else [across_report.section(config, across)]))


def results(config: ConfigDict, arrays: Arrays, across: Measured | None) -> dict[str, float]:
    """The headline numbers."""
    errors = {
        f"error %, {method}, {classifier}, {num_train} images": 100 * float(each["errors"][0, m, c].mean())
        for num_train, each in arrays.items()
        for m, method in enumerate(METHODS)
        for c, classifier in enumerate(CLASSIFIERS)
    }
    for num_train, each in arrays.items():
        named = zip(PAIRED, 100 * each["eer"][0].mean(axis=-1).ravel(), strict=True)
        errors |= {f"EER %, {name}, {num_train} images": float(eer) for name, eer in named}
        errors |= ratios.results(PAIRED, each, f"{num_train} images")
        for row, (k, d) in list(enumerate(codes.settings(config)))[1:]:
            for m, method in enumerate(METHODS):
                for c, classifier in enumerate(CLASSIFIERS):
                    name = f"error %, {method}, {classifier}, {num_train} images, {_size(k, d)}"
                    errors[name] = 100 * float(each["errors"][row, m, c].mean())
    if across is None:
        return errors
    return errors | across_report.results(config, across)


def _size(num_components: int, latent_dim: int) -> str:
    return f"{num_components} components, {latent_dim} latent dimensions"


def _shared(measured: Measured) -> float:
    """The ratio by which intervals are widened for the images that splits share."""
    return float(measured["test to train"].mean())


def _cell(measured: Measured, values: np.ndarray) -> Cell:
    return _rate(values, _shared(measured))


def _rate(values: np.ndarray, ratio: float) -> Cell:
    return percent_interval(intervals.split_interval(values, test_to_train=ratio, within=intervals.RATE))


def _gap(measured: Measured, row: int, vectors: tuple[str, str], measure: int, ratio: float) -> Interval:
    """The first of two vectors minus the second, by one measure at one size."""
    first, second = (_all_measures(measured)[row, METHODS.index(name), measure] for name in vectors)
    return intervals.paired_interval(first, second, test_to_train=ratio, within=intervals.RATE)


def _by_method(measured: Measured, of: str, kinds: tuple[str, ...], caption: str) -> Table:
    """The rates named `of`, `[settings, methods, kinds, splits]`, at the default size."""
    rows: list[tuple[Cell, ...]] = [
        (method, *(_cell(measured, each) for each in measured[of][0, m])) for m, method in enumerate(METHODS)
    ]
    return Table(("vector", *kinds), rows, caption)


def _classifiers(arrays: Arrays) -> Section:
    return Section(
        "Who is it?",
        (
            "Each vector with three classifiers. Intervals are widened for the images that splits share, so they "
            "hold for other images of such people.",
            *(
                _by_method(measured, "errors", CLASSIFIERS, f"Identification error %, {num_train} images a person")
                for num_train, measured in arrays.items()
            ),
        ),
    )


def _differences(config: ConfigDict, arrays: Arrays) -> Section:
    rows: list[tuple[Cell, ...]] = []
    for num_train, measured in arrays.items():
        for name in _CHALLENGERS:
            for m, measure in enumerate(_MEASURES):
                plain, wide = (_gap(measured, 0, (name, BASELINE), m, ratio) for ratio in (0.0, _shared(measured)))
                rows.append(
                    (num_train, name, measure, percent_interval(plain), percent_interval(wide), _verdict(plain))
                )
    labels, points = [], []
    by_size: list[tuple[Cell, ...]] = []
    for num_train, measured in arrays.items():
        for (k, d), row in sorted((size, row) for row, size in enumerate(codes.settings(config))):
            plain_gaps = [_gap(measured, row, (SUPER[2], BASELINE), m, 0.0) for m in range(len(_MEASURES))]
            by_size.append((num_train, k, d, *map(percent_interval, plain_gaps)))
            labels.append(f"{num_train} images, {k} components, {d} latent")
            points.append(100 * np.array(plain_gaps[0], float))
    value, low, high = np.array(points).T
    figure = figures.intervals(labels, value, low, high, x_label="difference of error, points")
    return Section(
        "Does the super vector win?",
        (
            _summary(config, arrays),
            "A row is the error rate of a vector minus that of both Fisher vectors joined, on the same splits; a "
            "negative number means fewer errors. The first interval holds for other splits of these images, the second "
            "is widened for the images that splits share.",
            Table(
                ("images a person", "vector", "measure", "these images", "other images", "verdict"),
                rows,
                f"Difference in points, 95 % intervals; {_size(config.num_components, config.latent_dim)}",
            ),
            Picture("differences.svg", figures.to_svg(figure), "Nearest neighbour, 95 % intervals for these images."),
            Table(
                ("images", "components", "latent", *_MEASURES),
                by_size,
                "Super vector minus both Fisher vectors at every size, points, 95 % intervals for these images",
            ),
        ),
    )


def _all_measures(measured: Measured) -> np.ndarray:
    """`[settings, methods, measures, splits]`."""
    return np.concatenate([measured["errors"], measured["eer"]], axis=2)


def _verdict(interval: Interval) -> str:
    return verdict(interval, below="fewer errors", above="more errors", neither="not shown")


def _summary(config: ConfigDict, arrays: Arrays) -> str:
    """The number of sizes at which the super vector is better, and worse, than the joined Fisher vectors, in words."""
    parts = []
    for m, measure in enumerate(_MEASURES):
        verdicts = [
            _verdict(_gap(measured, row, (SUPER[2], BASELINE), m, 0.0))
            for measured in arrays.values()
            for row in range(len(codes.settings(config)))
        ]
        better, worse = (verdicts.count(name) for name in ("fewer errors", "more errors"))
        parts.append(f"{measure}: better at {better} of {len(verdicts)} sizes, worse at {worse}")
    return (
        "Sizes at which the interval of super vector minus both Fisher vectors excludes zero. " + "; ".join(parts) + "."
    )


def _sizes(config: ConfigDict, arrays: Arrays) -> list[Section]:
    """Error against the number of components and of latent dimensions; nothing for a single size."""
    pairs = codes.settings(config)
    sweeps: tuple[tuple[str, Callable[[tuple[int, int]], bool], int], ...] = (
        ("components", lambda pair: pair[1] == config.latent_dim, 0),
        ("latent dimensions", lambda pair: pair[0] == config.num_components, 1),
    )
    pictures = []
    for num_train, measured in arrays.items():
        for what, belongs, place in sweeps:
            rows = sorted((pair[place], row) for row, pair in enumerate(pairs) if belongs(pair))
            if len(rows) < 2:
                continue
            lines = [
                Curve(name, [x for x, _ in rows], [100 * measured["errors"][row, m, 0].mean() for _, row in rows])
                for m, name in enumerate(METHODS)
                if m > 1
            ]
            figure = figures.curves(lines, x_label=what, y_label="error %", title=f"{num_train} images a person")
            name = f"{what.replace(' ', '_')}_{num_train}.svg"
            pictures.append(Picture(name, figures.to_svg(figure), "Nearest neighbour, mean over the splits."))
    if not pictures:
        return []
    words = (
        f"One number varies at a time, at {config.latent_dim} latent dimensions or {config.num_components} components. "
        "Fisher vectors have no latent dimensions."
    )
    return [Section("How many components, how many latent dimensions", (words, *pictures))]


def _verification(config: ConfigDict, arrays: Arrays) -> Section:
    return Section(
        "Verification",
        (
            "Do two images show one person? Joint Bayes was trained on other images of the same people. "
            + trials.rule(config.max_images, max(measured["largest share"].max() for measured in arrays.values())),
            *(
                _by_method(measured, "eer", PAIR_SCORES, f"EER %, {num_train} training images a person, 95 % intervals")
                for num_train, measured in arrays.items()
            ),
            ratios.WORDS + " A cosine is no ratio; Joint Bayes gives one.",
            *(
                ratios.table(
                    PAIRED,
                    measured,
                    test_to_train=_shared(measured),
                    caption=f"Scores as log-likelihood ratios, {num_train} training images a person",
                    first="vector, score",
                )
                for num_train, measured in arrays.items()
            ),
        ),
    )
