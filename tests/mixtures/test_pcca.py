"""One component with full noise is CCA; and draws of a model have its moments."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxface import mixtures
from jaxface.core.fitinfo import Status
from jaxface.mixtures import PCCAMixture
from tests.mixtures import draws
from tests.mixtures.draws import M, N, S
from tests.reference import mixtures_reference as reference
from tests.tolerances import assert_close

correlations = jax.jit(mixtures.canonical_correlations)


def test_the_closed_form_is_cca(rng):
    x, y = draws.pairs(rng)
    model, info = mixtures.closed_form(x, y, latent_dim=M)
    assert int(info.status) == Status.OK
    assert float(info.jitter) == 0
    assert_close(correlations(model)[0], reference.canonical_correlations(x, y), factor=10)
    # With all dimensions of the smaller view the model has the covariance of the samples.
    ((_, mean, loadings, noise),) = reference.components(model)
    v = np.concatenate([x, y], axis=1)
    assert_close(mean, v.mean(axis=0))
    assert_close(loadings @ loadings.T + noise, np.cov(v.T, bias=True), factor=10)


def test_fewer_latent_dimensions_keep_the_strongest_correlations(rng):
    x, y = draws.pairs(rng)
    model, _ = mixtures.closed_form(x, y, latent_dim=1)
    assert_close(correlations(model)[0], reference.canonical_correlations(x, y)[:1], factor=10)


def test_no_model_of_one_component_is_better(rng):
    x, y = draws.pairs(rng)
    best, _ = mixtures.closed_form(x, y, latent_dim=2)
    top = float(draws.log_likelihood(best, x, y))
    for scale in (1e-3, 1e-2):
        moved = jax.tree.map(lambda leaf, s=scale: leaf * jnp.asarray(1 + s * rng.normal(size=leaf.shape)), best)
        symmetric = {name: (getattr(moved, name) + getattr(moved, name).mT) / 2 for name in ("noise_x", "noise_y")}
        moved = PCCAMixture(**(vars(moved) | symmetric | {"log_weights": best.log_weights}))
        assert float(draws.log_likelihood(moved, x, y)) < top


def test_em_with_one_component_and_full_noise_recovers_the_canonical_correlations(rng):
    x, y = draws.pairs(rng)
    start = draws.pcca(rng, full=True, k=1, d=M)
    model, info = mixtures.fit(x, y, start, num_iters=2000)
    best, _ = mixtures.closed_form(x, y, latent_dim=M)
    np.testing.assert_allclose(correlations(model)[0], reference.canonical_correlations(x, y), atol=1e-6)
    np.testing.assert_allclose(info.objective[-1], draws.log_likelihood(best, x, y), rtol=1e-10)


def test_with_diagonal_noise_it_is_factor_analysis_and_not_cca(rng):
    x, y = draws.pairs(rng)
    start = draws.pcca(rng, k=1, d=M)
    model, _ = mixtures.fit(x, y, start, num_iters=2000)
    assert np.abs(correlations(model)[0] - reference.canonical_correlations(x, y)).max() > 0.01


def test_correlations_do_not_depend_on_the_coordinates(rng):
    x, y = draws.pairs(rng)
    turn = rng.normal(size=(N, N))
    left, _ = mixtures.closed_form(x, y, latent_dim=M)
    right, _ = mixtures.closed_form(x @ turn + 3, -2 * y, latent_dim=M)
    assert_close(correlations(right), correlations(left), factor=100)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_singular_views_end_in_a_status(dtype, rng):
    x, y = draws.pairs(rng)
    double = np.concatenate([x[:, :2], x[:, :2]], axis=1)
    few = tuple(np.repeat(view[:3], S // 3, axis=0) for view in (x, y))  # the moments of three samples
    for left, right in ((double, y), (x, x[:, :M]), (0 * x, y), few, (np.ones_like(x), np.ones_like(y))):
        model, info = mixtures.closed_form(left.astype(dtype), right.astype(dtype), latent_dim=2)
        assert int(info.status) == Status.RANK_DEFICIENT
        assert draws.all_finite(model)
        assert np.isfinite(draws.log_likelihood(model, left.astype(dtype), right.astype(dtype)))


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_as_many_samples_as_dimensions_are_too_few(dtype):
    """The moments of n samples about their mean have rank n - 1, however the last pivot is rounded."""
    for seed in range(40):
        rng = np.random.default_rng(seed)
        x = (rng.normal(size=(20, 20)) * 10.0 ** rng.uniform(-2, 2, 20)) @ rng.normal(size=(20, 20))
        y = rng.normal(size=(20, 2))
        _, info = mixtures.closed_form(x.astype(dtype), y.astype(dtype), latent_dim=1)
        assert int(info.status) == Status.RANK_DEFICIENT
        assert float(info.jitter) > 0  # x has its ridge


def test_a_ridge_mends_them_and_is_reported(rng):
    x, y = draws.pairs(rng)
    double = np.concatenate([x[:, :2], x[:, :2]], axis=1)
    model, info = mixtures.closed_form(double, y, latent_dim=2, ridge=0.1)
    assert int(info.status) == Status.OK
    assert float(info.jitter) == pytest.approx(0.1 * max(double.var(axis=0).mean(), y.var(axis=0).mean()))
    assert draws.all_finite(model)


@pytest.mark.parametrize("kind", draws.KINDS)
def test_samples_have_the_moments_of_the_model(kind, rng):
    model = draws.pcca(rng, full=draws.KINDS[kind])
    drawn = draws.sample(jax.random.key(3), model, num_samples=40_000)
    v = np.concatenate([drawn.x, drawn.y], axis=1)
    weights = np.exp(model.log_weights)
    for k, (_, mean, loadings, noise) in enumerate(reference.components(model)):
        rows = np.asarray(drawn.component) == k
        assert rows.mean() == pytest.approx(weights[k], abs=0.02)
        np.testing.assert_allclose(v[rows].mean(axis=0), mean, atol=0.15)
        np.testing.assert_allclose(np.cov(v[rows].T), loadings @ loadings.T + noise, atol=0.3)
        z = np.asarray(drawn.z)[rows]
        np.testing.assert_allclose(np.cov(z.T, v[rows].T)[:2, 2:], loadings.T, atol=0.15)


def test_samples_do_not_come_twice(rng):
    model = draws.pcca(rng)
    left, right = (draws.sample(jax.random.key(seed), model, num_samples=100) for seed in (0, 1))
    assert not np.isclose(left.x, right.x).any()
    np.testing.assert_array_equal(left.x, draws.sample(jax.random.key(0), model, num_samples=100).x)


@pytest.mark.parametrize(("dtype", "unit"), [(np.float32, 1e-3), (np.float64, 1e-8)])
def test_a_unit_makes_nothing_singular(dtype, unit, rng):
    """One dimension in another unit: the same correlations, and no ridge."""
    z = rng.normal(size=(300, 2))
    x, y = (z @ rng.normal(size=(2, 4)) + rng.normal(size=(300, 4)) for _ in "xy")
    plain, _ = mixtures.closed_form(x, y, latent_dim=3)
    scaled, info = mixtures.closed_form((x * [1, unit, 1, 1]).astype(dtype), y.astype(dtype), latent_dim=3)
    assert int(info.status) == Status.OK
    assert float(info.jitter) == 0
    expected = mixtures.canonical_correlations(plain)
    np.testing.assert_allclose(mixtures.canonical_correlations(scaled), expected, atol=1e-4)
    for singular in (x[:, :1] * np.ones(4), np.where(np.arange(4) == 2, 0.1, x)):
        _, info = mixtures.closed_form(singular.astype(dtype), y.astype(dtype), latent_dim=3)
        assert int(info.status) == Status.RANK_DEFICIENT


@pytest.mark.parametrize("kind", draws.KINDS)
def test_the_missing_view_is_the_mean_of_the_conditional_gaussian(kind, rng):
    model = draws.pcca(rng, full=draws.KINDS[kind])
    x, y = draws.pairs(rng, size=5)
    v = np.concatenate([x, y], axis=1)
    predict = jax.jit(mixtures.predict)
    for given, missing in ((slice(0, N), slice(N, None)), (slice(N, None), slice(0, N))):
        mean, _ = reference.conditional(model, v, given, missing)
        g = reference.responsibilities(model, v, given)
        for i in range(len(x)):
            predicted = predict(model, x=x[i]) if given.start == 0 else predict(model, y=y[i])
            assert_close(predicted, g[i] @ mean[i], factor=10)
