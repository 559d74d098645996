"""What each step of the normalisation brings to the super vector, and what the prior brings to Joint Bayes on it."""

from collections.abc import Mapping
from typing import Any

import jax
import numpy as np
from ml_collections import ConfigDict

from experiments.common import inputs
from experiments.common.publish import publish
from experiments.super_vector import codes, recognize, sets
from experiments.super_vector.codes import SUPER
from experiments.super_vector.sets import Sets
from jaxface import joint_bayes, mixtures
from jaxface.core import prng
from jaxface.core.fitinfo import raise_if_failed
from jaxface.data.splits import Split
from jaxface.linalg import distances
from jaxface.metrics import identification, intervals
from jaxface.mixtures import PCCAMixture, encoding, normalization
from jaxface.mixtures.encoding import FisherScores
from jaxface.reports.html import Section
from jaxface.reports.tables import Cell, Table, intervals_over, percent_interval
from jaxface.runtime.workdir import Workdir

SOURCE = "ablations"  # the value of `config.source` that asks for this study

Parts = tuple[jax.Array, ...]


def without_root(parts: Parts) -> jax.Array:
    """Rows of unit length and a vector of unit length."""
    return distances.normalize(normalization.concatenate(tuple(distances.normalize(part) for part in parts)))


def of_unit_length(parts: Parts) -> jax.Array:
    """A vector of unit length, with neither root nor rows of unit length."""
    return distances.normalize(normalization.concatenate(parts))


NORMALIZATIONS = {
    "root and unit rows": normalization.standard,
    "without unit rows": normalization.power,
    "without the root": without_root,
    "without both": of_unit_length,
}
METHODS = (
    *(f"{name}, nearest neighbour" for name in NORMALIZATIONS),
    "root and unit rows, Joint Bayes",
    "root and unit rows, Joint Bayes without a prior on the leading axes",
)


def run(config: ConfigDict, workdir: Workdir) -> dict[str, Any]:
    """One stage for each split and number of training images."""
    sets.check(config)
    workdir.uses(data=inputs.path_of(config.data))
    faces = sets.of_faces(config, inputs.load_faces(config.data))
    errors, ratios = {}, {}
    for num_train in config.num_train:
        parts = sets.stages(config, workdir, faces, num_train, of_split)
        errors[num_train] = np.stack([part["errors"] for part in parts], axis=-1)
        ratios[num_train] = float(np.mean([part["test to train"] for part in parts]))
    table = _table(config, errors, ratios)
    publish(
        workdir,
        title="The steps of the super vector's normalisation",
        lead=f"{len(faces.names)} people, {len(faces.ids)} images, {config.num_splits} random splits; the same super "
        "vectors with steps of their normalisation left out, and Joint Bayes with and without a prior.",
        headline=table,
        sections=(Section("Every step", (table,)),),
        credits=(faces.credit,),
    )
    return {
        f"error %, {method}, {num_train} images": 100 * float(of_methods[m].mean())
        for num_train, of_methods in errors.items()
        for m, method in enumerate(METHODS)
    }


def of_split(config: ConfigDict, faces: Sets, split: Split, number: int) -> dict[str, np.ndarray]:
    """Errors `[methods]` of one split."""
    key = jax.random.fold_in(jax.random.key(config.seed), number)
    descriptors = sets.descriptors_of(config, faces, split, number)
    settings = {"num_components": config.num_components, "latent_dim": config.latent_dim}
    model_key = prng.stream(key, f"{config.num_components} components")
    model = codes.fit_mixture(config, model_key, descriptors, **settings)
    views = descriptors.x, descriptors.y
    vectors = _vectors(model, views, mixtures.encode_batch(model, *views, encoder=encoding.closed_form))
    errors = [_nearest(each, faces.ids, split) for each in vectors.values()]
    standard = next(iter(vectors.values()))
    longest = codes.longest(descriptors, **settings)
    rates = recognize.evaluate(config, standard, faces.ids, split, longest=longest)
    errors += [rates.errors[recognize.CLASSIFIERS.index("Joint Bayes")], without_prior(config, standard, faces, split)]
    return {"errors": np.array(errors), "test to train": np.asarray(split.test_to_train)}


@jax.jit
def _vectors(model: PCCAMixture, views: Parts, scores: FisherScores) -> Mapping[str, jax.Array]:
    """The super vectors `[i, f]` of all images by every normalisation."""

    def of_image(views: Parts, scores: FisherScores) -> Mapping[str, jax.Array]:
        scoring = encoding.precomputed(scores)
        return {
            name: mixtures.super_vector(model, *views, scoring=scoring, normalization=normalize)
            for name, normalize in NORMALIZATIONS.items()
        }

    return jax.vmap(of_image)(views, scores)


def _nearest(vectors: jax.Array, ids: np.ndarray, split: Split) -> float:
    cosines = np.asarray(vectors[split.train] @ vectors[split.test].T)
    return float(identification.nearest_neighbor_error(cosines, ids[split.train], ids[split.test]))


def without_prior(config: ConfigDict, vectors: jax.Array, faces: Sets, split: Split) -> float:
    """The error of Joint Bayes on so few axes that it can be fitted without a prior."""
    y, _ = recognize.coordinates(vectors[split.train], vectors, width=config.leading_axes)
    known, ids = y[split.train], faces.ids[split.train]
    stats = joint_bayes.collect(known, ids, num_people=len(faces.names), shift=known.mean(axis=0))
    model, info = joint_bayes.fit(stats, joint_bayes.init(stats), num_iters=config.joint_bayes.num_iters)
    raise_if_failed(info, "Joint Bayes without a prior")
    scores = recognize.enrolled_scores(joint_bayes.diagonalize(model), known, ids, y[split.test])
    return float(identification.nearest_neighbor_error(scores, np.arange(len(scores)), faces.ids[split.test]))


def _table(config: ConfigDict, errors: Mapping[int, np.ndarray], ratios: Mapping[int, float]) -> Table:
    rows: list[tuple[Cell, ...]] = []
    for m, method in enumerate(METHODS):
        cells = [
            percent_interval(intervals.split_interval(each[m], test_to_train=ratios[k], within=intervals.RATE))
            for k, each in errors.items()
        ]
        rows.append((method, *cells))
    return Table(
        (SUPER[2], *(f"{num_train} images a person" for num_train in errors)),
        rows,
        f"Identification error %; {config.leading_axes} leading axes; "
        + intervals_over(config.num_splits, "random splits"),
    )
