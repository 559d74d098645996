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
    np.testing.assert_allclose(prior * (1 - p[same]).mean(), (1 - prior) * p[~same].mean(), rtol=1e-10)


def test_units_and_repetitions_change_no_ratio(trials):
    x, same = trials
    ratios = np.asarray(fusion.fuse(fusion.fit(x, same)[0], x))
    moved = x * [-3.0, 1e4, 0.5] + [5.0, 0.0, -1.0]
    assert_close(np.asarray(fusion.fuse(fusion.fit(moved, same)[0], moved)), ratios, factor=100)
    twice = np.concatenate([x, x[:, :1], np.full((N, 1), 4.0)], axis=1)
    found, _ = fusion.fit(twice, same, ridge=1e-4)
    assert_close(found.weights[0], found.weights[3], factor=1e3)
    assert found.weights[4] == 0  # a constant has nothing to say
    one, _ = fusion.fit(x[:, :1], same, ridge=1e-4)
    two, _ = fusion.fit(np.repeat(x[:, :1], 2, axis=1), same, ridge=2e-4)
    assert_close((two.weights, two.offset), (np.full(2, one.weights[0] / 2), one.offset), factor=100)


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


def test_kinds_that_do_not_overlap_have_a_minimum_with_a_ridge():
    same = np.arange(N) < N // 2
    x = np.where(same, 1.0, -1.0)[:, None]
    for ridge in (1e-2, 1e-4, 1e-6):
        w = float(fusion.fit(x, same, ridge=ridge, num_iters=60)[0].weights[0])
        assert ridge * w * (1 + np.exp(w)) == pytest.approx(1, rel=1e-6)  # so w grows like log(1 / ridge)
    with pytest.raises(ValueError, match="one kind only"):
        fusion.fit(x, np.ones(N, bool))


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


def test_features_are_scores_side_and_products():
    found = fusion.with_side(np.array([[2.0, 3.0], [5.0, 7.0]]), np.array([[11.0, 13.0], [17.0, 19.0]]))
    expected = [[2, 3, 11, 13, 22, 26, 33, 39], [5, 7, 17, 19, 85, 95, 119, 133]]
    np.testing.assert_array_equal(found, np.array(expected, float))


@pytest.mark.parametrize("prior", [0.5, 0.1, 0.01])
@pytest.mark.parametrize(("num_iters", "atol"), [(10, 1e-6), (20, 1e-11)])
def test_the_gradient_vanishes_and_the_loss_is_convex(num_iters, atol, prior, trials):
    x, same = trials
    found, _ = fusion.fit(x, same, prior=prior, ridge=1e-3, num_iters=num_iters)
    weights, center, scale = np.asarray(found.weights), x.mean(axis=0), x.std(axis=0)
    w = np.append(weights * scale, float(found.offset) + weights @ center)
    design = np.concatenate([(x - center) / scale, np.ones((N, 1))], axis=1)
    p = 1 / (1 + np.exp(-(design @ w + np.log(prior / (1 - prior)))))
    shares = np.where(same, prior / same.sum(), (1 - prior) / (~same).sum())
    gradient = design.T @ (shares * (p - same)) + 1e-3 * np.append(w[:-1], 0)
    np.testing.assert_allclose(gradient, 0, atol=atol)
    hessian = design.T @ (design * (shares * p * (1 - p))[:, None]) + 1e-3 * np.diag([1, 1, 1, 0])
    assert np.linalg.eigvalsh(hessian)[0] > 0


def sided(rng):
    """Scores whose ratio is 2 q s."""
    quality, same = rng.uniform(0.2, 3.0, size=(4000, 1)), rng.random(4000) < 0.5
    return rng.normal(size=(4000, 1)) / np.sqrt(quality) + np.where(same, 1.0, -1.0)[:, None], quality, same


def test_the_form_of_the_side_information_matters(rng):
    score, quality, same = sided(rng)

    def cost(features):
        ratios = np.asarray(fusion.fuse(fusion.fit(features, same, ridge=1e-6)[0], features))
        return np.logaddexp(0, np.where(same, -ratios, ratios)).mean()

    itself, logarithm = (cost(fusion.with_side(score, each)) for each in (quality, np.log(quality)))
    assert itself + 1e-3 < logarithm < cost(score)


def test_products_without_their_side_information_fix_the_offset(rng):
    """With it a score may have any zero; without it the zero of the score changes the ratios."""
    score, quality, same = sided(rng)

    def ratios(score, columns):
        features = np.asarray(fusion.with_side(score, quality))[:, columns]
        return np.asarray(fusion.fuse(fusion.fit(features, same, ridge=0.0)[0], features))

    assert_close(ratios(score + 3, [0, 1, 2]), ratios(score, [0, 1, 2]), factor=1e4)
    assert np.abs(ratios(score + 3, [0, 2]) - ratios(score, [0, 2])).max() > 0.1


@pytest.mark.parametrize("power", [-100, -60, 60, 100])
def test_features_of_any_unit_have_the_same_ratios(power, trials):
    """Squares of such features are zero or infinite in float32."""
    x, same = trials
    x = x.astype(np.float32)
    moved = np.float32(2.0**power) * x
    expected, found = (np.asarray(fusion.fuse(fusion.fit(each, same)[0], each)) for each in (x, moved))
    assert_close(found, expected, factor=10)


def test_errors(trials):
    x, same = trials
    found, _ = fusion.fit(x, same)
    for call, message in (
        (lambda: fusion.fit(x[:, 0], same), r"features must have shape \[p, f\]; got shape \(400,\)"),
        (lambda: fusion.fit(x, same[:-1]), r"is_same must have shape \[p\] with p = 400"),
        (lambda: fusion.fit(np.where(x > 2, np.nan, x), same), "features must be finite"),
        (lambda: fusion.fit(x.astype(int), same), "features must be a floating point array; got dtype int64"),
        (lambda: fusion.fit(x, np.where(same, 2, 0)), "is_same must be True or False, or 1 or 0; got 2"),
        (lambda: fusion.fit(x, same, prior=1.0), r"prior must lie in \(0, 1\); got 1.0"),
        (lambda: fusion.fit(x, same, ridge=-1.0), r"ridge must lie in \[0, inf\); got -1.0"),
        (lambda: fusion.fit(x, same, num_iters=0), "num_iters must be at least 1; got 0"),
        (lambda: fusion.fuse(found, x[:, :2]), r"weights must have shape \[f\] with f = 2; got shape \(3,\)"),
        (lambda: fusion.with_side(x, x[:-1]), r"side must have shape \[p, k\] with p = 400"),
        (lambda: fusion.with_side(x, same[:, None]), "side must be a floating point array; got dtype bool"),
    ):  # fmt: skip
        with pytest.raises(ValueError, match=message):
            call()
