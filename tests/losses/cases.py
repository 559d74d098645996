"""The transformation table of `jaxface.losses`."""

import jax.numpy as jnp
import numpy as np

from jaxface.losses import calibration, fusion, logistic, minimize, scores
from jaxface.losses.calibration import Affine
from jaxface.losses.fusion import Fusion
from jaxface.losses.logistic import Logistic
from tests.transformations import Case

SAME = np.array([1, 1, 1, 0, 0, 0, 0], bool)


def values(rng):
    return rng.normal(size=7) + SAME


def classifier(rng):
    return Logistic(coefficients=rng.normal(size=(3, 4)), offset=rng.normal(size=4))


def quadratic(params, data):
    return ((params["x"] - data) ** 2).sum()


CASES = [
    Case(scores.pairwise_logistic, lambda r: (values(r), SAME), {"prior": 0.2}, grad=(0,)),
    Case(scores.weights_of, lambda r: (r.uniform(size=7), values(r)), grad=(0,), partial=(1,)),
    Case(scores.cllr, lambda r: (values(r), SAME), grad=(0,)),
    Case(
        calibration.calibrate,
        lambda r: (Affine(slope=jnp.asarray(r.uniform()), offset=jnp.asarray(r.normal())), values(r)),
        grad=(0, 1),
    ),
    Case(
        fusion.fuse,
        lambda r: (Fusion(weights=r.normal(size=2), offset=jnp.asarray(r.normal())), r.normal(size=(7, 2))),
        grad=(0, 1),
    ),
    Case(fusion.with_side, lambda r: (r.normal(size=(7, 2)), r.normal(size=(7, 1))), grad=(0, 1)),
    Case(
        fusion.fit,
        lambda r: (np.stack([values(r), r.normal(size=7)], axis=1), SAME),
        {"num_iters": 4, "ridge": 0.1},
        factor=1e4,
    ),
    Case(
        fusion.fit,
        lambda r: (np.stack([values(r), r.normal(size=7)], axis=1), SAME),
        {"num_iters": 4, "ridge": 0.1, "sample_weights": np.array([1.0, 0, 2, 1, 3, 0, 1], np.float32)},
        factor=1e4,
        variant="weights",
    ),
    Case(calibration.probability, lambda r: (values(r),), {"prior": 0.1}, grad=(0,)),
    Case(logistic.logits, lambda r: (classifier(r), r.normal(size=3)), grad=(0, 1)),
    Case(logistic.predict, lambda r: (classifier(r), r.normal(size=3))),
    Case(
        logistic.fit,
        lambda r: (r.normal(size=(7, 3)), np.arange(7, dtype=np.int32) % 4),
        {"num_classes": 4, "ridge": 0.1, "num_iters": 3},
        factor=1e4,
    ),
    Case(calibration.fit, lambda r: (values(r), SAME), {"num_iters": 3}, factor=1e4),
    Case(
        calibration.fit,
        lambda r: (values(r), SAME),
        {"num_iters": 3, "sample_weights": np.array([1.0, 0, 2, 1, 3, 0, 1])},
        factor=1e4,
        variant="weights",
    ),
]

EXEMPT = [
    calibration.neutral,  # takes a dtype
    scores.labeled,  # a check
    scores.array_of,  # of a list
    minimize,  # takes a function; tested in test_minimization.py
]
