"""Identification against the dense matrix of evidence: candidates, probabilities, tiles, people with several photos."""

import numpy as np
import pytest

from jaxface import verifier
from jaxface.verifier import identification
from tests.tolerances import assert_close


@pytest.fixture
def enrolled(fitted):
    found, x, ids = fitted
    points = np.asarray(verifier.encode_vectors(found, x))
    gallery = verifier.enroll(points[::2], np.unique(ids[::2], return_inverse=True)[1], num_people=6)
    probes = points[1::2]
    scores = verifier.score_sets(found, gallery, verifier.Gallery(probes, np.ones(len(probes), int)))
    return found, gallery, probes, np.asarray(scores)


def test_a_probe_is_named_where_that_is_the_most_probable_of_all_and_nobody(enrolled):
    found, gallery, probes, scores = enrolled
    weight = 0.3 / 6 * np.exp(scores)
    posterior = weight / (weight.sum(axis=0) + 0.7)
    named = verifier.identify(found, gallery, probes, prior=0.3, num_best=8)
    np.testing.assert_array_equal(named.person, scores.argmax(axis=0))
    np.testing.assert_allclose(named.probability, posterior.max(axis=0), rtol=1e-9)
    # More probable than "nobody" alone: the weight of the best person against that of a stranger.
    np.testing.assert_array_equal(named.is_named, weight.max(axis=0) >= 0.7)
    assert_close(named.evidence, scores.max(axis=0) - np.log(6))
    assert named.threshold == pytest.approx(np.log(0.7 / 0.3))
    order = np.argsort(-scores, axis=0).T
    np.testing.assert_array_equal(named.candidates.rows, np.pad(order, [(0, 0), (0, 2)], constant_values=-1))
    assert_close(named.candidates.scores[:, :6], np.take_along_axis(scores.T, order, axis=1) - np.log(6))
    assert np.isneginf(named.candidates.scores[:, 6:]).all()


def test_tiles_and_blocks_change_nothing(enrolled, monkeypatch):
    found, gallery, probes, _ = enrolled
    whole = verifier.identify(found, gallery, probes, prior=0.3)
    monkeypatch.setattr(identification, "_PROBES", 4)
    monkeypatch.setattr(identification, "_PEOPLE", 3)
    monkeypatch.setattr(identification, "_ROWS", 4)  # two parts, the last of them shorter
    identification._added.clear_cache()
    for part, expected in zip(verifier.identify(found, gallery, probes, prior=0.3), whole, strict=True):
        assert_close(part, expected)
    identification._added.clear_cache()


def test_ratios_beyond_the_range_of_exp_have_a_probability(enrolled):
    found, gallery, probes, _ = enrolled
    far = verifier.identify(found, gallery, 1e3 * probes, prior=0.3)
    assert np.isfinite(far.probability).all()
    assert ((far.probability >= 0) & (far.probability <= 1)).all()


def test_a_probe_with_nan_has_nobody_and_the_others_are_as_before(enrolled):
    found, gallery, probes, _ = enrolled
    whole = verifier.identify(found, gallery, probes, prior=0.3)
    broken = probes.copy()
    broken[2, 0] = np.nan
    answer = verifier.identify(found, gallery, broken, prior=0.3)
    assert answer.person[2] == -1
    assert np.isnan(answer.evidence[2])
    assert np.isnan(answer.probability[2])
    assert not answer.is_named[2]
    rest = np.arange(len(probes)) != 2
    assert_close(answer.probability[rest], whole.probability[rest])


def test_messages(enrolled):
    found, gallery, probes, _ = enrolled
    for prior in (0.0, 1.0):
        with pytest.raises(ValueError, match=r"prior must lie in \(0, 1\)"):
            verifier.identify(found, gallery, probes, prior=prior)
    with pytest.raises(ValueError, match="num_best must be at least 1"):
        verifier.identify(found, gallery, probes, prior=0.5, num_best=0)
    with pytest.raises(ValueError, match="probes"):
        verifier.identify(found, gallery, probes[:, :2], prior=0.5)
