"""Clusters by the posterior of partitions: against dense Gaussians over all partitions; order, ties, constraints."""

import functools
import itertools

import numpy as np
import pytest

from jaxface import joint_bayes, metrics
from jaxface.cluster import agglomerative, ascent, gains, partition_priors
from jaxface.core.fitinfo import Status
from tests.cluster import test_gains, test_partition_priors
from tests.joint_bayes import draws
from tests.reference import cluster_reference as reference
from tests.reference import quality_reference
from tests.tolerances import assert_close

PARTITIONS = reference.partitions(6)
PRIORS = test_partition_priors.CASES
gain = test_gains.gain


@functools.cache
def problem():
    """A model, six images of two or three people, and the log density of every set of them."""
    rng = np.random.default_rng(3)
    model = draws.joint_bayes(rng)
    x = np.concatenate(draws.people(rng, model, (3, 2, 1)))
    basis = joint_bayes.diagonalize(model)
    sums = np.stack([np.asarray(joint_bayes.project(basis, row)) for row in x])
    return model, x, basis, sums, reference.log_likelihoods(model, x)


@pytest.mark.parametrize("name", PRIORS)
def test_the_rise_is_that_of_the_dense_log_posterior(name):
    _, _, basis, sums, of_sets = problem()
    prior, log_prior = PRIORS[name]
    of_gains = functools.partial(joint_bayes.set_llr_matrix, basis)

    def posterior(labels):
        return reference.log_likelihood(of_sets, labels) + log_prior(reference.sizes_of(labels))

    each = gains.items(sums)
    least = posterior(np.arange(6))
    for labels in PARTITIONS[:: 1 if name == "ewens" else 29]:
        found = agglomerative.rise(each, labels, gain=of_gains, prior=prior)
        assert found == pytest.approx(posterior(labels) - least, abs=1e-10)
    partition, info = agglomerative.fit(each, gain=of_gains, prior=prior)
    best = max(posterior(labels) for labels in PARTITIONS)
    assert partition.rise <= best - least + 1e-10  # a local maximum: of Pitman-Yor, here, it is not the best
    assert partition.rise == pytest.approx(posterior(partition.labels) - least, abs=1e-10)
    assert int(info.status) == Status.OK


def small(seed, n=6):
    """Images of few people; which belong together is often in doubt."""
    rng = np.random.default_rng(seed)
    mean = rng.normal(size=(3, 3)) * np.sqrt(test_gains.VALUES)
    return mean[rng.integers(3, size=n)] * 1.3 + rng.normal(size=(n, 3))


def neighbours(labels):
    """All partitions after one merge of two clusters or the move of one item."""
    found = []
    for a, b in itertools.combinations(range(labels.max() + 1), 2):
        found.append(np.where(labels == b, a, labels))
    for item in range(len(labels)):
        for target in range(labels.max() + 2):
            moved = labels.copy()
            moved[item] = target
            found.append(moved)
    return [np.unique(each, return_inverse=True)[1] for each in found]


def test_no_merge_and_no_move_is_left_and_most_are_the_best_of_all():
    is_best = []
    for seed, (prior, _) in itertools.product(range(5), PRIORS.values()):
        each = gains.items(small(seed))
        rise = functools.partial(agglomerative.rise, each, gain=gain, prior=prior)
        partition, info = agglomerative.fit(each, gain=gain, prior=prior)
        assert partition.rise == pytest.approx(rise(partition.labels), abs=1e-9)
        assert max(map(rise, neighbours(partition.labels))) <= partition.rise + 1e-9
        trace = np.append(info.objective, partition.rise)
        assert (np.diff(trace) > 0).all()
        assert len(trace) == int(info.num_iters) + 1
        assert (partition.labels == ascent.by_first_items(partition.labels)).all()
        if seed < 3:
            is_best.append(partition.rise > max(map(rise, PARTITIONS)) - 1e-9)
    assert np.mean(is_best) >= 0.9


def test_moves_repair_what_merges_cannot():
    gained = []
    for seed in range(30):
        each, prior = gains.items(small(seed, n=20)), partition_priors.ewens(1.0)
        merges, _ = agglomerative.fit(each, gain=gain, prior=prior, num_sweeps=0)
        both, info = agglomerative.fit(each, gain=gain, prior=prior)
        gained.append(both.rise - merges.rise)
        assert int(info.status) == Status.OK
        once, info = agglomerative.fit(each, gain=gain, prior=prior, num_sweeps=1)
        assert merges.rise <= once.rise <= both.rise
        assert int(info.status) == (Status.OK if gained[-1] == 0 else Status.MAX_ITERS)
    assert min(gained) == 0 < max(gained)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_people_far_apart_are_found_in_any_order(dtype, rng):
    ids = np.repeat(np.arange(12), rng.integers(1, 9, 12))
    x = (30 * rng.normal(size=(12, 3))[ids] + rng.normal(size=(len(ids), 3))).astype(dtype)
    prior = partition_priors.ewens(5.0)
    partition, _ = agglomerative.fit(gains.items(x), gain=far_gain, prior=prior)
    assert metrics.bcubed(ids, partition.labels) == (1, 1)
    assert partition.num_clusters == 12
    order = rng.permutation(len(ids))
    again, _ = agglomerative.fit(gains.items(x[order]), gain=far_gain, prior=prior)
    assert metrics.bcubed(again.labels, partition.labels[order]) == (1, 1)
    assert again.rise == pytest.approx(partition.rise, rel=1e-5 if dtype == np.float32 else 1e-12)


def far_gain(sum_a, weight_a, sum_b, weight_b):
    """Of people with means of variance 900."""

    def g(total, weight):
        return (900 * (total**2).sum(axis=-1) / (1 + 900 * weight) - 3 * np.log1p(900 * weight)) / 2

    joint = g(sum_a[:, None] + sum_b[None, :], weight_a[:, None] + weight_b[None, :])
    return joint - g(sum_a, weight_a)[:, None] - g(sum_b, weight_b)[None, :]


def test_order_changes_nothing_where_people_overlap(rng):
    x = small(5, n=40)
    for prior, _ in PRIORS.values():
        partition, _ = agglomerative.fit(gains.items(x), gain=gain, prior=prior)
        order = rng.permutation(40)
        again, _ = agglomerative.fit(gains.items(x[order]), gain=gain, prior=prior)
        assert metrics.bcubed(again.labels, partition.labels[order]) == (1, 1)


def test_among_equal_gains_the_lowest_items_merge():
    """Four images at equal distances; two of them may be together."""

    def equal(sum_a, weight_a, sum_b, weight_b):
        return np.where(weight_a[:, None] + weight_b[None, :] <= 2, 1.0, -1.0)

    each = gains.items(np.zeros((5, 1)))
    partition, info = agglomerative.fit(each, gain=equal, prior=partition_priors.threshold(0.0))
    np.testing.assert_array_equal(partition.labels, [0, 0, 1, 1, 2])
    assert partition.rise == 2
    assert int(info.num_iters) >= 1


def test_the_limits_of_the_prior():
    each = gains.items(small(0, n=12))
    for alpha, number in ((1e-100, 1), (1e100, 12)):
        partition, _ = agglomerative.fit(each, gain=gain, prior=partition_priors.ewens(alpha))
        assert partition.num_clusters == number


def test_groups_that_stay_together_are_items():
    x, tracks = small(1, n=9), np.array([0, 0, 0, 1, 2, 2, 3, 3, 3])
    images = gains.items(x)
    groups = gains.items(*gains.grouped(images, tracks)[:2])
    for prior, _ in PRIORS.values():
        inside = agglomerative.rise(images, tracks, gain=gain, prior=prior)
        partition, _ = agglomerative.fit(groups, gain=gain, prior=prior)
        whole = agglomerative.rise(images, partition.labels[tracks], gain=gain, prior=prior)
        assert partition.rise == pytest.approx(whole - inside, abs=1e-9)


def test_pairs_that_may_not_be_together():
    x, apart = np.zeros((6, 3)), np.array([[0, 1], [4, 1], [2, 5], [2, 5], [3, 0]], np.uint8)
    prior = partition_priors.pairwise_odds(2.0)
    partition, _ = agglomerative.fit(gains.items(x), gain=gain, prior=prior, cannot_link=apart)
    assert (partition.labels[apart[:, 0]] != partition.labels[apart[:, 1]]).all()
    rise = functools.partial(agglomerative.rise, gains.items(x), gain=gain, prior=prior)
    allowed = [each for each in PARTITIONS if (each[apart[:, 0]] != each[apart[:, 1]]).all()]
    assert partition.rise == pytest.approx(max(map(rise, allowed)), abs=1e-9)
    free, _ = agglomerative.fit(gains.items(x), gain=gain, prior=prior, cannot_link=np.zeros((0, 2)))
    assert free.num_clusters == 1


def test_tracks_of_correlated_frames_have_the_densities_of_their_frames():
    model, x, basis, sums, _ = problem()
    tracks, correlation = np.array([0, 0, 0, 1, 1, 2]), 0.6
    together = tracks[:, None] == tracks[None, :]
    noise = np.where(together, correlation, 0) + (1 - correlation) * np.eye(6)
    q = np.asarray(joint_bayes.track_weights(tracks, num_tracks=3, correlation=correlation))
    assert q[0] * 3 == pytest.approx(3 / (1 + 2 * correlation))
    each = gains.items(*gains.grouped(gains.items(q[:, None] * sums, q, np.ones(6)), tracks))
    of_gains = functools.partial(joint_bayes.set_llr_matrix, basis)
    for labels in reference.partitions(3):
        found = agglomerative.rise(each, labels, gain=of_gains, prior=partition_priors.threshold(0.0))
        expected = 0.0
        for k in range(3):
            for of, sign in ((labels, 1), (np.arange(3), -1)):
                rows = np.flatnonzero(of[tracks] == k)
                expected += sign * quality_reference.log_density(model, x[rows], noise[np.ix_(rows, rows)])
        assert found == pytest.approx(expected, abs=1e-10)


def test_one_item_and_errors(rng):
    prior = partition_priors.ewens(1.0)
    one, info = agglomerative.fit(gains.items(np.ones((1, 3))), gain=gain, prior=prior)
    assert (one.num_clusters, one.rise, int(info.num_iters)) == (1, 0, 0)
    each = gains.items(rng.normal(size=(3, 3)))
    fit = functools.partial(agglomerative.fit, each, gain=gain, prior=prior)
    with pytest.raises(ValueError, match=r"cannot_link must name two different items .* pair 1 is item 2 twice"):
        fit(cannot_link=[[0, 1], [2, 2]])
    with pytest.raises(ValueError, match=r"cannot_link must be in \[0, 3\)"):
        fit(cannot_link=np.array([[0, 3]]))
    with pytest.raises(ValueError, match=r"cannot_link must have shape \[p, 2\]"):
        fit(cannot_link=np.array([0, 1]))
    with pytest.raises(ValueError, match="num_sweeps must be at least 0; got -1"):
        fit(num_sweeps=-1)
    with pytest.raises(ValueError, match="the number of items must be at least 1"):
        agglomerative.fit(gains.items(np.ones((0, 3))), gain=gain, prior=prior)
    with pytest.raises(ValueError, match=r"the number of items must be at most 20000 \(their gains are a matrix"):
        agglomerative.fit(gains.items(np.ones((20_001, 1))), gain=gain, prior=prior)
    with pytest.raises(ValueError, match=r"labels must have shape \[n\] with n = 3"):
        agglomerative.rise(each, [0, 1], gain=gain, prior=prior)
    assert_close(
        agglomerative.rise(each, np.array([7, 7, -1]), gain=gain, prior=prior),
        agglomerative.rise(each, [0, 0, 1], gain=gain, prior=prior),
    )


@functools.cache
def nine():
    rng = np.random.default_rng(5)
    model = draws.joint_bayes(rng)
    x = np.concatenate(draws.people(rng, model, (3, 2, 2, 1, 1)))
    basis = joint_bayes.diagonalize(model)
    sums = np.stack([np.asarray(joint_bayes.project(basis, row)) for row in x])
    return basis, sums, reference.log_likelihoods(model, x)


@pytest.mark.parametrize("name", PRIORS)
def test_rounds_are_those_of_the_dense_log_posterior(name):
    """Pairs that are each other's best merge at once; the trace is the posterior of each partition on the way."""
    basis, sums, of_sets = nine()
    prior, log_prior = PRIORS[name]

    def posterior(labels):
        return reference.log_likelihood(of_sets, labels) + log_prior(reference.sizes_of(labels))

    of_gains = functools.partial(joint_bayes.set_llr_matrix, basis)
    found, info = agglomerative.fit(gains.items(sums), gain=of_gains, prior=prior, num_sweeps=0)
    expected = reference.rounds(posterior, 9)
    np.testing.assert_array_equal(found.labels, expected[-1])
    rises = [posterior(labels) - posterior(expected[0]) for labels in expected]
    np.testing.assert_allclose(np.append(info.objective, found.rise), rises, rtol=0, atol=1e-9)


def test_three_may_belong_together_where_no_two_do():
    """Gains rise with merges, so there is no tree to cut, and greedy merging cannot find such a triple."""
    of_number = test_gains.g(np.zeros((4, 3)), np.arange(4))  # of images at the mean
    two, three = of_number[2] - 2 * of_number[1], of_number[3] - 3 * of_number[1]
    assert two < three / 2 < three - two
    each = gains.items(np.zeros((3, 3)))
    for tau, number in ((two - 0.01, 1), ((two + three / 2) / 2, 3)):
        prior = partition_priors.threshold(tau)
        partition, _ = agglomerative.fit(each, gain=gain, prior=prior)
        assert partition.num_clusters == number
        together = agglomerative.rise(each, [0, 0, 0], gain=gain, prior=prior)
        assert together == pytest.approx(three - 2 * tau, abs=1e-12)
        assert together > 0


def test_a_calibration_of_the_ratios_keeps_the_objective():
    """The slope multiplies the log densities; the offset is minus a threshold."""
    _, _, basis, sums, of_sets = problem()
    slope, offset = 0.4, -0.7
    prior, log_prior = PRIORS["ewens"]
    both = partition_priors.product(prior, partition_priors.threshold(-offset))

    def calibrated(*sets):
        return slope * np.asarray(joint_bayes.set_llr_matrix(basis, *sets))

    def posterior(labels):
        sizes = reference.sizes_of(labels)
        return slope * reference.log_likelihood(of_sets, labels) + log_prior(sizes) - offset * len(sizes)

    each, least = gains.items(sums), posterior(np.arange(6))
    for labels in PARTITIONS[::7]:
        found = agglomerative.rise(each, labels, gain=calibrated, prior=both)
        assert found == pytest.approx(posterior(labels) - least, abs=1e-10)
    partition, _ = agglomerative.fit(each, gain=calibrated, prior=both)
    assert partition.rise == pytest.approx(posterior(partition.labels) - least, abs=1e-10)
