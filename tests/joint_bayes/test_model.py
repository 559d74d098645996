"""The model, its free parameters, samples of it, and the moments that start EM."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from jaxface.core.fitinfo import Status
from jaxface.joint_bayes import JointBayes, constrained, fit, free, init, isotropic, sample
from jaxface.joint_bayes.model import FreeJointBayes
from tests.joint_bayes import draws
from tests.reference import joint_bayes_reference as reference
from tests.tolerances import assert_close

KEY = jax.random.key(20260711)
drawn = jax.jit(sample, static_argnames=("num_people", "num_images"))


@pytest.mark.parametrize("rank", [None, 1])
def test_free_parameters_and_back(rank, rng):
    model = draws.joint_bayes(rng, rank=rank)
    assert_close(constrained(free(model)), model)
    if rank is not None:
        parameters = free(model, rank=rank)
        assert parameters.identity_root.shape == (3, 1)
        assert_close(constrained(parameters), model)


def test_an_isotropic_model_has_the_mean_variances(rng):
    model = draws.joint_bayes(rng)
    found, of_two = isotropic(model), isotropic(model, rank=2)
    assert_close(found.mean, model.mean)
    for name in ("identity_cov", "noise_cov"):
        variances = np.linalg.eigvalsh(getattr(model, name))
        assert_close(getattr(found, name), variances.mean() * np.eye(3))
        assert_close(getattr(of_two, name), variances.sum() / 2 * np.eye(3))
    with pytest.raises(ValueError, match=r"rank must lie in \(0, inf\); got 0"):
        isotropic(model, rank=0)


def test_fewer_directions_keep_the_leading_ones(rng):
    model = draws.joint_bayes(rng)
    values, vectors = np.linalg.eigh(model.identity_cov)
    expected = vectors[:, 1:] * values[1:] @ vectors[:, 1:].T
    assert_close(constrained(free(model, rank=2)).identity_cov, expected)


@settings(max_examples=20, deadline=None)
@given(st.lists(st.floats(-4, 4), min_size=18, max_size=18))
def test_any_free_parameters_are_a_model(values):
    values = jnp.asarray(values)
    model = constrained(
        FreeJointBayes(mean=values[:3], identity_root=values[3:9].reshape(3, 2), noise_root=values[9:].reshape(3, 3))
    )
    # Unit pivots relative to the largest entry: float64 resolves exp(-8) beside 4^2.
    assert np.linalg.eigvalsh(model.noise_cov)[0] > 0
    assert np.linalg.eigvalsh(model.identity_cov)[0] > -1e-12


@pytest.mark.parametrize("rank", [None, 1])
def test_samples_have_the_moments_of_the_model(rank, rng):
    model = draws.joint_bayes(rng, rank=rank)
    images, identities = drawn(KEY, model, num_people=20000, num_images=3)
    assert images.shape == (20000, 3, 3)
    assert identities.shape == (20000, 3)
    np.testing.assert_allclose(identities.mean(axis=0), model.mean, atol=0.05)
    np.testing.assert_allclose(np.cov(identities.T), model.identity_cov, atol=0.08)
    eps = np.asarray(images - identities[:, None, :])
    np.testing.assert_allclose(np.cov(eps.reshape(-1, 3).T), model.noise_cov, atol=0.08)
    np.testing.assert_allclose(np.einsum("ni,nj->ij", eps[:, 0], eps[:, 1]) / 20000, 0, atol=0.08)
    again, _ = drawn(KEY, model, num_people=20000, num_images=3)
    np.testing.assert_array_equal(images, again)


def test_what_is_sampled_is_found_again(rng):
    """Sample, start from moments, fit: both covariances within sampling error, and closer than the start."""
    truth = draws.joint_bayes(rng)
    images, _ = drawn(KEY, truth, num_people=3000, num_images=4)
    keep = rng.integers(1, 5, size=3000)  # ragged
    groups = [person[:m] for person, m in zip(np.asarray(images), keep, strict=True)]
    stats = draws.stats(groups, np.zeros(3))
    start = draws.start(stats)
    fitted, info = fit(stats, start, num_iters=40)
    assert int(info.status) == Status.OK
    np.testing.assert_allclose(start.mean, truth.mean, atol=0.12)
    for name in ("identity_cov", "noise_cov"):
        scale = np.abs(getattr(truth, name)).max()
        np.testing.assert_allclose(getattr(fitted, name), getattr(truth, name), atol=0.06 * scale)
        np.testing.assert_allclose(getattr(start, name), getattr(truth, name), atol=0.12 * scale)
    assert np.diff(info.objective).min() > -1e-7


def test_init_is_the_analysis_of_variance(rng):
    """Unbiased moments, ragged sizes weighted by `(k - sum m^2 / k) / (n - 1)`; T_mu without its negative part."""
    groups = draws.people(rng, draws.joint_bayes(rng))
    mean, identity, noise = reference.moments(groups)
    found = init(draws.stats(groups, np.ones(3)), ridge=1e-12)
    values, vectors = np.linalg.eigh(identity)
    positive = vectors * np.maximum(values, 0) @ vectors.T
    assert_close(found.mean, mean)
    assert_close((found.identity_cov, found.noise_cov), (positive, noise), factor=100)


@pytest.mark.parametrize(
    ("what", "counts", "d"),
    [
        ("singletons only", (1,) * 13, 3),
        ("fewer images than dimensions", (2, 1, 2), 9),
        ("one person among absent ones", (4, 0, 0), 3),
    ],
)
def test_init_is_positive_definite(what, counts, d, rng):
    groups = [rng.normal(size=(m, d)) for m in counts]
    start = draws.start(draws.stats(groups, np.zeros(d)))  # ridge 1e-3
    total = np.trace(np.cov(np.concatenate(groups).T, bias=True)) / d
    for cov in (start.identity_cov, start.noise_cov):
        assert np.linalg.eigvalsh(cov)[0] > 0.9e-3 * total
    if what == "singletons only":
        assert_close(start.identity_cov, start.noise_cov)


def test_init_counts_duplicates_as_no_variation(rng):
    groups = [np.repeat(rng.normal(size=(1, 3)), 2, axis=0) for _ in range(10)]
    start = draws.start(draws.stats(groups, np.zeros(3)))
    assert np.linalg.eigvalsh(start.noise_cov)[0] > 0
    assert np.linalg.norm(start.noise_cov) < 0.01 * np.linalg.norm(start.identity_cov)


def test_a_model_is_a_pytree_of_three_arrays(rng):
    model = draws.joint_bayes(rng)
    assert len(jax.tree.leaves(model)) == 3
    with pytest.raises(TypeError):
        JointBayes(model.mean, model.identity_cov, model.noise_cov)
