"""The E-step against dense conditional Gaussians, one subject at a time."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from jaxface.joint_bayes import E_STEPS, Stats, posterior
from jaxface.joint_bayes.stats import by_person, group_by_count
from tests.joint_bayes import draws
from tests.reference import joint_bayes_reference as reference
from tests.tolerances import assert_close

FORMS = [by_person, group_by_count]


@pytest.mark.parametrize("rank", [None, 1, 0])
@pytest.mark.parametrize("e_step", E_STEPS)
@pytest.mark.parametrize("form", FORMS)
def test_moments_equal_the_dense_posterior(form, e_step, rank, rng):
    model = draws.joint_bayes(rng, rank=rank)
    groups = draws.people(rng, model)
    for shift in (model.mean, np.zeros(3), 5 + np.asarray(model.mean)):
        moments, log_likelihood = jax.jit(E_STEPS[e_step])(model, form(draws.stats(groups, shift)))
        identity, noise = reference.E_STEPS[e_step](model, groups)
        assert_close(moments.identity, identity, factor=10)
        assert_close(moments.noise, noise, factor=10)
        assert_close(log_likelihood, np.asarray(reference.log_likelihood(model, groups)), factor=10)
        assert (int(moments.num_people), int(moments.num_images)) == (13, 25)


@pytest.mark.parametrize(
    ("block_size", "e_step"), [(4, "full"), (12, "full"), (4, "expanded")]
)  # the last block shares rows with the one before
def test_rows_in_blocks_give_the_same_moments(block_size, e_step, rng, monkeypatch):
    model = draws.joint_bayes(rng)
    groups = draws.people(rng, model)
    monkeypatch.setattr(posterior, "_BLOCK_SIZE", block_size)
    # A function of its own: the E-step may be compiled for blocks of another size.
    moments, log_likelihood = jax.jit(lambda *args: E_STEPS[e_step](*args))(
        model, by_person(draws.stats(groups, np.zeros(3)))
    )
    identity, noise = reference.E_STEPS[e_step](model, groups)
    assert_close(moments.identity, identity, factor=10)
    assert_close(moments.noise, noise, factor=10)
    assert_close(log_likelihood, np.asarray(reference.log_likelihood(model, groups)), factor=10)


@settings(max_examples=25, deadline=None)
@given(counts=st.lists(st.integers(0, 4), min_size=6, max_size=6).filter(any), seed=st.integers(0, 2**31))
def test_any_counts_also_people_without_images(counts, seed):
    rng = np.random.default_rng(seed)
    model = draws.joint_bayes(rng)
    groups = [rng.normal(size=(m, 3)) * 2 for m in counts]
    mean = np.asarray(model.mean)
    sums = np.stack([(images - mean).sum(axis=0) for images in groups])
    centered = np.concatenate(groups) - mean
    stats = Stats(jnp.asarray(counts, float), jnp.asarray(sums), jnp.asarray(centered.T @ centered), model.mean)
    present = [images for images in groups if len(images)]
    identity, noise = reference.e_step(model, present, with_covariance=True)
    moments, log_likelihood = full(model, by_person(stats))
    assert_close(moments.identity, identity, factor=100)
    assert_close(moments.noise, noise, factor=100)
    assert_close(log_likelihood, np.asarray(reference.log_likelihood(model, present)), factor=100)


full = jax.jit(posterior.full)


@pytest.mark.parametrize("count", [0, 1, 4])
def test_identity_is_the_head_of_the_dense_posterior(count, rng):
    model = draws.joint_bayes(rng)
    images = rng.normal(size=(count, 3)) + 1
    mean, cov = posterior.identity(model, jnp.asarray(images.sum(axis=0)), jnp.asarray(float(count)))
    expected, whole = reference.posterior(model, images)
    assert_close(mean, expected[0], factor=10)
    assert_close(cov, whole[:3, :3], factor=10)


def test_posterior_covariance_of_identity_and_deviations_is_one_matrix(rng):
    """Cov[mu] = Cov[eps_j] = (T_mu^-1 + m T_eps^-1)^-1: not small for two images, which the approximation drops."""
    model = draws.joint_bayes(rng)
    _, cov = reference.posterior(model, rng.normal(size=(2, 3)))
    expected = np.linalg.inv(np.linalg.inv(model.identity_cov) + 2 * np.linalg.inv(model.noise_cov))
    for block in (cov[:3, :3], cov[3:6, 3:6], cov[6:, 6:]):
        assert_close(block, expected, factor=10)
    assert_close(posterior.identity(model, model.mean, jnp.asarray(2.0))[1], expected, factor=10)


def test_disjoint_subspaces_have_no_posterior_covariance(rng):
    """The limit of (18): where the noise is all but zero in the identity's directions, full and approximate agree."""
    model = draws.joint_bayes(rng)
    model = type(model)(
        mean=model.mean, identity_cov=jnp.diag(jnp.asarray([2.0, 0, 0])), noise_cov=jnp.diag(jnp.asarray([1e-9, 1, 3]))
    )
    rows = by_person(draws.stats(draws.people(rng, model), model.mean))
    exact, approximate = (E_STEPS[name](model, rows)[0] for name in ("full", "approximate"))
    np.testing.assert_allclose(exact.identity, approximate.identity, atol=1e-7)
    np.testing.assert_allclose(exact.noise, approximate.noise, atol=1e-7)


def test_px_em_keeps_the_rank_and_turns_the_range(rng):
    model = draws.joint_bayes(rng, rank=1)
    rows = by_person(draws.stats(draws.people(rng, model), np.zeros(3)))
    before = np.linalg.eigh(model.identity_cov)[1][:, -1]
    for name, stays in (("full", True), ("expanded", False)):
        values, vectors = np.linalg.eigh(jax.jit(E_STEPS[name])(model, rows)[0].identity)
        assert values[-2] < 1e-12 * values[-1]
        turn = 1 - abs(vectors[:, -1] @ before)
        assert turn < 1e-12 if stays else turn > 1e-4
