"""The vectors of a set: the printed equations, the derivatives they are, and what the normalisation leaves."""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxface import mixtures
from jaxface.mixtures import GMM, encoding, normalization, stats
from tests import by_numpy
from tests.mixtures import draws, gaps
from tests.mixtures.draws import D, K, M, N, S
from tests.reference import mixtures_reference as reference
from tests.reference import multiview_reference
from tests.tolerances import assert_close

ENCODERS = {
    "fisher": mixtures.fisher_vector,
    "gradient": mixtures.gradient_vector,
    "latent": mixtures.latent_vector,
    "super": mixtures.super_vector,
}
closed_form = jax.jit(encoding.closed_form)
autodiff = jax.jit(encoding.autodiff)


@jax.jit
def all_codes(model, *views, sample_weights=None):
    """Of one set, by every encoder."""
    return {name: encoder(model, *views, sample_weights=sample_weights) for name, encoder in ENCODERS.items()}


@partial(jax.jit, static_argnames="scoring")
def plain(model, *views, scoring=encoding.closed_form):
    """What every encoder puts together, before anything is normalised."""
    settings = {"scoring": scoring, "normalization": normalization.concatenate}
    return {name: encoder(model, *views, **settings) for name, encoder in ENCODERS.items()}


@pytest.mark.parametrize("kind", draws.KINDS)
def test_scores_are_the_printed_equations(kind, rng):
    model = draws.pcca(rng, full=draws.KINDS[kind])
    x, y = draws.pairs(rng)
    v, weights = np.concatenate([x, y], axis=1), rng.uniform(0, 2, size=S)
    scores = closed_form(model, x, y, sample_weights=weights)
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
    found, expected = (scoring(model, x, y, sample_weights=weights) for scoring in (autodiff, closed_form))
    assert_close(found, expected, factor=10)


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
    found = plain(model, x)["fisher"]
    assert_close(found, np.concatenate([of_mean.ravel(), of_deviation.ravel()]), factor=10)
    by_autodiff = plain(model, x, scoring=encoding.autodiff)["fisher"]
    assert_close(by_autodiff, found, factor=10)


def test_printed_gradient_of_a_gaussian_mixture_differs_from_it_by_dimension(rng):
    """(1), (2) are the Fisher vector times a factor for each dimension, which no normalisation of a row cancels."""
    model, x = draws.gaussians(rng), rng.normal(size=(S, N))
    scores = closed_form(model, x)
    of_mean, of_deviation = reference.fisher_vector(model, x)
    weight, deviation = np.exp(model.log_weights)[:, None], np.sqrt(model.variance)
    assert_close(scores.means[0], -2 * np.sqrt(weight) * of_mean / deviation, factor=10)
    assert_close(scores.noises[0], -np.sqrt(2 * weight) * of_deviation / deviation**2, factor=10)
    codes = all_codes(model, x)
    assert float(codes["gradient"] @ -codes["fisher"]) < 0.999


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
    scores, expected = closed_form(model, x, y), closed_form(alone, np.concatenate([x, y], axis=1))
    assert_close(jnp.concatenate(scores.means, axis=1), expected.means[0], factor=10)
    assert_close(jnp.concatenate(scores.noises, axis=1), expected.noises[0], factor=10)
    assert not np.any(scores.latent)


def test_the_training_set_has_nothing_to_say(rng):
    """At a maximum of the likelihood every score of all the samples together is zero."""
    x, y = draws.pairs(rng)
    model, _ = mixtures.closed_form(x, y, latent_dim=M)
    scores, part = (closed_form(model, x, y, sample_weights=np.arange(S) < size) for size in (S, 20))
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
    whitened = jax.jit(encoding.whiten)(model, scores)
    expected = {
        "super": (scores.latent, *private),
        "gradient": private,
        "latent": (scores.latent,),
        "fisher": (whitened.means[0], whitened.noises[0], whitened.means[1], whitened.noises[1]),
    }
    widths = {"super": K * (D + 2 * N + 2 * M), "gradient": 2 * K * (N + M), "latent": K * D, "fisher": 2 * K * (N + M)}
    together = plain(model, x, y)
    for name, vector in all_codes(model, x, y).items():
        assert vector.shape == (widths[name],)
        assert_close(vector, reference.normalized(expected[name]), factor=1000)  # a root of small numbers
        assert_close(together[name], np.concatenate([np.ravel(block) for block in expected[name]]))


def test_super_vector_of_whitened_gradients(rng):
    model = draws.pcca(rng)
    x, y = draws.pairs(rng)
    apart, together = plain(model, x, y), plain(model, x, y, scoring=encoding.whitened_closed_form)
    assert_close(together["super"], np.concatenate([apart["latent"], apart["fisher"]]))


def ragged(rng, sizes=(7, 1, 7, 7, 1)):
    x, y = draws.pairs(rng, size=sum(sizes))
    ends = np.cumsum(sizes)[:-1]
    return np.split(x, ends), np.split(y, ends)


def test_ragged_images_in_a_batch_equal_single_sets(rng):
    model = draws.pcca(rng)
    xs, ys = ragged(rng)
    padded = encoding.pad_sets(xs, ys)
    assert [view.shape for view in padded.views] == [(5, 7, N), (5, 7, M)]
    np.testing.assert_array_equal(padded.sample_weights.sum(axis=1), [7, 1, 7, 7, 1])
    settings = {"encoder": all_codes, "sample_weights": padded.sample_weights, "block_size": 2}
    found = encoding.encode_batch(model, *padded.views, **settings)
    alone = [all_codes(model, x, y) for x, y in zip(xs, ys, strict=True)]
    assert_close(found, jax.tree.map(lambda *codes: np.stack(codes), *alone), factor=1000)


def test_scores_of_every_image_at_once(rng):
    """A scoring is an encoder too; the latent part of a Gaussian mixture is empty."""
    model, x = draws.gaussians(rng), rng.normal(size=(5, 12, N))
    found = encoding.encode_batch(model, x, encoder=encoding.closed_form, block_size=2)
    assert found.latent.shape == (5, K, 0)
    assert_close(jax.tree.map(lambda leaf: leaf[3], found), closed_form(model, x[3]), factor=10)


def test_what_stands_in_padded_rows_does_not_matter(rng):
    model = draws.pcca(rng)
    padded = encoding.pad_sets(*ragged(rng))
    spoiled = [np.where(padded.sample_weights[:, :, None] > 0, view, 1e6) for view in padded.views]
    left, right = (
        encoding.encode_batch(model, *views, encoder=all_codes, sample_weights=padded.sample_weights, block_size=2)
        for views in (padded.views, spoiled)
    )
    assert_close(left, right)


def test_images_at_a_time_do_not_matter(rng):
    model, x = draws.gaussians(rng), rng.normal(size=(5, 12, N))
    few, whole = (encoding.encode_batch(model, x, encoder=all_codes, block_size=block_size) for block_size in (3, 8))
    assert_close(few, whole)
    assert_close(jax.tree.map(lambda leaf: leaf[4], whole), all_codes(model, x[4]))


def test_gradients_flow_to_the_descriptors(rng):
    """Also where a component has no descriptor and its rows are zero."""
    model = draws.gaussians(rng)
    lost = GMM(log_weights=model.log_weights, mean=model.mean.at[0].set(1e4), variance=model.variance)
    gradient = jax.jit(jax.grad(lambda x: encoding.fisher_vector(lost, x)[-5]))(jnp.asarray(rng.normal(size=(S, N))))
    assert np.isfinite(gradient).all()
    assert float(jnp.abs(gradient).max()) > 0


def test_gradients_of_a_batch_are_those_of_its_images(rng):
    """Also in a last block that is not full."""
    model, x = draws.gaussians(rng), jnp.asarray(rng.normal(size=(3, 12, N)))
    encode_batch = partial(encoding.encode_batch, model, encoder=encoding.fisher_vector, block_size=2)
    whole = jax.jit(jax.grad(lambda x: encode_batch(x)[:, -5].sum()))(x)
    alone = jax.jit(jax.vmap(jax.grad(lambda x: encoding.fisher_vector(model, x)[-5])))(x)
    assert_close(whole, alone, factor=100)


def test_sets_of_one_person_are_nearer_to_each_other():
    """The use: sets drawn around the model, each person with a shift of their own."""
    rng = np.random.default_rng(0)
    truth = draws.pcca(rng)
    shifts = 0.6 * rng.normal(size=(4, N))
    x, y, person = [], [], []
    for index in range(16):
        drawn = draws.sample(jax.random.key(index), truth, num_samples=100)
        x.append(np.asarray(drawn.x) + shifts[index % 4])
        y.append(np.asarray(drawn.y))
        person.append(index % 4)
    variance = (truth.loadings_x**2).sum(axis=2) + truth.noise_x
    model = GMM(log_weights=truth.log_weights, mean=truth.mean_x, variance=variance)
    vectors = {
        "super": encoding.encode_batch(truth, np.stack(x), np.stack(y), encoder=encoding.super_vector),
        "fisher": encoding.encode_batch(model, np.stack(x), encoder=encoding.fisher_vector),
    }
    for codes in vectors.values():
        similarity = np.array(codes @ codes.T) - 2 * np.eye(16)
        assert np.mean(np.asarray(person)[similarity.argmax(axis=1)] == person) > 0.9


@pytest.mark.parametrize("log_weight", [-np.inf, -200.0])
def test_a_component_of_no_weight_has_no_part_in_a_fisher_vector(log_weight, rng):
    model = jax.tree.map(lambda leaf: leaf.astype(jnp.float32), draws.gaussians(rng))
    alone = jnp.log(jnp.full(K, 1 / (K - 1), jnp.float32)).at[0].set(log_weight)
    found = encoding.fisher_vector(GMM(**(vars(model) | {"log_weights": alone})), rng.normal(size=(9, N)).astype("f4"))
    assert np.isfinite(found).all()


def test_a_descriptor_of_weight_zero_may_hold_anything(rng):
    model, x = draws.gaussians(rng), rng.normal(size=(2, 9, N))
    weights = np.ones((2, 9))
    weights[1, 3] = 0
    expected = encoding.encode_batch(model, x, encoder=encoding.fisher_vector, sample_weights=weights)
    x[1, 3] = np.nan
    assert_close(encoding.encode_batch(model, x, encoder=encoding.fisher_vector, sample_weights=weights), expected)
    alone, _ = stats.e_step(model, x[1], sample_weights=weights[1])
    assert_close(alone, stats.e_step(model, np.delete(x[1], 3, axis=0))[0], factor=10)


def gradients_of_the_dense_likelihood(model, views, mask):
    """`(means, noises)` by differences, times -2/N as the paper has them."""

    def moved(v, name, value):
        changed = [view._replace(**{name: value}) if at == v else view for at, view in enumerate(model.views)]
        return model.with_views(model.log_weights, tuple(changed))

    def of(v, name):
        def value(x):
            return multiview_reference.log_likelihood(moved(v, name, x), views, mask)

        return -2 * multiview_reference.slope(value, getattr(model.views[v], name)) / len(mask)

    return tuple(tuple(of(v, name) for v in range(len(views))) for name in ("mean", "noise"))


@pytest.mark.parametrize("kind", gaps.KINDS)
def test_gradients_of_sets_that_lack_views(kind, rng):
    """Against differences of the dense likelihood; Z is a linear function of the mean gradients."""
    model, (views, mask) = gaps.model(rng, full=gaps.KINDS[kind]), gaps.samples(rng, size=8)
    holes = gaps.spoiled(views, mask)
    scores, same = (
        by_numpy.evaluate(partial(scoring, present=mask), model, *holes)
        for scoring in (encoding.closed_form, encoding.autodiff)
    )
    assert_close(scores, same, factor=0.1)
    means, noises = gradients_of_the_dense_likelihood(model, views, mask)
    assert_close((scores.means, scores.noises), (means, noises), factor=100)
    pairs = zip(model.views, scores.means, strict=True)
    latent = -sum(np.einsum("knd,kn->kd", view.loadings, gradient) for view, gradient in pairs) / 2
    assert_close(scores.latent, latent, factor=1e-3)


def test_a_set_without_a_view_has_zeros_in_its_place(rng):
    """Before and after the normalisation; a batch whose images have other patterns gives the same vectors."""
    model = gaps.on_device(gaps.model(rng))
    sets, masks = zip(*(gaps.samples(rng, size=8) for _ in range(3)), strict=True)
    sets, masks = [np.stack([each[v] for each in sets]) for v in range(3)], np.stack(masks)
    masks[:] = True
    masks[1, :, 1] = masks[0, ::2, 2] = False
    holes = [np.where(masks[:, :, [v]], view, np.nan) for v, view in enumerate(sets)]
    weights = np.where(np.arange(8) == 3, 0.0, 1.0) * np.ones((3, 1))
    settings = {"encoder": mixtures.super_vector, "sample_weights": weights, "present": masks}
    codes = by_numpy.evaluate(partial(mixtures.encode_batch, **settings), model, *holes)
    assert codes.shape == (3, gaps.K * (gaps.D + 2 * sum(gaps.WIDTHS)))
    ends = np.cumsum(gaps.K * np.array([gaps.D, 3, 3, 2, 2, 3, 3]))
    is_zero = [(part[1] == 0).all() for part in np.split(codes, ends[:-1], axis=1)]
    assert is_zero == [False, False, False, True, True, False, False]
    assert (codes[[0, 2]] != 0).all()
    for code, mask, weight, *views in zip(codes, masks, weights, *holes, strict=True):
        alone = partial(mixtures.super_vector, sample_weights=weight, present=mask)
        assert_close(by_numpy.evaluate(alone, model, *views), code)


def test_a_scoring_of_ones_own_needs_no_mask(rng):
    """Only where views are missing a scoring gets the argument `present`."""
    model, (views, _) = gaps.model(rng), gaps.samples(rng, size=8)

    def twice(model, *views, sample_weights=None):
        return jax.tree.map(lambda leaf: 2 * leaf, encoding.closed_form(model, *views, sample_weights=sample_weights))

    found = by_numpy.evaluate(partial(mixtures.super_vector, scoring=twice), model, *views)
    assert_close(found, by_numpy.evaluate(mixtures.super_vector, model, *views))
