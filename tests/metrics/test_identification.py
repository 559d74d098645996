import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import given
from scipy import stats

from jaxface import metrics
from jaxface.metrics import identification as ident
from tests.metrics.people import levels
from tests.reference import metrics_reference as ref
from tests.tolerances import assert_close

# Gallery: anna twice, ben, cora. Columns are probes.
GALLERY = np.array(["anna", "ben", "anna", "cora"])
SCORES = np.array(
    [
        [0.9, 0.2, 0.1],
        [0.5, 0.7, 0.6],
        [0.1, 0.8, 0.3],
        [0.5, 0.7, 0.4],
    ]
)
PROBES = np.array(["anna", "ben", "cora"])


@st.composite
def matrices(draw, open_set=False):
    names = st.sampled_from(["a", "b", "c", "d"])
    gallery = draw(st.lists(names, min_size=1, max_size=6))
    known = draw(st.lists(st.sampled_from(gallery), min_size=1, max_size=5))
    unknown = draw(st.lists(st.sampled_from(["x", "y"]), min_size=1, max_size=3)) if open_set else []
    probes = draw(st.permutations(known + unknown))
    cells = st.lists(levels, min_size=len(gallery) * len(probes), max_size=len(gallery) * len(probes))
    return np.array(draw(cells)).reshape(len(gallery), len(probes)), np.array(gallery), np.array(probes)


def test_cmc_by_hand():
    # anna first; ben: anna .8 above him, cora level with him; cora: ben above her, anna .3 below.
    assert_close(ident.cmc(SCORES, GALLERY, PROBES), np.array([1 / 3, 2 / 3, 1.0]))
    assert_close(ident.cmc(SCORES, GALLERY, PROBES, ties="expected"), np.array([1 / 3, 2.5 / 3, 1.0]))
    assert_close(ident.cmc(SCORES, GALLERY, PROBES, max_rank=1), np.array([1 / 3]))
    assert ident.nearest_neighbor_error(SCORES, GALLERY, PROBES) == pytest.approx(2 / 3)
    np.testing.assert_array_equal(ident.nearest_neighbor_hits(SCORES, GALLERY, PROBES), [1.0, 0.0, 0.0])


def test_two_images_of_the_mate_are_no_tie():
    assert ident.nearest_neighbor_error([[1.0], [1.0], [0.0]], [7, 7, 8], [7]) == 0.0


def test_large_ids_of_two_integer_types_stay_apart():
    ids = np.array([2**53, 2**53 + 1])
    assert ident.nearest_neighbor_error(np.eye(2)[::-1], ids, ids.astype(np.uint64)) == 1.0
    assert ident.nearest_neighbor_error(np.eye(2), ids, ids.astype(np.uint64)) == 0.0


def test_equal_scores_earn_nothing():
    scores = np.zeros((5, 4))
    gallery, probes = np.arange(5), np.arange(4)
    assert ident.nearest_neighbor_error(scores, gallery, probes) == 1.0
    assert ident.nearest_neighbor_error(scores, gallery, probes, ties="expected") == pytest.approx(0.8)
    assert_close(ident.cmc(scores, gallery, probes, ties="expected"), np.arange(1, 6) / 5)


def test_a_set_against_itself_leaves_the_diagonal_out():
    ids = np.array([0, 0, 1, 1])
    scores = np.array([[9, 3, 1, 2], [3, 9, 2, 5], [1, 2, 9, 4], [2, 5, 4, 9]], float)
    np.fill_diagonal(scores, -np.inf)
    np.testing.assert_array_equal(ident.nearest_neighbor_hits(scores, ids, ids), [1, 0, 1, 0])


@pytest.mark.parametrize("ties", ["pessimistic", "expected"])
@given(case=matrices())
def test_cmc_against_the_definition(ties, case):
    scores, gallery, probes = case
    expected = ref.cmc(scores.tolist(), gallery.tolist(), probes.tolist(), ties)
    actual = ident.cmc(scores, gallery, probes, ties=ties)
    assert_close(actual, np.array(expected))
    assert_close(ident.nearest_neighbor_error(scores, gallery, probes, ties=ties), 1.0 - expected[0])
    assert actual[-1] == 1.0


@given(case=matrices(open_set=True), rank=st.integers(1, 3))
def test_open_set_against_the_definition(case, rank):
    scores, gallery, probes = case
    curve = ident.open_set(scores, gallery, probes, rank=rank)
    assert (curve.thresholds[0], curve.far[0], curve.dir[0]) == (np.inf, 0.0, 0.0)
    for threshold, far, found in list(zip(*curve, strict=True))[1:]:
        expected = ref.open_set_rates(scores.tolist(), gallery.tolist(), probes.tolist(), threshold, rank)
        assert_close((far, found), tuple(float(x) for x in expected))
    assert curve.far[-1] == 1.0


def test_open_set_by_hand():
    gallery, probes = [0, 1], [0, 1, 0, 8, 9]
    scores = np.array([[0.9, 0.6, 0.2, 0.5, 0.1], [0.1, 0.3, 0.1, 0.7, 0.4]])
    curve = ident.open_set(scores, gallery, probes)
    np.testing.assert_array_equal(curve.thresholds, [np.inf, 0.9, 0.7, 0.4, 0.2])
    assert_close(curve.far, np.array([0.0, 0.0, 0.5, 1.0, 1.0]))
    assert_close(curve.dir, np.array([0.0, 1 / 3, 1 / 3, 1 / 3, 2 / 3]))  # probe 1 finds 0: never
    assert ident.identification_rate(curve, 0.0) == pytest.approx(1 / 3)
    assert ident.identification_rate(curve, 1.0) == pytest.approx(2 / 3)
    assert ident.identification_rate(ident.open_set(scores, gallery, probes, rank=2), 1.0) == 1.0


def test_what_identification_refuses():
    with pytest.raises(ValueError, match=r"1 of 3 probes have no mate, the first at index 2.*open_set"):
        ident.cmc(SCORES, GALLERY, ["anna", "ben", "dora"])
    with pytest.raises(ValueError, match="probe_ids must hold people inside and outside the gallery; 3 of 3"):
        ident.open_set(SCORES, GALLERY, PROBES)
    with pytest.raises(ValueError, match="probe_ids must hold people inside and outside the gallery; 0 of 3"):
        ident.open_set(SCORES, GALLERY, ["x", "y", "z"])
    with pytest.raises(ValueError, match=r"ties must be one of.*Did you mean 'expected'"):
        ident.cmc(SCORES, GALLERY, PROBES, ties="expect")
    with pytest.raises(ValueError, match="max_rank must be at most 3"):
        ident.cmc(SCORES, GALLERY, PROBES, max_rank=4)
    with pytest.raises(ValueError, match="max_rank must be at least 1"):
        ident.cmc(SCORES, GALLERY, PROBES, max_rank=0)
    with pytest.raises(ValueError, match="rank must be at least 1"):
        ident.open_set(SCORES, GALLERY, PROBES, rank=0)
    with pytest.raises(ValueError, match=r"gallery_ids must have shape \[g\] with g = 4"):
        ident.cmc(SCORES, PROBES, PROBES)
    with pytest.raises(ValueError, match=r"scores must not be NaN; 1 of 1 values are, the first at index \(0, 0\)"):
        ident.cmc([[np.nan]], [0], [0])
    with pytest.raises(ValueError, match="the number of probe columns must be at least 1"):
        ident.cmc(np.zeros((2, 0)), [0, 1], [])
    with pytest.raises(ValueError, match=r"far must lie in \[0, 1\]"):
        ident.identification_rate(ident.open_set([[1.0, 0.0]], [0], [0, 1]), 2.0)


def test_a_threshold_for_strangers_counts_people():
    best = [9.0, 8.0, 1.0, 2.0, 7.0, 3.0]  # the first person has three photos, two of them high
    people = ["a", "a", "a", "b", "c", "d"]
    found = metrics.stranger_threshold(best, people, far=0.42)
    assert (found.threshold, found.num_people) == (7.0, 4)
    assert found.far.estimate == pytest.approx(5 / 12)
    stricter = metrics.stranger_threshold(best, people, far=0.2)
    assert (stricter.threshold, stricter.far.estimate) == (8.0, pytest.approx(1 / 6))


def test_tied_strangers_pass_together():
    found = metrics.stranger_threshold([1.0, 1.0, 0.0, 0.0], [0, 1, 2, 3], far=0.25)
    assert found.threshold == np.nextafter(1.0, 2.0)  # at 1.0 half of them would pass
    assert metrics.stranger_threshold([1.0, 1.0, 0.0, 0.0], [0, 1, 2, 3], far=0.5).threshold == 1.0


def test_the_interval_for_strangers_is_that_of_clopper_and_pearson():
    rng = np.random.default_rng(0)
    best = rng.normal(size=500)
    found = metrics.stranger_threshold(best, np.arange(500), far=0.01)
    assert found.threshold == np.sort(best)[-5]
    exact = stats.binomtest(5, 500).proportion_ci(0.95, method="exact")
    assert (found.far.low, found.far.high) == pytest.approx((exact.low, exact.high))
    few = metrics.stranger_threshold(best[:20], np.arange(20), far=0.01)
    assert few.threshold > best[:20].max()
    assert (few.far.estimate, few.far.low) == (0.0, 0.0)
    assert few.far.high == pytest.approx(1 - 0.025 ** (1 / 20))


def test_the_interval_for_strangers_covers_the_true_rate():
    rng = np.random.default_rng(1)
    held = 0
    for _ in range(300):
        found = metrics.stranger_threshold(rng.normal(size=200), np.arange(200), far=0.03)
        held += found.far.low <= stats.norm.sf(found.threshold) <= found.far.high
    assert held >= 0.93 * 300


@pytest.mark.parametrize(
    ("best", "people", "far", "message"),
    [
        ([], [], 0.1, "the number of strangers must be at least 1"),
        ([np.nan, 1.0], [0, 1], 0.1, "best must not be NaN"),
        ([1.0, 2.0], [0], 0.1, "people must have shape"),
        ([1.0], [0], 1.5, "far must lie in"),
    ],
)
def test_what_a_threshold_for_strangers_refuses(best, people, far, message):
    with pytest.raises(ValueError, match=message):
        metrics.stranger_threshold(best, people, far=far)


def test_counts_by_hand():
    higher, tied = [0, 1, 1], [0, 1, 0]
    assert_close(ident.cmc_from_counts(higher, tied, num_people=3), np.array([1 / 3, 2 / 3, 1.0]))
    assert_close(ident.cmc_from_counts(higher, tied, num_people=3, ties="expected"), np.array([1 / 3, 2.5 / 3, 1.0]))
    assert_close(ident.cmc_from_counts(higher, tied, num_people=3, max_rank=1), np.array([1 / 3]))
    np.testing.assert_array_equal(ident.rank_hits(higher, tied, rank=2, ties="expected"), [1.0, 0.5, 1.0])
    curve = ident.open_set_from_counts([0.9, 0.4, np.nan], [0.9, 0.5, 0.6], [0, 1, -1], [0, 0, -1])
    np.testing.assert_array_equal(curve.thresholds, [np.inf, 0.9, 0.6])
    np.testing.assert_array_equal(curve.dir, [0.0, 0.5, 0.5])
    np.testing.assert_array_equal(curve.far, [0.0, 0.0, 1.0])


def test_what_counts_refuse():
    with pytest.raises(ValueError, match=r"higher must be whole numbers from 0.*1 below 0.*open_set_from_counts"):
        ident.cmc_from_counts([0, -1], [0, 0], num_people=3)
    with pytest.raises(ValueError, match="tied must be whole numbers from 0; got float64"):
        ident.rank_hits([0, 1], [0.0, 0.5])
    with pytest.raises(ValueError, match="count 3 others for some probe; the gallery has 3 people"):
        ident.cmc_from_counts([2, 0], [1, 0], num_people=3)
    with pytest.raises(ValueError, match="best must not be NaN"):
        ident.open_set_from_counts([0.5, np.nan], [0.5, np.nan], [0, -1], [0, -1])
    with pytest.raises(ValueError, match="the number of probes must be at least 1"):
        ident.rank_hits([], [])
