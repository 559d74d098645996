"""Clusters along lists of neighbours: with whole lists those of the dense way, with short ones a local maximum."""

import functools

import numpy as np
import pytest

from jaxface import joint_bayes, metrics
from jaxface.cluster import agglomerative, gains, listed, partition_priors
from jaxface.core.fitinfo import Status
from tests.cluster import test_gains, test_partition_priors
from tests.cluster.test_agglomerative import far_gain
from tests.joint_bayes import draws
from tests.reference import cluster_reference as reference
from tests.tolerances import assert_close

PRIORS = test_partition_priors.CASES
N = 60


def evidence(sums, weights):
    return test_gains.g(sums, weights)


def overlapping(rng, n=N):
    """Images of a third as many people; which belong together is often in doubt."""
    mean = rng.normal(size=(n // 3, 3)) * np.sqrt(test_gains.VALUES)
    return mean[rng.integers(n // 3, size=n)] * 2 + rng.normal(size=(n, 3))


def everybody(n):
    return np.tile(np.arange(n), (n, 1))


def far_evidence(sums, weights):
    """Of people with means of variance 900."""
    precision = 1 + 900 * weights
    return (900 * (sums**2).sum(axis=1) / precision - 3 * np.log(precision)) / 2


def lists_of(x):
    """The six best of each row by the gain of two images."""
    found = far_gain(x, np.ones(len(x)), x, np.ones(len(x)))
    np.fill_diagonal(found, -np.inf)
    return np.argsort(-found, axis=1)[:, :6]


@pytest.mark.parametrize("name", PRIORS)
def test_whole_lists_give_the_partition_of_the_matrix(name, rng):
    prior, _ = PRIORS[name]
    x, size = overlapping(rng), rng.choice([1, 2, 5], N)
    each = gains.items(x * np.sqrt(size)[:, None], size)
    apart = rng.permutation(N)[:20].reshape(10, 2)
    dense, info = agglomerative.fit(each, gain=test_gains.gain, prior=prior, cannot_link=apart)
    found, of_lists = listed.fit(each, everybody(N), evidence=evidence, prior=prior, cannot_link=apart)
    np.testing.assert_array_equal(found.labels, dense.labels)
    assert_close(found.rise, dense.rise)
    assert_close(of_lists.objective, info.objective, factor=10)
    assert int(of_lists.status) == int(info.status) == Status.OK
    assert 1 < found.num_clusters < N
    assert (found.labels[apart[:, 0]] != found.labels[apart[:, 1]]).all()


@pytest.mark.parametrize("blocks", [(32_768, 2048, 128), (8, 3)])
def test_short_lists_rise_and_find_who_is_far_apart(blocks, rng, monkeypatch):
    monkeypatch.setattr(listed, "_BLOCKS", blocks)
    ids = np.repeat(np.arange(20), rng.integers(2, 6, 20))
    x = 30 * rng.normal(size=(20, 3))[ids] + rng.normal(size=(len(ids), 3))
    prior, each = partition_priors.ewens(5.0), gains.items(x)
    found, info = listed.fit(each, lists_of(x), evidence=far_evidence, prior=prior)
    trace = np.append(info.objective, found.rise)
    assert (np.diff(trace) > 0).all()
    assert found.rise == pytest.approx(agglomerative.rise(each, found.labels, gain=far_gain, prior=prior))
    assert metrics.bcubed(ids, found.labels) == (1, 1)
    order = rng.permutation(len(ids))
    again, _ = listed.fit(gains.items(x[order]), lists_of(x[order]), evidence=far_evidence, prior=prior)
    assert metrics.bcubed(again.labels, found.labels[order]) == (1, 1)


def test_nobody_on_the_lists_and_merges_alone(rng):
    each, prior = gains.items(overlapping(rng)), partition_priors.ewens(1.0)
    alone, info = listed.fit(each, np.full((N, 2), -1), evidence=evidence, prior=prior)
    assert (alone.num_clusters, alone.rise, int(info.num_iters)) == (N, 0, 0)
    merges, info = listed.fit(each, everybody(N), evidence=evidence, prior=prior, num_sweeps=0)
    dense, _ = agglomerative.fit(each, gain=test_gains.gain, prior=prior, num_sweeps=0)
    np.testing.assert_array_equal(merges.labels, dense.labels)
    once, info = listed.fit(each, everybody(N), evidence=evidence, prior=prior, num_sweeps=1)
    both, _ = listed.fit(each, everybody(N), evidence=evidence, prior=prior)
    assert merges.rise <= once.rise <= both.rise
    assert int(info.status) == (Status.OK if once.rise == both.rise else Status.MAX_ITERS)


def test_the_nearest_by_the_ratio_of_pairs(rng):
    basis = joint_bayes.diagonalize(draws.joint_bayes(rng))
    x = rng.normal(size=(30, 3))
    x[7] = x[3]  # whose best is not itself alone
    scores = np.array(joint_bayes.score_projections(basis, x, x))
    np.fill_diagonal(scores, -np.inf)
    found = listed.nearest(joint_bayes.score_projections, basis, x, num_neighbors=4)
    assert found.shape == (30, 4)
    assert (found != np.arange(30)[:, None]).all()
    best = np.sort(scores, axis=1)[:, :-5:-1]
    assert_close(np.take_along_axis(scores, found, axis=1), best)
    whole = functools.partial(joint_bayes.set_evidence, basis)
    each, prior = gains.items(x), partition_priors.ewens(3.0)
    by_lists, _ = listed.fit(each, everybody(30), evidence=whole, prior=prior)
    dense, _ = agglomerative.fit(each, gain=functools.partial(joint_bayes.set_llr_matrix, basis), prior=prior)
    np.testing.assert_array_equal(by_lists.labels, dense.labels)


def test_errors(rng):
    each, prior = gains.items(overlapping(rng)), partition_priors.ewens(1.0)
    fit = functools.partial(listed.fit, each, evidence=evidence, prior=prior)
    with pytest.raises(ValueError, match=r"lists must be"):
        fit(np.full((N, 1), N))
    with pytest.raises(ValueError, match="num_sweeps must be at least 0; got -1"):
        fit(everybody(N), num_sweeps=-1)
    with pytest.raises(ValueError, match=r"cannot_link must name two different items"):
        fit(everybody(N), cannot_link=[[2, 2]])
    with pytest.raises(ValueError, match="evidence must give finite numbers"):
        listed.fit(each, everybody(N), evidence=lambda s, w: s[:, 0] * np.nan, prior=prior)
    with pytest.raises(ValueError, match=r"num_neighbors must be at most 59 \(the number of other items\); got 60"):
        listed.nearest(joint_bayes.score_projections, None, each.sum, num_neighbors=60)


@pytest.mark.parametrize("name", PRIORS)
def test_short_lists_end_in_a_local_maximum(name, rng):
    """No merge and no move that a list names raises the posterior, written as a sum over clusters."""
    prior, log_prior = PRIORS[name]
    x, n = overlapping(rng, 36), 36
    scores = test_gains.gain(x, np.ones(n), x, np.ones(n))
    np.fill_diagonal(scores, -np.inf)
    lists = np.argsort(-scores, axis=1)[:, :4]

    def posterior(labels):
        labels = np.unique(labels, return_inverse=True)[1]
        sizes = reference.sizes_of(labels)
        sums = np.zeros((len(sizes), 3))
        np.add.at(sums, labels, x)
        return test_gains.g(sums, sizes).sum() + log_prior(sizes)

    found, _ = listed.fit(gains.items(x), lists, evidence=evidence, prior=prior)
    best = posterior(found.labels)
    assert found.rise == pytest.approx(best - posterior(np.arange(n)), abs=1e-9)
    assert found.num_clusters < n or name == "pitman-yor"  # whose few merges of 36 items all need a ratio of e^3
    rows, others = np.repeat(np.arange(n), 4), lists.ravel()
    for item, other in zip(np.append(rows, others), np.append(others, rows), strict=True):
        own, target = found.labels[item], found.labels[other]
        moved, alone = found.labels.copy(), found.labels.copy()
        moved[item], alone[item] = target, found.num_clusters
        for labels in (np.where(found.labels == target, own, found.labels), moved, alone):
            assert posterior(labels) <= best + 1e-9


def test_float32_finds_the_same_people(rng):
    ids = np.repeat(np.arange(20), 3)
    x = 30 * rng.normal(size=(20, 3))[ids] + rng.normal(size=(60, 3))
    each = gains.items(x.astype(np.float32))
    found, info = listed.fit(each, lists_of(x), evidence=far_evidence, prior=partition_priors.ewens(5.0))
    assert metrics.bcubed(ids, found.labels) == (1, 1)
    assert info.objective.dtype == np.float32
