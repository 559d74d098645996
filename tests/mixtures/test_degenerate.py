"""What degenerates and how it is reported: constant dimensions, duplicates, empty and superfluous components."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxface import mixtures
from jaxface.core.fitinfo import FitError, Status, raise_if_failed
from jaxface.mixtures import PCCAMixture
from tests.mixtures import draws
from tests.mixtures.draws import D, K, S


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
    model, info = draws.fit(x, y, draws.pcca(rng, full=draws.KINDS[kind]), sample_weights=two)
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
