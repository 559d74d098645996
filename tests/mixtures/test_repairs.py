"""Noise below its floor, and components without samples."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxface import mixtures
from jaxface.core.fitinfo import Status
from jaxface.mixtures import GMM, PCCAMixture, gmm, repairs
from tests.mixtures import draws
from tests.mixtures.draws import K
from tests.tolerances import assert_close


def test_full_noise_is_held_in_units_of_its_dimensions(rng):
    """Eigenvalues of `F^-1/2 Psi F^-1/2` are at least 1, those above stay, and nothing happens where none is below."""
    axes = np.linalg.qr(rng.normal(size=(3, 3)))[0]
    least = np.array([[4.0, 1e-6, 1e6]])
    root = np.sqrt(least[0])

    def noise(*values):
        return (axes * values) @ axes.T * np.outer(root, root)

    found, jitter = repairs.raise_noise(jnp.asarray(noise(0.5, 3.0, -0.1))[None], jnp.asarray(least))
    np.testing.assert_allclose(found[0], noise(1.0, 3.0, 1.0), rtol=1e-9)
    assert float(jitter) == 1e6
    found, jitter = repairs.raise_noise(
        jnp.asarray(noise(0.5, 3.0, 4.0))[None], jnp.asarray(least)
    )  # definite all the same
    np.testing.assert_allclose(found[0], noise(1.0, 3.0, 4.0), rtol=1e-9)
    assert float(jitter) == 1e6
    found, jitter = repairs.raise_noise(jnp.asarray(noise(1.5, 3.0, 1.01))[None], jnp.asarray(least))
    np.testing.assert_allclose(found[0], noise(1.5, 3.0, 1.01), rtol=1e-12)
    assert float(jitter) == 0
    gradient = jax.grad(lambda a: repairs.raise_noise(a[None], jnp.asarray(least))[0].sum())(
        jnp.asarray(noise(0.0, 3.0, 1.0))
    )
    assert np.isfinite(gradient).all()


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
