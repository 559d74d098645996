"""Joint Bayesian from its definition: one subject at a time, selection matrices and dense Gaussians, NumPy float64.

A model is anything with `mean`, `identity_cov` and `noise_cov`; people are a list of arrays `[m_i, d]`. Hidden
variables of a subject are `H = (mu, eps_1, ..., eps_m)` and its images are `X = P H` about the mean.
"""

import functools

import numpy as np
from scipy.linalg import block_diag, eigh
from scipy.stats import multivariate_normal


def selection(m, d):
    """P `[m d, (m + 1) d]`: image j is mu + eps_j."""
    p = np.zeros((m * d, (m + 1) * d))
    for j in range(m):
        p[j * d : (j + 1) * d, :d] = np.eye(d)
        p[j * d : (j + 1) * d, (j + 1) * d : (j + 2) * d] = np.eye(d)
    return p


def hidden_cov(model, m):
    """Omega `[(m + 1) d, (m + 1) d]`, block diagonal."""
    return block_diag(np.asarray(model.identity_cov), *[np.asarray(model.noise_cov)] * m)


def image_cov(model, m):
    """Covariance `[m d, m d]` of the stacked images of one subject."""
    p = selection(m, len(model.mean))
    return p @ hidden_cov(model, m) @ p.T


def posterior(model, images):
    """E[H | X] as rows `[m + 1, d]` and Cov[H | X], equations (3) and (18)."""
    m, d = images.shape
    omega, p = hidden_cov(model, m), selection(m, d)
    gain = omega @ p.T @ np.linalg.inv(p @ omega @ p.T)
    mean = gain @ (images - np.asarray(model.mean)).ravel()
    return mean.reshape(m + 1, d), omega - gain @ p @ omega


def e_step(model, people, *, with_covariance):
    """Sums over subjects and images of E[mu mu'] and E[eps eps'] (or of the outer products of the means)."""
    d = len(model.mean)
    identity, noise = np.zeros((d, d)), np.zeros((d, d))
    for images in people:
        mean, cov = posterior(model, images)
        for place, h in enumerate(mean):
            block = slice(place * d, (place + 1) * d)
            moment = np.outer(h, h) + (cov[block, block] if with_covariance else 0)
            if place == 0:
                identity += moment
            else:
                noise += moment
    return identity, noise


def regression(model, people):
    """R, the sum of E[mu mu'] over people, and what R mu leaves of the images: R regresses the images on E[mu].

    `R = B H^+` with `H = sum_i m_i E[mu mu']` and `B = sum_ij x_ij E[mu]'`.
    """
    d = len(model.mean)
    identity, weighted, response, images_moment = (np.zeros((d, d)) for _ in range(4))
    for images in people:
        mean, cov = posterior(model, images)
        moment, x = np.outer(mean[0], mean[0]) + cov[:d, :d], images - np.asarray(model.mean)
        identity += moment
        weighted += len(images) * moment
        response += np.outer(x.sum(axis=0), mean[0])
        images_moment += x.T @ x
    r = response @ np.linalg.pinv(weighted, rcond=1e-10, hermitian=True)
    return r, identity, images_moment - r @ response.T


def expanded(model, people):
    """The sums of PX-EM: of E[R mu mu'R'] over people, and of what R mu leaves of the images."""
    r, identity, noise = regression(model, people)
    return r @ identity @ r.T, noise


E_STEPS = {
    "full": functools.partial(e_step, with_covariance=True),
    "approximate": functools.partial(e_step, with_covariance=False),
    "expanded": expanded,
}


def hidden_means(model, people):
    """M `[n, d]` and E `[k, d]`: the posterior means of all subjects and images."""
    means = [posterior(model, images)[0] for images in people]
    return np.stack([h[0] for h in means]), np.concatenate([h[1:] for h in means])


def log_density(model, images):
    """log p(images | one subject)."""
    mean = np.tile(np.asarray(model.mean), len(images))
    return multivariate_normal.logpdf(images.ravel(), mean, image_cov(model, len(images)))


def log_likelihood(model, people):
    return sum(log_density(model, images) for images in people)


def set_llr(model, a, b):
    """One subject with all images against two subjects, as three Gaussians over stacked images."""
    return log_density(model, np.concatenate([a, b])) - log_density(model, a) - log_density(model, b)


def llr(model, x1, x2):
    """The two-hypothesis Gaussians of a pair, written as blocks."""
    total = np.asarray(model.identity_cov) + np.asarray(model.noise_cov)
    shared, zero = np.asarray(model.identity_cov), np.zeros_like(total)
    pair = np.concatenate([x1 - np.asarray(model.mean), x2 - np.asarray(model.mean)])
    same = multivariate_normal.logpdf(pair, cov=np.block([[total, shared], [shared, total]]))
    return same - multivariate_normal.logpdf(pair, cov=np.block([[total, zero], [zero, total]]))


def counts(people):
    return len(people), sum(len(images) for images in people)


def divergence(source, target):
    """KL(N(0, S) || N(0, T)) from `E log p - E log q`."""
    s, t = np.asarray(source), np.asarray(target)
    return (np.trace(np.linalg.inv(t) @ s) - len(s) + np.linalg.slogdet(t)[1] - np.linalg.slogdet(s)[1]) / 2


def penalized_objective(model, people, prior, weight):
    n, k = counts(people)
    penalty = n * divergence(prior.identity_cov, model.identity_cov) + k * divergence(prior.noise_cov, model.noise_cov)
    return (1 - weight) * log_likelihood(model, people) - weight * penalty


def m_step(model, people, prior, weight, *, with_covariance):
    """Both covariances of (5)."""
    n, k = counts(people)
    identity, noise = e_step(model, people, with_covariance=with_covariance)
    identity, noise = identity / n, noise / k
    if prior is None:
        return identity, noise
    return (
        weight * np.asarray(prior.identity_cov) + (1 - weight) * identity,
        weight * np.asarray(prior.noise_cov) + (1 - weight) * noise,
    )


def log_det(a):
    return np.linalg.slogdet(a)[1]


def eq6(identities, deviations, psi, gamma, prior, ratio):
    """(6) as a sum over rows."""
    n, k = len(identities), len(deviations)
    total = sum(mu @ np.linalg.inv(psi) @ mu for mu in identities)
    total += sum(eps @ np.linalg.inv(gamma) @ eps for eps in deviations)
    total += ratio * n * np.trace(np.asarray(prior.identity_cov) @ np.linalg.inv(psi))
    total += ratio * k * np.trace(np.asarray(prior.noise_cov) @ np.linalg.inv(gamma))
    return total + n * log_det(psi) + k * log_det(gamma)


def eq11(identities, deviations, prior, ratio):
    n, k = len(identities), len(deviations)
    psi = sum(np.outer(mu, mu) for mu in identities) / n + ratio * np.asarray(prior.identity_cov)
    gamma = sum(np.outer(eps, eps) for eps in deviations) / k + ratio * np.asarray(prior.noise_cov)
    return n * log_det(psi) + k * log_det(gamma)


def eq19(identities, deviations, psi, gamma, sizes, prior, ratio):
    n, k = len(identities), len(deviations)
    coupled = sum(log_det(m * psi + gamma) for m in sizes) + (k - n) * log_det(gamma)
    return eq6(identities, deviations, psi, gamma, prior, ratio) - n * log_det(psi) - k * log_det(gamma) + coupled


def balanced_ml(people, mean, *, rank=None):
    """The maximum-likelihood covariances when every subject has m images and the mean is known.

    With `W = S_w / (n (m - 1))` and `B = m sum ybar ybar' / n` the likelihood splits over the directions of the pencil
    (B, W). Where B exceeds W the answer is T_eps = W and T_mu = (B - W) / m; elsewhere T_mu = 0 and both are pooled.
    With a `rank` only that many directions, those of the largest ratios, have a T_mu.
    """
    n, m = len(people), len(people[0])
    assert all(len(images) == m for images in people)
    averages = np.stack([images.mean(axis=0) for images in people]) - mean
    within = sum((images - images.mean(axis=0)).T @ (images - images.mean(axis=0)) for images in people) / (n * (m - 1))
    between = m * averages.T @ averages / n
    ratios, vectors = eigh(between, within)
    back = np.linalg.inv(vectors)
    kept = (ratios > 1) & (np.arange(len(ratios)) >= (0 if rank is None else len(ratios) - rank))  # ascending
    noise = np.where(kept, 1.0, (ratios + m - 1) / m)
    identity = np.where(kept, (ratios - 1) / m, 0.0)
    return back.T @ np.diag(identity) @ back, back.T @ np.diag(noise) @ back


def moments(people):
    """Mean of all images, and the unbiased one-way analysis of variance: T_mu may have negative eigenvalues."""
    n, k = counts(people)
    mean = np.concatenate(people).mean(axis=0)
    within = sum((x - images.mean(axis=0))[:, None] * (x - images.mean(axis=0)) for images in people for x in images)
    between = sum(len(images) * np.outer(images.mean(0) - mean, images.mean(0) - mean) for images in people)
    noise = within / (k - n)
    effective = (k - sum(len(images) ** 2 for images in people) / k) / (n - 1)
    return mean, (between / (n - 1) - noise) / effective, noise
