"""How often 95 % intervals hold the truth, on simulated data whose truth is known: the tables of docs/metrics.md.

    python -m tests.metrics.coverage              both tables, half a minute of one core
    python -m tests.metrics.coverage --sets=50    of fewer data sets

Of people and pairs: data sets of 40 people with 4 images, whose images vary more for some people than for others; the
truth is the EER of 6,000 such people. Of splits: sets of independent splits; sets without an interval are left out.
"""

import argparse
import math
from typing import NamedTuple

import numpy as np

from jaxface import metrics
from jaxface.metrics import intervals
from tests.metrics.people import people_pairs

PEOPLE, IMAGES = 40, 4


class Held(NamedTuple):
    """What intervals by one kind of bootstrap did."""

    held: int
    width: float  # mean, of the EER


class Quantity(NamedTuple):
    """A statistic of a split: errors in so many trials, or a log-normal number where there are none."""

    name: str
    rate: float
    trials: int
    splits: int


QUANTITIES = (
    Quantity("rate 20 % in 40 trials", 0.2, 40, 5),
    Quantity("rate 5 % in 40 trials", 0.05, 40, 5),
    Quantity("rate 1 % in 80 trials", 0.01, 80, 5),
    Quantity("rate 1 % in 80 trials", 0.01, 80, 10),
    Quantity("rate 1 % in 400 trials", 0.01, 400, 20),
    Quantity("positive, skewed", 0.6, 0, 5),  # the standard deviation of the logarithm
    Quantity("positive, skewed", 0.6, 0, 20),
)


def population(rng: np.random.Generator) -> float:
    """The EER of many people: the mean over ten sets of 600."""
    sets = (people_pairs(rng, num_people=600, images=IMAGES) for _ in range(10))
    return float(np.mean([metrics.eer(metrics.roc(scores, same)) for scores, same, *_ in sets]))


def interval_of_pairs(
    rng: np.random.Generator, scores: np.ndarray, same: np.ndarray, num_resamples: int
) -> tuple[float, float]:
    """The 95 % interval of the EER from resampled pairs, the usual mistake."""
    genuine, impostor = scores[same], scores[~same]
    labels = np.arange(scores.size) < genuine.size
    drawn = []
    for _ in range(num_resamples):
        resample = np.concatenate([rng.choice(genuine, genuine.size), rng.choice(impostor, impostor.size)])
        drawn.append(metrics.eer(metrics.roc(resample, labels)))
    low, high = np.quantile(drawn, [0.025, 0.975])
    return float(low), float(high)


def of_people_and_pairs(rng: np.random.Generator, num_sets: int) -> tuple[float, float, dict[str, Held]]:
    """The truth, the standard deviation of the EER over data sets, and how often either interval holds the truth."""
    truth, found = population(rng), []
    for _ in range(num_sets):
        scores, same, first, second = people_pairs(rng, num_people=PEOPLE, images=IMAGES)
        people = metrics.subject_bootstrap(scores, same, first, second, rng=rng, num_resamples=400).eer
        found.append((people.estimate, people.low, people.high, *interval_of_pairs(rng, scores, same, 200)))
    eers, *ends = np.array(found).T
    held = {
        name: Held(int(((low <= truth) & (truth <= high)).sum()), float((high - low).mean()))
        for name, (low, high) in {"people": ends[:2], "pairs": ends[2:]}.items()
    }
    return truth, float(eers.std(ddof=1)), held


def of_splits(rng: np.random.Generator, quantity: Quantity, num_sets: int) -> tuple[float, float, float]:
    """Shares of sets whose truth lies in Student's t interval and in that inside the range; of the first below zero."""
    shape = num_sets, quantity.splits
    if quantity.trials:
        values, truth = rng.binomial(quantity.trials, quantity.rate, shape) / quantity.trials, quantity.rate
        within = intervals.RATE
    else:
        values, truth = np.exp(quantity.rate * rng.normal(size=shape)), math.exp(quantity.rate**2 / 2)
        within = intervals.POSITIVE
    plain, inside = (
        np.array([intervals.split_interval(each, test_to_train=0.0, within=ends)[1:] for each in values])
        for ends in (intervals.SIGNED, within)
    )
    has = ~np.isnan(plain[:, 0])
    share = [((each[has, 0] <= truth) & (truth <= each[has, 1])).mean() for each in (plain, inside)]
    return float(share[0]), float(share[1]), float((plain[has, 0] < 0).mean())


def main() -> None:
    """Prints both tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sets", type=int, default=200, help="of people; a hundred times as many of splits")
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args()
    rng = np.random.default_rng(given.seed)
    truth, deviation, held = of_people_and_pairs(rng, given.sets)
    print(f"EER of the population {truth:.3f}, standard deviation from set to set {deviation:.3f}")
    for name, each in held.items():
        print(f"| {name} | {each.width:.3f} | {each.held} of {given.sets} |")
    for quantity in QUANTITIES:
        shares = of_splits(rng, quantity, 100 * given.sets)
        print(
            f"| {quantity.name} | {quantity.splits} | " + " | ".join(f"{100 * share:.1f} %" for share in shares) + " |"
        )


if __name__ == "__main__":
    main()
