"""Partitions by enumeration: every one of them, their log priors in closed form, their densities by dense Gaussians."""

import itertools

import numpy as np
from scipy.special import gammaln

from tests.reference import quality_reference


def partitions(n):
    """All partitions of n items as labels `[n]`, in the order of first items: 203 of 6."""
    found = [(0,)]
    for _ in range(n - 1):
        found = [(*labels, k) for labels in found for k in range(max(labels) + 2)]
    return [np.array(labels) for labels in found]


def sizes_of(labels, sizes=None):
    return np.bincount(labels, weights=sizes).astype(int)


def threshold(sizes, tau):
    return tau * len(sizes)


def ewens(sizes, alpha):
    """The probability of a partition of n items."""
    n = sum(sizes)
    return len(sizes) * np.log(alpha) + gammaln(sizes).sum() + gammaln(alpha) - gammaln(alpha + n)


def pitman_yor(sizes, alpha, discount):
    n, sizes = sum(sizes), np.asarray(sizes)
    new = np.log(alpha + discount * np.arange(len(sizes))).sum()
    return new + (gammaln(sizes - discount) - gammaln(1 - discount)).sum() + gammaln(alpha) - gammaln(alpha + n)


def pairwise_odds(sizes, theta):
    return theta * (np.asarray(sizes) * (np.asarray(sizes) - 1) / 2).sum()


def log_likelihoods(model, x, noise_of_images=None):
    """The log density of every set of images, by the Booleans of its members."""
    n = len(x)
    noise = np.eye(n) if noise_of_images is None else noise_of_images
    found = {}
    for code in range(1, 2**n):
        rows = np.flatnonzero([code >> k & 1 for k in range(n)])
        found[code] = quality_reference.log_density(model, x[rows], noise[np.ix_(rows, rows)])
    return found


def log_likelihood(of_sets, labels):
    """The log density of a partition."""
    return sum(of_sets[int((1 << np.flatnonzero(labels == k)).sum())] for k in range(labels.max() + 1))


def rounds(log_posterior, n):
    """Partitions of n items before and after each round: all pairs merge that are each other's best and gain."""
    found = [np.arange(n)]
    while True:
        labels = found[-1]
        number, before = labels.max() + 1, log_posterior(labels)
        gains = np.full((number, number), -np.inf)
        for a, b in itertools.combinations(range(number), 2):
            merged = np.unique(np.where(labels == b, a, labels), return_inverse=True)[1]
            gains[a, b] = gains[b, a] = log_posterior(merged) - before
        best = gains.argmax(axis=1)
        pairs = [(a, b) for a, b in enumerate(best) if a < b and best[b] == a and gains[a, b] > 0]
        if not pairs:
            return found
        after = labels.copy()
        for a, b in pairs:
            after[labels == b] = a
        found.append(np.unique(after, return_inverse=True)[1])
