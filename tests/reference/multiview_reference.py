"""Mixtures with any number of views from their definition: one dense Gaussian a sample, of the views that it has.

A model has `log_weights` and `views` of (mean, loadings, noise); samples are a list of `[s, n]` and a mask `[s, v]`.
NumPy float64.
"""

import numpy as np


def components(model):
    """For each component: log w, mean `[n]`, W `[n, d]`, Psi `[n, n]` of all views side by side."""
    found = []
    for k, log_weight in enumerate(np.asarray(model.log_weights)):
        mean = np.concatenate([np.asarray(view.mean)[k] for view in model.views])
        loadings = np.concatenate([np.asarray(view.loadings)[k] for view in model.views])
        noise, start = np.zeros((len(mean), len(mean))), 0
        for view in model.views:
            own = np.asarray(view.noise)[k]
            own = np.diag(own) if own.ndim == 1 else own
            noise[start : start + len(own), start : start + len(own)] = own
            start += len(own)
        found.append((log_weight, mean, loadings, noise))
    return found


def columns(model, places):
    """The places of the dimensions of these views."""
    widths = [np.asarray(view.mean).shape[1] for view in model.views]
    starts = np.cumsum([0, *widths])
    return np.concatenate([np.arange(starts[v], starts[v] + widths[v]) for v in places]).astype(int)


def side_by_side(views, mask):
    """All views `[s, n]`; what is missing is NaN, so that a reference that reads it fails."""
    parts = [np.where(mask[:, [v]], view, np.nan) for v, view in enumerate(views)]
    return np.concatenate(parts, axis=1)


def log_normal(v, mean, cov):
    r = v - mean
    return -(len(v) * np.log(2 * np.pi) + np.linalg.slogdet(cov)[1] + r @ np.linalg.solve(cov, r)) / 2


def log_joint(model, views, mask):
    """`log w_k p(x_O | k)` `[s, k]`."""
    v, parts = side_by_side(views, mask), components(model)
    found = np.empty((len(v), len(parts)))
    for i, row in enumerate(v):
        keep = columns(model, np.flatnonzero(mask[i]))
        for k, (log_weight, mean, loadings, noise) in enumerate(parts):
            cov = loadings @ loadings.T + noise
            found[i, k] = log_weight + log_normal(row[keep], mean[keep], cov[np.ix_(keep, keep)])
    return found


def log_likelihood(model, views, mask, weights=None):
    values = np.logaddexp.reduce(log_joint(model, views, mask), axis=1)
    return values.sum() if weights is None else weights @ values


def posterior(model, row, present):
    """z of one sample by conditioning its joint Gaussian: means `[k, d]` and covariances `[k, d, d]`."""
    keep = columns(model, present)
    means, covs = [], []
    for _, mean, loadings, noise in components(model):
        w = loadings[keep]
        gain = w.T @ np.linalg.inv(w @ w.T + noise[np.ix_(keep, keep)])
        means.append(gain @ (row[keep] - mean[keep]))
        covs.append(np.eye(w.shape[1]) - gain @ w)
    return np.stack(means), np.stack(covs)


def conditional(model, row, given, wanted):
    """Means `[k, n]` and covariances `[k, n, n]` of the views `wanted` given others."""
    known, asked = columns(model, given), columns(model, wanted)
    means, covs = [], []
    for _, mean, loadings, noise in components(model):
        cov = loadings @ loadings.T + noise
        gain = cov[np.ix_(asked, known)] @ np.linalg.inv(cov[np.ix_(known, known)])
        means.append(mean[asked] + gain @ (row[known] - mean[known]))
        covs.append(cov[np.ix_(asked, asked)] - gain @ cov[np.ix_(known, asked)])
    return np.stack(means), np.stack(covs)


def m_step(model, views, mask, weights=None):
    """The weights `[k]`, and for each view and component (mean, W, Psi), sample by sample; NaN without a sample."""
    weights = np.ones(len(mask)) if weights is None else weights
    v, joint = side_by_side(views, mask), log_joint(model, views, mask)
    g = np.exp(joint - np.logaddexp.reduce(joint, axis=1)[:, None]) * weights[:, None]
    found = []
    for place, view in enumerate(model.views):
        own = columns(model, [place])
        d = np.asarray(view.loadings).shape[2]
        of_components = []
        for k in range(g.shape[1]):
            number, e = 0.0, np.zeros((d + 1, d + 1))
            b, s = np.zeros((len(own), d + 1)), np.zeros((len(own), len(own)))
            for i in np.flatnonzero(mask[:, place]):
                means, covs = posterior(model, v[i], np.flatnonzero(mask[i]))
                augmented = np.append(means[k], 1.0)
                second = np.outer(augmented, augmented)
                second[:d, :d] += covs[k]
                number += g[i, k]
                e += g[i, k] * second
                b += g[i, k] * np.outer(v[i, own], augmented)
                s += g[i, k] * np.outer(v[i, own], v[i, own])
            both = np.linalg.solve(e, b.T).T
            of_components.append((both[:, d], both[:, :d], (s - both @ b.T) / number))
        found.append(of_components)
    return g.sum(axis=0) / weights.sum(), found


def slope(fn, x, step=1e-5):
    """The derivative of a number by every entry of an array, by central differences of fourth order."""
    found = np.empty_like(x)
    for at in np.ndindex(*x.shape):
        moved = []
        for times in (-2, -1, 1, 2):
            changed = x.copy()
            changed[at] += times * step
            moved.append(fn(changed))
        found[at] = (moved[0] - 8 * moved[1] + 8 * moved[2] - moved[3]) / (12 * step)
    return found


def imputing_step(model, views, mask):
    """The model after an EM step, with diagonal noise, whose hidden variables are the component, z and what is missing.

    Every sample counts in every view, with its missing entries at their expected values.
    """
    v, joint = side_by_side(views, mask), log_joint(model, views, mask)
    g = np.exp(joint - np.logaddexp.reduce(joint, axis=1)[:, None])
    parts = [imputing_regression(model, v, mask, g[:, k], k) for k in range(g.shape[1])]
    both, psi = (np.stack(each) for each in zip(*parts, strict=True))
    new, start = [], 0
    for view in model.views:
        own = slice(start, start + np.asarray(view.mean).shape[1])
        new.append(type(view)(both[:, own, -1], both[:, own, :-1], psi[:, own]))
        start = own.stop
    return model.with_views(np.log(g.mean(axis=0)), tuple(new))


def imputing_regression(model, v, mask, g, k):
    """[W, mu] of all views side by side, and their noise, of a component with the responsibilities `g` `[s]`."""
    _, mean, loadings, noise = components(model)[k]
    guess = np.concatenate([loadings, mean[:, None]], axis=1)
    d = loadings.shape[1]
    e, b, s = np.zeros((d + 1, d + 1)), np.zeros((len(mean), d + 1)), np.zeros(len(mean))
    for row, seen, weight in zip(v, mask, g, strict=True):
        means, covs = posterior(model, row, np.flatnonzero(seen))
        augmented, second = np.append(means[k], 1.0), np.zeros((d + 1, d + 1))
        second[:d, :d] = covs[k]
        second += np.outer(augmented, augmented)
        lost = np.isnan(row)
        x = np.where(lost, guess @ augmented, row)
        e += weight * second
        b += weight * np.where(lost[:, None], guess @ second, np.outer(x, augmented))
        s += weight * np.where(lost, np.einsum("ij,jk,ik->i", guess, second, guess) + np.diag(noise), x**2)
    both = np.linalg.solve(e, b.T).T
    return both, (s - (both * b).sum(axis=1)) / g.sum()
