"""Random models and people with ragged numbers of images."""

import functools

import jax
import jax.numpy as jnp
import numpy as np

from jaxface.joint_bayes import JointBayes, collect, init

# More people with one and with two images than d + 1, so that groups really are compressed; and people alone in theirs.
COUNTS = (1, 1, 1, 1, 1, 2, 2, 2, 2, 2, 2, 3, 5)


def spd(rng, d=3, rank=None):
    a = rng.normal(size=(d, 2 * d if rank is None else rank))
    return a @ a.T / d


def joint_bayes(rng, d=3, rank=None):
    return JointBayes(
        mean=jnp.asarray(rng.normal(size=d)),
        identity_cov=jnp.asarray(spd(rng, d, rank)),
        noise_cov=jnp.asarray(spd(rng, d)),
    )


def people(rng, model, counts=COUNTS):
    """A list of arrays `[m_i, d]` from the model."""
    mean, identity, noise = (np.asarray(a) for a in (model.mean, model.identity_cov, model.noise_cov))
    zero = np.zeros_like(mean)
    means = [mean + rng.multivariate_normal(zero, identity) for _ in counts]
    return [mu + rng.multivariate_normal(zero, noise, size=m) for mu, m in zip(means, counts, strict=True)]


def stacked(groups):
    """Images `[n, d]` and ids `[n]`."""
    sizes = [len(images) for images in groups]
    return np.concatenate(groups), np.repeat(np.arange(len(groups), dtype=np.int32), sizes)


@functools.partial(jax.jit, static_argnames="num_people")
def collected(x, ids, shift, *, num_people):
    return collect(x, ids, num_people=num_people, shift=shift)


def stats(groups, shift):
    """Statistics of people; padded, so that most tests share one program."""
    x, ids = stacked(groups)
    missing = -len(x) % 32
    x = np.concatenate([x, np.zeros((missing, x.shape[1]), x.dtype)])
    ids = np.concatenate([ids, np.full(missing, -1, np.int32)])
    return collected(x, ids, np.asarray(shift, x.dtype), num_people=len(groups))


start = jax.jit(init)  # one program instead of one for each operation
NUM_ITERS = 30  # likewise for `fit` of statistics of COUNTS with a prior, whose weight may be 0
