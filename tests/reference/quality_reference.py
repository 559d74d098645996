"""Joint Bayesian with a weight for each image: dense Gaussians over the stacked images of a person, NumPy float64.

Image j of a person has the noise covariance `T_eps / q_j`; two images of a track share a part of it. A model is
anything with `mean`, `identity_cov` and `noise_cov`; people are lists of arrays `[m_i, d]`, their weights of `[m_i]`.
"""

import numpy as np
from scipy.stats import multivariate_normal


def image_cov(model, noise_of_images):
    """Covariance `[m d, m d]` of the images of a person whose noise is `kron(noise_of_images, T_eps)`."""
    m = len(noise_of_images)
    return np.kron(np.ones((m, m)), np.asarray(model.identity_cov)) + np.kron(noise_of_images, model.noise_cov)


def log_density(model, images, noise_of_images):
    """log p(images | one person)."""
    if len(images) == 0:
        return 0.0
    mean = np.tile(np.asarray(model.mean), len(images))
    return multivariate_normal.logpdf(images.ravel(), mean, image_cov(model, noise_of_images))


def by_weights(weights):
    return np.diag(1 / np.asarray(weights, float))


def log_likelihood(model, people, weights):
    """Images of weight 0 are not there."""
    return sum(log_density(model, x[q > 0], by_weights(q[q > 0])) for x, q in zip(people, weights, strict=True))


def posterior(model, images, noise_of_images):
    """Mean `[d]` and covariance `[d, d]` of mu: Gaussian conditioning."""
    d = len(model.mean)
    cross = np.tile(np.asarray(model.identity_cov), (1, len(images)))  # Cov(mu, images)
    gain = cross @ np.linalg.inv(image_cov(model, noise_of_images))
    mean = gain @ (images - np.asarray(model.mean)).ravel()
    return mean, np.asarray(model.identity_cov).reshape(d, d) - gain @ cross.T


def e_step(model, people, weights):
    """Sum of E[mu mu'], weighted sum of E[eps eps'], number of people and of images."""
    d = len(model.mean)
    identity, noise, n, k = np.zeros((d, d)), np.zeros((d, d)), 0, 0
    for x, q in zip(people, weights, strict=True):
        x, q = x[q > 0], q[q > 0]
        if len(x):
            mean, cov = posterior(model, x, by_weights(q))
            residuals = x - np.asarray(model.mean) - mean
            identity += np.outer(mean, mean) + cov
            noise += sum(weight * (np.outer(e, e) + cov) for e, weight in zip(residuals, q, strict=True))
            n, k = n + 1, k + len(x)
    return identity, noise, n, k


def moments(people, weights):
    """The weighted mean, and T_mu and T_eps of the scatters between and within people, both unbiased.

    `E[S_w] = (K - n) T_eps` and `E[S_b] = (n - 1) T_eps + (sum Q - sum Q^2 / sum Q) T_mu`.
    """
    kept = [(x[q > 0], q[q > 0]) for x, q in zip(people, weights, strict=True) if q.any()]
    n, k = len(kept), sum(len(q) for _, q in kept)
    total = np.array([q.sum() for _, q in kept])
    averages = np.stack([q @ x / q.sum() for x, q in kept])
    mean = total @ averages / total.sum()
    away = [x - average for (x, _), average in zip(kept, averages, strict=True)]
    noise = sum((q[:, None] * r).T @ r for (_, q), r in zip(kept, away, strict=True)) / (k - n)
    between = (total[:, None] * (averages - mean)).T @ (averages - mean)
    return mean, (between - (n - 1) * noise) / (total.sum() - (total**2).sum() / total.sum()), noise


def llr(model, first, first_noise, second, second_noise):
    """One person with all images against two people; the noises of the two sets are independent."""
    m, n = len(first), len(second)
    noise = np.block([[first_noise, np.zeros((m, n))], [np.zeros((n, m)), second_noise]])
    whole = log_density(model, np.concatenate([first, second]), noise)
    return whole - log_density(model, first, first_noise) - log_density(model, second, second_noise)


def track_noise(tracks, correlation):
    """Correlations `[m, m]` of the noise of a person's frames."""
    same = np.asarray(tracks)[:, None] == np.asarray(tracks)[None, :]
    return np.where(same, correlation, 0.0) + (1 - correlation) * np.eye(len(tracks))
