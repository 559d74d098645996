"""Starts of EM against the one-way analysis of variance."""

import numpy as np
from scipy.linalg import eigh

from jaxface.joint_bayes import init_factors, moment_start, to_dense
from tests.joint_bayes import draws, test_counts
from tests.reference import joint_bayes_reference as reference
from tests.reference import quality_reference
from tests.tolerances import assert_close

D, RANK, COUNTS = 4, 2, (1, 2, 3) * 20


def test_moments_are_those_of_the_definition(rng):
    groups = draws.people(rng, draws.joint_bayes(rng, D), COUNTS)
    found = moment_start.moments_of(draws.stats(groups, np.zeros(D)))
    assert_close((found.mean, found.identity, found.noise), reference.moments(groups), factor=100)


def test_moments_of_weighted_images_are_those_of_the_definition(rng):
    """With images of weight 0 and a person without images."""
    _, people, weights = test_counts.drawn(rng)
    found = moment_start.moments_of(test_counts.stats_of(people, weights))
    assert_close((found.mean, found.identity, found.noise), quality_reference.moments(people, weights))


def test_the_moment_start_is_the_positive_part_of_the_excess_in_the_metric_of_the_noise(rng):
    groups = draws.people(rng, draws.joint_bayes(rng, D, RANK), COUNTS)
    stats = draws.stats(groups, np.zeros(D))
    mean, excess, noise = reference.moments(groups)
    ratios, vectors = eigh(excess, noise)
    back = np.linalg.inv(vectors) * np.sqrt(np.maximum(ratios, 1e-9))[:, None]
    start = init_factors(stats, rank=D, ridge=1e-9)
    assert_close((start.mean, to_dense(start).identity_cov, start.noise_cov), (mean, back.T @ back, noise), factor=1e3)
    few = init_factors(stats, rank=1, ridge=1e-9)  # by a few steps of power iteration
    assert_close(few.noise_cov, noise, factor=1e3)
    first, leading = np.asarray(few.root)[:, 0], back[-1]
    assert abs(first @ leading) > 0.99 * np.linalg.norm(first) * np.linalg.norm(leading)
