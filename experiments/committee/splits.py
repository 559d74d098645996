"""Random splits of faces into training, held-out and probe images, in principal coordinates of the training images."""

from collections.abc import Iterator
from functools import partial
from typing import NamedTuple

import jax
import numpy as np
from ml_collections import ConfigDict

from jaxface.data import splits
from jaxface.subspace import pca


class Split(NamedTuple):
    """Coordinates on all principal axes of the training images, and who is shown."""

    train: jax.Array  # [n, p]
    train_ids: np.ndarray
    held_out: jax.Array  # [v, p], for choosing settings
    held_out_ids: np.ndarray
    probes: jax.Array  # [q, p]
    probe_ids: np.ndarray
    num_people: int


def random_splits(config: ConfigDict, x: jax.Array, ids: np.ndarray, num_train: int) -> Iterator[Split]:
    """`num_splits` splits with `num_train` training and `num_held_out` held-out images a person; the rest are probes.

    Split i is the same for every method, and its probes are the same for every number of training images.
    """
    most = max(config.num_train)
    parts = splits.k_shot(
        ids, num_train=most + config.num_held_out, rng=np.random.default_rng(config.seed), num_splits=config.num_splits
    )
    rng = np.random.default_rng((config.seed, 1))
    for part in parts:
        rows = rng.permuted(_by_person(ids, part == 0), axis=1)
        train, held_out = rows[:, :num_train].ravel(), rows[:, most:].ravel()
        probes = np.flatnonzero(part == 1)
        y = _coordinates(x, train, num_axes=min(len(train) - 1, x.shape[1]))
        yield Split(y[train], ids[train], y[held_out], ids[held_out], y[probes], ids[probes], len(rows))


def freedom(split: Split, floor: float) -> int:
    """The most axes that a member can have: N - C, and no more than have a variance above the floor."""
    n, p = split.train.shape
    variances = np.asarray((split.train**2).mean(axis=0))
    return min(n - split.num_people, p, int((variances > floor * variances.max()).sum()))


def _by_person(ids: np.ndarray, chosen: np.ndarray) -> np.ndarray:
    """The chosen rows `[people, images]`, the same number of everybody."""
    rows = np.flatnonzero(chosen)
    return rows[np.argsort(ids[rows], kind="stable")].reshape(len(np.unique(ids)), -1)


@partial(jax.jit, static_argnames="num_axes")
def _coordinates(x: jax.Array, train: jax.Array, *, num_axes: int) -> jax.Array:
    found = pca.principal_axes(x[train], num_components=num_axes)
    return (x - found.mean[None, :]) @ found.axes
