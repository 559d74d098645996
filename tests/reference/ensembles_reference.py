"""Committees of LDA members as one would write them down: loops over members, samples, classes; NumPy and SciPy."""

import numpy as np
import scipy.linalg
import scipy.special


def principal_coordinates(x):
    """Centred samples in their principal axes `[n, p]`, variances `[p]`, mean and axes; p is the rank."""
    mean = x.mean(axis=0)
    _, values, axes = np.linalg.svd(x - mean, full_matrices=False)
    rank = int((values > 1e-10 * values[0]).sum())
    y = (x - mean) @ axes[:rank].T
    return y, values[:rank] ** 2 / len(x), mean, axes[:rank]


def scatters(x, labels):
    """S_w and S_b, sample by sample and class by class."""
    d = x.shape[1]
    within, between = np.zeros((d, d)), np.zeros((d, d))
    for c in np.unique(labels):
        mean = x[labels == c].mean(axis=0)
        for row in x[labels == c]:
            within += np.outer(row - mean, row - mean)
        between += (labels == c).sum() * np.outer(mean - x.mean(axis=0), mean - x.mean(axis=0))
    return within, between


def lda(x, labels, *, num_components, ridge=0.0, unbiased=True):
    """W `[d, r]` of `S_b w = l S_w w` with `W'(S_w / divisor) W = I`, l descending."""
    within, between = scatters(x, labels)
    within += ridge * np.trace(within) / len(within) * np.eye(len(within))
    divisor = len(x) - len(np.unique(labels)) if unbiased else len(x)
    return scipy.linalg.eigh(between, within / divisor)[1][:, ::-1][:, :num_components]


def bagged_lda(x, labels, weights, *, num_components, ridge=0.0, unbiased=True):
    """The same of rows with weights; `E[S_w]` of independent rows is the covariance times the unbiased divisor."""
    d = x.shape[1]
    within, between, divisor = np.zeros((d, d)), np.zeros((d, d)), 0.0
    center = weights @ x / weights.sum()
    for c in np.unique(labels[weights > 0]):
        w = np.where(labels == c, weights, 0)
        mean = w @ x / w.sum()
        for weight, row in zip(w, x, strict=True):
            within += weight * np.outer(row - mean, row - mean)
        between += w.sum() * np.outer(mean - center, mean - center)
        divisor += w.sum() - (w**2).sum() / w.sum() if unbiased else w.sum()
    within += ridge * np.trace(within) / d * np.eye(d)
    return scipy.linalg.eigh(between, within / divisor)[1][:, ::-1][:, :num_components]


def log_posteriors(z, centers, *, similarity="gaussian"):
    """`log P(c | z)` `[n, c]`, probe by probe."""
    found = np.zeros((len(z), len(centers)))
    for i, probe in enumerate(z):
        if similarity == "gaussian":
            scores = np.array([-0.5 * np.sum((probe - center) ** 2) for center in centers])
            found[i] = scores - scipy.special.logsumexp(scores)
        else:
            cosines = [probe @ center / np.linalg.norm(probe) / np.linalg.norm(center) for center in centers]
            similarities = (1 + np.array(cosines)) / 2
            found[i] = np.log(similarities / similarities.sum())
    return found


def committee(y, labels, probes, axes, *, similarity="gaussian", **settings):
    """Bases, centres and log posteriors `[m, n, c]` of LDA members on the axes of each row."""
    classes = np.unique(labels)
    bases, all_centers, posteriors = [], [], []
    for chosen in axes:
        basis = lda(y[:, chosen], labels, **settings)
        centers = np.stack([(y[labels == c][:, chosen] @ basis).mean(axis=0) for c in classes])
        bases.append(basis)
        all_centers.append(centers)
        posteriors.append(log_posteriors(probes[:, chosen] @ basis, centers, similarity=similarity))
    return np.stack(bases), np.stack(all_centers), np.stack(posteriors)


def fuse(posteriors, rule):
    """Probabilities `[n, c]` (of `vote`: whole votes plus the sum rule's share, for ordering) from `[m, n, c]`."""
    m, n, c = posteriors.shape
    fused = np.zeros((n, c))
    for i in range(n):
        for j in range(c):
            member = [float(posteriors[t, i, j]) for t in range(m)]
            fused[i, j] = {
                "sum": lambda member: sum(member) / m,
                "product": np.prod,
                "min": min,
                "max": max,
                "median": np.median,
                "vote": lambda member: sum(member) / m,
            }[rule](member)
        if rule == "vote":
            for t in range(m):
                fused[i, int(np.argmax(posteriors[t, i]))] += 1
        else:
            fused[i] = fused[i] / fused[i].sum() if fused[i].sum() > 0 else 1 / c
    return fused


def errors(posteriors, labels):
    """E_av, E_com and C `[m, m]`, from the definitions."""
    m, _, c = posteriors.shape
    truth = np.eye(c)[labels]
    products = np.array(
        [
            [np.mean(np.sum((posteriors[i] - truth) * (posteriors[j] - truth), axis=1)) for j in range(m)]
            for i in range(m)
        ]
    )
    average = np.mean([np.mean(np.sum((posteriors[t] - truth) ** 2, axis=1)) for t in range(m)])
    together = np.mean(np.sum((posteriors.mean(axis=0) - truth) ** 2, axis=1))
    return average, together, products
