"""The E-step's sums against loops, and that they add: over blocks, batches and weights."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxface import mixtures
from jaxface.core import blocks
from jaxface.mixtures import stats
from tests.mixtures import draws
from tests.mixtures.draws import N, S
from tests.reference import mixtures_reference as reference
from tests.tolerances import assert_close


def dense_moments(model, x, y, weights):
    """Every sum of `Moments`, sample by sample."""
    v = np.concatenate([x, y], axis=1)
    g = reference.responsibilities(model, v) * weights[:, None]
    z, cov = reference.posterior(model, v)
    second = np.einsum("sk,skd,ske->kde", g, z, z) + g.sum(axis=0)[:, None, None] * cov
    views = []
    for values, mean, noise in ((x, model.mean_x, model.noise_x), (y, model.mean_y, model.noise_y)):
        r = values[:, None, :] - np.asarray(mean)[None]
        full = np.einsum("sk,skn,skm->knm", g, r, r)
        kept = full if noise.ndim == 3 else np.diagonal(full, axis1=1, axis2=2)
        cross = np.einsum("sk,skn,skd->knd", g, r, z)
        of_latent = g.sum(axis=0), np.einsum("sk,skd->kd", g, z), second
        views.append((np.asarray(mean), np.einsum("sk,skn->kn", g, r), kept, cross, *of_latent))
    return (*of_latent[:2], tuple(views))


def plain(moments):
    return (*moments[:2], tuple(tuple(view) for view in moments.views))


@pytest.mark.parametrize("kind", draws.KINDS)
def test_sums_equal_the_loop_over_samples(kind, rng):
    model = draws.pcca(rng, full=draws.KINDS[kind])
    x, y = draws.pairs(rng)
    weights = rng.uniform(0, 2, size=S)
    moments, log_likelihood = draws.e_step(model, x, y, sample_weights=weights)
    assert_close(plain(moments), dense_moments(model, x, y, weights), factor=10)
    density = reference.log_density(model, np.concatenate([x, y], axis=1))
    assert_close(log_likelihood, weights @ density, factor=10)
    assert_close(draws.log_likelihood(model, x, y, sample_weights=weights), weights @ density, factor=10)


@pytest.mark.parametrize(("kind", "block_size"), [("diagonal", 1), ("diagonal", 59), ("full", 7)])
def test_the_block_size_does_not_matter(kind, block_size, rng):
    model = draws.pcca(rng, full=draws.KINDS[kind])
    x, y = draws.pairs(rng)
    whole = draws.e_step(model, x, y)
    assert_close(draws.e_step(model, x, y, block_size=block_size), whole, factor=0.1)
    assert_close(draws.log_likelihood(model, x, y, block_size=block_size), whole[1], factor=0.1)


def test_batches_of_a_stream_equal_the_whole(rng):
    """Fixed batches with a mask; what stands in the padded rows does not matter."""
    model = draws.pcca(rng)
    x, y = draws.pairs(rng)
    total, log_likelihood = None, 0.0
    for rows, valid in blocks.padded_batches(np.concatenate([x, y], axis=1), block_size=16):
        rows = np.where(valid[:, None], rows, 1e6)
        moments, part = draws.e_step(model, rows[:, :N], rows[:, N:], sample_weights=valid.astype(float))
        total = moments if total is None else mixtures.merge(total, moments)
        log_likelihood += part
    assert_close((total, log_likelihood), draws.e_step(model, x, y), factor=0.1)


def test_weights_count_samples(rng):
    model = draws.pcca(rng)
    x, y = draws.pairs(rng)
    counts = np.bincount(rng.integers(0, S, S), minlength=S)  # as many in all: one program
    repeated, _ = draws.e_step(model, np.repeat(x, counts, axis=0), np.repeat(y, counts, axis=0))
    assert_close(draws.e_step(model, x, y, sample_weights=counts)[0], repeated, factor=10)


def test_rows_of_weight_zero_may_hold_anything(rng):
    """Inside a transformation, where values cannot be checked."""
    model = draws.pcca(rng)
    x, y = draws.pairs(rng)
    spoiled = x.copy()
    spoiled[::2] = np.nan
    weights = np.arange(S) % 2.0
    assert_close(
        draws.e_step(model, spoiled, y, sample_weights=weights), draws.e_step(model, x, y, sample_weights=weights)
    )


@pytest.mark.parametrize("kind", draws.KINDS)
def test_moments_about_other_means(kind, rng):
    """Exact: an M-step does not care about which means the sums were taken."""
    model = draws.pcca(rng, full=draws.KINDS[kind])
    moments, _ = draws.e_step(model, *draws.pairs(rng))
    means = tuple(jnp.asarray(rng.normal(size=view.mean.shape)) for view in model.views)
    moved = stats.recenter(moments, means)
    assert_close(draws.m_step(model, moved), draws.m_step(model, moments), factor=100)
    back = stats.recenter(moved, tuple(view.mean for view in model.views))
    assert_close(back, moments, factor=100)


stepwise = jax.jit(mixtures.stepwise)


def test_stepwise_mixes_averages(rng):
    """At one model, the mix of two batches is the statistics of both with sample weights."""
    model = draws.pcca(rng)
    x, y = draws.pairs(rng)
    half, rate = S // 2, 0.3
    (first, _), (second, _) = (draws.e_step(model, x[part], y[part]) for part in (slice(0, half), slice(half, S)))
    weights = np.where(np.arange(S) < half, 1 - rate, rate) / half
    assert_close(stepwise(first, second, rate), draws.e_step(model, x, y, sample_weights=weights)[0], factor=10)
    assert_close(stepwise(first, second, 1.0).weight.sum(), 1.0)


def test_stepwise_takes_moments_of_different_models(rng):
    model, other = draws.pcca(rng), draws.pcca(rng)
    x, y = draws.pairs(rng)
    old, _ = draws.e_step(other, x, y)
    new, _ = draws.e_step(model, x, y)
    mixed = stepwise(old, new, 0.0)
    assert_close(mixed.views[0].center, model.mean_x)
    left, right = draws.m_step(model, mixed)[0], draws.m_step(other, old)[0]
    assert_close(draws.shared(left), draws.shared(right), factor=100)


def test_stepwise_em_approaches_batch_em(rng):
    _, drawn, start = draws.apart("diagonal")
    batches = np.split(rng.permutation(draws.MANY), 20)
    model, moments = start, None
    for turn in range(60):
        rows = batches[turn % 20]
        new, _ = draws.e_step(model, drawn.x[rows], drawn.y[rows])
        moments = new if moments is None else stepwise(moments, new, (turn + 2) ** -0.7)
        model, _ = draws.m_step(model, moments)
    best, _ = draws.fit(drawn.x, drawn.y, start)
    values = [float(draws.log_likelihood(m, drawn.x, drawn.y)) / draws.MANY for m in (start, model, best)]
    assert values[2] - values[1] < 0.1 * (values[2] - values[0])


def test_merge_refuses_moments_of_different_models(rng):
    x, y = draws.pairs(rng)
    moments = [draws.e_step(draws.pcca(rng), x, y)[0] for _ in range(2)]
    with pytest.raises(
        ValueError, match="a and b must come from E-steps at the same parameters; stepwise takes others"
    ):
        mixtures.merge(*moments)
