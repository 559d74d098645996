"""The images of a random split in principal coordinates of its training images."""

from collections.abc import Iterator
from functools import partial
from typing import NamedTuple

import jax
import numpy as np
from ml_collections import ConfigDict

from jaxface.data import splits
from jaxface.subspace import LinearMap, pca


class Samples(NamedTuple):
    """Coordinates on all principal axes of the training images, and who is shown."""

    train: jax.Array  # [n, p]
    train_ids: np.ndarray
    held_out: jax.Array  # [v, p], for choosing settings
    held_out_ids: np.ndarray
    probes: jax.Array  # [q, p]
    probe_ids: np.ndarray
    num_people: int
    axes: LinearMap | None = None  # the map of images to these coordinates


def random_samples(config: ConfigDict, x: jax.Array, ids: np.ndarray, num_train: int) -> Iterator[Samples]:
    """The samples of `num_splits` splits with `num_train` training and `num_held_out` held-out images a person.

    Split i is the same for every method, and its probes are the same for every number of training images.
    """
    drawn = splits.few_shot(
        ids,
        num_train=num_train,
        most_train=max(config.num_train),
        num_held_out=config.num_held_out,
        seed=config.seed,
        num_splits=config.num_splits,
    )
    num_people = len(np.unique(ids))
    for train, test, held_out in drawn:
        axes = _principal_axes(x, train, num_axes=min(len(train) - 1, x.shape[1]))
        y = _coordinates(axes, x)
        yield Samples(y[train], ids[train], y[held_out], ids[held_out], y[test], ids[test], num_people, axes)


def most_axes(samples: Samples, floor: float) -> int:
    """The most axes that a member can have: N - C, and no more than have a variance above the floor."""
    n, p = samples.train.shape
    variances = np.asarray((samples.train**2).mean(axis=0))
    return min(n - samples.num_people, p, int((variances > floor * variances.max()).sum()))


@partial(jax.jit, static_argnames="num_axes")
def _principal_axes(x: jax.Array, train: jax.Array, *, num_axes: int) -> LinearMap:
    principal = pca.principal_axes(x[train], num_components=num_axes)
    return LinearMap(mean=principal.mean, basis=principal.axes)


@jax.jit
def _coordinates(axes: LinearMap, x: jax.Array) -> jax.Array:
    return (x - axes.mean[None, :]) @ axes.basis
