"""What degenerates and how it is reported: constant dimensions, duplicates, empty and superfluous components."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxface import mixtures
from jaxface.core.fitinfo import FitError, Status, raise_if_failed
from jaxface.mixtures import GMM, PCCAMixture, em, gmm
from tests.mixtures import draws
from tests.mixtures.draws import D, K, S
from tests.tolerances import assert_close


def fitted(x, y, kind, *, num_components=K, latent_dim=D, num_iters=draws.NUM_ITERS):
    settings = {"num_components": num_components, "latent_dim": latent_dim, "full_noise": draws.KINDS[kind]}
    start = mixtures.init(jax.random.key(0), x, y, **settings)
    assert draws.all_finite(start)
    return mixtures.fit(x, y, start, num_iters=num_iters)


@pytest.mark.parametrize(("kind", "dtype"), [("diagonal", np.float64), ("diagonal", np.float32), ("full", np.float64)])
def test_a_constant_dimension(kind, dtype, rng):
    x, y = draws.pairs(rng)
    x[:, 1] = 5.0
    assert_says_so(*fitted(x.astype(dtype), y.astype(dtype), kind))


def test_a_constant_dimension_in_float32_with_full_noise(rng):
    x, y = (view.astype(np.float32) for view in draws.pairs(rng))
    x[:, 1] = 5.0
    start = draws.pcca(rng, full=True)
    start = PCCAMixture(**(vars(start) | {"mean_x": start.mean_x.at[:, 1].set(5.0)}))
    assert_says_so(*draws.fit(x, y, jax.tree.map(lambda leaf: leaf.astype(jnp.float32), start)))


def assert_says_so(model, info):
    assert int(info.status) == Status.RANK_DEFICIENT
    assert float(info.jitter) > 0
    assert draws.all_finite(model)
    assert np.isfinite(info.objective).all()
    with pytest.raises(FitError, match="RANK_DEFICIENT"):
        raise_if_failed(info)


@pytest.mark.parametrize("kind", draws.KINDS)
def test_duplicates(kind, rng):
    """Three points twenty times each: every component lies on one."""
    x, y = (np.repeat(view[:3], S // 3, axis=0) for view in draws.pairs(rng))
    model, info = fitted(x, y, kind)
    assert int(info.status) == Status.RANK_DEFICIENT
    assert draws.all_finite(model)
    assert np.isfinite(info.objective).all()


ORDINARY = {
    "generic": lambda x, y: (x, y),
    "duplicates": lambda x, y: (np.repeat(x[:20], 3, axis=0), np.repeat(y[:20], 3, axis=0)),
    "a constant dimension": lambda x, y: (np.where(np.arange(4) == 1, 5.0, x), y),
}


@pytest.mark.parametrize("order", ["joint", "sequential"])
@pytest.mark.parametrize("kind", draws.KINDS)
@pytest.mark.parametrize("case", ORDINARY)
def test_the_likelihood_never_falls_where_the_floor_is_needed(case, kind, order, rng):
    """Sixty pairs are few for three components: noise vanishes in some direction, and the floor holds it."""
    x, y = ORDINARY[case](*draws.pairs(rng))
    start = mixtures.init(jax.random.key(0), x, y, num_components=K, latent_dim=D, full_noise=draws.KINDS[kind])
    model, info = draws.fit(x, y, start, regression=draws.regression_of(order))
    values = np.asarray(info.objective)
    assert np.diff(values).min() > -1e-9 * np.abs(values).max()
    assert draws.all_finite(model)
    if float(info.jitter) > 0:
        assert int(info.status) == Status.RANK_DEFICIENT


def test_full_noise_is_held_in_units_of_its_dimensions(rng):
    """Eigenvalues of `F^-1/2 Psi F^-1/2` are at least 1, those above stay, and nothing happens where none is below."""
    axes = np.linalg.qr(rng.normal(size=(3, 3)))[0]
    least = np.array([[4.0, 1e-6, 1e6]])
    root = np.sqrt(least[0])

    def noise(*values):
        return (axes * values) @ axes.T * np.outer(root, root)

    found, jitter = em._floored(jnp.asarray(noise(0.5, 3.0, -0.1))[None], jnp.asarray(least))
    np.testing.assert_allclose(found[0], noise(1.0, 3.0, 1.0), rtol=1e-9)
    assert float(jitter) == 1e6
    found, jitter = em._floored(jnp.asarray(noise(0.5, 3.0, 4.0))[None], jnp.asarray(least))  # definite all the same
    np.testing.assert_allclose(found[0], noise(1.0, 3.0, 4.0), rtol=1e-9)
    assert float(jitter) == 1e6
    found, jitter = em._floored(jnp.asarray(noise(1.5, 3.0, 1.01))[None], jnp.asarray(least))
    np.testing.assert_allclose(found[0], noise(1.5, 3.0, 1.01), rtol=1e-12)
    assert float(jitter) == 0
    gradient = jax.grad(lambda a: em._floored(a[None], jnp.asarray(least))[0].sum())(jnp.asarray(noise(0.0, 3.0, 1.0)))
    assert np.isfinite(gradient).all()


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("size", [1, 20])
def test_gaussians_of_constant_data(dtype, size):
    x = np.full((size, 3), 2.0, dtype)
    model, info = gmm.fit(x, gmm.init(jax.random.key(0), x, num_components=1), num_iters=3)
    assert int(info.status) == Status.RANK_DEFICIENT
    assert draws.all_finite(model)


@pytest.mark.parametrize("kind", draws.KINDS)
def test_constant_data(kind):
    model, info = fitted(np.ones((S, 4)), np.ones((S, 3)), kind)
    assert int(info.status) >= Status.NON_FINITE
    assert draws.all_finite(model)


def test_one_sample(rng):
    x, y = draws.pairs(rng, size=1)
    model, info = fitted(x, y, "diagonal", num_components=1)
    assert int(info.status) == Status.RANK_DEFICIENT
    assert draws.all_finite(model)


@pytest.mark.parametrize("kind", draws.KINDS)
def test_more_components_than_samples(kind, rng):
    x, y = draws.pairs(rng, size=2)
    with pytest.raises(ValueError, match=r"num_components must be at most 2 \(the number of samples\); got 3"):
        fitted(x, y, kind)
    x, y = draws.pairs(rng)
    two = np.arange(S) < 2  # the others are left out
    model, info = draws.fit(x, y, draws.pcca(rng, full=draws.KINDS[kind]), weights=two)
    assert int(info.status) >= Status.RANK_DEFICIENT
    assert draws.all_finite(model)
    assert np.isfinite(info.objective).all()


@pytest.mark.parametrize("kind", draws.KINDS)
def test_three_samples_far_from_the_others_in_float32(kind, rng):
    """Their component loses its noise in every dimension, and distances in units of it outgrow the digits."""
    z = rng.normal(size=(100, 4))
    x, y = (z @ rng.normal(size=(4, 20)) + 0.3 * rng.normal(size=(100, 20)) for _ in "xy")
    x[:3], y[:3] = x[:3] + 6 * rng.normal(size=20), y[:3] + 6 * rng.normal(size=20)
    model, info = fitted(x.astype(np.float32), y.astype(np.float32), kind, latent_dim=4)
    assert float(jnp.exp(model.log_weights).min()) == pytest.approx(0.03, abs=1e-4)
    assert_says_so(model, info)


def test_fewer_samples_than_dimensions(rng):
    x, y = rng.normal(size=(5, 12)), rng.normal(size=(5, 9))
    model, info = fitted(x, y, "full", num_components=1, latent_dim=3)
    assert int(info.status) == Status.RANK_DEFICIENT
    assert draws.all_finite(model)


@pytest.mark.parametrize("kind", draws.KINDS)
def test_an_empty_component_is_reseeded_and_counted(kind, rng):
    """Two clusters and three components, one of them where no sample is."""
    x, y = draws.pairs(rng)
    start = draws.pcca(rng, full=draws.KINDS[kind])
    lost = {"mean_x": start.mean_x.at[1].set(1e4), "mean_y": start.mean_y.at[1].set(-1e4)}
    start = PCCAMixture(**(vars(start) | lost))
    once, info = mixtures.fit(x, y, start, num_iters=1)
    assert int(info.status) == Status.EMPTY_COMPONENT  # the last step had one
    assert int(info.num_replaced) == 1
    assert draws.all_finite(once)
    assert float(jnp.exp(once.log_weights).sum()) == pytest.approx(1)
    (heavy,) = (k for k in (0, 2) if np.isclose(once.log_weights[k], once.log_weights[1]))
    assert_close(once.noise_x[1], once.noise_x[heavy])
    assert float(jnp.abs(once.mean_x[1] - once.mean_x[heavy]).max()) > 0

    model, info = draws.fit(x, y, start)
    assert int(info.num_replaced) == 1
    assert draws.all_finite(model)
    if kind == "diagonal":
        assert int(info.status) == Status.OK
        assert float(jnp.exp(model.log_weights).min()) > 0.05
        assert np.diff(info.objective[1:]).min() > -1e-9 * np.abs(info.objective).max()


def test_the_floor_is_relative_also_beside_an_empty_component(rng):
    x, y = draws.pairs(rng)
    x[:, 1] = 5.0
    start = draws.pcca(rng)
    lost = {"mean_x": start.mean_x.at[1].set(1e4), "mean_y": start.mean_y.at[1].set(-1e4)}
    start = jax.tree.map(np.asarray, PCCAMixture(**(vars(start) | lost)))
    unit = 1e-3
    start = PCCAMixture(**(vars(start) | {"mean_x": unit * start.mean_x, "loadings_x": unit * start.loadings_x}))
    start = PCCAMixture(**(vars(start) | {"noise_x": unit**2 * start.noise_x}))
    once, info = mixtures.fit(unit * x, y, start, num_iters=1)
    assert int(info.num_replaced) == 1
    assert_close(once.noise_x[:, 1], np.full(K, 1e-6 * (unit * x).var(axis=0).mean()), factor=10)


def test_a_copy_has_the_floor_of_its_donor():
    """What can be resolved depends on how far a component is from the centre; one without samples is nowhere."""
    x = np.random.default_rng(0).normal(size=(200, 2))
    x[:, 1] = np.where(np.arange(200) < 150, 0.0, 1e3)  # two components without noise there, and one without samples
    mean = jnp.asarray([[0.0, 0.0], [1e5, 0.0], [0.0, 1e3]])
    start = GMM(log_weights=jnp.full(3, -np.log(3)), mean=mean, variance=jnp.ones((3, 2)))
    moments, _ = draws.e_step(start, x)
    model, repairs = draws.m_step(start, moments, floor=1e-30)
    assert int(repairs.num_empty) == 1
    assert float(model.variance[1, 1]) == float(model.variance[0, 1]) > 1e-30 * x[:, 1].var()


def test_the_ridge_of_nearly_singular_latents_fades(rng):
    """All of `least` up to a pivot of `least`, none from twice that on, and no step between."""
    least = np.finfo(float).eps ** 0.5 * 90 / 3
    for pivot, part in zip([0.0, 0.5, 1.0, 1.2, 1.9, 2.0, 3.0], [1.0, 1.0, 1.0, 0.8, 0.1, 0.0, 0.0], strict=True):
        second = np.diag([40.0, 50.0, pivot * least])  # the last pivot of a diagonal matrix is its entry
        twisted = second + np.array([[0, 1e-3, 0], [-1e-3, 0, 0], [0, 0, 0]])
        found = em._precision(jnp.asarray(twisted)[None])[0]
        np.testing.assert_allclose(found, np.linalg.inv(second + part * least * np.eye(3)), rtol=1e-6)


def test_many_empty_components_share_the_only_one_that_lives():
    x = np.random.default_rng(0).normal(size=(200, 2))
    mean = jnp.asarray([[0.0, 0.0]] + [[1e5 * (i + 1), 0.0] for i in range(4)])
    start = GMM(log_weights=jnp.full(5, -np.log(5.0)), mean=mean, variance=jnp.ones((5, 2)))
    once, info = gmm.fit(x, start, num_iters=1)
    assert int(info.num_replaced) == 4
    np.testing.assert_allclose(jnp.exp(once.log_weights), 0.2, rtol=1e-6)
    assert len(np.unique(np.asarray(once.mean)[:, 0].round(6))) == 5  # none where another is
    model, info = gmm.fit(x, start, num_iters=30)
    assert int(info.status) == Status.OK
    assert float(jnp.exp(model.log_weights).min()) > 1e-3


def test_a_start_that_is_not_positive_definite_says_so(rng):
    x, y = draws.pairs(rng)
    start = draws.pcca(rng, full=True)
    bad = PCCAMixture(**(vars(start) | {"noise_x": -start.noise_x}))
    for start in (bad, PCCAMixture(**(vars(draws.pcca(rng)) | {"mean_x": np.full((K, 4), np.nan)}))):
        _, info = draws.fit(x, y, start)
        assert int(info.status) == Status.NON_FINITE


def test_a_member_of_a_batch_fails_alone(rng):
    x, y = draws.pairs(rng)
    flat = x.copy()
    flat[:, 1] = 5.0
    starts = jax.tree.map(lambda leaf: jnp.stack([leaf, leaf]), draws.pcca(rng))
    _, info = draws.fit_batch(np.stack([x, flat]), y, starts, np.ones((2, S)))
    assert [Status(int(status)) for status in info.status] == [Status.OK, Status.RANK_DEFICIENT]
    flat[3, 2] = np.inf
    _, info = draws.fit_batch(np.stack([x, flat]), y, starts, np.ones((2, S)))
    assert [Status(int(status)) for status in info.status] == [Status.OK, Status.NON_FINITE]
