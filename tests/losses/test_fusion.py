"""Fusion: the stationary point of the loss, and what must not change it."""

import numpy as np
import pytest
from scipy import optimize

from jaxface.core.fitinfo import Status
from jaxface.losses import fusion
from tests.tolerances import assert_close

N = 400


@pytest.fixture
def trials(rng):
    """Two informative scores in units of their own, noise, and labels."""
    same = np.arange(N) < 120
    truth = rng.normal(size=N) + np.where(same, 1.2, -1.2)
    x = np.stack([truth, 30 + 7 * (truth + rng.normal(size=N)), rng.normal(size=N)], axis=1)
    return x, same


def dense_loss(w, x, same, prior, ridge):
    """The loss in raw units, written out."""
    scaled = (x - x.mean(axis=0)) / x.std(axis=0)
    ratios = scaled @ w[:-1] + w[-1] + np.log(prior / (1 - prior))
    costs = np.logaddexp(0, np.where(same, -ratios, ratios))
    return prior * costs[same].mean() + (1 - prior) * costs[~same].mean() + ridge / 2 * (w[:-1] ** 2).sum()


@pytest.mark.parametrize("prior", [0.5, 0.1, 0.01])
def test_the_minimum(trials, prior):
    x, same = trials
    found, info = fusion.fit(x, same, prior=prior, ridge=1e-3)
    assert int(info.status) == Status.OK
    best = optimize.minimize(dense_loss, np.zeros(4), (x, same, prior, 1e-3), tol=1e-12)
    ratios = np.asarray(fusion.fuse(found, x))
    expected = (x - x.mean(axis=0)) / x.std(axis=0) @ best.x[:-1] + best.x[-1]
    np.testing.assert_allclose(ratios, expected, rtol=1e-4, atol=1e-4)
    assert (np.diff(info.objective) <= 1e-15).all()
    p = 1 / (1 + np.exp(-(ratios + np.log(prior / (1 - prior)))))
    # The offset is free: both kinds miss by the same weighted mean.
    np.testing.assert_allclose(prior * (1 - p[same]).mean(), (1 - prior) * p[~same].mean(), rtol=1e-9)


def test_units_and_repetitions_change_no_ratio(trials):
    x, same = trials
    ratios = np.asarray(fusion.fuse(fusion.fit(x, same)[0], x))
    moved = x * [-3.0, 1e4, 0.5] + [5.0, 0.0, -1.0]
    assert_close(np.asarray(fusion.fuse(fusion.fit(moved, same)[0], moved)), ratios, factor=1e5)
    twice = np.concatenate([x, x[:, :1], np.full((N, 1), 4.0)], axis=1)
    found, _ = fusion.fit(twice, same, ridge=1e-4)
    assert_close(found.weights[0], found.weights[3], factor=1e3)
    assert found.weights[4] == 0  # a constant has nothing to say


def test_true_ratios_come_back_with_weight_one(rng):
    same = np.arange(20_000) < 10_000
    llr = rng.normal(size=20_000) * 2 + np.where(same, 2.0, -2.0)  # N(+-d, 2 d) with d = 2 are its own ratios
    found, _ = fusion.fit(np.stack([llr, rng.normal(size=20_000)], axis=1), same)
    np.testing.assert_allclose(found.weights, [1.0, 0.0], atol=0.05)
    np.testing.assert_allclose(found.offset, 0.0, atol=0.05)


def test_side_information_helps_where_scores_ignore_it(rng):
    quality = rng.uniform(0.2, 3.0, size=4000)
    same = rng.random(4000) < 0.5
    score = rng.normal(size=4000) / np.sqrt(quality) + np.where(same, 1.0, -1.0)  # the ratio is 2 q s
    plain = fusion.fuse(fusion.fit(score[:, None], same)[0], score[:, None])
    features = fusion.with_side(score[:, None], quality[:, None])
    assert features.shape == (4000, 3)
    sided = fusion.fuse(fusion.fit(features, same)[0], features)

    def cost(ratios):
        return np.logaddexp(0, np.where(same, -1, 1) * np.asarray(ratios)).mean()

    truth = cost(2 * quality * score)
    assert cost(plain) - truth > 5 * abs(cost(sided) - truth)


def test_kinds_that_do_not_overlap_have_a_minimum_with_a_ridge(trials):
    _, same = trials
    x = np.where(same, 1.0, -1.0)[:, None]
    slopes = [float(fusion.fit(x, same, ridge=ridge, num_iters=60)[0].weights[0]) for ridge in (1e-3, 1e-5)]
    assert 3 < slopes[0] < slopes[1] < 20
    with pytest.raises(ValueError, match="one kind only"):
        fusion.fit(x, np.ones(N, bool))
    _, info = fusion.fit(np.full_like(x, 1e200) * x, same)
    assert int(info.status) >= 0


def test_weights_are_repetitions_and_zero_leaves_a_pair_out(trials):
    x, same = trials
    x, same = x[100:140], same[100:140]
    times = np.arange(40) % 3
    lost = np.where((times == 0)[:, None], 1e9, x)
    weighted, _ = fusion.fit(lost, same, sample_weights=times.astype(float))
    repeated, _ = fusion.fit(np.repeat(x, times, axis=0), np.repeat(same, times))
    assert_close(np.asarray(fusion.fuse(weighted, x)), np.asarray(fusion.fuse(repeated, x)), factor=1e4)
    with pytest.raises(ValueError, match="sample_weights must lie in"):
        fusion.fit(x, same, sample_weights=-np.ones(40))
