"""Mixtures of probabilistic CCA from their definition: dense Gaussians, loops over samples, NumPy float64.

A model is anything with the fields of `PCCAMixture`; a Gaussian mixture anything with those of `GMM`.
"""

import numpy as np
from scipy.stats import multivariate_normal


def matrices(noise):
    """Covariances `[k, n, n]` of either kind of noise."""
    noise = np.asarray(noise)
    return noise if noise.ndim == 3 else np.stack([np.diag(row) for row in noise])


def components(model):
    """For each component: log w, mean `[n + m]`, W `[n + m, d]` and the block diagonal Psi `[n + m, n + m]`."""
    log_weights = np.asarray(model.log_weights)
    noise_x, noise_y = matrices(model.noise_x), matrices(model.noise_y)
    n, m = noise_x.shape[1], noise_y.shape[1]
    parts = []
    for k in range(len(log_weights)):
        mean = np.concatenate([model.mean_x[k], model.mean_y[k]])
        loadings = np.concatenate([model.loadings_x[k], model.loadings_y[k]])
        noise = np.zeros((n + m, n + m))
        noise[:n, :n], noise[n:, n:] = noise_x[k], noise_y[k]
        parts.append((log_weights[k], mean, loadings, noise))
    return parts


def log_joint(model, v, keep=slice(None)):
    """`log w_k p(v_keep | k)` `[s, k]` from the dense covariance, of the dimensions `keep`."""
    columns = []
    for log_weight, mean, loadings, noise in components(model):
        cov = loadings @ loadings.T + noise
        columns.append(log_weight + multivariate_normal.logpdf(v[:, keep], mean[keep], cov[keep, keep]))
    return np.stack([np.atleast_1d(column) for column in columns], axis=1)


def log_density(model, v, keep=slice(None)):
    return np.logaddexp.reduce(log_joint(model, v, keep), axis=1)


def responsibilities(model, v, keep=slice(None)):
    return np.exp(log_joint(model, v, keep) - log_density(model, v, keep)[:, None])


def posterior(model, v, keep=slice(None)):
    """(18), (19): means `[s, k, d]` and covariances `[k, d, d]` of z given the dimensions `keep`."""
    means, covs = [], []
    for _, mean, loadings, noise in components(model):
        gain = loadings[keep].T @ np.linalg.inv((loadings @ loadings.T + noise)[keep, keep])
        means.append((v[:, keep] - mean[keep]) @ gain.T)
        covs.append(np.eye(loadings.shape[1]) - gain @ loadings[keep])
    return np.stack(means, axis=1), np.stack(covs)


def conditional(model, v, given, missing):
    """The dimensions `missing` given `given` in each component: means `[s, k, .]` and covariances, by conditioning."""
    means, covs = [], []
    for _, mean, loadings, noise in components(model):
        cov = loadings @ loadings.T + noise
        gain = cov[missing, given] @ np.linalg.inv(cov[given, given])
        means.append(mean[missing] + (v[:, given] - mean[given]) @ gain.T)
        covs.append(cov[missing, missing] - gain @ cov[given, missing])
    return np.stack(means, axis=1), np.stack(covs)


def m_step(model, v, *, order, weights=None):
    """(30)-(36) by loops over samples; W and mu by least squares on [z; 1] (`joint`) or in the order of the paper.

    Returns for each component (w, mean, W, dense left-over covariance of all views).
    """
    weights = np.ones(len(v)) if weights is None else weights
    g = responsibilities(model, v) * weights[:, None]
    z, cov = posterior(model, v)
    found = []
    for k, (_, _, loadings, _) in enumerate(components(model)):
        d, width = loadings.shape[1], v.shape[1]
        total, zz, vz = 0.0, np.zeros((d + 1, d + 1)), np.zeros((width, d + 1))
        for i in range(len(v)):
            augmented = np.append(z[i, k], 1.0)
            second = np.outer(augmented, augmented)
            second[:d, :d] += cov[k]
            total += g[i, k]
            zz += g[i, k] * second
            vz += g[i, k] * np.outer(v[i], augmented)
        if order == "joint":
            both = np.linalg.solve(zz, vz.T).T
            loadings, mean = both[:, :d], both[:, d]
        else:
            mean = sum(g[i, k] * (v[i] - loadings @ z[i, k]) for i in range(len(v))) / total
            cross = sum(g[i, k] * np.outer(v[i] - mean, z[i, k]) for i in range(len(v)))
            loadings = cross @ np.linalg.inv(zz[:d, :d])
        left = loadings @ cov[k] @ loadings.T
        for i in range(len(v)):
            error = v[i] - loadings @ z[i, k] - mean
            left = left + g[i, k] * np.outer(error, error) / total
        found.append((total / weights.sum(), mean, loadings, left))
    return found


def gradients(model, v, dim_x, weights=None):
    """(42)-(45) term by term, with the posterior mean for z: `[(mean, noise)]` of x and of y, full matrices."""
    weights = np.ones(len(v)) if weights is None else weights
    g = responsibilities(model, v) * weights[:, None]
    z, cov = posterior(model, v)
    views = []
    for part in (slice(0, dim_x), slice(dim_x, None)):
        means, noises = [], []
        for k, (_, mean, loadings, noise) in enumerate(components(model)):
            mu, w, psi = mean[part], loadings[part], noise[part, part]
            weight = g[:, k].sum() / weights.sum()  # (37)
            private = v[:, part] - z[:, k] @ w.T
            center = (g[:, k, None] * private).sum(axis=0) / g[:, k].sum()
            spread = (g[:, k, None] * (private - mu)).T @ (private - mu) / g[:, k].sum()
            inverse = np.linalg.inv(psi)
            means.append(2 * weight * inverse @ (mu - center))
            noises.append(weight * inverse @ (psi - w @ cov[k] @ w.T - spread) @ inverse)
        views.append((np.stack(means), np.stack(noises)))
    return views


def latent(model, v, weights=None):
    """`(1/N) sum g zhat` `[k, d]`."""
    weights = np.ones(len(v)) if weights is None else weights
    g = responsibilities(model, v) * weights[:, None]
    return np.einsum("sk,skd->kd", g, posterior(model, v)[0]) / weights.sum()


def gmm_responsibilities(model, x):
    columns = [
        log_weight + multivariate_normal.logpdf(x, mean, np.diag(variance))
        for log_weight, mean, variance in zip(model.log_weights, model.mean, model.variance, strict=True)
    ]
    joint = np.stack(columns, axis=1)
    return np.exp(joint - np.logaddexp.reduce(joint, axis=1)[:, None])


def gmm_step(model, x):
    """New weights, means and variances of one EM step."""
    g = gmm_responsibilities(model, x)
    total = g.sum(axis=0)
    mean = np.stack([(g[:, k, None] * x).sum(axis=0) / total[k] for k in range(len(total))])
    variance = np.stack([(g[:, k, None] * (x - mean[k]) ** 2).sum(axis=0) / total[k] for k in range(len(total))])
    return total / len(x), mean, variance


def fisher_vector(model, x):
    """Of the means and of the deviations, each `[k, n]`, as Perronnin, Sanchez and Mensink write it."""
    g = gmm_responsibilities(model, x)
    weight, mean, variance = np.exp(np.asarray(model.log_weights)), np.asarray(model.mean), np.asarray(model.variance)
    of_mean, of_deviation = np.zeros_like(mean), np.zeros_like(mean)
    for k in range(len(weight)):
        for i in range(len(x)):
            u = (x[i] - mean[k]) / np.sqrt(variance[k])
            of_mean[k] += g[i, k] * u / (len(x) * np.sqrt(weight[k]))
            of_deviation[k] += g[i, k] * (u**2 - 1) / (len(x) * np.sqrt(2 * weight[k]))
    return of_mean, of_deviation


def canonical_correlations(x, y):
    """Singular values of `Q_x'Q_y` with orthonormal bases of the centred columns."""
    q_x, q_y = (np.linalg.qr(view - view.mean(axis=0))[0] for view in (np.asarray(x), np.asarray(y)))
    return np.linalg.svd(q_x.T @ q_y, compute_uv=False)


def normalized(blocks):
    """Signed root, rows of unit length, concatenation, unit length: one number after the other."""
    values = []
    for block in blocks:
        for row in np.asarray(block):
            rooted = [np.sign(value) * np.sqrt(abs(value)) for value in row]
            length = np.sqrt(sum(value**2 for value in rooted))
            values += [value / length if length > 0 else 0.0 for value in rooted]
    return np.asarray(values) / np.linalg.norm(values)
