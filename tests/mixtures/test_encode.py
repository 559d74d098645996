"""The vectors of a set: the printed equations, the derivatives they are, and what the normalisation leaves."""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxface import mixtures
from jaxface.mixtures import ENCODERS, GMM, encode, gmm, normalize
from tests.mixtures import draws
from tests.mixtures.draws import D, K, M, N, S
from tests.reference import mixtures_reference as reference
from tests.tolerances import assert_close

closed_form = jax.jit(encode.closed_form)
autodiff = jax.jit(encode.autodiff)


def plain(encoder):
    return partial(encoder, normalization=normalize.concatenated)


@pytest.mark.parametrize("kind", draws.KINDS)
def test_scores_are_the_printed_equations(kind, rng):
    model = draws.pcca(rng, full=draws.KINDS[kind])
    x, y = draws.pairs(rng)
    v, weights = np.concatenate([x, y], axis=1), rng.uniform(0, 2, size=S)
    scores = closed_form(model, x, y, weights=weights)
    assert_close(scores.latent, reference.latent(model, v, weights), factor=10)
    for mean, noise, expected in zip(
        scores.means, scores.noises, reference.gradients(model, v, N, weights), strict=True
    ):
        assert_close(mean, expected[0], factor=10)
        full = noise.ndim == 3
        assert_close(noise, expected[1] if full else np.diagonal(expected[1], axis1=1, axis2=2), factor=10)


@pytest.mark.parametrize("kind", draws.KINDS)
def test_fisher_identity(kind, rng):
    """(42)-(45) are -2/N times the gradient of the log-likelihood; Z is 1/N times that for a prior mean of z."""
    model = draws.pcca(rng, full=draws.KINDS[kind])
    x, y = draws.pairs(rng)
    weights = rng.uniform(0, 2, size=S)
    assert_close(autodiff(model, x, y, weights=weights), closed_form(model, x, y, weights=weights), factor=10)


def test_latent_vector_is_linear_in_the_mean_gradients(rng):
    """`Z = -(N/2) (W_x'G_mux + W_y'G_muy)` as sums: no new information before the normalisation."""
    model = draws.pcca(rng)
    scores = closed_form(model, *draws.pairs(rng))
    shared = sum(jnp.einsum("knd,kn->kd", view.loadings, g) for view, g in zip(model.views, scores.means, strict=True))
    assert_close(scores.latent, -shared / 2, factor=10)


def test_mean_gradient_is_the_fisher_vector_of_the_full_covariance(rng):
    model = draws.pcca(rng)
    x, y = draws.pairs(rng)
    v = np.concatenate([x, y], axis=1)
    g = reference.responsibilities(model, v)
    means = np.concatenate(closed_form(model, x, y).means, axis=1)
    for k, (_, mean, loadings, noise) in enumerate(reference.components(model)):
        expected = -2 / S * np.linalg.solve(loadings @ loadings.T + noise, g[:, k] @ (v - mean))
        assert_close(means[k], expected, factor=10)


def test_fisher_vector_of_a_gaussian_mixture(rng):
    model, x = draws.gaussians(rng), rng.normal(size=(S, N))
    of_mean, of_deviation = reference.fisher_vector(model, x)
    found = plain(encode.fisher_vector)(model, x)
    assert_close(found, np.concatenate([of_mean.ravel(), of_deviation.ravel()]), factor=10)
    by_autodiff = plain(encode.fisher_vector)(model, x, scoring=encode.autodiff)
    assert_close(by_autodiff, found, factor=10)


def test_printed_gradient_of_a_gaussian_mixture_differs_from_it_by_dimension(rng):
    """(1), (2) are the Fisher vector times a factor for each dimension, which no normalisation of a row cancels."""
    model, x = draws.gaussians(rng), rng.normal(size=(S, N))
    scores = encode.closed_form(model, x)
    of_mean, of_deviation = reference.fisher_vector(model, x)
    weight, deviation = np.exp(model.log_weights)[:, None], np.sqrt(model.variance)
    assert_close(scores.means[0], -2 * np.sqrt(weight) * of_mean / deviation, factor=10)
    assert_close(scores.noises[0], -np.sqrt(2 * weight) * of_deviation / deviation**2, factor=10)
    left, right = encode.gradient_vector(model, x), -encode.fisher_vector(model, x)
    assert float(left @ right) < 0.999


def test_without_loadings_the_scores_are_those_of_the_gaussian_mixture(rng):
    model = draws.pcca(rng)
    model = mixtures.PCCAMixture(
        **(vars(model) | {"loadings_x": 0 * model.loadings_x, "loadings_y": 0 * model.loadings_y})
    )
    x, y = draws.pairs(rng)
    alone = GMM(
        log_weights=model.log_weights,
        mean=jnp.concatenate([model.mean_x, model.mean_y], axis=1),
        variance=jnp.concatenate([model.noise_x, model.noise_y], axis=1),
    )
    scores, expected = closed_form(model, x, y), encode.closed_form(alone, np.concatenate([x, y], axis=1))
    assert_close(jnp.concatenate(scores.means, axis=1), expected.means[0], factor=10)
    assert_close(jnp.concatenate(scores.noises, axis=1), expected.noises[0], factor=10)
    assert not np.any(scores.latent)


def test_the_training_set_has_nothing_to_say(rng):
    """At a maximum of the likelihood every score of all the samples together is zero."""
    x, y = draws.pairs(rng)
    model, _ = mixtures.closed_form(x, y, latent_dim=M)
    scores, part = closed_form(model, x, y), closed_form(model, x[:20], y[:20])
    for leaf, other in zip(jax.tree.leaves(scores), jax.tree.leaves(part), strict=True):
        assert float(jnp.abs(leaf).max()) < 1e-10
        assert float(jnp.abs(other).max()) > 1e-2


def test_a_rotation_of_z_turns_the_latent_vector_only(rng):
    model = draws.pcca(rng)
    turned, q = draws.rotated(rng, model)
    x, y = draws.pairs(rng)
    left, right = closed_form(model, x, y), closed_form(turned, x, y)
    assert_close((right.means, right.noises), (left.means, left.noises), factor=100)
    assert_close(right.latent, jnp.einsum("kd,kde->ke", left.latent, q), factor=100)


def test_layout_and_normalisation(rng):
    model = draws.pcca(rng)
    x, y = draws.pairs(rng)
    scores = closed_form(model, x, y)
    private = (scores.means[0], scores.noises[0], scores.means[1], scores.noises[1])
    whitened = encode.whiten(model, scores)
    expected = {
        "super": (scores.latent, *private),
        "gradient": private,
        "latent": (scores.latent,),
        "fisher": (whitened.means[0], whitened.noises[0], whitened.means[1], whitened.noises[1]),
    }
    widths = {"super": K * (D + 2 * N + 2 * M), "gradient": 2 * K * (N + M), "latent": K * D, "fisher": 2 * K * (N + M)}
    for name, encoder in ENCODERS.items():
        vector = encoder(model, x, y)
        assert vector.shape == (widths[name],)
        assert_close(vector, reference.normalized(expected[name]), factor=1000)  # a root of small numbers
        assert_close(plain(encoder)(model, x, y), np.concatenate([np.ravel(block) for block in expected[name]]))


def test_super_vector_of_whitened_gradients(rng):
    model = draws.pcca(rng)
    x, y = draws.pairs(rng)
    latent, fisher = plain(encode.latent_vector)(model, x, y), plain(encode.fisher_vector)(model, x, y)
    found = plain(encode.super_vector)(model, x, y, scoring=encode.whitened)
    assert_close(found, np.concatenate([latent, fisher]))


def ragged(rng, sizes=(7, 1, 12, 3, 12)):
    x, y = draws.pairs(rng, size=sum(sizes))
    ends = np.cumsum(sizes)[:-1]
    return np.split(x, ends), np.split(y, ends)


@pytest.mark.parametrize("name", ENCODERS)
def test_ragged_images_in_a_batch_equal_single_sets(name, rng):
    model = draws.pcca(rng)
    xs, ys = ragged(rng)
    padded = encode.pad_sets(xs, ys)
    assert [view.shape for view in padded.views] == [(5, 12, N), (5, 12, M)]
    np.testing.assert_array_equal(padded.weights.sum(axis=1), [7, 1, 12, 3, 12])
    found = encode.encode_batch(model, *padded.views, encoder=ENCODERS[name], weights=padded.weights, block_size=2)
    alone = jnp.stack([ENCODERS[name](model, x, y) for x, y in zip(xs, ys, strict=True)])
    assert_close(found, alone, factor=1000)


def test_what_stands_in_padded_rows_does_not_matter(rng):
    model = draws.pcca(rng)
    padded = encode.pad_sets(*ragged(rng))
    spoiled = [np.where(padded.weights[:, :, None] > 0, view, 1e6) for view in padded.views]
    left, right = (
        encode.encode_batch(model, *views, encoder=encode.super_vector, weights=padded.weights)
        for views in (padded.views, spoiled)
    )
    assert_close(left, right)


@pytest.mark.parametrize("block_size", [1, 3, 8])
def test_images_at_a_time_do_not_matter(block_size, rng):
    model, x = draws.gaussians(rng), rng.normal(size=(5, 12, N))
    found = encode.encode_batch(model, x, encoder=encode.fisher_vector, block_size=block_size)
    assert_close(found, jax.vmap(partial(encode.fisher_vector, model))(jnp.asarray(x)))


def test_gradients_flow_to_the_descriptors(rng):
    """Also where a component has no descriptor and its rows are zero."""
    model = draws.gaussians(rng)
    lost = GMM(log_weights=model.log_weights, mean=model.mean.at[0].set(1e4), variance=model.variance)
    gradient = jax.grad(lambda x: encode.fisher_vector(lost, x)[-5])(jnp.asarray(rng.normal(size=(S, N))))
    assert np.isfinite(gradient).all()
    assert float(jnp.abs(gradient).max()) > 0


def test_sets_of_one_person_are_nearer_to_each_other():
    """The use: sets drawn around the model, each person with a shift of their own."""
    rng = np.random.default_rng(0)
    truth = draws.pcca(rng)
    shifts = 0.6 * rng.normal(size=(4, N))
    x, y, person = [], [], []
    for index in range(16):
        drawn = mixtures.sample(jax.random.key(index), truth, num_samples=100)
        x.append(np.asarray(drawn.x) + shifts[index % 4])
        y.append(np.asarray(drawn.y))
        person.append(index % 4)
    model = gmm.init(jax.random.key(0), np.concatenate(x), num_components=K)
    vectors = {
        "super": encode.encode_batch(truth, np.stack(x), np.stack(y), encoder=encode.super_vector),
        "fisher": encode.encode_batch(model, np.stack(x), encoder=encode.fisher_vector),
    }
    for codes in vectors.values():
        similarity = np.array(codes @ codes.T) - 2 * np.eye(16)
        assert np.mean(np.asarray(person)[similarity.argmax(axis=1)] == person) > 0.9
