"""Identification calibrated on identification: games played by hand, and evidence that says what it claims."""

import dataclasses

import jax
import numpy as np
import pytest

from jaxface import metrics, verifier
from jaxface.data import synthetic
from jaxface.verifier import Presence, presence, score
from tests.tolerances import assert_close


@pytest.fixture(scope="module")
def people():
    """A verifier, and coordinates of people that it has not seen, some photos of whom show nobody."""
    rng = np.random.default_rng(4)
    made = synthetic.gaussian_identities(rng, num_people=120, images_per_person=4, dim=10)
    x, ids = made.features.copy(), made.ids
    found, _ = verifier.fit(
        jax.random.key(0), x[:160], ids[:160], num_people=40, num_components=10, num_iters=5, length_normalize=False
    )
    x, ids = x[160:], ids[160:] - 40
    broken = rng.random(len(x)) < 0.04
    x[broken] = x[rng.permutation(len(x))[: broken.sum()]]
    return found, np.asarray(verifier.encode_vectors(found, x)), ids


def test_evidence_is_the_formula(people):
    found, points, ids = people
    parts = {"slope": [2.0, 0.5], "crowd": [0.25, 1.0], "offset": [-1.0, 0.5], "floor": [-4.0, -3.0]}
    rows = np.flatnonzero(ids < 3)[:-3]  # four, four and one photos
    gallery = verifier.enroll(points[rows], ids[rows], num_people=3)
    scores = np.asarray(score.score_sets(found, gallery, verifier.Gallery(points[20:25], np.ones(5, int))), np.float64)
    fitted = dataclasses.replace(found, presence=Presence(**{name: np.array(each) for name, each in parts.items()}))
    entry = [1, 1, 0]
    a, c, b, floor = (np.array(parts[name])[entry, None] for name in ("slope", "crowd", "offset", "floor"))
    without_floor = np.exp(a * scores - c * np.log(3) + b)
    expected = np.log(np.exp(floor) + without_floor)
    named = verifier.identify(fitted, gallery, points[20:25], prior=0.2, num_best=3)
    order = np.argsort(-expected, axis=0).T
    np.testing.assert_array_equal(named.candidates.rows, order)
    assert_close(named.candidates.scores, np.take_along_axis(expected.T, order, axis=1))
    np.testing.assert_array_equal(named.person, order[:, 0])
    # A photo that shows nothing recognisable is explained once, with the best person.
    odds, others = 0.2 * np.exp(expected.max(axis=0)), without_floor.copy()
    others[order[:, 0], np.arange(5)] = 0
    assert_close(named.probability, odds / (0.8 + odds + 0.2 * others.sum(axis=0)))
    np.testing.assert_array_equal(named.is_named, odds >= 0.8)
    strict = verifier.identify(fitted, gallery, points[20:25], prior=0.2, threshold=1e3)
    assert not strict.is_named.any()
    assert strict.threshold == 1e3


def test_a_game_holds_the_ratio_of_every_mate_and_the_best_of_every_stranger():
    scores = np.array([[5.0, 1.0, 2.0, 7.0], [0.0, 3.0, 6.0, -1.0]])  # enrolled: people 2 and 0
    played = presence._gallery(scores, np.array([2, 0]))
    np.testing.assert_array_equal(played.ratio, [2.0, 0.0, 3.0, 7.0])
    np.testing.assert_array_equal(played.is_enrolled, [True, True, False, False])
    np.testing.assert_allclose(played.log_size, np.log(2))
    np.testing.assert_allclose(played.weight, 0.5)


def test_no_photo_is_enrolled_and_probed(people, monkeypatch):
    found, _, ids = people
    seen = []

    def sets(_, gallery, alone):
        seen.append((np.asarray(gallery.sums), np.asarray(alone.sums)))
        return np.zeros((len(gallery.counts), len(alone.counts)))

    monkeypatch.setattr(presence, "score_sets", sets)
    monkeypatch.setattr(presence, "_fitted", lambda _, games: games)
    numbered = np.eye(len(ids))  # the sum of rows says which they are
    games = verifier.fit_presence(found, numbered, ids, rng=np.random.default_rng(0), most_photos=3, num_rounds=1)
    assert len(games) == len(seen) == 3
    for n, (enrolled, probes) in enumerate(seen, 1):
        assert (enrolled.sum(axis=1) == n).all()
        assert (probes.sum(axis=1) == 1).all()
        assert not (enrolled.sum(axis=0) * probes.sum(axis=0)).any()
        np.testing.assert_array_equal(ids[probes.argmax(axis=1)], np.arange(80))
        np.testing.assert_array_equal(ids[enrolled.argmax(axis=1)], np.arange(80))


def test_the_evidence_is_better_calibrated_than_the_ratio_and_holds_the_floor(people):
    found, points, ids = people
    timid = dataclasses.replace(found, calibration=dataclasses.replace(found.calibration, slope=np.float64(0.3)))
    half = ids < 40
    made, info = verifier.fit_presence(timid, points[half], ids[half], rng=np.random.default_rng(0), num_rounds=4)
    assert int(info.status) == 0
    assert made.presence.slope.shape == (3,)  # with four photos nobody has one left for a probe
    rest, who = points[~half], ids[~half] - 40
    first = np.flatnonzero((np.arange(len(who)) % 4 == 0) & (who < 20))
    gallery = verifier.enroll(rest[first], who[first], num_people=20)
    probes = np.flatnonzero(np.arange(len(who)) % 4 > 0)
    is_known = who[probes] < 20
    cost = {}
    for name, model in (("ratio", timid), ("evidence", made)):
        best = verifier.identify(model, gallery, rest[probes], prior=0.05)
        cost[name] = metrics.cllr(best.evidence, is_known)
    assert cost["evidence"] < 0.8 * cost["ratio"]
    assert (np.exp(made.presence.floor) < 0.15).all()


def test_too_few_people_are_refused(people):
    found, points, ids = people
    alone = np.flatnonzero((ids < 9) | (np.arange(len(ids)) % 4 == 0))
    with pytest.raises(ValueError, match="needs 10 people with two photos or more; got 9 of 80"):
        verifier.fit_presence(found, points[alone], ids[alone], rng=np.random.default_rng(0))
