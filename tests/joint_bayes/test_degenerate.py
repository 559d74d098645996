"""What degenerates and how it is reported: the approximate E-step, singular scatters, single images, bad sources."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxface.core.fitinfo import FitError, Status, all_finite, raise_if_failed
from jaxface.joint_bayes import JointBayes, em, fit, log_likelihood, posterior
from jaxface.joint_bayes.stats import GroupedStats
from tests.joint_bayes import draws
from tests.reference import joint_bayes_reference as reference
from tests.tolerances import assert_close


def diagonal(identity):
    identity = jnp.asarray(identity, float)
    d = identity.shape[0]
    return JointBayes(mean=jnp.zeros(d), identity_cov=jnp.diag(identity), noise_cov=jnp.eye(d))


def test_four_directions_of_two_images():
    """From the truth, 12 approximate steps lose the two weaker directions and a thousand nats; full EM keeps all."""
    rng = np.random.default_rng(0)
    tau = np.array([0.3, 0.6, 1.5, 4.0])
    mu = rng.normal(size=(4000, 1, 4)) * np.sqrt(tau)
    groups = list(mu + rng.normal(size=(4000, 2, 4)))
    stats = draws.stats(groups, np.zeros(4))
    truth, small = diagonal(tau), diagonal(np.full(4, 0.01))

    full, _ = fit(stats, truth, num_iters=800)
    np.testing.assert_allclose(np.diag(full.identity_cov), tau, atol=0.15)
    np.testing.assert_allclose(np.diag(full.noise_cov), 1, atol=0.05)
    assert_close((full.identity_cov, full.noise_cov), reference.balanced_ml(groups, np.zeros(4)), factor=100)

    approximate, info = fit(stats, truth, num_iters=12, e_step=posterior.approximate)
    np.testing.assert_allclose(np.diag(approximate.identity_cov), [0.0005, 0.001, 1.37, 4.0], atol=0.15)
    assert np.diag(approximate.identity_cov)[:2].max() < 0.002
    np.testing.assert_allclose(np.diag(approximate.noise_cov), [1.28, 1.61, 0.54, 0.51], atol=0.05)
    lost = log_likelihood(full, stats) - log_likelihood(approximate, stats)
    np.testing.assert_allclose(lost, 56358 - 54937, atol=60)
    assert np.diff(info.objective).min() < -100  # it does not ascend the likelihood

    collapsed, _ = fit(stats, small, num_iters=12, e_step=posterior.approximate)
    assert np.diag(collapsed.identity_cov).max() < 1e-6
    recovered, _ = fit(stats, small, num_iters=800)  # slow at first: T_mu has to grow from nothing
    assert_close(recovered.identity_cov, full.identity_cov, factor=100)


@pytest.mark.parametrize("m", [2, 3, 5, 10])
def test_below_a_threshold_even_the_truth_collapses(m):
    """A fixed point away from zero exists iff tau >= (3 m^2 - 4) / m^3, with population moments and T_eps = I."""
    threshold = (3 * m**2 - 4) / m**3
    tau = threshold * jnp.array([0.3, 0.9, 0.99, 1.01, 1.1, 4.0])
    n, zero = 1000.0, jnp.zeros(6)
    rows = GroupedStats(
        rows=jnp.diag(jnp.sqrt(n * (tau + 1 / m))),
        row_unit=zero,
        row_count=jnp.full(6, float(m)),
        count=jnp.array([float(m)]),
        num_people=jnp.array([n]),
        within=n * (m - 1) * jnp.eye(6),
        mean=zero,
    )

    def kept(scale):
        fitted, _ = em.fit_grouped(
            rows, diagonal(scale * tau), None, 0.0, num_iters=2000, tol=0.0, e_step=posterior.approximate, floor=1e-6
        )
        return np.diag(fitted.identity_cov) / tau

    assert kept(1.0)[:3].max() < 1e-6
    assert kept(1.0)[3:].min() > 0.4
    assert kept(0.01).max() < 1e-6  # and above it a small start still collapses


def test_directions_are_mapped_as_the_recursion_says(rng):
    """Balanced, per direction: `rho' = m^2 rho^2 B / (W (1 + m rho)^2 + B)` with `rho = T_mu / T_eps`."""
    groups = list(rng.normal(size=(40, 3, 1)) + rng.normal(size=(40, 1, 1)))
    stats = draws.stats(groups, np.zeros(1))
    between = np.mean([images.mean() ** 2 for images in groups])
    within = np.mean([images.var() for images in groups])
    fitted, _ = fit(stats, diagonal([0.7]), num_iters=1, e_step=posterior.approximate)
    expected = 9 * 0.49 * between / (within * (1 + 2.1) ** 2 + between)
    assert_close(fitted.identity_cov / fitted.noise_cov, np.full((1, 1), expected))


# Three people with two images in five dimensions: what a hundred steps do to them is one program.
def six_images(rng, dtype=np.float64):
    return list(rng.normal(size=(3, 2, 5)).astype(dtype))


@pytest.mark.parametrize(("num_iters", "dtype"), [(3, np.float64), (100, np.float64), (100, np.float32)])
def test_fewer_directions_within_than_dimensions_is_rank_deficient(num_iters, dtype, rng):
    """k - n = 3 < d = 5: said from the start, and T_eps reaches its floor in the end."""
    stats = draws.stats(six_images(rng, dtype), np.zeros(5))
    fitted, info = fit(stats, draws.start(stats), num_iters=num_iters)
    assert int(info.status) == Status.RANK_DEFICIENT
    assert all_finite(fitted)
    assert (float(info.jitter) > 0) == (num_iters == 100)
    with pytest.raises(FitError, match="RANK_DEFICIENT"):
        raise_if_failed(info)


def test_without_a_floor_the_likelihood_is_unbounded(rng):
    groups = six_images(rng)
    null = np.linalg.svd(np.stack([a[0] - a[1] for a in groups]))[2][3:]
    values = [
        reference.log_likelihood(
            JointBayes(mean=np.zeros(5), identity_cov=np.eye(5), noise_cov=np.eye(5) - (1 - t) * null.T @ null), groups
        )
        for t in (1, 1e-2, 1e-4, 1e-6)
    ]
    assert np.diff(values).min() > 10


@pytest.mark.parametrize(
    ("dtype", "e_step"),
    [
        (np.float64, posterior.full),
        (np.float32, posterior.full),
        (np.float64, posterior.approximate),
        (np.float32, posterior.expanded),
    ],
)
def test_duplicates_are_rank_deficient_and_finite(dtype, e_step, rng):
    """Nobody's images differ: T_eps goes to zero as a whole, and a floor relative to itself would go with it."""
    groups = [np.repeat(images[:1], 2, axis=0) for images in six_images(rng, dtype)]
    stats = draws.stats(groups, np.zeros(5))
    fitted, info = fit(stats, draws.start(stats), num_iters=100, e_step=e_step)
    assert int(info.status) == Status.RANK_DEFICIENT
    assert float(info.jitter) > 0
    assert all_finite(fitted)
    assert np.isfinite(info.objective).all()


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_a_direction_without_differences_is_told_whatever_the_rounding(dtype):
    """Images of a person differ in three of four dimensions, mixed and in units of their own."""
    for seed in range(40):
        rng = np.random.default_rng(seed)
        within = rng.normal(size=(20, 3, 3)) @ rng.normal(size=(3, 4))
        x = (within + rng.normal(size=(20, 1, 4))) * 10.0 ** rng.uniform(-2, 2, 4)
        stats = draws.stats(list(x.astype(dtype)), x.mean(axis=(0, 1)).astype(dtype))
        assert int(fit(stats, draws.start(stats), num_iters=1)[1].status) == Status.RANK_DEFICIENT


def test_thousands_of_dimensions_in_float32_are_no_lack_of_rank():
    """Rounding is relative to the diagonal; relative to the trace even a multiple of I would count as singular."""
    d, zero = 3000, np.zeros((), np.float32)
    model = JointBayes(
        mean=np.zeros(d, np.float32), identity_cov=np.zeros((d, d), np.float32), noise_cov=np.float32(25 * np.eye(d))
    )
    count = np.array([2, 2], np.float32)
    ones = np.ones((2, d), np.float32)
    stats = GroupedStats(ones, ones[:, 0], count, count, count, model.noise_cov, model.mean)
    assert int(em.diagnosis(stats, model, None, zero, zero)) == Status.OK


def test_constant_images_are_not_psd():
    stats = draws.stats(list(np.ones((3, 2, 5))), np.zeros(5))
    _, info = fit(stats, draws.start(stats), num_iters=3)
    assert int(info.status) == Status.NOT_PSD


def test_one_image_a_person_identifies_the_sum_only(rng):
    model, prior = draws.joint_bayes(rng), draws.joint_bayes(rng)
    groups = draws.people(rng, model, (1,) * 13)
    stats = draws.stats(groups, np.asarray(model.mean))
    first = draws.start(stats)
    _, info = fit(stats, first, prior=prior, prior_weight=0.0, num_iters=draws.NUM_ITERS)
    assert int(info.status) == Status.UNIDENTIFIED
    with pytest.raises(FitError, match="no person has two images"):
        raise_if_failed(info)
    swapped = JointBayes(mean=model.mean, identity_cov=model.noise_cov, noise_cov=model.identity_cov)
    assert_close(log_likelihood(swapped, stats), log_likelihood(model, stats), factor=10)

    with_prior, info = fit(stats, first, prior=prior, prior_weight=0.5, num_iters=draws.NUM_ITERS)
    assert int(info.status) == Status.OK
    assert np.diff(info.objective).min() > -1e-9
    assert all_finite(with_prior)
    assert np.linalg.eigvalsh(with_prior.noise_cov)[0] > 0


def test_one_image_a_person_among_others_is_welcome(rng):
    model = draws.joint_bayes(rng)
    stats = draws.stats(draws.people(rng, model), np.zeros(3))
    assert int(fit(stats, model, prior=model, prior_weight=0.0, num_iters=draws.NUM_ITERS)[1].status) == Status.OK


def test_a_source_must_have_positive_definite_noise(rng):
    model = draws.joint_bayes(rng)
    stats = draws.stats(draws.people(rng, model), np.zeros(3))
    for cov in [jnp.diag(jnp.asarray([1.0, 2, 0]))] + [jnp.asarray(draws.spd(rng, rank=2)) for _ in range(5)]:
        singular = JointBayes(mean=model.mean, identity_cov=model.identity_cov, noise_cov=cov)
        for weight in (0.5, 1.0):
            fitted, info = fit(stats, model, prior=singular, prior_weight=weight, num_iters=draws.NUM_ITERS)
            assert int(info.status) == Status.NOT_PSD
            assert all_finite(fitted)
        assert (
            int(fit(stats, singular, prior=model, prior_weight=0.5, num_iters=draws.NUM_ITERS)[1].status)
            == Status.NOT_PSD
        )


def test_a_member_of_a_batch_fails_alone(rng):
    groups = draws.people(rng, draws.joint_bayes(rng), (2,) * 13)
    stats = [draws.stats(g, np.zeros(3)) for g in (groups, [np.repeat(images[:1], 2, axis=0) for images in groups])]
    batch = jax.tree.map(lambda *leaves: jnp.stack(leaves), *stats)
    _, info = jax.vmap(lambda s: fit(s, draws.start(s), num_iters=3))(batch)
    assert [Status(int(s)) for s in info.status] == [Status.OK, Status.RANK_DEFICIENT]


def test_float32_with_far_fewer_images_than_dimensions_stays_finite():
    """A floor below the rounding of the factorisation would end in NaN: 12 images in 100 dimensions."""
    rng = np.random.default_rng(0)
    scale = np.geomspace(3, 0.1, 100)
    groups = [(rng.normal(size=(1, 100)) + rng.normal(size=(6, 100))) * scale for _ in range(2)]
    stats = jax.tree.map(lambda leaf: jnp.asarray(leaf, jnp.float32), draws.stats(groups, np.zeros(100)))
    for e_step in (posterior.full, posterior.approximate):
        model, info = fit(stats, em.init(stats), num_iters=30, e_step=e_step)
        assert int(info.status) == Status.RANK_DEFICIENT
        assert all_finite(model)
        assert np.linalg.eigvalsh(np.asarray(model.noise_cov, np.float64)).min() > 0


@pytest.mark.parametrize("identity", [[1.0, 0.5, 0.0], [0.0, 0.0, 0.0]])
def test_a_start_that_lacks_directions_of_the_source(identity, rng):
    """Its divergence is lifted to a finite number, and the first step has the source's directions."""
    start, source = diagonal(identity), draws.joint_bayes(rng)
    stats = draws.stats(draws.people(rng, source), np.zeros(3))
    for weight in (0.5, 1.0):
        found, info = fit(stats, start, prior=source, prior_weight=weight, num_iters=6)
        assert int(info.status) == Status.OK
        assert (np.diff(info.objective) > -1e-9 * np.abs(info.objective).max()).all()
        assert np.linalg.eigvalsh(found.identity_cov).min() > 1e-3
    assert_close(found.identity_cov, source.identity_cov)


@pytest.mark.parametrize("weight", [0.0, 0.5])
def test_nan_is_not_taken_for_a_lack_of_rank(weight, rng):
    source = draws.joint_bayes(rng)
    stats = draws.stats(draws.people(rng, source), np.zeros(3))
    bad = JointBayes(**(vars(source) | {"mean": source.mean.at[0].set(jnp.nan)}))
    _, info = fit(stats, bad, prior=source, prior_weight=weight, num_iters=2)
    assert int(info.status) == Status.NON_FINITE
    _, info = fit(jax.tree.map(lambda leaf: leaf * jnp.nan if leaf.ndim == 2 else leaf, stats), source, num_iters=2)
    assert int(info.status) == Status.NON_FINITE


def test_near_zero_em_goes_like_one_over_t_and_px_em_geometrically():
    """One direction, moments of a population: W = 1 and B = 1 / 2, so that the best T_mu is 0 and T_eps (2 W + B) / 3.

    There PX-EM maps T_mu to R^2 T_mu with R = B / T_eps.
    """
    n, m, b = 1000.0, 3.0, 0.5
    zero, one = jnp.zeros(1), jnp.ones(1)
    rows = GroupedStats(
        rows=jnp.full((1, 1), np.sqrt(n * b / m)),
        row_unit=zero,
        row_count=m * one,
        count=m * one,
        num_people=n * one,
        within=jnp.full((1, 1), n * (m - 1)),
        mean=zero,
    )

    def left(steps, e_step):
        fitted, _ = em.fit_grouped(
            rows, diagonal([1.0]), None, 0.0, num_iters=steps, tol=0.0, e_step=e_step, floor=1e-6
        )
        return float(fitted.identity_cov[0, 0])

    assert left(200, posterior.full) / left(400, posterior.full) == pytest.approx(2, abs=0.1)
    best = ((m - 1) + b) / m
    assert left(11, posterior.expanded) / left(10, posterior.expanded) == pytest.approx((b / best) ** 2, abs=0.01)
