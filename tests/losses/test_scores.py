import jax
import jax.numpy as jnp
import numpy as np

from jaxface.losses import scores
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
