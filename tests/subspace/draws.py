"""Grouped samples for the tests of methods that learn from groups."""

import jax
import numpy as np

from jaxface.subspace import transform

SIZES = (3, 1, 4, 2, 2)  # twelve rows in five groups, one of them a single row


def grouped(rng, sizes=SIZES, d=40):
    """Rows in general position, `[n, d]`, with their groups in random order."""
    groups = rng.permutation(np.repeat(np.arange(len(sizes)), sizes)).astype(np.int32)
    return rng.normal(size=(len(groups), d)) + 2 * rng.normal(size=(len(sizes), d))[groups] + 3, groups


def with_condition(rng, n, d, condition):
    """Samples whose centred singular values fall geometrically to 1 / `condition`."""
    left = rng.normal(size=(n, n - 1))
    left = np.linalg.qr(left - left.mean(axis=0))[0]
    right = np.linalg.qr(rng.normal(size=(d, n - 1)))[0]
    return (left * np.logspace(0, -np.log10(condition), n - 1)) @ right.T


def mapped(fitted, x):
    """All rows through a linear or a kernel map, in NumPy."""
    return np.asarray(jax.vmap(transform, in_axes=(None, 0))(fitted, x))


def squared(x, y=None):
    """Squared distances `[n, m]`."""
    y = x if y is None else y
    return ((x[:, None, :] - y[None, :, :]) ** 2).sum(axis=-1)
