import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxface.core.fitinfo import Status
from jaxface.linalg import gram
from jaxface.subspace import kcfa, transform
from tests.tolerances import assert_close

LABELS = np.repeat(np.arange(4), 5)
KERNEL = gram.gaussian(bandwidth=0.8)


def people(rng, num=4, images=5, d=12, noise=0.3):
    """Images of people about a face that all share."""
    own = 1 + rng.normal(size=(num, d))
    return np.repeat(own, images, axis=0) + noise * rng.normal(size=(num * images, d))


def unit(x):
    return x / np.linalg.norm(x, axis=-1, keepdims=True)


def fitted(x, ridge=1e-6):
    return kcfa.fit(KERNEL, x, LABELS, num_classes=4, ridge=ridge)


def responses_by_definition(x, probe, ridge):
    """Pair by pair: the kernel of unit vectors, the one-hot answers, a linear system."""
    k = np.array([[np.exp(-((a - b) ** 2).sum() / (2 * 0.64)) for b in unit(x)] for a in unit(x)])
    filters = np.linalg.solve(k + ridge * np.eye(len(x)), np.eye(4)[LABELS])
    return np.array([np.exp(-((a - unit(probe)) ** 2).sum() / (2 * 0.64)) for a in unit(x)]) @ filters


@pytest.mark.parametrize("ridge", [1e-3, 1.0])
def test_equals_its_definition(ridge, rng):
    x, probes = people(rng), rng.normal(size=(2, 12))
    filters, info = fitted(x, ridge)
    expected = [responses_by_definition(x, probe, ridge) for probe in probes]
    for probe, wanted in zip(probes, expected, strict=True):
        assert_close(transform(filters, jnp.asarray(probe)), wanted, factor=100)
    assert_close(kcfa.score(filters, *probes), unit(expected[0]) @ unit(expected[1]), factor=100)
    assert int(info.status) == Status.OK


def test_a_filter_answers_its_own_class_only(rng):
    x = people(rng)
    filters, _ = fitted(x, 1e-9)
    found = jax.vmap(transform, in_axes=(None, 0))(filters, jnp.asarray(x))
    np.testing.assert_allclose(found, np.eye(4)[LABELS], atol=1e-5)


def test_a_gain_does_not_matter(rng):
    x, probe = people(rng), rng.normal(size=12)
    plain, dimmed = fitted(x)[0], fitted(x * rng.uniform(0.1, 10, size=(20, 1)))[0]
    assert_close(kcfa.encode(dimmed, 7 * probe), kcfa.encode(plain, probe), factor=1e6)


def test_the_matrix_is_the_scores(rng):
    x, probes = people(rng), rng.normal(size=(3, 12))
    filters, _ = fitted(x)
    matrix = kcfa.score_matrix(filters, x, probes)
    assert_close(matrix[7, 2], kcfa.score(filters, x[7], probes[2]))
    assert_close(jnp.diagonal(kcfa.score_matrix(filters, x, x)), np.ones(20))
    assert matrix.shape == (20, 3)


def test_an_image_of_nothing_scores_zero(rng):
    filters, _ = kcfa.fit(gram.linear(), people(rng), LABELS, num_classes=4, ridge=1e-3)
    scores = kcfa.score_matrix(filters, np.zeros((1, 12)), people(rng))
    assert_close(scores, np.zeros((1, 20)))


def test_people_who_trained_nothing_are_told_apart(rng):
    filters, _ = fitted(people(rng), 1e-2)
    strangers = people(rng, num=6)
    scores = np.asarray(kcfa.score_matrix(filters, strangers, strangers))
    ids = np.repeat(np.arange(6), 5)
    same = (ids[:, None] == ids[None, :]) & ~np.eye(30, dtype=bool)
    assert scores[same].mean() > scores[ids[:, None] != ids[None, :]].mean() + 0.2


def test_median_distance_is_that_of_unit_images(rng):
    x = people(rng)
    pairs = [np.linalg.norm(unit(x[i]) - unit(x[j])) for i in range(20) for j in range(i)]
    assert kcfa.median_distance(x) == pytest.approx(np.median(pairs))


def test_a_ridge_below_the_precision_says_so(rng):
    twice = np.repeat(people(rng, images=1), 5, axis=0).astype(np.float32)
    filters, info = fitted(twice, 1e-12)
    assert int(info.status) == Status.NOT_PSD
    filters, info = fitted(twice, 1e-2)
    assert int(info.status) == Status.OK
    assert filters.coefficients.dtype == np.float32


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_the_same_photo_of_two_people_needs_a_ridge(dtype):
    """A kernel with twice the same row, in the rounding of 40 draws."""
    for seed in range(40):
        x = people(np.random.default_rng(seed)).astype(dtype)
        x[13] = x[2]
        filters, info = fitted(x, 1e-2 * np.finfo(dtype).eps)
        assert int(info.status) == Status.NOT_PSD
        assert np.isnan(filters.coefficients).all()
        assert int(fitted(x, 1e3 * np.finfo(dtype).eps)[1].status) == Status.OK


def test_bad_input(rng):
    x = people(rng)
    with pytest.raises(ValueError, match=r"num_classes must be at least 2 \(one class has no other to be told from\)"):
        kcfa.fit(KERNEL, x, np.zeros(20, int), num_classes=1, ridge=1e-3)
    with pytest.raises(ValueError, match=r"labels must use every id in \[0, 5\); got 4 of them, 4 is missing"):
        kcfa.fit(KERNEL, people(rng), LABELS, num_classes=5, ridge=1e-6)
    filters, _ = fitted(people(rng))
    with pytest.raises(ValueError, match=r"x must have shape \[d\] with d = 12; got shape \(3,\)"):
        kcfa.encode(filters, np.ones(3))
    with pytest.raises(ValueError, match=r"labels must be in \[0, 4\); got values from 1 to 4"):
        kcfa.fit(KERNEL, x, LABELS + 1, num_classes=4, ridge=1e-3)
    with pytest.raises(ValueError, match="ridge must lie in"):
        kcfa.fit(KERNEL, x, LABELS, num_classes=4, ridge=0.0)
    with pytest.raises(ValueError, match="number of images must be at least 2"):
        kcfa.median_distance(x[:1])


def test_bytes_are_refused(rng):
    x = rng.integers(0, 256, (6, 20)).astype(np.float32)
    labels = np.repeat(np.arange(2, dtype=np.int32), 3)
    filters, _ = kcfa.fit(gram.gaussian(bandwidth=0.5), x, labels, num_classes=2, ridge=1e-3)
    with pytest.raises(ValueError, match="gallery must be a floating point array; got dtype uint8"):
        kcfa.score_matrix(filters, x.astype(np.uint8), x)
