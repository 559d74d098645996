"""The transformation table of `jaxface.subspace`."""

import jax
import numpy as np

from jaxface.subspace import lda, linear_map, pca
from jaxface.subspace.linear_map import LinearMap
from tests.transformations import Case


def a_map(rng):
    return LinearMap(mean=rng.normal(size=4), basis=rng.normal(size=(4, 2)))


def samples(rng):
    return rng.normal(size=(12, 5)) * np.array([5.0, 4.0, 3.0, 2.0, 1.0])


LABELS = np.repeat(np.arange(3, dtype=np.int32), 4)

CASES = [
    Case(linear_map.transform, lambda r: (a_map(r), r.normal(size=4)), grad=(0, 1)),
    Case(linear_map.reconstruct, lambda r: (a_map(r), r.normal(size=2)), grad=(0, 1)),
    Case(pca.principal_axes, lambda r: (samples(r),), {"num_components": 3}, factor=10),
    Case(pca.fit, lambda r: (samples(r),), {"num_components": 3}, factor=10),
    Case(pca.fit, lambda r: (samples(r),), {"num_components": 3, "whiten": True}, factor=10, variant="whiten"),
    Case(
        pca.fit_randomized,
        lambda r: (jax.random.key(int(r.integers(99))), samples(r)),
        {"num_components": 3, "extra": 2},
        factor=100,
    ),
    Case(
        lda.fit,
        lambda r: (samples(r), LABELS),
        {"num_classes": 3, "num_components": 2, "ridge": 0.01},
        factor=1000,
    ),
]

EXEMPT: list = []
