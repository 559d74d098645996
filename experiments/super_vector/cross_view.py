"""Retrieval across views: the query is one view of a person, the gallery the other view of everybody.

Models see people who are in neither. A query brings its view alone, so the other one is missing: its latent posterior,
its guess of the other view and the log-likelihood ratio of "one pair" against "two" are what the model has to offer.
"""

from collections.abc import Iterator, Mapping
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from ml_collections import ConfigDict

from experiments.super_vector.sets import Sets
from jaxface import mixtures
from jaxface.core import machine, prng
from jaxface.core.blocks import each_row
from jaxface.core.fitinfo import Status, raise_if_failed
from jaxface.data import pairs, splits
from jaxface.linalg import distances
from jaxface.metrics import identification
from jaxface.mixtures import PCCAMixture
from jaxface.subspace import pca, transform

TRAINING = ("captures", "people")  # what a model is fitted to: pairs of one capture, or all pairs of one person
TASKS = ("same capture", "another capture")  # what the first answer must be; of the same person
SCORES = ("no model, cosine", "CCA, cosine", "posterior means, cosine", "predicted view, cosine", "likelihood ratio")


class People(NamedTuple):
    """Both views of people to train on and of others to ask about."""

    train: tuple[np.ndarray, np.ndarray]  # [s, n], [s, m]
    train_ids: np.ndarray
    queries: jax.Array  # [q, n]
    gallery: jax.Array  # [q, m], row j is the other view of query j
    ids: np.ndarray  # [q]
    is_one_space: bool  # whether a view can be compared to the other as it is


def random_people(config: ConfigDict, sets: Sets) -> Iterator[People]:
    """Half of the people train, the others ask."""
    half = len(sets.names) // 2
    parts = splits.identity_disjoint(
        sets.ids,
        num_people=(half, len(sets.names) - half),
        rng=np.random.default_rng((config.seed, 3)),
        num_splits=config.num_splits,
    )
    widths, num_axes = {view.shape[1] for view in sets.values}, config.views.num_axes
    is_one_space = len(widths) == 1 and (num_axes is None or num_axes >= max(widths))
    for part in parts:
        train, asked = part == 0, part == 1
        x, y = (_reduced(view, train, num_axes) for view in sets.values)
        given = np.asarray(x[train]), np.asarray(y[train])
        yield People(given, sets.ids[train], x[asked], y[asked], sets.ids[asked], is_one_space)


def _reduced(view: jax.Array, train: np.ndarray, num_axes: int | None) -> jax.Array:
    """A view `[i, n]`; where it has more than `num_axes`, in the principal coordinates of its training rows."""
    if num_axes is None or num_axes >= view.shape[1]:
        return view
    axes, info = pca.fit(view[train], num_components=num_axes)
    raise_if_failed(info, "PCA of a view")
    return each_row(transform, axes, view)


def training_pairs(people: People, training: str, *, max_images: int) -> tuple[np.ndarray, np.ndarray]:
    """What a model is fitted to: the captures, or every x of a person with every y, at most `max_images` of each."""
    x, y = people.train
    if training == TRAINING[0]:
        return x, y
    rows = pairs.limited(people.train_ids, max_rows=max_images)
    ids = people.train_ids[rows]
    first, second = np.nonzero(ids[:, None] == ids[None, :])
    return x[rows[first]], y[rows[second]]


def rates(config: ConfigDict, people: People, number: int) -> Mapping[str, np.ndarray]:
    """Rank-1 rates of one split: `[models, training, scores, tasks]`, and `[dims, training, scores, tasks]` of CCA.

    `[models, training]` says where the noise needed its floor.
    """
    given = [training_pairs(people, training, max_images=config.max_images) for training in TRAINING]
    found, floored = [], []
    for num_components in config.views.components:
        fits = [_fitted(config, each, number, num_components) for each in given]
        found.append([_rank_one(model, people) for model, _ in fits])
        floored.append([jitter > 0 for _, jitter in fits])
    by_dim = []
    for latent_dim in config.views.latent_dims:
        closed = [_closed(config, each, latent_dim) for each in given]
        by_dim.append([_rank_one(model, people) for model in closed])
    return {"rank one": np.array(found), "floored": np.array(floored), "rank one by dimension": np.array(by_dim)}


def _fitted(
    config: ConfigDict, given: tuple[np.ndarray, np.ndarray], number: int, num_components: int
) -> tuple[PCCAMixture, float]:
    """One component is CCA in closed form; more are fitted by EM, with full noise that may need its floor."""
    if num_components == 1:
        return _closed(config, given, config.views.latent_dim), 0.0
    key = prng.stream(jax.random.fold_in(jax.random.key(config.seed), number), f"{num_components} components")
    start = mixtures.init(
        key, *given, num_components=num_components, latent_dim=config.views.latent_dim, full_noise=True,
        ridge=config.views.ridge,
    )  # fmt: skip
    model, info = mixtures.fit(*given, start, num_iters=config.views.num_iters, floor=config.views.ridge)
    if int(info.status) != Status.RANK_DEFICIENT:  # the floor, which the report tells
        raise_if_failed(info, "mixture across views")
    return model, float(info.jitter)


def _closed(config: ConfigDict, given: tuple[np.ndarray, np.ndarray], latent_dim: int) -> PCCAMixture:
    model, info = mixtures.closed_form(*given, latent_dim=latent_dim, ridge=config.views.ridge)
    raise_if_failed(info, "CCA")
    return model


def _rank_one(model: PCCAMixture, people: People) -> np.ndarray:
    """`[scores, tasks]`; without a model only views of one space can be compared."""
    found = [_rates_of(scores, people.ids) for scores in similarities(model, people.queries, people.gallery)]
    return np.array([_raw_rates(people) if people.is_one_space else (np.nan, np.nan), *found])


def _rates_of(scores: jax.Array, ids: np.ndarray) -> tuple[float, float]:
    """Rank-1 rates of scores `[g, q]` for both tasks."""
    matrix = np.array(scores)
    captures = np.arange(len(ids))
    same = 1 - identification.nearest_neighbor_error(matrix, captures, captures)
    np.fill_diagonal(matrix, -np.inf)
    return same, 1 - identification.nearest_neighbor_error(matrix, ids, ids)


def _raw_rates(people: People) -> tuple[float, float]:
    left, right = (view - view.mean(axis=0)[None, :] for view in (people.queries, people.gallery))
    return _rates_of(_cosines(right, left), people.ids)


@jax.jit
def similarities(model: PCCAMixture, queries: jax.Array, gallery: jax.Array) -> tuple[jax.Array, ...]:
    """Scores `[g, q]` of every kind in `SCORES` but the first, which needs no model."""
    posterior_x = jax.vmap(lambda x: mixtures.latent_posterior(model, x=x))(queries)
    posterior_y = jax.vmap(lambda y: mixtures.latent_posterior(model, y=y))(gallery)
    shared_x, shared_y = (_weighted(each) for each in (posterior_x, posterior_y))
    shrunk = jnp.sqrt(jnp.maximum(mixtures.canonical_correlations(model), machine.eps(queries.dtype)))
    canonical = [_weighted(each._replace(mean=each.mean / shrunk[None])) for each in (posterior_x, posterior_y)]
    guess = jax.vmap(lambda x: mixtures.predict(model, x=x))(queries)
    middle = gallery.mean(axis=0)[None, :]
    return (
        _cosines(canonical[1], canonical[0]),
        _cosines(shared_y, shared_x),
        _cosines(gallery - middle, guess - middle),
        mixtures.llr_matrix(model, queries, gallery).T,
    )


def _weighted(posterior: mixtures.pcca.Posterior) -> jax.Array:
    """Posterior means times the roots of the responsibilities `[q, k d]`: a component compares only to itself."""
    weight = jnp.exp(posterior.log_responsibilities / 2)
    return (weight[:, :, None] * posterior.mean).reshape(len(weight), -1)


def _cosines(gallery: jax.Array, queries: jax.Array) -> jax.Array:
    return distances.normalize(gallery) @ distances.normalize(queries).T
