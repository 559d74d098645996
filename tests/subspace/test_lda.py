import jax.numpy as jnp
import numpy as np
import pytest
import scipy.linalg

from jaxface.core.fitinfo import FitError, Status, raise_if_failed
from jaxface.subspace import lda
from tests.class_sums import collected
from tests.tolerances import assert_close, largest_angle


def dense_fisherfaces(x, labels, num_components, pca_components, ridge=0.0):
    """Textbook Fisherfaces: eigenvectors of S_t, then the generalised eigenproblem of S_b against S_w."""
    centered = x - x.mean(0)
    axes = np.linalg.eigh(centered.T @ centered)[1][:, ::-1][:, :pca_components]
    y = centered @ axes
    within, between = np.zeros((pca_components,) * 2), np.zeros((pca_components,) * 2)
    for c in np.unique(labels):
        rows = y[labels == c]
        within += (rows - rows.mean(0)).T @ (rows - rows.mean(0))
        between += len(rows) * np.outer(rows.mean(0) - y.mean(0), rows.mean(0) - y.mean(0))
    within /= len(x) - len(np.unique(labels))
    within += ridge * np.trace(within) / pca_components * np.eye(pca_components)
    return axes @ scipy.linalg.eigh(between, within)[1][:, ::-1][:, :num_components]


def orthonormal(basis):
    return np.linalg.qr(np.asarray(basis))[0]


def people(rng, counts=(4, 2, 6, 3), d=30):
    labels = np.repeat(np.arange(len(counts)), counts).astype(np.int32)
    return rng.normal(size=(len(labels), d)) + 2 * rng.normal(size=(len(counts), d))[labels], labels


@pytest.mark.parametrize(("pca_components", "ridge"), [(6, 0.0), (None, 0.0), (None, 0.1), (14, 0.3)])
def test_equals_the_dense_generalised_eigenproblem(pca_components, ridge, rng):
    x, labels = people(rng)
    found, info = lda.fit(x, labels, num_classes=4, num_components=3, pca_components=pca_components, ridge=ridge)
    width = 11 if pca_components is None else pca_components
    expected = dense_fisherfaces(x, labels, 3, width, ridge)
    assert largest_angle(orthonormal(found.basis), orthonormal(expected)) < 1e-8
    assert_close(found.basis @ found.basis.T, expected @ expected.T, factor=1e4)  # the metric, not just the span
    assert int(info.status) == Status.OK
    y = x @ np.linalg.svd(x - x.mean(axis=0), full_matrices=False)[2][:width].T
    within = sum(((y[labels == c] - y[labels == c].mean(axis=0)) ** 2).sum() for c in range(4)) / (len(x) - 4)
    assert_close(info.jitter, ridge * within / width)


def test_singular_within_scatter_is_a_status_with_a_remedy(rng):
    x, labels = people(rng)
    x[1] = x[0]  # a duplicate inside a class: S_w loses a rank at N - C
    found, info = lda.fit(x, labels, num_classes=4, num_components=3)
    assert int(info.status) == Status.RANK_DEFICIENT
    assert int(info.rank) == 10
    assert np.isfinite(found.basis).all()
    with pytest.raises(FitError, match=r"lda\.fit ended in RANK_DEFICIENT: the samples have a lower rank.*duplicates"):
        raise_if_failed(info, "lda.fit")
    assert int(lda.fit(x, labels, num_classes=4, num_components=3, ridge=1e-3)[1].status) == Status.OK


def test_invariant_to_shift_rotation_and_scale(rng):
    x, labels = people(rng, d=8)
    rotation = np.linalg.qr(rng.normal(size=(8, 8)))[0]

    def fit(a):
        return lda.fit(a, labels, num_classes=4, num_components=3, pca_components=6)[0]

    first, second = fit(x), fit(3 * x @ rotation + 5)
    z1 = (x - np.asarray(first.mean)) @ np.asarray(first.basis)
    z2 = (3 * x @ rotation + 5 - np.asarray(second.mean)) @ np.asarray(second.basis)
    assert_close(z2 @ z2.T, z1 @ z1.T, factor=100)


def test_float32_at_the_textbook_width(rng):
    x, labels = people(rng, counts=(5,) * 10, d=200)
    found, info = lda.fit(jnp.asarray(x, jnp.float32), labels, num_classes=10, num_components=9)
    expected = lda.fit(x, labels, num_classes=10, num_components=9)[0]
    assert int(info.status) == Status.OK
    assert largest_angle(orthonormal(found.basis), orthonormal(expected.basis)) < 1e-3


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (
            {"num_components": 4},
            r"num_components must be at most 3 \(the rank of the between-class scatter\); got 4",
        ),
        ({"num_classes": 1}, r"num_classes must be at least 2 \(discrimination needs two classes\); got 1"),
        ({"num_classes": 3}, r"labels must be in \[0, 3\); got values from 0 to 3"),
        ({"num_classes": 15}, "number of samples minus num_classes must be at least 1 .*got 0"),
        ({"pca_components": 15}, r"pca_components must be at most 14 \(15 centred samples"),
        ({"pca_components": 2}, "pca_components must be at least 3; got 2"),
        ({"ridge": -1.0}, r"ridge must lie in \[0, inf\); got -1.0"),
    ],
)
def test_errors(change, message, rng):
    x, labels = people(rng)
    with pytest.raises(ValueError, match=message):
        lda.fit(x, labels, **({"num_classes": 4, "num_components": 3} | change))


def test_labels_of_the_wrong_length(rng):
    x, labels = people(rng)
    with pytest.raises(
        ValueError,
        match=r"labels must have shape \[n\] with n = 15; got shape \(14,\) \(n = 15 comes from x\)",
    ):
        lda.fit(x, labels[:-1], num_classes=4, num_components=3)


def test_a_class_without_samples_is_refused(rng):
    labels = np.array([0, 0, 0, 1, 1, 1, 4, 4, 4], np.int32)
    with pytest.raises(ValueError, match=r"labels must use every id in \[0, 5\); got 3 of them"):
        lda.fit(rng.normal(size=(9, 20)), labels, num_classes=5, num_components=4)


def test_class_means_that_coincide_leave_columns_of_zeros(rng):
    """The second and third class are the same images."""
    labels = np.repeat(np.arange(3, dtype=np.int32), 4)
    x = rng.normal(size=(12, 20))
    x[8:] = x[4:8]
    fitted, info = lda.fit(x, labels, num_classes=3, num_components=2, ridge=0.1)
    assert int(info.status) == Status.OK
    assert float(jnp.abs(fitted.basis[:, 0]).max()) > 1e-3
    assert (np.asarray(fitted.basis[:, 1]) == 0).all()


@pytest.mark.parametrize(("pca_components", "ridge"), [(None, 0.0), (6, 0.0), (None, 0.1)])
def test_sums_give_the_fisherfaces_of_the_images(pca_components, ridge, rng):
    """Also with a class without images and one with one."""
    x, labels = people(rng, counts=(9, 20, 1, 6, 8), d=8)
    expected, report = lda.fit(x, labels, num_classes=5, num_components=3, pca_components=pca_components, ridge=ridge)
    stats = collected(x, np.where(labels > 2, labels + 1, labels), 6, x[:4].mean(axis=0))
    found, info = lda.from_stats(stats, num_components=3, pca_components=pca_components, ridge=ridge)
    assert_close((found.mean, found.basis), (expected.mean, expected.basis), factor=1000)
    assert_close(info._replace(objective=0), report._replace(objective=0), factor=100)
    dense = dense_fisherfaces(x, labels, 3, pca_components or 8, ridge)
    assert_close(found.basis @ found.basis.T, dense @ dense.T, factor=1e4)


def test_a_weight_of_four_is_a_quarter_of_the_variance_and_no_four_images(rng):
    """Weighted sums are those of images twice as far from their mean, with the same degrees of freedom."""
    x, labels = people(rng, counts=(9, 20, 1, 6, 8), d=8)
    shift = x.mean(axis=0)
    plain, doubled = (collected(each, labels, 5, shift) for each in (x, 2 * x - shift))
    weighted = plain._replace(
        count=4 * plain.count, sum=4 * plain.sum, second_moment=4 * plain.second_moment, num_images=plain.count
    )
    found, expected = (lda.from_stats(stats, num_components=3)[0] for stats in (weighted, doubled))
    assert_close(found.basis, expected.basis, factor=1000)
    assert_close(found.mean, shift, factor=100)


def test_float32_sums_far_from_zero_keep_their_digits(rng):
    rotation = np.linalg.qr(rng.normal(size=(8, 8)))[0]
    labels = np.arange(3000) % 6
    x = (rng.normal(size=(6, 8))[labels] * 3 + rng.normal(size=(3000, 8)) * np.logspace(0, -0.5, 8)) @ rotation + 100
    x = x.astype(np.float32)
    stats = collected(x, labels, 6, x[:50].mean(axis=0), np.float32)
    found, info = lda.from_stats(stats, num_components=5)
    expected = dense_fisherfaces(x.astype(float), labels, 5, 8)
    assert int(info.status) == Status.OK
    np.testing.assert_allclose(found.basis @ found.basis.T, expected @ expected.T, atol=1e-5 * (expected**2).sum())


def test_sums_of_people_whose_images_do_not_differ_are_a_status(rng):
    labels = np.repeat(np.arange(4), 5)
    x = rng.normal(size=(4, 3))[labels] + 1e-5 * rng.normal(size=(20, 3))
    stats = collected(x, labels, 4, x.mean(axis=0), np.float32)
    found, info = lda.from_stats(stats, num_components=2)
    assert int(info.status) == Status.RANK_DEFICIENT
    assert np.isfinite(found.basis).all()
    exact = collected(x, labels, 4, x.mean(axis=0))
    assert int(lda.from_stats(exact, num_components=2)[1].status) == Status.OK
    assert int(lda.from_stats(exact._replace(sum=exact.sum * np.nan), num_components=2)[1].status) == Status.NON_FINITE


def test_sums_of_class_means_that_coincide_leave_columns_of_zeros(rng):
    labels = np.repeat(np.arange(3), 4)
    x = rng.normal(size=(12, 3))
    x[8:] = x[4:8]
    stats = collected(x, labels, 3, x.mean(axis=0))
    fitted, info = lda.from_stats(stats, num_components=2, ridge=0.1)
    assert int(info.status) == Status.OK
    assert float(jnp.abs(fitted.basis[:, 0]).max()) > 1e-3
    assert (np.asarray(fitted.basis[:, 1]) == 0).all()


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"num_components": 6}, r"num_components must be at most 5 \(the rank of the between-class scatter\); got 6"),
        ({"num_components": 4}, r"number of classes with images must be at least 5 \(one more than num_comp.*; got 4"),
        ({"pca_components": 9}, r"pca_components must be at most 8 \(images of 8 dimensions\); got 9"),
        ({"pca_components": 1}, "pca_components must be at least 2; got 1"),
        ({"ridge": -1.0}, r"ridge must lie in \[0, inf\); got -1.0"),
    ],
)
def test_errors_of_sums(change, message, rng):
    x, labels = people(rng, d=8)
    stats = collected(x, labels, 6, x.mean(axis=0))
    with pytest.raises(ValueError, match=message):
        lda.from_stats(stats, **({"num_components": 2} | change))


def test_sums_of_single_images_are_refused(rng):
    stats = collected(rng.normal(size=(4, 3)), np.arange(4), 4, np.zeros(3))
    with pytest.raises(ValueError, match=r"number of images minus classes must be at least 1 .*; got 0"):
        lda.from_stats(stats, num_components=2)
