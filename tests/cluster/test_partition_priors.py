"""Priors on partitions against their closed forms over all partitions."""

import numpy as np
import pytest
from scipy.special import logsumexp

from jaxface.cluster import partition_priors as priors
from tests.reference import cluster_reference as reference

CASES = {
    "threshold": (priors.threshold(1.5), lambda sizes: reference.threshold(sizes, 1.5)),
    "ewens": (priors.ewens(0.7), lambda sizes: reference.ewens(sizes, 0.7)),
    "pitman-yor": (priors.pitman_yor(0.4, discount=0.6), lambda sizes: reference.pitman_yor(sizes, 0.4, 0.6)),
    "pairwise odds": (priors.pairwise_odds(-0.3), lambda sizes: reference.pairwise_odds(sizes, -0.3)),
    "two together": (
        priors.product(priors.threshold(-2.0), priors.ewens(0.7)),
        lambda sizes: reference.threshold(sizes, -2.0) + reference.ewens(sizes, 0.7),
    ),
    "ewens by its other name": (priors.pitman_yor(2.0, discount=0.0), lambda sizes: reference.ewens(sizes, 2.0)),
}


@pytest.mark.parametrize("name", CASES)
def test_a_merge_adds_the_difference_of_the_log_priors(name):
    prior, log_prior = CASES[name]
    for labels in reference.partitions(5):
        sizes = reference.sizes_of(labels, [1, 3, 2, 1, 4])
        for a in range(len(sizes)):
            for b in range(a + 1, len(sizes)):
                merged = np.append(np.delete(sizes, [a, b]), sizes[a] + sizes[b])
                found = prior.of_sizes(sizes[a], sizes[b]) + prior.of_number(len(sizes))
                assert found == pytest.approx(log_prior(merged) - log_prior(sizes), abs=1e-12)


@pytest.mark.parametrize("name", ["ewens", "pitman-yor"])
def test_distributions_sum_to_one(name):
    """Every partition is reached by merging items one after the other."""
    prior, log_prior = CASES[name]
    found = []
    for labels in reference.partitions(6):
        number, total = 6, log_prior(np.ones(6, int))
        for size in reference.sizes_of(labels):
            for before in range(1, size):
                total += float(prior.of_sizes(np.array(before), np.array(1))) + prior.of_number(number)
                number -= 1
        found.append(total)
    assert logsumexp(found) == pytest.approx(0, abs=1e-12)


def test_sizes_broadcast_and_large_ones_keep_their_digits():
    a, b = np.array([[1], [90_000]]), np.array([[1, 5, 70_000]])
    for prior, log_prior in CASES.values():
        found = prior.of_sizes(a, b)
        assert found.shape == (2, 3)
        expected = log_prior([160_000]) - log_prior([90_000, 70_000]) - prior.of_number(2)
        assert found[1, 2] == pytest.approx(expected, rel=1e-9)


def test_the_concentration_has_the_expected_number_of_people():
    for num_people, num_images in ((1.0001, 50), (7, 50), (49.99, 50), (400, 5000), (1.5, 2)):
        alpha = priors.concentration(num_people, num_images=num_images)
        assert (alpha / (alpha + np.arange(num_images))).sum() == pytest.approx(num_people, rel=1e-9)
    assert priors.concentration(1.5, num_images=2) == pytest.approx(1)


def test_errors():
    with pytest.raises(ValueError, match="alpha must lie in"):
        priors.ewens(0.0)
    with pytest.raises(ValueError, match="discount must lie in"):
        priors.pitman_yor(1.0, discount=1.0)
    for make in (priors.threshold, priors.pairwise_odds):
        with pytest.raises(ValueError, match="must lie in"):
            make(np.nan)
    for num_people in (1, 10, np.nan):
        with pytest.raises(ValueError, match="num_people must lie in"):
            priors.concentration(num_people, num_images=10)


def test_the_concentration_against_all_partitions():
    """The expected number of clusters, by enumeration."""
    alpha = priors.concentration(2.5, num_images=6)
    sizes = [reference.sizes_of(labels) for labels in reference.partitions(6)]
    assert sum(len(each) * np.exp(reference.ewens(each, alpha)) for each in sizes) == pytest.approx(2.5, rel=1e-10)
    with pytest.raises(ValueError, match="num_images must be at least 2; got 1"):
        priors.concentration(1.0, num_images=1)
