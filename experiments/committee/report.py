"""Tables and figures of the study of committees."""

from collections.abc import Mapping, Sequence

import numpy as np
from ml_collections import ConfigDict

from experiments.committee import illustrations
from experiments.committee.methods import COMMITTEES, LEARNT, METHODS, OUT_OF_BAG, PAIRED, SINGLE
from experiments.common import ratios, trials
from experiments.common.verdicts import verdict
from jaxface.ensembles import RULES
from jaxface.metrics import intervals
from jaxface.metrics.intervals import Interval
from jaxface.reports import figures
from jaxface.reports.figures import Curve
from jaxface.reports.html import Picture, Section
from jaxface.reports.tables import Cell, Estimate, Table, intervals_over, percent_interval

Arrays = Mapping[int, Mapping[str, np.ndarray]]
_DEFAULT = len(SINGLE)  # random subspaces by the sum rule
_FROM_ALL = _DEFAULT + 1
REPEATED = "Here the floor leaves out no axis: random subspaces drawn from all axes are the same committee, shown once."
_PAIR_SCORES = {
    "cosine": "the cosine in their coordinates",
    "distance": "minus the squared distance in their coordinates",
    "same_class": "the probability that both images show one training person",
}


def headline(config: ConfigDict, arrays: Arrays) -> Table:
    """Error of every method at every number of training images."""
    rows: list[tuple[Cell, ...]] = [
        (METHODS[m], *(_cell(found, found["errors"][m]) for found in arrays.values())) for m in _shown(arrays)
    ]
    return Table(
        ("method", *(f"{num_train} images a person" for num_train in arrays)),
        rows,
        f"Identification error %, {intervals_over(config.num_splits, 'random splits')}{_left_out(arrays)}",
    )


def sections(config: ConfigDict, arrays: Arrays) -> tuple[Section, ...]:
    """The body of the report."""
    parts = (_differences(arrays), _rules(config, arrays), _out_of_bag(arrays), _sizes(arrays), _choice(arrays))
    return (*(part for part in parts if part is not None), _illustrated(arrays))


def _shown(arrays: Arrays) -> list[int]:
    """The methods in tables: those that were drawn, without one that is the default by another name."""
    errors = [found["errors"] for found in arrays.values()]
    drawn = [m for m in range(len(METHODS)) if not all(np.isnan(each[m]).all() for each in errors)]
    return [m for m in drawn if not (m == _FROM_ALL and repeats_default(errors))]


def _left_out(arrays: Arrays) -> str:
    is_repeated = repeats_default([found["errors"] for found in arrays.values()])
    return f". {REPEATED}" if is_repeated else ""


def repeats_default(errors: Sequence[np.ndarray]) -> bool:
    """Whether random subspaces of all axes make the errors `[methods, splits]` of the default on every split."""
    return all(np.array_equal(each[_DEFAULT], each[_FROM_ALL]) for each in errors)


def _cell(found: Mapping[str, np.ndarray], values: np.ndarray) -> Cell:
    """Mean of the rates `values` `[splits]`, its interval widened for the images that splits share."""
    if np.isnan(values).any():
        return "–"
    ratio = float(found["test to train"])
    return percent_interval(intervals.split_interval(values, test_to_train=ratio, within=intervals.RATE))


def _differences(arrays: Arrays) -> Section:
    rows: list[tuple[Cell, ...]] = []
    for num_train, found in arrays.items():
        for m in _shown(arrays):
            ours, theirs = found["errors"][_DEFAULT], found["errors"][m]
            if m == _DEFAULT or np.isnan(theirs).any():
                continue
            plain, wide = (
                intervals.paired_interval(ours, theirs, test_to_train=ratio, within=intervals.RATE)
                for ratio in (0.0, float(found["test to train"]))
            )
            rows.append((num_train, METHODS[m], percent_interval(plain), percent_interval(wide), _verdict(plain)))
    return Section(
        "Does the committee win?",
        (
            "The error of random subspaces with the sum rule minus that of each other method, on the same splits: "
            "negative means that the committee errs less. The first interval is for other splits of these images, the "
            "second is widened for the images that splits share.",
            Table(
                ("images a person", "committee against", "these images", "other images", "verdict"),
                rows,
                "Difference of error in points, 95 % intervals",
            ),
        ),
    )


def _verdict(interval: Interval) -> str:
    return verdict(interval, below="committee better", above="committee worse", neither="no difference shown")


def _rules(config: ConfigDict, arrays: Arrays) -> Section:
    rows: list[tuple[Cell, ...]] = [
        (rule, *(_cell(found, found["rules"][r]) for found in arrays.values()))
        for r, rule in enumerate((*RULES, LEARNT))
    ]
    pairs: list[tuple[Cell, ...]] = [
        (name, *(_cell(found, found["eer"][k]) for found in arrays.values())) for k, name in enumerate(PAIRED)
    ]
    head = tuple(f"{num_train} images a person" for num_train in arrays)
    return Section(
        "Fusion, and pairs of images",
        (
            "The same members under every rule. With minimum and maximum one overconfident member can decide.",
            Table(("rule", *head), rows, "Identification error %, random subspaces"),
            "Verification: is it one person? The score of a pair is the mean over the members of "
            f"{_PAIR_SCORES[config.pair_score]}. "
            + trials.rule(config.max_images, max(float(found["largest share"]) for found in arrays.values())),
            Table(("score", *head), pairs, "EER %, pairs of probes, people known from training"),
            ratios.WORDS,
            *(
                ratios.table(
                    PAIRED,
                    found,
                    test_to_train=float(found["test to train"]),
                    caption=f"Scores as log-likelihood ratios, {num_train} images a person",
                )
                for num_train, found in arrays.items()
            ),
        ),
    )


def _out_of_bag(arrays: Arrays) -> Section | None:
    """The errors of committees on bags by their own training images, beside those of the probes."""
    rows: list[tuple[Cell, ...]] = []
    for k, name in enumerate(OUT_OF_BAG):
        place = len(SINGLE) + COMMITTEES.index(name)
        for what, field, row in (("out of bag", "out of bag", k), ("probes", "errors", place)):
            values = [found[field][row] for found in arrays.values()]
            if not all(np.isnan(each).all() for each in values):
                cells = (_cell(found, each) for found, each in zip(arrays.values(), values, strict=True))
                rows.append((f"{name}, {what}", *cells))
    if not rows:
        return None
    return Section(
        "Without held-out images",
        (
            "Each training image is named by the members whose bags leave it out, with centres of their bags alone. "
            "They are fewer members with fewer images than the committee, so this error is the larger one.",
            Table(("committee", *(f"{num_train} images a person" for num_train in arrays)), rows, "Error %"),
        ),
    )


def _illustrated(arrays: Arrays) -> Section:
    pictures = [each for num_train, found in arrays.items() for each in illustrations.pictures(dict(found), num_train)]
    return Section(
        "What members say, and what the committee makes of it",
        ("The two people whose mean images are nearest to each other.", *pictures),
    )


def _sizes(arrays: Arrays) -> Section:
    pictures = []
    for num_train, found in arrays.items():
        lines = [
            Curve(f"{fixed} fixed + {drawn} random", np.arange(1, len(accuracy) + 1), 100 * (1 - accuracy))
            for fixed, drawn, accuracy in zip(found["fixed"], found["drawn"], found["accuracy"], strict=True)
        ]
        figure = figures.curves(
            lines, x_label="members", y_label="error %", title=f"{num_train} training images a person", markers=False
        )
        pictures.append(Picture(f"growth_{num_train}.svg", figures.to_svg(figure), "First split, sum rule."))
    rows: list[tuple[Cell, ...]] = [
        (
            int(num_train),
            int(fixed),
            int(drawn),
            Estimate(float(a), digits=3),
            Estimate(float(t), digits=3),
            Estimate(float(c), digits=2),
        )
        for num_train, found in arrays.items()
        for fixed, drawn, a, t, c in zip(
            found["fixed"],
            found["drawn"],
            found["average error"],
            found["committee error"],
            found["correlation"],
            strict=True,
        )
    ]
    return Section(
        "How many axes, how many members",
        (
            "The M0 leading axes are fixed, and M1 of the others are drawn at random for each member. E_av is the mean "
            "squared error of the members' posteriors, E_com that of their mean. The gap is the gain by diversity.",
            *pictures,
            Table(
                ("images a person", "M0", "M1", "E_av", "E_com", "mean correlation of errors"),
                rows,
                "First split, all members",
            ),
        ),
    )


def _choice(arrays: Arrays) -> Section:
    pictures = []
    for num_train, found in arrays.items():
        lines = [
            Curve("E_av, mean of the members", found["rho"], found["rho average error"]),
            Curve("E_com, committee", found["rho"], found["rho committee error"]),
            Curve("mean correlation of errors", found["rho"], found["rho correlation"]),
            Curve("0-1 error of the committee", found["rho"], found["rho error"]),
        ]
        figure = figures.curves(
            lines,
            x_label="candidates a member may choose from",
            y_label="error, correlation",
            log_x=True,
            title=f"{num_train} training images a person",
        )
        pictures.append(Picture(f"choice_{num_train}.svg", figures.to_svg(figure), "First split."))
    return Section(
        "Strength against diversity",
        (
            "Every member takes the best of some random subspaces, judged on held-out images. With more candidates a "
            "member is stronger and more like the others: E_com = E_av / T + sum over i != j of E[e_i'e_j] / T^2.",
            *pictures,
        ),
    )
