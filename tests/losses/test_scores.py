from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxface.losses import calibration, scores
from jaxface.metrics import calibration as host
from tests.tolerances import assert_close


def test_cllr_equals_the_metric(rng):
    values, same = 5 * rng.normal(size=50), rng.random(50) < 0.3
    assert_close(scores.cllr(jnp.asarray(values), jnp.asarray(same)), host.cllr(values, same))


def test_logistic_is_the_cross_entropy_at_the_prior(rng):
    values, same = rng.normal(size=40), rng.random(40) < 0.5
    posterior = 1 / (1 + np.exp(-(values + np.log(0.2 / 0.8))))
    expected = -0.2 * np.log(posterior[same]).mean() - 0.8 * np.log(1 - posterior[~same]).mean()
    assert_close(scores.pairwise_logistic(jnp.asarray(values), jnp.asarray(same), prior=0.2), expected)


def test_far_scores_stay_finite():
    values, same = jnp.array([800.0, -800.0]), jnp.array([False, True])
    assert_close(scores.cllr(values, same), 800 / np.log(2))
    assert np.isfinite(jax.grad(scores.cllr)(values, same)).all()


@pytest.mark.parametrize("loss", [scores.cllr, partial(scores.pairwise_logistic, prior=0.1)])
def test_lists_mean_the_same_and_half_precision_is_refused(loss):
    values, same = [0.5, -1.0, 2.0, 0.25], [1, 0, 1, 0]
    assert_close(loss(values, same), loss(jnp.asarray(values), jnp.asarray(same, bool)))
    # The number of 80,000 pairs is not a float16.
    for call in (loss, jax.jit(loss)):
        with pytest.raises(ValueError, match="must be a floating point array of 32 or 64 bits; got dtype float16"):
            call(jnp.asarray(values, jnp.float16), jnp.asarray(same))


@pytest.mark.parametrize("label", [2, -1, jnp.nan])
def test_under_jit_a_label_that_is_none_gives_nan(label):
    assert jnp.isnan(jax.jit(scores.cllr)(jnp.array([1.0, -1.0, 0.5]), jnp.array([1, 0, label])))


S, Y = jnp.asarray([0.5, -1.0, 2.0]), jnp.asarray([True, False, True])
MESSAGES = {
    "labels in a column": (
        lambda: scores.cllr(S, Y[:, None]), r"is_same must have shape \[p\]; got shape \(3, 1\)",
    ),
    "labels 1 and -1": (
        lambda: scores.cllr(S, jnp.where(Y, 1, -1)), "is_same must be True or False, or 1 or 0; got -1",
    ),
    "one kind": (
        lambda: scores.cllr(S, jnp.ones(3, bool)), "is_same must hold pairs of one person and of two; got one kind",
    ),
    "a prior outside": (
        lambda: scores.pairwise_logistic(S, Y, prior=1.5), r"prior must lie in \(0, 1\); got 1.5",
    ),
    "integer scores": (
        lambda: scores.cllr([1, 2, 3], Y), "scores must be a floating point array; got dtype int",
    ),
    "labels of calibration": (
        lambda: calibration.fit(S, 1 + Y), "is_same must be True or False, or 1 or 0; got 2",
    ),
    "a negative ridge": (
        lambda: calibration.fit(S, Y, ridge=-1.0), r"ridge must lie in \[0, inf\); got -1.0",
    ),
}  # fmt: skip


@pytest.mark.parametrize("what", MESSAGES)
def test_message(what):
    call, message = MESSAGES[what]
    with pytest.raises(ValueError, match=message):
        call()


def test_a_prior_of_numpy_keeps_float32():
    found = scores.pairwise_logistic(np.float32([1, -1]), np.array([True, False]), prior=np.float64(0.5))
    assert found.dtype == jnp.float32
