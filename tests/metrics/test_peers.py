"""The same numbers as pyeer, lir and scikit-learn, where definitions agree; pyeer and lir come with extra `bench`."""

import numpy as np
import pytest
from sklearn.metrics import roc_auc_score, roc_curve

from jaxface import metrics

EXACT = {"rel": 1e-9, "abs": 1e-9}


@pytest.fixture(params=[(700, 3000, 9), (300, 3000, 1), (40, 60, 9)], ids=["many", "tied", "few"])
def result(request, rng):
    """Scores in nats and which pairs are genuine."""
    num_genuine, num_impostor, decimals = request.param
    scores = np.concatenate([rng.normal(2, 1.5, num_genuine), rng.normal(-1, 1.2, num_impostor)])
    return np.round(scores, decimals), np.arange(len(scores)) < num_genuine


def test_area_and_rates_of_scikit_learn(result):
    scores, is_same = result
    curve = metrics.roc(scores, is_same)
    assert metrics.auc(curve) == pytest.approx(roc_auc_score(is_same, scores), **EXACT)
    far, vr, _ = roc_curve(is_same, scores, drop_intermediate=False)
    for target in (0.05, 0.01, 0.001):
        assert metrics.verification_rate(curve, target) == pytest.approx(vr[far <= target][-1], **EXACT)


def test_equal_error_rate_and_area_of_pyeer(result):
    eer_info = pytest.importorskip("pyeer.eer_info", reason="pyeer is in extra `bench`")
    scores, is_same = result
    curve = metrics.roc(scores, is_same)
    theirs = eer_info.get_eer_stats(scores[is_same], scores[~is_same])
    assert metrics.auc(curve) == pytest.approx(theirs.auc, **EXACT)
    # pyeer takes the mean of both error rates where they are closest, ours lies where the lines between points cross.
    assert theirs.eer_low - 1e-9 <= metrics.eer(curve) <= theirs.eer_high + 1e-9
    if theirs.eer_low == theirs.eer_high:
        assert metrics.eer(curve) == pytest.approx(theirs.eer, **EXACT)


def test_cost_of_ratios_of_lir(result):
    models = pytest.importorskip("lir.data.models", reason="lir is in extra `bench`")
    from lir import metrics as lir_metrics

    scores, is_same = result
    theirs = models.LLRData(features=scores[:, None] / np.log(10), labels=is_same.astype(int))
    assert metrics.cllr(scores, is_same) == pytest.approx(lir_metrics.cllr(theirs), **EXACT)
    assert metrics.min_cllr(metrics.roc(scores, is_same)) == pytest.approx(lir_metrics.cllr_min(theirs), **EXACT)
