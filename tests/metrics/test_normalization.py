"""Score norms: written out, what may not change them, and what they repair."""

import numpy as np
import pytest

from jaxface import metrics
from jaxface.metrics import normalization as norm
from tests.tolerances import assert_close


@pytest.fixture
def scores(rng):
    """Trials [g, q], and both sides against a cohort."""
    return rng.normal(size=(4, 5)), rng.normal(size=(4, 30)), rng.normal(size=(5, 30))


def both(scores, **options):
    _, gallery, probes = scores
    return norm.cohort_moments(gallery, **options), norm.cohort_moments(probes, **options)


@pytest.mark.parametrize("num_best", [None, 7])
def test_norms_written_out(scores, num_best):
    s, gallery, probes = scores
    of_gallery, of_probes = both(scores, num_best=num_best)
    for e in range(4):
        for t in range(5):
            rows = [np.sort(row)[::-1][:num_best] for row in (gallery[e], probes[t])]
            z, t_ = ((s[e, t] - row.mean()) / row.std() for row in rows)
            assert norm.z_norm(s, of_gallery)[e, t] == pytest.approx(z, rel=1e-12)
            assert norm.t_norm(s, of_probes)[e, t] == pytest.approx(t_, rel=1e-12)
            assert norm.s_norm(s, of_gallery, of_probes)[e, t] == pytest.approx((z + t_) / 2, rel=1e-12)
    first, second = np.array([0, 3, 1]), np.array([4, 4, 0])
    listed = norm.s_norm(s[first, second], of_gallery.of(first), of_probes.of(second))
    np.testing.assert_allclose(listed, norm.s_norm(s, of_gallery, of_probes)[first, second], rtol=1e-12)


def test_units_of_a_row_or_a_column_do_not_matter(scores, rng):
    s, gallery, probes = scores
    a, b = rng.uniform(0.5, 2, size=(4, 1)), rng.normal(size=(4, 1))
    np.testing.assert_allclose(
        norm.z_norm(a * s + b, norm.cohort_moments(a * gallery + b)),
        norm.z_norm(s, norm.cohort_moments(gallery)),
        rtol=0,
        atol=1e-12,
    )
    c, d = rng.uniform(0.5, 2, size=5), rng.normal(size=5)
    np.testing.assert_allclose(
        norm.t_norm(c * s + d, norm.cohort_moments(c[:, None] * probes + d[:, None])),
        norm.t_norm(s, norm.cohort_moments(probes)),
        rtol=0,
        atol=1e-12,
    )
    order = rng.permutation(30)
    of_gallery, of_probes = both(scores)
    shuffled = norm.cohort_moments(gallery[:, order]), norm.cohort_moments(probes[:, order])
    np.testing.assert_allclose(norm.s_norm(s, *shuffled), norm.s_norm(s, of_gallery, of_probes), rtol=0, atol=1e-12)
    turned = norm.s_norm(s.T, of_probes, of_gallery).T
    np.testing.assert_allclose(turned, norm.s_norm(s, of_gallery, of_probes), rtol=0, atol=1e-12)


def test_zt_is_t_of_z(scores, rng):
    s, gallery, _ = scores
    cohort = rng.normal(size=(30, 30))
    cohort_probes = rng.normal(size=(30, 5))
    of_gallery, of_cohort = norm.cohort_moments(gallery), norm.cohort_moments(cohort)
    z = (s - gallery.mean(axis=1)[:, None]) / gallery.std(axis=1)[:, None]
    strangers = (cohort_probes - cohort.mean(axis=1)[:, None]) / cohort.std(axis=1)[:, None]
    expected = (z - strangers.mean(axis=0)) / strangers.std(axis=0)
    np.testing.assert_allclose(norm.zt_norm(s, of_gallery, cohort_probes, of_cohort), expected, rtol=0, atol=1e-12)


def ratios(first, second):
    """Log-likelihood ratios but for a constant, of a model whose noise is that of people: `l = 1` everywhere."""
    squares = (first**2).sum(axis=1)[:, None] + (second**2).sum(axis=1)[None, :]
    return first @ second.T / 3 - squares / 12


def test_s_norm_repairs_images_of_different_noise(rng):
    people = rng.normal(size=(700, 20))
    noise = np.exp(0.6 * rng.normal(size=(2, 700, 1)))
    images = [people + each * rng.normal(size=(700, 20)) for each in noise]
    (first, second), cohort = (each[:300] for each in images), images[0][300:]
    matrix, same = ratios(first, second), np.eye(300, dtype=bool)
    sides = norm.cohort_moments(ratios(first, cohort)), norm.cohort_moments(ratios(second, cohort))
    raw, repaired = (
        metrics.eer(metrics.roc(each.ravel(), same.ravel())) for each in (matrix, norm.s_norm(matrix, *sides))
    )
    assert repaired < raw - 0.02


def test_on_data_of_the_model_itself_a_norm_loses(rng):
    """The log-likelihood ratio is the best score there is."""
    people = rng.normal(size=(700, 20))
    images = [people + rng.normal(size=(700, 20)) for _ in range(2)]
    (first, second), cohort = (each[:300] for each in images), images[0][300:]
    matrix, same = ratios(first, second), np.eye(300, dtype=bool)
    sides = norm.cohort_moments(ratios(first, cohort)), norm.cohort_moments(ratios(second, cohort))
    raw, normed = (
        metrics.min_cllr(metrics.roc(each.ravel(), same.ravel())) for each in (matrix, norm.s_norm(matrix, *sides))
    )
    assert raw < normed


def test_one_unit_for_all_scores_and_a_cohort_of_copies(scores):
    s, gallery, probes = scores
    whole = norm.s_norm(s, *both(scores))
    moved = norm.s_norm(3 * s - 2, *(norm.cohort_moments(3 * each - 2) for each in (gallery, probes)))
    np.testing.assert_allclose(moved, whole, rtol=0, atol=1e-12)
    copies = gallery.copy()
    copies[0] = gallery[0, 0]
    assert norm.cohort_moments(copies).spread[0] == pytest.approx(1e-6 * copies.std())


def test_what_norms_refuse(scores):
    s, gallery, probes = scores
    of_gallery, of_probes = both(scores)
    with pytest.raises(ValueError, match="an entry for each of the gallery"):
        norm.z_norm(s, of_probes)
    with pytest.raises(ValueError, match="an entry for each of the probes"):
        norm.t_norm(s, of_gallery)
    with pytest.raises(ValueError, match="num_best must be at most 30"):
        norm.cohort_moments(gallery, num_best=31)
    with pytest.raises(ValueError, match="the size of the cohort must be at least 2"):
        norm.cohort_moments(probes[:, :1])
    with pytest.raises(ValueError, match="finite"):
        norm.cohort_moments(np.where(gallery > 2, np.inf, gallery) + np.inf)
    same = norm.cohort_moments(np.concatenate([gallery, np.ones((1, 30))]))
    assert np.isfinite(norm.z_norm(np.zeros((5, 2)), same)).all()


@pytest.mark.parametrize("num_best", [None, 7])
def test_one_unit_is_in_no_norm(num_best, scores, rng):
    cohort_probes, cohort = rng.normal(size=(30, 5)), rng.normal(size=(30, 30))

    def norms(s, gallery, probes, cohort_probes, cohort):
        of = [norm.cohort_moments(each, num_best=num_best) for each in (gallery, probes, cohort)]
        zt = norm.zt_norm(s, of[0], cohort_probes, of[2], num_best=num_best)
        return norm.z_norm(s, of[0]), norm.t_norm(s, of[1]), norm.s_norm(s, *of[:2]), zt

    given = (*scores, cohort_probes, cohort)
    expected = norms(*given)
    assert_close(norms(*(3 * each - 2 for each in given)), expected, factor=0.01)
    s, gallery, probes = scores
    order = rng.permutation(30)
    shuffled = norms(s, gallery[:, order], probes[:, order], cohort_probes[order], cohort[order][:, order])
    assert_close(shuffled, expected, factor=0.01)
    strangers = norm.z_norm(cohort_probes, norm.cohort_moments(cohort, num_best=num_best))
    best = np.sort(strangers, axis=0)[::-1][:num_best]
    assert_close(expected[3], (expected[0] - best.mean(axis=0)) / best.std(axis=0), factor=0.01)


def test_units_of_rows_change_s_and_equal_moments_keep_the_order(scores, rng):
    s, gallery, probes = scores
    a, b = rng.uniform(0.5, 2, size=(4, 1)), rng.normal(size=(4, 1))
    of_probes = norm.cohort_moments(probes)
    moved = norm.s_norm(a * s + b, norm.cohort_moments(a * gallery + b), of_probes)
    assert np.abs(moved - norm.s_norm(s, norm.cohort_moments(gallery), of_probes)).max() > 0.1
    same = norm.CohortMoments(np.full(4, 0.3), np.full(4, 2.0))
    np.testing.assert_array_equal(norm.z_norm(s, same).ravel().argsort(), s.ravel().argsort())
    np.testing.assert_array_equal(norm.cohort_moments(np.ones((2, 5))).spread, [1, 1])


def test_nan_is_no_score(scores):
    s, gallery, _ = scores
    with pytest.raises(ValueError, match="scores must not be NaN"):
        norm.z_norm(np.where(s > 0, np.nan, s), norm.cohort_moments(gallery))
    with pytest.raises(ValueError, match="num_best must be at least 2"):
        norm.cohort_moments(gallery, num_best=1)
