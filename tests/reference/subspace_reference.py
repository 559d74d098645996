"""Methods of groups from their definitions: full scatter matrices, eigenvectors and explicit features, in float64."""

import numpy as np
import scipy.linalg


def scatters(x, groups):
    """(4), (5) and their sum, one image after the other."""
    d = x.shape[1]
    within, between = np.zeros((d, d)), np.zeros((d, d))
    mean = x.mean(axis=0)
    for group in np.unique(groups):
        rows = x[groups == group]
        center = rows.mean(axis=0)
        for row in rows:
            within += np.outer(row - center, row - center)
        between += len(rows) * np.outer(center - mean, center - mean)
    return within, between, within + between


def eigenvectors(a, *, is_zero, scale):
    """Those of a symmetric matrix whose eigenvalue is zero, or is not, beside `scale`."""
    values, vectors = np.linalg.eigh(a)
    return vectors[:, (np.abs(values) < 1e-10 * scale) == is_zero]


def np_per(x, groups):
    """`W = P Q` of section 4.2, `[d, m]`."""
    within, _, total = scatters(x, groups)
    scale = np.linalg.eigvalsh(total)[-1]
    outside = eigenvectors(total, is_zero=False, scale=scale)
    return outside @ eigenvectors(outside.T @ within @ outside, is_zero=True, scale=scale)


def rca(x, groups, num_components, ridge=0.0):
    """The metric `[d, d]` of RCA after PCA: `P (P' S_g P / n + e I)^-1 P'`."""
    within, _, total = scatters(x, groups)
    axes = np.linalg.eigh(total)[1][:, ::-1][:, :num_components]
    sigma = axes.T @ within @ axes / len(x)
    sigma += ridge * np.trace(sigma) / num_components * np.eye(num_components)
    return axes @ np.linalg.inv(sigma) @ axes.T


def quadratic_features(x, offset):
    """phi with `phi(x)'phi(y) = (x'y + offset)^2`: squares, products, multiples of x and a constant."""
    i, j = np.triu_indices(x.shape[1], 1)
    constant = np.full((len(x), 1), offset)
    return np.hstack([x**2, np.sqrt(2) * x[:, i] * x[:, j], np.sqrt(2 * offset) * x, constant])


def squared_distances(x, y, metric):
    """`(x - y)' M (x - y)` `[n, m]`, pair by pair."""
    return np.array([[(a - b) @ metric @ (a - b) for b in y] for a in x])


def tsang(features, groups, epsilon):
    """`(S_g / n + e I)^-1` in feature space, formed."""
    within = scatters(features, groups)[0]
    return scipy.linalg.inv(within / len(features) + epsilon * np.eye(features.shape[1]))


def group_error(z, groups):
    """Share of rows with mates that have a stranger as near as their nearest mate."""
    wrong, total = 0, 0
    for i, row in enumerate(z):
        distance = [((row - other) ** 2).sum() for other in z]
        mates = [distance[j] for j in range(len(z)) if j != i and groups[j] == groups[i]]
        strangers = [distance[j] for j in range(len(z)) if groups[j] != groups[i]]
        if mates:
            total += 1
            wrong += min(strangers) <= min(mates)
    return wrong / total
