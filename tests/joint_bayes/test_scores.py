"""Scores: every form against the two-hypothesis Gaussians, sets, low rank, float32, and what they are invariant to."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxface import joint_bayes
from jaxface.core import pair_counts
from jaxface.joint_bayes import JointBayes, ScoringBasis
from tests.joint_bayes import draws
from tests.reference import joint_bayes_reference as reference
from tests.tolerances import assert_close

D = 4
RANKS = [None, 2, 0]
ONE = jnp.asarray(1.0)

# Compiled whole: operation by operation the same tests take three times as long.
basis_of = jax.jit(joint_bayes.diagonalize, static_argnames="rank")
form_of = jax.jit(joint_bayes.quadratic_form)
factors_of = jax.jit(joint_bayes.low_rank, static_argnames="rank")
bounds_of = jax.jit(joint_bayes.truncation_bounds)
projected = jax.jit(jax.vmap(joint_bayes.project, in_axes=(None, 0)))
every_pair = jax.jit(jax.vmap(jax.vmap(joint_bayes.llr, in_axes=(None, None, 0)), in_axes=(None, 0, None)))
each_pair = jax.jit(jax.vmap(joint_bayes.llr, in_axes=(None, 0, 0)))
each_set = jax.jit(jax.vmap(joint_bayes.set_llr, in_axes=(None, 0, None, 0, None)))
drawn_pairs = jax.jit(joint_bayes.sample, static_argnames=("num_people", "num_images"))


def pairs(rng, model, num=6):
    """Gallery and probes `[num, d]` from the model; the first of both are images of one person."""
    groups = draws.people(rng, model, (2,) * num)
    return np.stack([g[0] for g in groups]), np.stack([g[1] for g in groups])


def by_quadratic_form(form, y1, y2):
    return form.constant + (y1 @ form.a @ y1 + y2 @ form.a @ y2 + y1 @ form.b @ y2) / 2


def by_factors(form, y1, y2):
    own = -((y1 @ form.factor_a) ** 2).sum() - ((y2 @ form.factor_a) ** 2).sum()
    return form.constant + (own + (y1 @ form.factor_b) @ (y2 @ form.factor_b)) / 2


@pytest.mark.parametrize("rank", RANKS)
def test_every_form_is_the_dense_log_likelihood_ratio(rank, rng):
    model = draws.joint_bayes(rng, d=D, rank=rank)
    gallery, probes = pairs(rng, model)
    expected = np.array([[reference.llr(model, a, b) for b in probes] for a in gallery])
    assert_close(every_pair(model, gallery, probes), expected, factor=10)

    mean = np.asarray(model.mean)
    for score, form in ((by_quadratic_form, form_of(model)), (by_factors, factors_of(model, rank=D))):
        form = jax.tree.map(np.asarray, form)
        found = [[score(form, a - mean, b - mean) for b in probes] for a in gallery]
        assert_close(np.array(found), expected, factor=10)

    basis = basis_of(model)
    z_gallery, z_probes = projected(basis, gallery), projected(basis, probes)
    assert_close(joint_bayes.llr_matrix(basis, gallery, probes), expected, factor=10)
    assert_close(joint_bayes.score_projections(basis, z_gallery, z_probes), expected, factor=10)
    single = jax.vmap(
        jax.vmap(joint_bayes.set_llr, in_axes=(None, None, None, 0, None)), in_axes=(None, 0, None, None, None)
    )
    assert_close(jax.jit(single)(basis, z_gallery, ONE, z_probes, ONE), expected, factor=10)
    assert_close(joint_bayes.set_llr_matrix(basis, z_gallery, np.ones(6), z_probes, np.ones(6)), expected, factor=10)


@pytest.mark.parametrize("rank", RANKS)
def test_sets_of_any_sizes_equal_the_dense_gaussians(rank, rng):
    model = draws.joint_bayes(rng, d=D, rank=rank)
    first, second = (draws.people(rng, model, sizes) for sizes in ((1, 2, 2, 5), (3, 1, 4, 3, 1)))
    expected = np.array([[reference.set_llr(model, a, b) for b in second] for a in first])
    basis = basis_of(model)
    sums, counts = [], []
    for sets in (first, second):
        x, ids = draws.stacked(sets)
        z = np.asarray(projected(basis, x))
        sums.append(np.stack([z[ids == i].sum(axis=0) for i in range(len(sets))]))
        counts.append(np.array([len(images) for images in sets]))
    assert_close(joint_bayes.set_llr_matrix(basis, sums[0], counts[0], sums[1], counts[1]), expected, factor=10)
    single = jax.vmap(jax.vmap(joint_bayes.set_llr, in_axes=(None, None, None, 0, 0)), in_axes=(None, 0, 0, None, None))
    assert_close(jax.jit(single)(basis, sums[0], counts[0], sums[1], counts[1]), expected, factor=10)


def test_an_exact_set_score_is_not_the_mean_of_pair_scores():
    model = JointBayes(mean=jnp.zeros(3), identity_cov=jnp.eye(3), noise_cov=jnp.eye(3))
    enrolled, probe = np.full((4, 3), 2.0), np.full((1, 3), 2.0)
    mean = np.mean([reference.llr(model, x, probe[0]) for x in enrolled])
    assert reference.set_llr(model, enrolled, probe) > mean + 0.5


def test_empty_gallery_and_probes(rng):
    basis = basis_of(draws.joint_bayes(rng, d=D))
    none, some = np.zeros((0, D)), rng.normal(size=(2, D))
    assert joint_bayes.set_llr_matrix(basis, none, np.ones(0), some, np.ones(2)).shape == (0, 2)
    assert joint_bayes.set_llr_matrix(basis, some, np.ones(2), none, np.ones(0)).shape == (2, 0)
    assert joint_bayes.llr_matrix(basis, none, some).shape == (0, 2)


def test_scores_are_symmetric_and_a_pair_of_means_scores_the_constant(rng):
    model = draws.joint_bayes(rng, d=D)
    gallery, _ = pairs(rng, model)
    scores = joint_bayes.llr_matrix(basis_of(model), gallery, gallery)
    assert_close(scores, scores.T)
    assert_close(joint_bayes.llr(model, model.mean, model.mean), form_of(model).constant, factor=10)
    assert float(form_of(model).constant) > 0


@pytest.mark.parametrize("rank", [None, 2])
def test_a_is_negative_and_b_positive_semidefinite_of_the_rank_of_t_mu(rank, rng):
    model = draws.joint_bayes(rng, d=D, rank=rank)
    form = form_of(model)
    assert np.linalg.eigvalsh(form.a)[-1] < 1e-12
    assert np.linalg.eigvalsh(form.b)[0] > -1e-12
    for matrix in (form.a, form.b):
        np.testing.assert_array_equal(matrix, matrix.T)
        assert np.linalg.matrix_rank(matrix, tol=1e-10) == (rank or D)
    factors = factors_of(model, rank=rank or D)
    assert factors.factor_a.shape == (D, rank or D)
    assert_close(-factors.factor_a @ factors.factor_a.T, form.a, factor=10)
    assert_close(factors.factor_b @ factors.factor_b.T, form.b, factor=10)


def test_equation_13_and_the_low_rank_formula_of_b(rng):
    """(13) is right as printed; the formula after (17) is right with `I + 2 Theta' T_eps^-1 Theta` in the middle."""
    drawn = draws.joint_bayes(rng, d=D, rank=2)
    model = JointBayes(mean=drawn.mean, identity_cov=drawn.identity_cov, noise_cov=drawn.noise_cov / 5)
    identity, noise = np.asarray(model.identity_cov), np.asarray(model.noise_cov)
    inverse, either = np.linalg.inv, identity + noise
    a = inverse(either) - inverse(either - identity @ inverse(either) @ identity)
    b = inverse(identity + noise / 2) @ identity @ inverse(noise)
    form = form_of(model)
    assert_close((form.a, form.b), (a, b), factor=10)

    values, vectors = np.linalg.eigh(identity)
    theta = vectors[:, -2:] * np.sqrt(values[-2:])

    def outer(middle):
        return 2 * inverse(noise) @ theta @ inverse(middle) @ theta.T @ inverse(noise)

    assert_close(outer(np.eye(2) + 2 * theta.T @ inverse(noise) @ theta), b, factor=10)
    printed = outer(np.eye(2) + theta.T @ theta)
    assert np.linalg.norm(printed - b) > 0.3 * np.linalg.norm(b)


def test_the_constant_makes_it_a_likelihood_ratio(rng):
    """`c = log|U| - 1/2 log|[[U, T_mu], [T_mu, U]]|`, which (12) omits."""
    model = draws.joint_bayes(rng, d=D)
    either, shared = np.asarray(model.identity_cov + model.noise_cov), np.asarray(model.identity_cov)
    expected = reference.log_det(either) - reference.log_det(np.block([[either, shared], [shared, either]])) / 2
    assert_close(form_of(model).constant, np.asarray(expected), factor=10)
    assert_close(factors_of(model, rank=D).constant, np.asarray(expected), factor=10)


def test_likelihood_ratios_average_to_one_over_different_people(rng):
    """E[exp(LLR) | different] = 1 and the ordering of the two means: a score off by a constant fails this."""
    model = JointBayes(mean=jnp.ones(2), identity_cov=0.3 * jnp.eye(2), noise_cov=jnp.asarray([[1.0, 0.3], [0.3, 2.0]]))
    images, _ = drawn_pairs(jax.random.key(0), model, num_people=40000, num_images=2)
    score = each_pair
    different = score(model, images[:, 0], jnp.roll(images[:, 1], 1, axis=0))
    same = score(model, images[:, 0], images[:, 1])
    np.testing.assert_allclose(np.exp(different).mean(), 1, atol=0.02)
    assert same.mean() > 0 > different.mean()


@pytest.mark.parametrize("rank", [None, 1])
def test_invariant_under_invertible_affine_maps(rank, rng):
    model = draws.joint_bayes(rng, d=D, rank=rank)
    gallery, probes = pairs(rng, model)
    linear, offset = rng.normal(size=(D, D)) + 2 * np.eye(D), rng.normal(size=D)
    moved = JointBayes(
        mean=linear @ np.asarray(model.mean) + offset,
        identity_cov=linear @ np.asarray(model.identity_cov) @ linear.T,
        noise_cov=linear @ np.asarray(model.noise_cov) @ linear.T,
    )
    maps = [(model, gallery, probes), (moved, gallery @ linear.T + offset, probes @ linear.T + offset)]
    before, after = (joint_bayes.llr_matrix(basis_of(m), a, b) for m, a, b in maps)
    assert_close(after, before, factor=100)
    before, after = (each_pair(m, a, b) for m, a, b in maps)
    assert_close(after, before, factor=100)


def test_truncation_bounds_hold_and_the_tolerance_is_kept():
    values = jnp.asarray([3.0, 0.5, 0.1, 0.0])
    model = JointBayes(mean=jnp.zeros(4), identity_cov=jnp.diag(values), noise_cov=jnp.eye(4))
    images, _ = drawn_pairs(jax.random.key(1), model, num_people=20000, num_images=2)
    bounds = bounds_of(model)
    assert bounds.shape == (5,)
    assert np.all(np.diff(bounds) <= 0)
    assert float(bounds[3]) == float(bounds[4]) == 0
    whole = basis_of(model)
    z1, same = projected(whole, images[:, 0]), projected(whole, images[:, 1])
    for z2 in (same, np.roll(same, 1, axis=0)):
        exact = each_set(whole, z1, ONE, z2, ONE)
        for rank in range(5):
            # A direction whose value is zero contributes exactly nothing.
            cut = ScoringBasis(mean=whole.mean, vectors=whole.vectors, values=whole.values.at[rank:].set(0))
            assert np.abs(exact - each_set(cut, z1, ONE, z2, ONE)).mean() <= float(bounds[rank]) + 1e-12
    for tol in (1e-9, 0.2, 1.0, 100.0):
        rank = joint_bayes.choose_rank(model, tol=tol)
        assert float(bounds[rank]) <= tol
        assert rank == 0 or float(bounds[rank - 1]) > tol
    assert joint_bayes.choose_rank(model, tol=1e-9) == 3


def test_a_lower_rank_leaves_out_the_last_directions(rng):
    model = draws.joint_bayes(rng, d=D)
    gallery, probes = pairs(rng, model)
    whole, cut, factors = basis_of(model), basis_of(model, rank=2), factors_of(model, rank=2)
    assert_close((cut.vectors, cut.values), (whole.vectors[:, :2], whole.values[:2]))
    assert_close(factors.error_bound, bounds_of(model)[2])
    factors, mean = jax.tree.map(np.asarray, factors), np.asarray(model.mean)
    found = np.array([[by_factors(factors, a - mean, b - mean) for b in probes] for a in gallery])
    assert_close(joint_bayes.llr_matrix(cut, gallery, probes), found, factor=10)
    assert joint_bayes.diagonalize(model, rank=0).vectors.shape == (D, 0)


def conditioned(rng, condition, *, aligned, d=20):
    """Float32 parameters with that condition number of T_eps, and pairs; the truth is float64 at the same numbers.

    T_mu is of the size of T_eps in every direction, as features have it, so that scores stay below 10 nats.
    """
    axes = np.eye(d) if aligned else np.linalg.qr(rng.normal(size=(d, d)))[0]
    root = axes * np.logspace(0, -np.log10(condition) / 2, d)
    model = JointBayes(
        mean=jnp.asarray(rng.normal(size=d)),
        identity_cov=jnp.asarray(root @ draws.spd(rng, d, 5) @ root.T),
        noise_cov=jnp.asarray(root @ root.T),
    )
    gallery, probes = (x.astype(np.float32) for x in pairs(rng, model, num=12))
    narrow = jax.tree.map(lambda a: a.astype(jnp.float32), model)
    return jax.tree.map(lambda a: a.astype(jnp.float64), narrow), narrow, gallery, probes


@pytest.mark.parametrize(
    ("condition", "aligned", "nats"),
    [
        (1e3, False, 5e-4),  # 1e-4 relative
        (1e5, True, 5e-4),  # uneven scales along the axes cost nothing
        (1e5, False, 0.1),  # condition times eps: the float32 parameters themselves are no better
    ],
)
def test_float32_scores(condition, aligned, nats, rng):
    model, narrow, gallery, probes = conditioned(rng, condition, aligned=aligned)
    truth = every_pair(model, gallery.astype(float), probes.astype(float))
    assert 3 < np.abs(truth).max() < 12
    basis = basis_of(narrow)
    z = [projected(basis, x) for x in (gallery, probes)]
    for found in (
        every_pair(narrow, gallery, probes),
        joint_bayes.llr_matrix(basis, gallery, probes),
        joint_bayes.set_llr_matrix(basis, z[0], np.ones(12), z[1], np.ones(12)),
    ):
        assert found.dtype == jnp.float32
        np.testing.assert_allclose(found, truth, rtol=0, atol=nats)


def test_a_float64_basis_serves_float32_scores(rng):
    """What an ill-conditioned T_eps needs: the basis in float64, the scores in float32."""
    model, _, gallery, probes = conditioned(rng, 1e5, aligned=False)
    basis = jax.tree.map(lambda a: a.astype(jnp.float32), basis_of(model))
    found = joint_bayes.llr_matrix(basis, gallery, probes)
    np.testing.assert_allclose(found, every_pair(model, gallery.astype(float), probes.astype(float)), rtol=0, atol=1e-3)


def test_float32_scores_survive_a_mean_far_from_zero(rng):
    """Centre, then project: the digits of the mean are lost once, not once a term of the projection."""
    model, narrow, gallery, probes = conditioned(rng, 10, aligned=False)
    far = narrow.mean + 1024
    moved = JointBayes(mean=far, identity_cov=narrow.identity_cov, noise_cov=narrow.noise_cov)
    gallery, probes = (np.asarray(far) + (x - np.asarray(narrow.mean)) for x in (gallery, probes))
    exact = JointBayes(mean=far.astype(float), identity_cov=model.identity_cov, noise_cov=model.noise_cov)
    truth = joint_bayes.llr_matrix(basis_of(exact), gallery.astype(float), probes.astype(float))
    np.testing.assert_allclose(joint_bayes.llr_matrix(basis_of(moved), gallery, probes), truth, rtol=0, atol=1e-4)


def test_the_histogram_counts_projected_scores(rng):
    """`score_projections` has the form that `core.pair_counts` wants."""
    model = draws.joint_bayes(rng, d=D)
    x, ids = draws.stacked(draws.people(rng, model))
    basis = basis_of(model)
    z = projected(basis, x)
    counts = pair_counts.count_all_pairs(joint_bayes.score_projections, basis, np.asarray(z), ids, num_bins=8)
    assert counts.genuine.sum() == sum(m * (m - 1) // 2 for m in draws.COUNTS)
    assert counts.genuine.sum() + counts.impostor.sum() == 25 * 24 // 2
