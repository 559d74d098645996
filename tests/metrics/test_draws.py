"""Statistics of resamples: weighted pairs are the pairs written out."""

import numpy as np
import pytest

from jaxface.metrics import calibration, draws, resampling
from tests.metrics.people import tied_people
from tests.reference import metrics_reference as ref
from tests.tolerances import assert_close

FAR = (0.0, 0.1, 0.25, 1.0)


def weighed(scores, same, a, b, multiplicity, threshold=-2.0):
    """The statistics of resamples, by the library."""
    features = draws._features(scores, same, threshold)
    ranked = resampling.rank(scores, same, a, b, features)
    return draws._statistics(resampling.weigh(ranked, np.asarray(multiplicity, float)), np.array(FAR))


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
        ratios = calibration.pav_llr(listed, np.array(labels, bool))
        assert_close(actual.min_cllr[i], ref.cllr(ratios.tolist(), labels))
        accepted, labels = np.array(listed) >= -2.0, np.array(labels, bool)
        assert_close(actual.accuracy[i], np.mean(accepted == labels))
        assert_close(actual.far_there[i], accepted[~labels].mean())
        assert_close(actual.vr_there[i], accepted[labels].mean())
        np.testing.assert_array_equal(actual.num_pairs[i], [labels.sum(), (~labels).sum()])
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
