"""Who of many, or a stranger? The saved verifier among its own test people, with one enrolled photo each.

Half of the test people with two photos are enrolled, one photo of everybody is the probe. The threshold of a rate of
false names comes from the calibration people, who are all strangers here.
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
from jaxface.metrics.intervals import Interval
from jaxface.reports.html import Section
from jaxface.reports.tables import Cell, Estimate, Table, percent_interval
from jaxface.verifier import Gallery, Identification, Verifier

FEWEST = 5  # enrolled people


class Probes(NamedTuple):
    """A gallery with one photo of each person, and one probe of everybody."""

    gallery: Gallery
    probes: np.ndarray  # [q, r]
    mate: np.ndarray  # int [q], row of the gallery; -1 for strangers
    held_out: np.ndarray  # [h, r], of calibration people
    held_out_ids: np.ndarray  # int [h]


def section(config: ConfigDict, model: Verifier, vectors: Vectors, split: Split) -> Section | None:
    """The table of identification; None with too few people."""
    drawn = draw(config, model, vectors, split)
    if drawn is None:
        return None
    thresholds = {far: threshold(model, drawn, far) for far in config.far}
    plain = dataclasses.replace(model, presence=None)
    rows = [(f"ratios of pairs, prior {config.presence_prior:g}", *_rates(config, plain, drawn, None))]
    if model.presence is not None:
        rows.append((f"evidence, prior {config.presence_prior:g}", *_rates(config, model, drawn, None)))
    rows += [(_stated(far, found), *_rates(config, model, drawn, found.threshold)) for far, found in thresholds.items()]
    head = ("rule", "threshold", "strangers given a name %", "enrolled called unknown %", "given another name %")
    return Section(
        "Somebody enrolled, or a stranger",
        (
            f"{len(drawn.gallery.counts):,} test people are enrolled with one photo each, "
            f"{np.count_nonzero(drawn.mate < 0):,} other test people are strangers, and everybody shows one probe. The "
            "best of many ratios decides here. The evidence is calibrated on this task, with the calibration people. "
            "The rules with a FAR take the threshold that so many of the calibration people pass.",
            Table(head, rows, "The saved verifier; 95 % intervals of Wilson, one probe a person"),
        ),
    )


def draw(config: ConfigDict, model: Verifier, vectors: Vectors, split: Split) -> Probes | None:
    """Who is enrolled and what is probed, at random."""
    rng = np.random.default_rng((config.seed, 4))
    rows = rng.permutation(split.test)
    people = vectors.ids[rows]
    names, first, counts = np.unique(people, return_index=True, return_counts=True)
    several = rng.permutation(names[counts > 1])
    enrolled = several[: max(len(several) // 2, min(FEWEST, len(several)))]
    if len(enrolled) < FEWEST or len(enrolled) == len(names):
        return None
    first_of = dict(zip(names.tolist(), first.tolist(), strict=True))
    shown = rows[[first_of[person] for person in enrolled.tolist()]]
    rest = np.setdiff1d(np.arange(len(rows)), [first_of[person] for person in enrolled.tolist()])
    probed, place = np.unique(people[rest], return_index=True)
    z = np.asarray(verifier.encode_vectors(model, jnp.asarray(vectors.x)))
    gallery = verifier.enroll(z[shown], np.arange(len(shown)), num_people=len(shown))
    row_of = {person: k for k, person in enumerate(enrolled.tolist())}
    mate = np.array([row_of.get(person, -1) for person in probed.tolist()])
    return Probes(gallery, z[rows[rest[place]]], mate, z[split.held_out], dense(vectors.ids[split.held_out]).ids)


def threshold(model: Verifier, drawn: Probes, far: float) -> StrangerThreshold:
    """The threshold that a share `far` of the calibration people pass against this gallery."""
    best = verifier.identify(model, drawn.gallery, drawn.held_out, prior=0.5).evidence
    return metrics.stranger_threshold(best, drawn.held_out_ids, far=far)


def _stated(far: float, found: StrangerThreshold) -> str:
    low, high = (100 * end for end in (found.far.low, found.far.high))
    return f"FAR {100 * far:g} %, stated as {low:.2g} to {high:.2g} %, of {found.num_people:,} people"


def _rates(config: ConfigDict, model: Verifier, drawn: Probes, least: float | None) -> tuple[Cell, ...]:
    """The threshold and the three rates of a rule."""
    found = verifier.identify(model, drawn.gallery, drawn.probes, prior=config.presence_prior, threshold=least)
    return (Estimate(found.threshold, digits=2), *(percent_interval(each, digits=1) for each in rates(drawn, found)))


def rates(drawn: Probes, found: Identification) -> tuple[Interval, Interval, Interval]:
    """Strangers given a name, enrolled people called unknown, enrolled people given another name."""
    known = drawn.mate >= 0
    wrong = found.is_named & (found.person != drawn.mate)
    return (
        _share(found.is_named[~known]),
        _share(~found.is_named[known]),
        _share(wrong[known]),
    )


def _share(hits: np.ndarray) -> Interval:
    return metrics.wilson(int(np.count_nonzero(hits)), len(hits))
