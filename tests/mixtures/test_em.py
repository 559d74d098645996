"""EM: one step against loops, ascent, recovery, and the Gaussian mixture as its special case."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxface import mixtures
from jaxface.core.fitinfo import Status
from jaxface.mixtures import GMM, PCCAMixture, em, stats
from tests.mixtures import draws
from tests.mixtures.draws import N, S
from tests.reference import mixtures_reference as reference
from tests.tolerances import assert_close

ORDERS = ["joint", "sequential"]


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("kind", draws.KINDS)
def test_one_step_is_the_loop_over_samples(kind, order, rng):
    model = draws.pcca(rng, full=draws.KINDS[kind])
    x, y = draws.pairs(rng)
    weights = rng.uniform(0.5, 2, size=S)
    moments, _ = draws.e_step(model, x, y, sample_weights=weights)
    found, repairs = draws.on_host(draws.m_step(model, moments, regression=draws.regression_of(order)))
    expected = reference.m_step(model, np.concatenate([x, y], axis=1), order=order, weights=weights)
    for k, (weight, mean, loadings, left) in enumerate(expected):
        assert_close(np.exp(found.log_weights[k]), weight, factor=10)
        assert_close((found.mean_x[k], found.mean_y[k]), (mean[:N], mean[N:]), factor=10)
        assert_close((found.loadings_x[k], found.loadings_y[k]), (loadings[:N], loadings[N:]), factor=10)
        for noise, part in ((found.noise_x[k], slice(0, N)), (found.noise_y[k], slice(N, None))):
            psi = left[part, part]
            assert_close(noise, psi if noise.ndim == 2 else np.diag(psi), factor=10)
    assert (repairs.jitter == 0).all()
    assert int(repairs.num_empty) == 0


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("kind", draws.KINDS)
@pytest.mark.parametrize("seed", range(3))
def test_the_likelihood_never_falls(kind, order, seed):
    rng = np.random.default_rng(seed)
    x, y = draws.pairs(rng)
    start = draws.pcca(rng, full=draws.KINDS[kind])
    _, info = draws.fit(x, y, start, regression=draws.regression_of(order))
    values = np.asarray(info.objective)
    assert np.diff(values[:20]).min() > 0
    assert np.diff(values).min() > -1e-9 * np.abs(values).max()
    assert_close(values[0], draws.log_likelihood(start, x, y), factor=10)


def test_the_joint_regression_raises_the_likelihood_most(rng):
    """From the same start, of what either of them may take."""
    x, y = draws.pairs(rng)
    start = draws.pcca(rng)
    moments, _ = draws.e_step(start, x, y)
    steps = [draws.m_step(start, moments, regression=draws.regression_of(order))[0] for order in ORDERS]

    def expected(model):
        """The expected log-likelihood of the complete data, up to a constant."""
        total = float(moments.weight @ model.log_weights)
        about = stats.recenter(moments, tuple(view.mean for view in model.views))
        for view, sums in zip(model.views, about.views, strict=True):
            left = em.residual(view, sums)
            total -= float((moments.weight[:, None] * jnp.log(view.noise) + left / view.noise).sum()) / 2
        return total

    joint, sequential = (expected(model) for model in steps)
    assert joint > sequential + 0.1 > expected(start) + 0.2


def test_both_orders_stop_at_the_same_place(rng):
    """Where the joint step hardly moves anything, the sequential one does not either."""
    x, y = draws.pairs(rng)
    model = draws.pcca(rng)
    for _ in range(25):
        model, _ = draws.fit(x, y, model)
    moments, _ = draws.e_step(model, x, y)
    for order in ORDERS:
        found, _ = draws.m_step(model, moments, regression=draws.regression_of(order))
        assert_close(draws.shared(found), draws.shared(model), factor=1e7)


def test_a_rotation_of_z_turns_the_fit_and_nothing_else(rng):
    x, y = draws.pairs(rng)
    start = draws.pcca(rng)
    turned, _ = draws.rotated(rng, start)
    (model, info), (other, other_info) = draws.fit(x, y, start), draws.fit(x, y, turned)
    assert_close(other_info.objective, info.objective, factor=100)
    assert_close(draws.shared(other), draws.shared(model), factor=1e4)


def test_without_loadings_em_stands_still(rng):
    """W = 0 is a fixed point in W: what `init` must avoid, and what makes the Gaussian mixture a special case."""
    x, y = draws.pairs(rng)
    start = draws.pcca(rng)
    start = PCCAMixture(**(vars(start) | {"loadings_x": 0 * start.loadings_x, "loadings_y": 0 * start.loadings_y}))
    model, _ = draws.fit(x, y, start)
    assert float(jnp.abs(model.loadings_x).max()) == 0
    v = np.concatenate([x, y], axis=1)
    of_both = GMM(
        log_weights=start.log_weights,
        mean=jnp.concatenate([start.mean_x, start.mean_y], axis=1),
        variance=jnp.concatenate([start.noise_x, start.noise_y], axis=1),
    )
    gaussians, _ = draws.fit_gaussians(v, of_both)
    assert_close(np.concatenate([model.mean_x, model.mean_y], axis=1), gaussians.mean, factor=100)
    assert_close(np.concatenate([model.noise_x, model.noise_y], axis=1), gaussians.variance, factor=100)


@pytest.mark.parametrize("kind", draws.KINDS)
def test_parameters_are_recovered(kind):
    """Up to the order of the components and a rotation of each z."""
    truth, drawn, start = draws.apart(kind)
    model, info = draws.on_host(draws.fit(drawn.x, drawn.y, start))
    assert int(info.status) == Status.OK
    truth = draws.on_host(truth)
    order = np.array([((model.mean_x - row) ** 2).sum(axis=1).argmin() for row in truth.mean_x])
    assert sorted(order.tolist()) == [0, 1, 2]
    found = jax.tree.map(lambda leaf: leaf[order], model)
    weight, mean_x, mean_y, *_ = draws.shared(found)
    np.testing.assert_allclose(weight, np.exp(truth.log_weights), atol=0.02)
    np.testing.assert_allclose(mean_x, truth.mean_x, atol=0.15)
    np.testing.assert_allclose(mean_y, truth.mean_y, atol=0.15)
    # What is identified: the cross-covariance, and within a view the sum with the noise.
    np.testing.assert_allclose(draws.shared(found)[4], draws.shared(truth)[4], atol=0.25)
    np.testing.assert_allclose(covariances(found), covariances(truth), atol=0.35)
    if kind == "diagonal":
        np.testing.assert_allclose(found.noise_x, truth.noise_x, atol=0.2)
    assert float(info.objective[-1]) >= float(draws.log_likelihood(truth, drawn.x, drawn.y))


def covariances(model):
    return np.stack([loadings @ loadings.T + noise for _, _, loadings, noise in reference.components(model)])


@pytest.mark.parametrize("kind", draws.KINDS)
def test_float32_follows_float64(kind, rng):
    start = draws.pcca(rng, full=draws.KINDS[kind])
    x, y = draws.pairs(rng)
    narrow = jax.tree.map(lambda leaf: leaf.astype(jnp.float32), start)
    model, info = draws.fit(np.float32(x), np.float32(y), narrow)
    _, expected = draws.fit(x, y, start)
    assert info.objective.dtype == model.noise_x.dtype == jnp.float32
    # Later on, 60 pairs are few for three full covariances, and every digit matters.
    np.testing.assert_allclose(info.objective[:10], expected.objective[:10], rtol=1e-5)


def test_an_offset_moves_the_means_and_nothing_else(rng):
    start = draws.pcca(rng)
    x, y = draws.pairs(rng)
    away = PCCAMixture(**(vars(start) | {"mean_x": start.mean_x + 1e3}))
    (model, info), (moved, moved_info) = draws.fit(x, y, start), draws.fit(x + 1e3, y, away)
    assert_close(moved_info.objective, info.objective, factor=1e4)
    assert_close(moved.mean_x - 1e3, model.mean_x, factor=1e4)
    assert_close(moved.noise_x, model.noise_x, factor=1e4)


@pytest.mark.parametrize("kind", draws.KINDS)
def test_a_unit_scales_the_model(kind, rng):
    """The floor is relative to each dimension, so a unit cannot make it bite."""
    start = draws.pcca(rng, full=draws.KINDS[kind])
    x, y = (np.concatenate(views) for views in zip(*(draws.pairs(rng) for _ in range(3)), strict=True))
    unit = jnp.asarray([[1e-6, 1, 1e3, 1]])
    squared = unit**2 if kind == "diagonal" else unit[:, :, None] * unit[:, None, :]
    scaled = {
        "mean_x": start.mean_x * unit,
        "loadings_x": start.loadings_x * unit[:, :, None],
        "noise_x": start.noise_x * squared,
    }
    model, info = draws.fit(x, y, start)
    other, other_info = draws.fit(x * np.asarray(unit), y, PCCAMixture(**(vars(start) | scaled)))
    assert float(info.jitter) == float(other_info.jitter) == 0
    assert_close(other.noise_x / squared, model.noise_x, factor=1e5)
    assert_close(other_info.objective + len(x) * jnp.log(unit).sum(), info.objective, factor=1e3)


def test_data_and_start_of_two_types_meet_in_the_wider_one(rng):
    x, y = draws.pairs(rng)
    start = draws.pcca(rng)
    narrow = jax.tree.map(lambda leaf: leaf.astype(jnp.float32), start)
    for views, model, tol in (((np.float32(x), np.float32(y)), start, 0.0), ((x, y), narrow, 1e-9)):
        found, info = mixtures.fit(*views, model, num_iters=3, tol=tol)
        assert found.noise_x.dtype == info.objective.dtype == jnp.float64
    moments, _ = mixtures.e_step(narrow, np.float32(x), np.float32(y))
    assert mixtures.stepwise(moments, moments, np.float64(0.3)).weight.dtype == jnp.float32


def test_vmap_over_starts_and_weights(rng):
    x, y = draws.pairs(rng)
    starts = [draws.pcca(rng) for _ in range(2)]
    weights = rng.uniform(0.5, 2, size=(2, S))
    both = jax.tree.map(lambda *leaves: jnp.stack(leaves), *starts)
    fitted = draws.fit_batch(np.stack([x, x]), y, both, weights)
    for i in range(2):
        alone = draws.fit(x, y, starts[i], sample_weights=weights[i])
        assert_close(jax.tree.map(lambda leaf, at=i: leaf[at], fitted), alone, factor=1e3)


def test_tolerance_stops_where_the_likelihood_settles(rng):
    x, y = draws.pairs(rng)
    _, info = mixtures.fit(x, y, draws.pcca(rng), num_iters=500, tol=1e-5)
    steps = int(info.num_iters)
    assert int(info.status) == Status.OK
    assert 2 < steps < 500
    assert np.isnan(info.objective[steps:]).all()


def test_a_fit_may_go_on_where_another_ended(rng):
    x, y = draws.pairs(rng)
    start = draws.pcca(rng)
    whole, info = draws.fit(x, y, start)
    half = draws.NUM_ITERS // 2
    first, first_info = draws.fit(x, y, start, num_iters=half)
    second, second_info = draws.fit(x, y, first, num_iters=half)
    assert_close(second, whole, factor=100)
    assert_close(jnp.concatenate([first_info.objective, second_info.objective]), info.objective)


def test_refit_does_not_recompile(rng, caplog):
    x, y = draws.pairs(rng)
    draws.fit(x, y, draws.pcca(rng))
    with jax.log_compiles():
        model, _ = draws.fit(*draws.pairs(rng), draws.pcca(rng))
    assert draws.all_finite(model)
    assert not [record for record in caplog.records if "Compiling" in record.getMessage()]


def test_the_ridge_of_nearly_singular_latents_fades(rng):
    """All of `least` up to a pivot of `least`, none from twice that on, and no step between."""
    least = np.finfo(float).eps ** 0.5 * 90 / 3
    for pivot, part in zip([0.0, 0.5, 1.0, 1.2, 1.9, 2.0, 3.0], [1.0, 1.0, 1.0, 0.8, 0.1, 0.0, 0.0], strict=True):
        second = np.diag([40.0, 50.0, pivot * least])  # the last pivot of a diagonal matrix is its entry
        twisted = second + np.array([[0, 1e-3, 0], [-1e-3, 0, 0], [0, 0, 0]])
        found = em._precision(jnp.asarray(twisted)[None])[0]
        np.testing.assert_allclose(found, np.linalg.inv(second + part * least * np.eye(3)), rtol=1e-6)
