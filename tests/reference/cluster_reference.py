"""Partitions by enumeration: every one of them, their log priors in closed form, their densities by dense Gaussians."""

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
