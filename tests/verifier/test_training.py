"""Fitting and calibrating a verifier."""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np

from jaxface import verifier
from jaxface.data import pairs
from jaxface.subspace import pca
from tests.tolerances import assert_close


def test_the_reduction_is_exact_for_few_vectors_and_randomised_for_many(rng, monkeypatch):
    x, key = rng.normal(size=(30, 6)), jax.random.key(0)
    for exact, whiten in ((30, False), (29, True)):
        monkeypatch.setattr(verifier.training, "_EXACT_PCA", exact)
        found, _ = verifier.fit_reduction(key, x, num_components=3, length_normalize=whiten)
        settings = {"num_components": 3, "whiten": whiten}
        expected, _ = pca.fit(x, **settings) if exact == 30 else pca.fit_randomized(key, x, **settings)
        assert_close(found, expected)


def test_calibration_is_that_of_the_raw_scores(fitted):
    found, x, ids = fitted
    points, trial = verifier.encode_vectors(found, x), pairs.all_pairs(ids)
    again, _ = verifier.calibrate(found, points, *trial)
    plain = dataclasses.replace(found, calibration=raw_scores(found))
    raw = np.asarray(verifier.score_pairs(plain, points, trial.first, trial.second))
    mended = np.asarray(verifier.score_pairs(again, points, trial.first, trial.second))
    np.testing.assert_allclose(
        mended, float(again.calibration.slope) * raw + float(again.calibration.offset), rtol=1e-9
    )


def raw_scores(found):
    return dataclasses.replace(found.calibration, slope=jnp.ones(()), offset=jnp.zeros(()))
