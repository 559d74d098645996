"""Who of a set takes part in a study: people with enough images, and of each so many that nobody dominates."""

import dataclasses

import numpy as np
from ml_collections import ConfigDict

from experiments.common import fields
from experiments.common.inputs import Vectors
from jaxface.data import pairs, people_with


def check(config: ConfigDict) -> None:
    """Refuses numbers of images that nobody can have."""
    fields.counts(config, "people.min_images")
    fields.counts(config, "people.max_images", minimum=2)


def chosen(config: ConfigDict, vectors: Vectors) -> Vectors:
    """The people with at least `config.people.min_images` rows, at most `max_images` of each; all if it is None."""
    people = people_with(vectors.ids, min_rows=config.people.min_images)
    if people.size < 2:
        raise ValueError(
            f"config.people.min_images = {config.people.min_images} leaves {people.size} people; the largest number of "
            f"images of a person is {np.bincount(vectors.ids).max()}. Ask for fewer."
        )
    rows = np.flatnonzero(np.isin(vectors.ids, people))
    if config.people.max_images is not None:
        rows = rows[pairs.limited(vectors.ids[rows], max_rows=config.people.max_images)]
    return dataclasses.replace(
        vectors,
        x=vectors.x[rows],
        ids=np.searchsorted(people, vectors.ids[rows]).astype(np.int32),
        names=tuple(vectors.names[person] for person in people),
        files=tuple(vectors.files[row] for row in rows) if vectors.files else (),
        images=None if vectors.images is None else vectors.images[rows],
    )


def in_words(config: ConfigDict, loaded: Vectors, vectors: Vectors) -> str:
    """How many take part, for a report."""
    if len(loaded.ids) == len(vectors.ids):
        return f"{len(vectors.names):,} people"
    few = f"with {config.people.min_images} images or more" if config.people.min_images > 1 else "there are"
    most = f", at most {config.people.max_images} images of each" if config.people.max_images is not None else ""
    return f"{len(vectors.names):,} of {len(loaded.names):,} people, all {few}{most}"
