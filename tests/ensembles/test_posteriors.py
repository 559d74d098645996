import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxface.ensembles import fused, fusion, lda_member, log_posteriors, posteriors
from tests.ensembles import draws
from tests.reference import ensembles_reference as reference
from tests.tolerances import assert_close

C = 6


def committee(rng, num_probes=11):
    y, labels, _ = draws.coordinates(rng)
    axes = draws.random_axes(rng, 5, 4, y.shape[1])
    members, _ = lda_member.fit(y, labels, axes, num_classes=C)
    return members, rng.normal(size=(num_probes, y.shape[1]))


@pytest.mark.parametrize("similarity", ["gaussian", "cosine"])
def test_equals_the_loop(similarity, rng):
    z, centers = rng.normal(size=(7, 3)) + 50, rng.normal(size=(4, 3)) + 50  # far from the origin
    found = getattr(posteriors, similarity)(z, centers)
    assert_close(found, reference.log_posteriors(z, centers, similarity=similarity), factor=1000)
    assert_close(np.exp(found).sum(axis=1), np.ones(7))


def test_far_probes_keep_finite_logarithms():
    z, centers = jnp.array([[200.0, 0.0]], jnp.float32), jnp.array([[200.0, 0.0], [-200.0, 0.0]], jnp.float32)
    np.testing.assert_allclose(posteriors.gaussian(z, centers), [[0.0, -80000.0]])


def test_cosine_of_an_opposite_and_of_a_zero_vector():
    found = np.exp(posteriors.cosine(np.array([[1.0, 0.0], [0.0, 0.0]]), np.array([[2.0, 0.0], [-1.0, 0.0]])))
    np.testing.assert_allclose(found, [[1.0, 0.0], [0.5, 0.5]], atol=1e-12)


def test_centres_are_class_means(rng):
    z, labels = rng.normal(size=(5, 2)), np.array([1, 0, 1, 1, 0], np.int32)
    expected = np.stack([z[[1, 4]].mean(axis=0), z[[0, 2, 3]].mean(axis=0)])
    assert_close(posteriors.class_centers(z, labels, num_classes=2), expected)


@pytest.mark.parametrize("block_size", [None, 2, 5])
def test_members_in_blocks(block_size, rng):
    members, probes = committee(rng)
    one_by_one = log_posteriors(members, probes, posterior=lda_member.gaussian)
    whole = log_posteriors(members, probes, posterior=lda_member.gaussian, block_size=block_size)
    assert_close(whole, one_by_one, factor=0.01)


@pytest.mark.parametrize("block_size", [1, 4, 11, 256])
def test_fused_in_blocks_of_probes(block_size, rng):
    members, probes = committee(rng)
    for rule in (fusion.sum, fusion.vote):
        expected = rule(log_posteriors(members, probes, posterior=lda_member.cosine))
        found = fused(members, probes, posterior=lda_member.cosine, rule=rule, block_size=block_size)
        assert_close(found, expected, factor=0.01)


def test_fused_with_weights(rng):
    members, probes = committee(rng)
    rule = functools.partial(fusion.weighted, member_weights=np.array([0.0, 0.5, 0.0, 0.5, 0.0]))
    two = log_posteriors(members, probes, posterior=lda_member.gaussian)[jnp.array([1, 3])]
    assert_close(fused(members, probes, posterior=lda_member.gaussian, rule=rule), fusion.sum(two), factor=10)


@pytest.mark.parametrize("dtype", [jnp.float32, jnp.float64])
def test_cosine_of_opposite_vectors_is_finite(dtype):
    """Rounding takes some of these cosines below -1."""
    z = jax.random.normal(jax.random.key(0), (200, 5), dtype)
    found = jax.vmap(lambda row: posteriors.cosine(row[None, :], jnp.stack([row, -row])))(z)
    assert jnp.isfinite(found).all()
    assert (found[:, 0, 1] < found[:, 0, 0]).all()
