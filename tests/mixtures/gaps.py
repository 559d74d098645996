"""Models of three views and samples that lack some of them; one set of sizes for all tests."""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np

from jaxface import mixtures
from jaxface.mixtures import MultiviewMixture, View, multiview
from tests import by_numpy

K, D, S, WIDTHS = 2, 2, 30, (3, 2, 3)
KINDS = {"diagonal": False, "full": True}


def noise(rng, k, n, full):
    if not full:
        return rng.uniform(0.5, 1.5, size=(k, n))
    a = rng.normal(size=(k, n, 2 * n))
    return a @ a.transpose(0, 2, 1) / (2 * n)


def model(rng, *, full=False, k=K, d=D, widths=WIDTHS, spread=1.0):
    return MultiviewMixture(
        log_weights=np.log(rng.dirichlet(np.full(k, 5.0))),
        views=tuple(
            View(spread * rng.normal(size=(k, n)), rng.normal(size=(k, n, d)), noise(rng, k, n, full)) for n in widths
        ),
    )


def samples(rng, *, size=S):
    """Views that no model drew, and four patterns, one of them of one sample."""
    z = rng.normal(size=(size, 2))
    views = tuple(z @ rng.normal(size=(2, n)) + rng.normal(size=(size, n)) + 1.0 for n in WIDTHS)
    patterns = np.array([[1, 1, 1], [1, 1, 0], [0, 1, 1], [0, 0, 1]], bool)
    mask = patterns[np.arange(size) % 3]
    mask[4] = patterns[3]
    return views, mask


def spoiled(views, mask, value=np.nan):
    """The same samples with another value where a view is missing."""
    return tuple(np.where(mask[:, [v]], view, value) for v, view in enumerate(views))


def on_device(tree):
    return jax.tree.map(jnp.asarray, tree)


def e_step(model, views, mask, **settings):
    """By NumPy: nothing is compiled."""
    return by_numpy.evaluate(partial(mixtures.e_step, present=mask, **settings), model, *views)


def m_step(model, moments, **settings):
    return by_numpy.evaluate(partial(mixtures.m_step, **settings), model, moments)


def fit(model, views, mask, **settings):
    def of(views, start):
        return multiview.fit(views, start, present=mask, **settings)

    return by_numpy.evaluate(of, views, model)


def shared(model):
    """What a rotation of z leaves alone: weights, means, W W' between all views, noise."""
    w = np.concatenate([np.asarray(view.loadings) for view in model.views], axis=1)
    means, noises = ([np.asarray(getattr(view, name)) for view in model.views] for name in ("mean", "noise"))
    return np.asarray(model.log_weights), means, w @ w.transpose(0, 2, 1), noises
