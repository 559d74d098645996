import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import given

from jaxface import metrics
from tests.metrics.test_identification import matrices


@given(matrices(open_set=True), st.randoms(use_true_random=False))
def test_counts_of_a_list_of_trials_are_those_of_the_matrix(case, random):
    scores, gallery, probes = case
    known = np.isin(probes, gallery)
    cells = [(g, q) for g in range(len(gallery)) for q in range(len(probes))]
    random.shuffle(cells)
    row, column = np.array(cells).T
    found = metrics.counts_from_trials(scores[row, column], gallery[row], column, probes[column])
    people = np.unique(gallery)
    best = np.stack([scores[gallery == person].max(axis=0) for person in people])
    for q, person in enumerate(probes):
        others = best[people != person, q]
        assert found.compared[q] == others.size
        assert found.best[q] == best[:, q].max()
        assert np.isnan(found.mates[q]) != known[q]
        if known[q]:
            assert found.mates[q] == best[people == person, q]
            assert found.higher[q] == (others > found.mates[q]).sum()
            assert found.tied[q] == (others == found.mates[q]).sum()
    curve, dense = metrics.open_set_from_counts(*found[:4]), metrics.open_set(scores, gallery, probes)
    for name in curve._fields:
        np.testing.assert_array_equal(getattr(curve, name), getattr(dense, name))
    shares = metrics.cmc_from_counts(found.higher[known], found.tied[known], num_people=people.size)
    np.testing.assert_array_equal(shares, metrics.cmc(scores[:, known], gallery, probes[known]))


def test_counts_of_a_list_that_leaves_trials_out():
    # Probe 0 (anna) is not compared with cora; probe 1 (dan) is nobody of the gallery.
    found = metrics.counts_from_trials(
        [0.2, 0.5, 0.5, 0.1, 0.3], ["anna", "anna", "ben", "ben", "cora"], [0, 0, 0, 1, 1], ["anna"] * 3 + ["dan"] * 2
    )
    assert found.mates[0] == 0.5
    assert np.isnan(found.mates[1])
    np.testing.assert_array_equal(found.best, [0.5, 0.3])
    np.testing.assert_array_equal(found.higher, [0, -1])
    np.testing.assert_array_equal(found.tied, [1, -1])
    np.testing.assert_array_equal(found.compared, [1, 2])


def test_counts_of_trials_refuse_gaps_and_nan():
    with pytest.raises(ValueError, match="probes"):
        metrics.counts_from_trials([0.1, 0.2], ["a", "b"], [0, 2], ["a", "a"])
    with pytest.raises(ValueError, match="scores"):
        metrics.counts_from_trials([0.1, np.nan], ["a", "b"], [0, 0], ["a", "a"])
    with pytest.raises(ValueError, match="the number of trials"):
        metrics.counts_from_trials([], [], [], [])
