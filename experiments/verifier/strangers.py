"""Who of many, or a stranger? The saved verifier among its own test people, with one enrolled photo each.

Half of the test people with two photos are enrolled, one photo of everybody is the probe, and this is drawn several
times. The threshold of a rate of false names comes from the calibration people, who are all strangers here.
"""

import dataclasses
from typing import NamedTuple

import jax.numpy as jnp
import numpy as np
from ml_collections import ConfigDict

from experiments.common.inputs import Vectors
from jaxface import metrics, verifier
from jaxface.core.labels import dense
from jaxface.data.splits import Split
from jaxface.metrics.identification import StrangerThreshold
from jaxface.reports.html import Section
from jaxface.reports.tables import Cell, Estimate, Table, percent_interval
from jaxface.verifier import Gallery, Identification, Verifier

FEWEST = 5  # enrolled people
NUM_DRAWS = 20
_MOST_PROBES = 12_000  # of all draws: many people need fewer draws


class Probes(NamedTuple):
    """A gallery with one photo of each person, and one probe of everybody."""

    gallery: Gallery
    probes: np.ndarray  # [q, r]
    mate: np.ndarray  # int [q], row of the gallery; -1 for strangers
    held_out: np.ndarray  # [h, r], of calibration people
    held_out_ids: np.ndarray  # int [h]


def section(config: ConfigDict, model: Verifier, vectors: Vectors, split: Split) -> Section | None:
    """The table of identification; None with too few people."""
    games = draws(config, model, vectors, split)
    if not games:
        return None
    first = games[0]
    rules: list[tuple[str, Verifier, float | None]] = [
        (f"ratios of pairs, prior {config.presence_prior:g}", dataclasses.replace(model, presence=None), None)
    ]
    if model.presence is not None:
        rules.append((f"evidence, prior {config.presence_prior:g}", model, None))
    rules += [(_stated(far, threshold(model, first, far)), model, far) for far in config.far]
    rows = [(name, *_cells(config, each, games, far)) for name, each, far in rules]
    head = ("rule", "threshold", "strangers given a name %", "enrolled called unknown %", "given another name %")
    return Section(
        "Somebody enrolled, or a stranger",
        (
            f"{len(first.gallery.counts):,} test people are enrolled with one photo each, "
            f"{np.count_nonzero(first.mate < 0):,} other test people are strangers, and everybody shows one probe. The "
            "best of many ratios decides here. The evidence is calibrated on this task, with the calibration people. "
            "The rules with a FAR take the threshold that so many of the calibration people pass.",
            Table(
                head,
                rows,
                f"The saved verifier, mean of {len(games)} draws of who is enrolled; 95 % intervals of Wilson for the "
                "people of one draw",
            ),
        ),
    )


def draws(config: ConfigDict, model: Verifier, vectors: Vectors, split: Split) -> list[Probes]:
    """Several draws of who is enrolled and what is probed; none with too few people."""
    z = np.asarray(verifier.encode_vectors(model, jnp.asarray(vectors.x)))
    rng = np.random.default_rng((config.seed, 4))
    number = max(1, min(NUM_DRAWS, _MOST_PROBES // len(np.unique(vectors.ids[split.test]))))
    drawn = [draw(z, vectors.ids, split, rng) for _ in range(number)]
    return [each for each in drawn if each is not None]


def draw(z: np.ndarray, ids: np.ndarray, split: Split, rng: np.random.Generator) -> Probes | None:
    """Who is enrolled and what is probed, at random, from coordinates `[n, r]`."""
    rows = rng.permutation(split.test)
    people = ids[rows]
    names, first, counts = np.unique(people, return_index=True, return_counts=True)
    several = rng.permutation(names[counts > 1])
    enrolled = several[: max(len(several) // 2, min(FEWEST, len(several)))]
    if len(enrolled) < FEWEST or len(enrolled) == len(names):
        return None
    first_of = dict(zip(names.tolist(), first.tolist(), strict=True))
    shown = rows[[first_of[person] for person in enrolled.tolist()]]
    rest = np.setdiff1d(np.arange(len(rows)), [first_of[person] for person in enrolled.tolist()])
    probed, place = np.unique(people[rest], return_index=True)
    gallery = verifier.enroll(z[shown], np.arange(len(shown)), num_people=len(shown))
    row_of = {person: k for k, person in enumerate(enrolled.tolist())}
    mate = np.array([row_of.get(person, -1) for person in probed.tolist()])
    return Probes(gallery, z[rows[rest[place]]], mate, z[split.held_out], dense(ids[split.held_out]).ids)


def threshold(model: Verifier, drawn: Probes, far: float) -> StrangerThreshold:
    """The threshold that a share `far` of the calibration people pass against this gallery."""
    best = verifier.identify(model, drawn.gallery, drawn.held_out, prior=0.5).evidence
    return metrics.stranger_threshold(best, drawn.held_out_ids, far=far)


def _stated(far: float, found: StrangerThreshold) -> str:
    low, high = (100 * end for end in (found.far.low, found.far.high))
    return f"FAR {100 * far:g} %, stated as {low:.2g} to {high:.2g} %, of {found.num_people:,} people"


def _cells(config: ConfigDict, model: Verifier, games: list[Probes], far: float | None) -> tuple[Cell, ...]:
    """The mean threshold and the three mean rates of a rule."""
    thresholds, each_rates = [], []
    for game in games:
        least = None if far is None else threshold(model, game, far).threshold
        found = verifier.identify(model, game.gallery, game.probes, prior=config.presence_prior, threshold=least)
        thresholds.append(found.threshold)
        each_rates.append(rates(game, found))
    known = int(np.count_nonzero(games[0].mate >= 0))
    people = (len(games[0].mate) - known, known, known)
    means = np.mean(each_rates, axis=0).tolist()
    shares = [metrics.wilson(mean * number, number) for mean, number in zip(means, people, strict=True)]
    return (Estimate(float(np.mean(thresholds)), digits=2), *(percent_interval(share, digits=1) for share in shares))


def rates(drawn: Probes, found: Identification) -> tuple[float, float, float]:
    """Shares of strangers given a name, of enrolled people called unknown, and of those given another name."""
    known = drawn.mate >= 0
    wrong = found.is_named & (found.person != drawn.mate)
    return float(found.is_named[~known].mean()), float(1 - found.is_named[known].mean()), float(wrong[known].mean())
