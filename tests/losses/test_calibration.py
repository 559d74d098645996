import jax
import jax.numpy as jnp
import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression

from jaxface.losses import calibration, scores
from jaxface.metrics import calibration as host
from tests.tolerances import assert_close


def pairs(rng, n=400):
    """Scores whose true log-likelihood ratio is 2 s: N(1, 1) against N(-1, 1)."""
    same = rng.random(n) < 0.5
    return rng.normal(size=n) + np.where(same, 1.0, -1.0), same


def test_equals_scikit_learn_when_the_kinds_are_balanced(rng):
    values, _ = pairs(rng)
    same = np.arange(400) < 200
    values = np.where(same, np.abs(values), -values)
    found, _ = calibration.fit(values, same, ridge=0.0)
    reference = LogisticRegression(C=np.inf, tol=1e-10, max_iter=1000).fit(values[:, None], same)
    assert_close(found.slope, reference.coef_[0, 0], factor=1e6)
    assert_close(found.offset, reference.intercept_[0], factor=1e6)


def test_recovers_the_true_ratio_whatever_the_scale_and_the_share_of_pairs(rng):
    values, same = pairs(rng, 40000)
    keep = same | (rng.random(40000) < 0.1)
    raw = 50 * values + 300
    found, _ = calibration.fit(raw[keep], same[keep])
    calibrated = np.asarray(calibration.calibrate(found, raw))
    assert np.abs(calibrated - 2 * values).max() < 0.3
    assert host.cllr(calibrated, same) < 1.01 * host.cllr(2 * values, same)
    assert host.cllr(calibrated, same) < host.cllr(raw, same)


def test_separable_scores_give_a_finite_slope(rng):
    values = np.concatenate([rng.uniform(1, 2, 20), rng.uniform(-2, -1, 30)])
    found, _ = calibration.fit(values, np.arange(50) < 20)
    assert np.isfinite(float(found.slope))
    assert float(found.slope) > 1
    freer, _ = calibration.fit(values, np.arange(50) < 20, ridge=1e-8)
    assert float(freer.slope) > 1.5 * float(found.slope)


def test_the_slope_stays_positive_on_scores_that_say_nothing(rng):
    found, _ = calibration.fit(-pairs(rng)[0], pairs(rng)[1])
    assert float(found.slope) > 0
    constant, _ = calibration.fit(np.ones(10), np.arange(10) < 5)
    assert np.isfinite(np.asarray(calibration.calibrate(constant, jnp.ones(3)))).all()
    constant, _ = calibration.fit(np.full(1000, 0.1, np.float32), np.arange(1000) < 500)  # with a mean that is rounded
    assert float(constant.slope) < 10


def test_probability_is_bayes_rule():
    llr, prior = jnp.log(jnp.array([3.0])), 0.25
    assert_close(calibration.probability(llr, prior=prior), jnp.array([3 * 0.25 / (3 * 0.25 + 0.75)]))
    assert_close(calibration.calibrate(calibration.neutral(jnp.float64), llr), llr)


def test_calibration_can_be_differentiated_through(rng):
    values, same = pairs(rng)
    found, _ = calibration.fit(values, same)
    gradient = jax.grad(lambda v: scores.cllr(calibration.calibrate(found, v), jnp.asarray(same)))(jnp.asarray(values))
    assert np.isfinite(gradient).all()


def test_errors(rng):
    with pytest.raises(ValueError, match="is_same must hold pairs of one person and of two; got one kind only"):
        calibration.fit(np.ones(3), np.ones(3, bool))
    with pytest.raises(ValueError, match=r"prior must lie in \(0, 1\); got 1.0"):
        calibration.fit(*pairs(rng), prior=1.0)
    with pytest.raises(ValueError, match="scores must be finite; 1 of 3 values"):
        calibration.fit(np.array([1.0, np.inf, 0.0]), np.array([True, False, True]))


@pytest.mark.parametrize("power", [-100, -60, 60, 100])
def test_scores_of_any_unit_have_the_same_calibration(power, rng):
    """To the last bit, for a power of two is no rounding; squares of such scores are zero or infinite in float32."""
    values, same = pairs(rng)
    values = jnp.asarray(values, jnp.float32)
    found, info = calibration.fit(values, same)
    other, report = calibration.fit(2.0**power * values, same)
    assert_close(other.slope * 2.0**power, found.slope, factor=0)
    assert_close((other.offset, report), (found.offset, info), factor=0)


@pytest.mark.parametrize("dtype", [np.uint8, np.float16])
def test_calibration_refuses_what_would_wrap_or_round(dtype):
    one, values = calibration.neutral(jnp.float32), np.array([1, 0], dtype)
    for call in (
        lambda: calibration.calibrate(one, values),
        lambda: calibration.probability(jnp.asarray(values), prior=0.5),
        lambda: calibration.fit(values, np.array([True, False])),
    ):
        with pytest.raises(ValueError, match="must be a floating point array"):
            call()


def test_a_weight_counts_as_so_many_pairs(rng):
    values, same = pairs(rng, 60)
    counts = rng.integers(0, 4, size=60)
    listed = np.repeat(np.arange(60), counts)
    expected, _ = calibration.fit(values[listed], same[listed], num_iters=200)
    outliers = np.where(counts == 0, 1e6, values)
    found, _ = calibration.fit(outliers, same, sample_weights=counts.astype(float), num_iters=200)
    assert_close(found.slope, expected.slope, factor=1e6)
    assert_close(found.offset, expected.offset, factor=1e6)
    with pytest.raises(ValueError, match="sample_weights must lie in"):
        calibration.fit(values, same, sample_weights=-np.ones(60))
    with pytest.raises(ValueError, match=r"sample_weights must have shape \[p\]"):
        calibration.fit(values, same, sample_weights=np.ones(59))


def test_weights_of_folds_in_one_program(rng):
    values, same = pairs(rng, 80)
    weights = (rng.random((3, 80)) < 0.7).astype(float)
    together = jax.lax.map(lambda w: calibration.fit(values, same, sample_weights=w)[0], weights)
    for k, w in enumerate(weights):
        alone, _ = calibration.fit(values[w > 0], same[w > 0])
        assert_close(together.slope[k], alone.slope, factor=1e6)
