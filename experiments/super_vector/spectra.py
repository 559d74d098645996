"""Cross-spectral reconstruction: the second view of a capture from its first, by dictionaries and by regressions.

The two views of a capture are one vector, of which the first view is seen, as the eye region of a face is. Some of the
people who train choose settings.
"""

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from ml_collections import ConfigDict

from experiments.common import fields
from experiments.super_vector import cross_view
from experiments.super_vector.cross_view import Pairs, People
from experiments.super_vector.sets import Sets
from jaxface import hallucination, mixtures
from jaxface.core import prng
from jaxface.core.fitinfo import raise_if_failed
from jaxface.core.labels import dense
from jaxface.data import splits
from jaxface.linalg import distances
from jaxface.metrics import intervals
from jaxface.reports.html import Section
from jaxface.reports.tables import Cell, Table, percent_interval
from jaxface.runtime.log import progress

METHODS = ("the mean view", "DW-KSVD", "Fastfood DW-KSVD", "ridge regression", "CCA, predicted view")

Predict = Callable[[jax.Array], jax.Array]  # x [q, n] -> y [q, m]
Fit = Callable[[Pairs], Predict]


def check(config: ConfigDict) -> None:
    """Refuses values of `config.reconstruction` that no method can use."""
    part = "reconstruction"
    fields.counts(config, "num_atoms", "sparsities", "num_iters", "expansion", section=part)
    fields.positive(config, "beta", "ridges", section=part)
    fields.shares(config, "quantile", "tuning_part", above_zero=True, section=part)


def measure(config: ConfigDict, sets: Sets) -> dict[str, np.ndarray]:
    """`rates` `[methods, splits]` of every split of the people."""
    parts = progress(cross_view.random_people(config, sets), "reconstruction", total=config.num_splits)
    of_splits = [rates(config, people, number) for number, people in enumerate(parts)]
    return {name: np.stack([each[name] for each in of_splits], axis=-1) for name in of_splits[0]}


def rates(config: ConfigDict, people: People, number: int) -> dict[str, np.ndarray]:
    """Share of the variance of y that each method leaves `[methods]`, and its rank-1 rate for another capture."""
    key = prng.stream(jax.random.fold_in(jax.random.key(config.seed), number), "reconstruction")
    fits = candidates(config, key)
    chosen_fits = [chosen(config, people, fits[name], number) if name in fits else _mean for name in METHODS]
    mean, gallery = people.train[1].mean(axis=0)[None, :], np.asarray(people.gallery)
    left, rank_one = [], []
    for fit in chosen_fits:
        guess = fit(people.train)(people.probes)
        left.append(left_of(gallery, guess, mean))
        scores = distances.cosine_matrix(jnp.asarray(gallery - mean), guess - mean)
        rank_one.append(cross_view.rates_of(scores, people.ids)[1])
    return {"left": np.array(left), "rank one": np.array(rank_one)}


def left_of(y: np.ndarray, guess: Any, mean: np.ndarray) -> float:
    """|y - guess|^2 / |y - mean|^2."""
    return float(((y - np.asarray(guess)) ** 2).sum() / ((y - mean) ** 2).sum())


def candidates(config: ConfigDict, key: jax.Array) -> Mapping[str, list[Fit]]:
    """The fits of each method, one for every value of its setting."""
    part = config.reconstruction
    learnt = {name: part[name] for name in ("beta", "num_atoms", "num_iters")}
    mapped = {name: part[name] for name in ("expansion", "quantile")}
    of = hallucination.METHODS
    return {
        "DW-KSVD": [partial(_stacked, of["dw_ksvd"], key, sparsity=s, **learnt) for s in part.sparsities],
        "Fastfood DW-KSVD": [
            partial(_stacked, of["fastfood_dw_ksvd"], key, sparsity=s, **learnt, **mapped) for s in part.sparsities
        ],
        "ridge regression": [partial(_stacked, of["ridge"], key, ridge=ridge) for ridge in part.ridges],
        "CCA, predicted view": [partial(_cca, config, latent_dim) for latent_dim in config.views.latent_dims],
    }


def chosen(config: ConfigDict, people: People, fits: list[Fit], number: int) -> Fit:
    """The fit that leaves least of the second view of people who train and are held out for this choice."""
    _, ids, names = dense(people.train_ids)
    held = max(1, round(config.reconstruction.tuning_part * len(names)))
    rng = np.random.default_rng((config.seed, 4, number))
    part = splits.identity_disjoint(ids, num_people=(len(names) - held, held), rng=rng)[0]
    (x, y), (held_x, held_y) = (tuple(view[part == k] for view in people.train) for k in range(2))
    mean = y.mean(axis=0)[None, :]
    return min(fits, key=lambda fit: left_of(held_y, fit((x, y))(jnp.asarray(held_x)), mean))


def section(config: ConfigDict, measured: Mapping[str, np.ndarray]) -> Section:
    """What each method leaves of the second view, and who is found by it."""
    rows: list[tuple[Cell, ...]] = [
        (name, _percent(left, intervals.POSITIVE), _percent(rank_one, intervals.RATE))
        for name, left, rank_one in zip(METHODS, measured["left"], measured["rank one"], strict=True)
    ]
    return Section(
        "One view from the other",
        (
            "Both views of a capture are one vector of which x is seen. A dictionary codes the seen part and rebuilds "
            f"the whole ({config.reconstruction.num_atoms} atoms); held-out people among those who train choose the "
            "sparsity, the ridge and the latent dimensions.",
            Table(
                ("method", "variance of y that is left %", "another capture, rank-1 rate %"),
                rows,
                "Views y from views x of other people; 95 % intervals over splits of the people",
            ),
        ),
    )


def results(measured: Mapping[str, np.ndarray]) -> dict[str, float]:
    """The headline numbers."""
    return {
        f"{title}, {name}": float(100 * values.mean())
        for field, title in (("left", "variance left %"), ("rank one", "rank 1 %, reconstructed view"))
        for name, values in zip(METHODS, measured[field], strict=True)
    }


def _percent(values: np.ndarray, within: intervals.Range) -> Cell:
    return percent_interval(intervals.split_interval(values, test_to_train=1.0, within=within))


def _mean(pair: Pairs) -> Predict:
    return lambda x: jnp.broadcast_to(pair[1].mean(axis=0)[None, :], (len(x), pair[1].shape[1]))


def _stacked(method: hallucination.Method, key: jax.Array, pair: Pairs, **settings: Any) -> Predict:
    """A method of hallucination, fitted to both views as one vector."""
    width = pair[0].shape[1]
    both = jnp.concatenate(pair, axis=1)
    found = hallucination.fit(method, both, np.arange(both.shape[1]) < width, key=key, **settings)
    raise_if_failed(found.info, "reconstruction of a view")
    return lambda x: hallucination.reconstruct_matrix(found.model, x)[:, width:]


def _cca(config: ConfigDict, latent_dim: int, pair: Pairs) -> Predict:
    model = cross_view.fit_cca(config, pair, latent_dim)
    return jax.vmap(lambda x: mixtures.predict(model, x=x))
