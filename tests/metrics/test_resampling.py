"""Resamples of people: weighted pairs are the pairs written out, and blocks change nothing."""

import functools

import numpy as np
import pytest

from jaxface.metrics import bootstrap, calibration, resampling
from tests.metrics.draws import people_pairs, tied_people
from tests.reference import metrics_reference as ref
from tests.tolerances import assert_close

FAR = (0.0, 0.1, 0.25, 1.0)


def weighed(scores, same, a, b, multiplicity, threshold=-2.0):
    """The statistics of resamples, by the library."""
    features = bootstrap._features(scores, same, threshold)
    ranked = resampling.rank(scores, same, a, b, features)
    return bootstrap._statistics(resampling.weigh(ranked, np.asarray(multiplicity, float)), np.array(FAR))


@pytest.mark.parametrize("decimals", [0, 1, 9])
def test_a_resample_equals_its_pairs_written_out(rng, decimals):
    """Every statistic of weighted pairs against plain metrics of the expanded list, ties and absent people included."""
    scores, same, a, b = tied_people(rng, decimals=decimals)
    multiplicity = rng.multinomial(5, np.full(5, 0.2), size=30)
    actual = weighed(scores, same, a, b, multiplicity)
    assert actual.eer.size == 30 - np.count_nonzero((multiplicity == 5).any(axis=1))
    for i, counts in enumerate(multiplicity):
        listed, labels = ref.expanded_pairs(scores.tolist(), same.tolist(), a, b, counts)
        points = ref.roc_points(listed, labels)
        assert_close(actual.eer[i], float(ref.eer(points)))
        assert_close(actual.auc[i], float(ref.auc(listed, labels)))
        assert_close(actual.cllr[i], ref.cllr(listed, labels))
        assert_close(actual.accuracy[i], np.mean((np.array(listed) >= -2.0) == labels))
        assert_close(actual.rates[i], np.array([float(ref.verification_rate(points, far)) for far in FAR]))


def test_scores_of_infinity_cost_infinite_cllr_only_where_they_are_drawn():
    scores = np.array([2.0, -np.inf, 0.0, -1.0, np.inf, -np.inf])
    same = np.array([True, True, False, False, True, False])
    a, b = np.array([0, 1, 0, 1, 2, 0]), np.array([0, 1, 1, 2, 2, 2])
    actual = weighed(scores, same, a, b, [[1, 0, 2], [1, 1, 1], [2, 1, 0]])
    assert actual.cllr[0] == pytest.approx(calibration.cllr([2.0, np.inf, np.inf, -np.inf], [1, 1, 1, 0]))
    assert np.isposinf(actual.cllr[1:]).all()
    assert np.isfinite(actual.eer).all()


def test_resamples_of_one_person_have_no_curve():
    scores, same = np.array([3.0, 2.0, 1.0]), np.array([True, True, False])
    actual = weighed(scores, same, np.array([0, 1, 0]), np.array([0, 1, 1]), [[2, 0], [1, 1], [0, 2]])
    np.testing.assert_array_equal(actual.eer, [0.0])


@pytest.mark.parametrize("limit", [1, 7, 40, 1000])
def test_tiles_and_blocks_change_nothing(rng, monkeypatch, limit):
    pairs = tied_people(rng, num_people=8, images=4, decimals=1)
    draw = functools.partial(bootstrap.subject_bootstrap, *pairs, num_resamples=45, threshold=-2.0)
    whole = draw(rng=np.random.default_rng(5))
    monkeypatch.setattr(resampling, "_TILE_ELEMENTS", limit)
    assert_close(draw(rng=np.random.default_rng(5)), whole)


def test_resamples_go_in_blocks_and_not_one_by_one(rng, monkeypatch):
    calls = []
    weigh = resampling.weigh
    monkeypatch.setattr(resampling, "weigh", lambda ranked, block: calls.append(len(block)) or weigh(ranked, block))
    pairs = people_pairs(rng, num_people=40, images=4)
    bootstrap.subject_bootstrap(*pairs, rng=rng, num_resamples=1000)
    assert sum(calls) == 1 + 1000
    assert len(calls) <= 40
