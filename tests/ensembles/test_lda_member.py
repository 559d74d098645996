import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis

from jaxface.core.fitinfo import FitError, Status, raise_if_failed
from jaxface.core.pytree import member
from jaxface.ensembles import lda_member, log_posteriors, sampling
from tests.ensembles import draws
from tests.reference import ensembles_reference as reference
from tests.tolerances import assert_close, largest_angle

C = 6


def orthonormal(basis):
    return np.linalg.qr(np.asarray(basis))[0]


def same_members(found, bases, axes):
    """Subspaces to 1e-8, and the metric that a basis puts on them."""
    for basis, expected in zip(found.basis, bases, strict=True):
        assert largest_angle(orthonormal(basis), orthonormal(expected)) < 1e-8
        assert_close(basis @ basis.T, expected @ expected.T, factor=100)
    np.testing.assert_array_equal(found.axes, axes)


# 3 axes of 6 people: all directions, by Cholesky; with a number asked for, by SVD; 12 axes: more axes than directions.
@pytest.mark.parametrize("unbiased", [True, False])
@pytest.mark.parametrize("ridge", [0.0, 0.2])
@pytest.mark.parametrize(("num_axes", "num_components"), [(3, None), (3, 3), (5, 2), (12, None), (12, 3)])
def test_equals_the_loop(num_axes, num_components, ridge, unbiased, rng):
    y, labels, _ = draws.coordinates(rng)
    axes = draws.random_axes(rng, 4, num_axes, y.shape[1])
    probes = rng.normal(size=(9, y.shape[1]))
    found, info = lda_member.fit(
        y, labels, axes, num_classes=C, num_components=num_components, ridge=ridge, unbiased=unbiased
    )
    width = num_components or min(num_axes, C - 1)
    settings = {"num_components": width, "ridge": ridge, "unbiased": unbiased}
    bases, _, posteriors = reference.committee(y, labels, probes, axes, **settings)
    same_members(found, bases, axes)
    assert_close(log_posteriors(found, probes, posterior=lda_member.gaussian), posteriors, factor=100)
    _, _, by_cosine = reference.committee(y, labels, probes, axes, similarity="cosine", **settings)
    assert_close(log_posteriors(found, probes, posterior=lda_member.cosine), by_cosine, factor=100)
    np.testing.assert_array_equal(info.status, np.full(4, Status.OK))
    np.testing.assert_array_equal(info.rank, np.full(4, num_axes))
    within = [reference.scatters(y[:, chosen], labels)[0] / len(y) for chosen in axes]
    assert_close(info.jitter, np.array([ridge * np.trace(cov) / num_axes for cov in within]))


def test_directions_come_in_order_when_a_number_is_asked_for(rng):
    y, labels, _ = draws.coordinates(rng)
    axes = draws.random_axes(rng, 2, 12, y.shape[1])
    whole, _ = lda_member.fit(y, labels, axes, num_classes=C)
    for width in (1, 3):
        part, _ = lda_member.fit(y, labels, axes, num_classes=C, num_components=width)
        assert_close(part.basis, whole.basis[:, :, :width])
        assert_close(part.centers, whole.centers[:, :, :width])


@pytest.mark.parametrize("num_axes", [4, 12])
def test_posteriors_equal_scikit_learn(num_axes, rng):
    """Its svd solver whitens S_w / n, so `unbiased=False`; uniform priors, unequal classes."""
    y, labels, _ = draws.coordinates(rng)
    axes = draws.random_axes(rng, 3, num_axes, y.shape[1])
    probes = rng.normal(size=(9, y.shape[1]))
    found, _ = lda_member.fit(y, labels, axes, num_classes=C, unbiased=False)
    posteriors = log_posteriors(found, probes, posterior=lda_member.gaussian)
    for chosen, ours in zip(axes, posteriors, strict=True):
        # Its between-class directions and overall mean are weighted by the priors; the posteriors do not depend on it
        # as long as every direction is kept.
        theirs = LinearDiscriminantAnalysis(solver="svd", priors=np.full(C, 1 / C)).fit(y[:, chosen], labels)
        assert_close(ours, theirs.predict_log_proba(probes[:, chosen]), factor=100)


def test_whitens_the_covariance_within_people(rng):
    y, labels, _ = draws.coordinates(rng)
    axes = draws.random_axes(rng, 3, 10, y.shape[1])
    found, _ = lda_member.fit(y, labels, axes, num_classes=C)
    for one in range(3):
        z = np.asarray(jax.vmap(lda_member.transform, in_axes=(None, 0))(member(found, one), y))
        within, between = reference.scatters(z, labels)
        assert_close(within / (len(y) - C), np.eye(5), factor=100)
        assert_close(between, np.diag(np.diag(between)), factor=100)
        assert_close(found.centers[one], np.stack([z[labels == c].mean(axis=0) for c in range(C)]), factor=10)


def test_padded_axes_change_nothing(rng):
    y, labels, _ = draws.coordinates(rng)
    probes = rng.normal(size=(9, y.shape[1]))
    for num_axes, num_components in ((3, None), (3, 2), (7, None), (7, 2)):
        axes = draws.random_axes(rng, 3, num_axes, y.shape[1])
        padded = np.concatenate([axes, np.full((3, 4), -1, np.int32)], axis=1)
        fit = functools.partial(lda_member.fit, num_classes=C, num_components=num_components, ridge=0.1)
        plain, wide = (fit(y, labels, chosen)[0] for chosen in (axes, padded))
        gaussian = functools.partial(log_posteriors, posterior=lda_member.gaussian)
        assert_close(gaussian(wide, probes), gaussian(plain, probes), factor=100)
        assert not np.asarray(wide.basis)[:, num_axes:].any()
    bags = np.ones((3, len(y)), np.int32)
    plain, wide = (lda_member.fit_bags(y, labels, chosen, bags, num_classes=C)[0] for chosen in (axes, padded))
    assert_close(gaussian(wide, probes), gaussian(plain, probes), factor=100)


@pytest.mark.parametrize("ridge", [0.0, 0.2])
@pytest.mark.parametrize("unbiased", [True, False])
@pytest.mark.parametrize("kind", ["people", "images", "bootstrap"])
def test_bags_equal_the_loop(kind, unbiased, ridge, rng):
    y, labels, _ = draws.coordinates(rng)
    key = jax.random.key(3)
    if kind == "people":
        classes = sampling.class_bags(key, num_members=4, num_classes=C, bag_size=4)
        weights, people = np.asarray(sampling.class_weights(classes, labels)), 4
    else:
        settings = {"num_classes": C, "images_per_class": 3, "bootstrap": kind == "bootstrap"}
        rows = sampling.image_bags(key, labels, num_members=4, **settings)
        weights, people = np.asarray(sampling.row_weights(rows, num_rows=len(y))), C
    axes = draws.random_axes(rng, 4, 4, y.shape[1])
    found, info = lda_member.fit_bags(y, labels, axes, weights, num_classes=C, ridge=ridge, unbiased=unbiased)
    width = min(4, people - 1)
    settings = {"num_components": width, "ridge": ridge, "unbiased": unbiased}
    bases = [
        reference.bagged_lda(y[:, chosen], labels, weight, **settings)
        for chosen, weight in zip(axes, weights, strict=True)
    ]
    same_members(lda_member.LdaMember(axes=found.axes, basis=found.basis[:, :, :width], centers=0), bases, axes)
    assert not np.asarray(found.basis)[:, :, width:].any()
    np.testing.assert_array_equal(info.status, np.full(4, Status.OK))
    for one in range(4):
        means = np.stack([y[labels == c].mean(axis=0) for c in range(C)])[:, axes[one]]  # of all images
        assert_close(found.centers[one], means @ np.asarray(found.basis[one]), factor=10)


@pytest.mark.parametrize("unbiased", [True, False])
def test_bags_of_fractions_equal_the_loop(unbiased, rng):
    """The weights of some people sum to less than 1, and their means are means all the same."""
    y, labels, _ = draws.coordinates(rng)
    axes, weights = draws.random_axes(rng, 2, 4, y.shape[1]), rng.uniform(0.05, 0.3, size=(2, len(y)))
    found, info = lda_member.fit_bags(y, labels, axes, weights, num_classes=C, ridge=0.2, unbiased=unbiased)
    settings = {"num_components": 4, "ridge": 0.2, "unbiased": unbiased}
    bases = [
        reference.bagged_lda(y[:, chosen], labels, weight, **settings)
        for chosen, weight in zip(axes, weights, strict=True)
    ]
    same_members(found, bases, axes)
    for factor in (1e-30, 0.25, 7.0, 1e30):
        scaled, report = lda_member.fit_bags(
            y, labels, axes, factor * weights, num_classes=C, ridge=0.2, unbiased=unbiased
        )
        assert_close((scaled, report), (found, info), factor=10)


def test_the_unbiased_divisor_is_unbiased(rng):
    """Noise of variance 1, images weighted 1, 2 and 5: the mean of the whitened variance is 1."""
    weights, labels = np.array([[1.0, 2.0, 5.0, 1.0, 1.0]]), np.array([0, 0, 0, 1, 1], np.int32)
    axes = np.zeros((1, 1), np.int32)
    fit = jax.jit(functools.partial(lda_member.fit_bags, num_classes=2))
    y = rng.normal(size=(4000, 5, 1))
    inverse = jax.lax.map(lambda one: fit(one, labels, axes, weights)[0].basis[0, 0, 0] ** -2, jnp.asarray(y))
    assert abs(float(inverse.mean()) - 1) < 0.05


def test_a_bag_of_everything_is_the_short_cut(rng):
    y, labels, _ = draws.coordinates(rng)
    axes = draws.random_axes(rng, 3, 12, y.shape[1])
    for settings in ({}, {"ridge": 0.3}, {"unbiased": False}, {"num_components": 2}):
        shortcut, _ = lda_member.fit(y, labels, axes, num_classes=C, **settings)
        bag, _ = lda_member.fit_bags(y, labels, axes, np.ones((3, len(y)), np.int32), num_classes=C, **settings)
        for left, right in zip(shortcut.basis, bag.basis, strict=True):
            assert_close(left @ left.T, right @ right.T, factor=100)


def test_a_class_that_no_bag_has_seen_has_a_posterior(rng):
    y, labels, _ = draws.coordinates(rng)
    weights = np.tile((labels != 2).astype(np.int32), (2, 1))
    axes = draws.random_axes(rng, 2, 5, y.shape[1])
    found, _ = lda_member.fit_bags(y, labels, axes, weights, num_classes=C)
    posteriors = log_posteriors(found, y[labels == 2], posterior=lda_member.gaussian)
    assert np.isfinite(posteriors).all()
    assert (np.exp(posteriors)[:, :, 2].mean(axis=1) > 1 / C).all()


def test_a_singular_scatter_is_a_status_with_a_remedy(rng):
    x, labels = draws.people(rng, counts=(4,) * C, d=60)
    x[1], x[5] = x[0], x[4]  # two duplicates: S_w has rank N - C - 2
    y, _, _, _ = reference.principal_coordinates(x)
    n = len(y)
    axes = np.arange(n - C, dtype=np.int32)[None]
    found, info = lda_member.fit(y, labels, axes, num_classes=C)
    assert int(info.status[0]) == Status.RANK_DEFICIENT
    assert int(info.rank[0]) < n - C
    assert np.isfinite(found.basis).all()
    with pytest.raises(FitError, match=r"committee ended in RANK_DEFICIENT.*duplicates"):
        raise_if_failed(info, "committee")
    _, info = lda_member.fit(y, labels, axes, num_classes=C, ridge=1e-3)
    assert int(info.status[0]) == Status.OK


def test_an_axis_without_variance_is_no_rank(rng):
    """Columns of zeros are uncorrelated with everything and pass for principal axes."""
    y, labels, _ = draws.coordinates(rng)
    y[:, 3] = 0
    for num_components in (None, 2):
        axes = np.arange(5, dtype=np.int32)[None]
        found, info = lda_member.fit(y, labels, axes, num_classes=C, num_components=num_components)
        assert int(info.rank[0]) == 4
        assert int(info.status[0]) == Status.RANK_DEFICIENT
        assert not np.asarray(found.basis)[0, 3].any()


def test_nan_inside_jit_is_a_status(rng):
    y, labels, _ = draws.coordinates(rng)
    axes = draws.random_axes(rng, 2, 5, y.shape[1])
    fit = jax.jit(functools.partial(lda_member.fit, num_classes=C, ridge=0.1))
    _, info = fit(np.where(np.arange(len(y))[:, None] == 1, np.nan, y), labels, axes)
    np.testing.assert_array_equal(info.status, [Status.NON_FINITE] * 2)


def test_float32_far_from_the_origin(rng):
    """Enrolled people may all lie on one side: in float32 the square of 300 is off by 1e-2."""
    basis, centers = rng.normal(size=(4, 3)), 300 + rng.normal(size=(C, 3))
    probes = np.linalg.lstsq(basis.T, (300 + rng.normal(size=(9, 3))).T, rcond=None)[0].T
    whole = lda_member.LdaMember(axes=np.arange(4, dtype=np.int32), basis=basis, centers=centers)
    single = lda_member.LdaMember(axes=whole.axes, basis=np.float32(basis), centers=np.float32(centers))
    expected = reference.log_posteriors(probes @ basis, centers, similarity="gaussian")
    assert_close(lda_member.gaussian(whole, probes), expected, factor=1e4)
    found = lda_member.gaussian(single, jnp.asarray(probes, jnp.float32))
    np.testing.assert_allclose(found, expected, atol=3e-3)


@pytest.mark.parametrize("num_components", [None, 4])
def test_float32_near_the_limit_takes_the_factor(num_components, rng):
    """At |J| = N - C a direction has 1 - s^2 of 1e-4 and less, which is a difference of two float32 numbers."""
    x, labels = draws.people(rng, counts=(3,) * 30, d=200)
    y, _, _, _ = reference.principal_coordinates(x)
    axes = np.stack([np.arange(60), np.arange(60)[::-1]]).astype(np.int32)
    fit = functools.partial(lda_member.fit, num_classes=30, num_components=num_components)
    single, info = fit(jnp.asarray(y, jnp.float32), labels, axes)
    double, _ = fit(y, labels, axes)
    assert single.basis.dtype == jnp.float32
    np.testing.assert_array_equal(info.status, [Status.OK, Status.OK])
    for left, right in zip(single.basis, double.basis, strict=True):
        assert largest_angle(orthonormal(left), orthonormal(right)) < 1e-3
        assert np.linalg.norm(left @ left.T - right @ right.T) < 1e-2 * np.linalg.norm(right @ right.T)


def test_unchanged_by_block_size_and_by_the_number_of_members(rng):
    y, labels, variances = draws.coordinates(rng)
    draw = functools.partial(sampling.feature_subspaces, jax.random.key(0), variances, num_fixed=2, num_random=5)
    fit = functools.partial(lda_member.fit, y, labels, num_classes=C)
    ten, hundred = (fit(draw(num_members=m))[0] for m in (10, 100))
    assert_close(member(hundred, slice(10)), ten, factor=0.01)
    for block_size in (1, 3):
        assert_close(fit(draw(num_members=10), block_size=block_size)[0], ten, factor=0.01)
    weights = np.ones((10, len(y)), np.int32)
    bags = functools.partial(lda_member.fit_bags, y, labels, draw(num_members=10), weights, num_classes=C)
    assert_close(bags(block_size=3)[0], bags()[0], factor=0.01)


def test_enrolled_people_replace_the_centres(rng):
    y, labels, _ = draws.coordinates(rng)
    found, _ = lda_member.fit(y, labels, draws.random_axes(rng, 3, 5, y.shape[1]), num_classes=C)
    new, new_labels = rng.normal(size=(4, y.shape[1])), np.array([0, 1, 1, 1], np.int32)
    enrolled = lda_member.enroll(found, new, new_labels, num_classes=2)
    assert_close(enrolled.basis, found.basis)
    for one in range(3):
        z = new[:, found.axes[one]] @ np.asarray(found.basis[one])
        assert_close(enrolled.centers[one], np.stack([z[0], z[1:].mean(axis=0)]), factor=10)


def test_no_gradient_through_the_fit(rng):
    y, labels, _ = draws.coordinates(rng)
    axes = draws.random_axes(rng, 2, 5, y.shape[1])

    def total(y):
        members, _ = lda_member.fit(y, labels, axes, num_classes=C, num_components=2)
        return (members.basis**2).sum() + (members.centers**2).sum()

    assert not np.asarray(jax.grad(total)(jnp.asarray(y))).any()


def test_the_second_fit_uses_the_program_of_the_first(rng):
    y, labels, _ = draws.coordinates(rng)
    axes = draws.random_axes(rng, 2, 5, y.shape[1])
    lda_member.fit(y, labels, axes, num_classes=C)
    num_programs = lda_member._fit._cache_size()
    lda_member.fit(y, labels, axes[::-1], num_classes=C, ridge=0.5)
    assert lda_member._fit._cache_size() == num_programs
