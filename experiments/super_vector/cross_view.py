"""Retrieval across views: a probe is one view of a person, the gallery is the other view of all people.

Models are fitted to other people. The second view of a probe is missing, so a model offers three scores: by the latent
posterior, by the predicted second view, and by the log-likelihood ratio of "one pair" against "two".
"""

from collections.abc import Iterator, Mapping
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from ml_collections import ConfigDict

from experiments.common import ratios
from experiments.common.ratios import Trials
from experiments.super_vector.sets import Sets
from jaxface import mixtures
from jaxface.core import machine, prng
from jaxface.core.blocks import each_row
from jaxface.core.fitinfo import Status, raise_if_failed
from jaxface.data import pairs, splits
from jaxface.linalg import distances
from jaxface.metrics import identification, verification
from jaxface.mixtures import PCCAMixture
from jaxface.subspace import pca, transform

TRAINING = ("captures", "people")  # a model is fitted to the pairs of captures, or to all pairs of each person
TASKS = ("same capture", "another capture")  # the right answer: this capture, or another capture of the person
SCORES = ("no model, cosine", "CCA, cosine", "posterior means, cosine", "predicted view, cosine", "likelihood ratio")
MEASURES = ("EER", "raw Cllr", "Cllr", "min Cllr")  # of verification across views

Pairs = tuple[np.ndarray, np.ndarray]  # [s, n], [s, m]


class People(NamedTuple):
    """Both views of people who train and of people who are searched."""

    train: Pairs
    train_ids: np.ndarray
    probes: jax.Array  # [q, n]
    gallery: jax.Array  # [q, m], row j is the other view of probe j
    ids: np.ndarray  # [q]
    is_one_space: bool  # whether the views can be compared without a model


def random_people(config: ConfigDict, sets: Sets) -> Iterator[People]:
    """Half of the people train, the others are searched."""
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
        train, test = part == 0, part == 1
        x, y = (_reduced(view, train, num_axes) for view in sets.values)
        pair = np.asarray(x[train]), np.asarray(y[train])
        yield People(pair, sets.ids[train], x[test], y[test], sets.ids[test], is_one_space)


def _reduced(view: jax.Array, train: np.ndarray, num_axes: int | None) -> jax.Array:
    """A view `[i, n]`, or the first `num_axes` principal coordinates where it has more dimensions."""
    if num_axes is None or num_axes >= view.shape[1]:
        return view
    axes, info = pca.fit(view[train], num_components=num_axes)
    raise_if_failed(info, "PCA of a view")
    return each_row(transform, axes, view)


def training_pairs(people: People, training: str, *, max_images: int) -> Pairs:
    """The captures, or every x of a person with every y, with at most `max_images` captures of a person."""
    x, y = people.train
    if training == TRAINING[0]:
        return x, y
    rows = pairs.limited(people.train_ids, max_rows=max_images)
    ids = people.train_ids[rows]
    first, second = np.nonzero(ids[:, None] == ids[None, :])
    return x[rows[first]], y[rows[second]]


def rates(config: ConfigDict, people: People, number: int) -> Mapping[str, np.ndarray]:
    """Rank-1 rates of one split: `[models, training, scores, tasks]`, and `[dims, training, scores, tasks]` of CCA.

    `floored` `[models, training]` is true where the noise was raised to its floor.
    """
    sets_of_pairs = [training_pairs(people, training, max_images=config.max_images) for training in TRAINING]
    rank_one, floored = [], []
    for num_components in config.views.components:
        fits = [fit(config, pairs, number, num_components) for pairs in sets_of_pairs]
        rank_one.append([rank_one_rates(model, people) for model, _ in fits])
        floored.append([jitter > 0 for _, jitter in fits])
    first = [fit(config, pairs, number, config.views.components[0])[0] for pairs in sets_of_pairs]
    verified = np.array([verification_measures(config, model, people) for model in first])
    by_dim = []
    for latent_dim in config.views.latent_dims:
        models = [fit_cca(config, pairs, latent_dim) for pairs in sets_of_pairs]
        by_dim.append([rank_one_rates(model, people) for model in models])
    found = {"rank one": np.array(rank_one), "floored": np.array(floored), "rank one by dimension": np.array(by_dim)}
    return found | {"verification": verified}


def fit(config: ConfigDict, pairs_of_views: Pairs, number: int, num_components: int) -> tuple[PCCAMixture, float]:
    """A model and its jitter: CCA in closed form for one component, EM with full noise for more of them."""
    if num_components == 1:
        return fit_cca(config, pairs_of_views, config.views.latent_dim), 0.0
    key = prng.stream(jax.random.fold_in(jax.random.key(config.seed), number), f"{num_components} components")
    settings = {"latent_dim": config.views.latent_dim, "full_noise": True, "ridge": config.views.ridge}
    start = mixtures.init(key, *pairs_of_views, num_components=num_components, **settings)
    model, info = mixtures.fit(*pairs_of_views, start, num_iters=config.views.num_iters, floor=config.views.ridge)
    if int(info.status) != Status.RANK_DEFICIENT:  # noise at its floor, which the report mentions
        raise_if_failed(info, "mixture across views")
    return model, float(info.jitter)


def fit_cca(config: ConfigDict, pairs_of_views: Pairs, latent_dim: int) -> PCCAMixture:
    """One component in closed form."""
    model, info = mixtures.closed_form(*pairs_of_views, latent_dim=latent_dim, ridge=config.views.ridge)
    raise_if_failed(info, "CCA")
    return model


def rank_one_rates(model: PCCAMixture, people: People) -> np.ndarray:
    """`[scores, tasks]`; NaN for "no model" where the views are not of one space."""
    by_model = [rates_of(scores, people.ids) for scores in similarities(model, people.gallery, people.probes)]
    return np.array([_raw_rates(people) if people.is_one_space else (np.nan, np.nan), *by_model])


def verification_measures(config: ConfigDict, model: PCCAMixture, people: People) -> np.ndarray:
    """`MEASURES` `[scores, measures]` of "do two captures, one in each view, show one person?".

    All pairs of different captures, at most `max_images` of a person; NaN for "no model" where the views are not of one
    space, and for the raw Cllr of a cosine.
    """
    rows = pairs.limited(people.ids, max_rows=config.max_images)
    ids, (first, second) = people.ids[rows], np.nonzero(~np.eye(len(rows), dtype=bool))
    gallery, probes = people.gallery[rows], people.probes[rows]
    matrices = [_raw_scores(gallery, probes) if people.is_one_space else None, *similarities(model, gallery, probes)]
    found = np.full((len(SCORES), len(MEASURES)), np.nan)
    for row, (name, matrix) in enumerate(zip(SCORES, matrices, strict=True)):
        if matrix is not None:
            trials = Trials(np.asarray(matrix, np.float64)[first, second], ids[first], ids[second])
            measured = ratios.measured(trials, seed=config.seed, is_ratio=name == SCORES[-1])
            eer = verification.eer(verification.roc(trials.scores, trials.is_same))
            found[row] = eer, *(float(measured[name]) for name in MEASURES[1:])
    return found


def rates_of(scores: jax.Array, ids: np.ndarray) -> tuple[float, float]:
    """Rank-1 rates of scores `[g, q]` for both tasks."""
    matrix = np.array(scores)
    captures = np.arange(len(ids))
    same = 1 - identification.nearest_neighbor_error(matrix, captures, captures)
    np.fill_diagonal(matrix, -np.inf)
    return same, 1 - identification.nearest_neighbor_error(matrix, ids, ids)


def _raw_rates(people: People) -> tuple[float, float]:
    return rates_of(_raw_scores(people.gallery, people.probes), people.ids)


def _raw_scores(gallery: jax.Array, probes: jax.Array) -> jax.Array:
    """Cosines `[g, q]` of centred views of one space."""
    return distances.cosine_matrix(*(view - view.mean(axis=0)[None, :] for view in (gallery, probes)))


@jax.jit
def similarities(model: PCCAMixture, gallery: jax.Array, probes: jax.Array) -> tuple[jax.Array, ...]:
    """Scores `[gallery, probes]` of every kind in `SCORES` except the first, which needs no model."""
    posterior_x = jax.vmap(lambda x: mixtures.latent_posterior(model, x=x))(probes)
    posterior_y = jax.vmap(lambda y: mixtures.latent_posterior(model, y=y))(gallery)
    latent_x, latent_y = (_weighted(posterior) for posterior in (posterior_x, posterior_y))
    shrinkage = jnp.sqrt(jnp.maximum(mixtures.canonical_correlations(model), machine.eps(probes.dtype)))[None]
    canonical_x, canonical_y = (
        _weighted(posterior._replace(mean=posterior.mean / shrinkage)) for posterior in (posterior_x, posterior_y)
    )
    predicted = jax.vmap(lambda x: mixtures.predict(model, x=x))(probes)
    mean = gallery.mean(axis=0)[None, :]
    return (
        distances.cosine_matrix(canonical_y, canonical_x),
        distances.cosine_matrix(latent_y, latent_x),
        distances.cosine_matrix(gallery - mean, predicted - mean),
        mixtures.llr_matrix(model, probes, gallery).T,
    )


def _weighted(posterior: mixtures.pcca.Posterior) -> jax.Array:
    """Posterior means times the roots of the responsibilities `[q, k d]`: no component is compared to another."""
    weight = jnp.exp(posterior.log_responsibilities / 2)
    return (weight[:, :, None] * posterior.mean).reshape(len(weight), -1)
