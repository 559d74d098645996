"""Small problems for the tests of this room."""

import numpy as np

from tests.reference import ensembles_reference as reference


def people(rng, counts=(5, 3, 6, 4, 5, 4), d=40, separation=1.5):
    """Samples `[n, d]` of people with unequal numbers of images, spectra falling by an order of magnitude; labels."""
    labels = np.repeat(np.arange(len(counts), dtype=np.int32), counts)
    scale = np.geomspace(3.0, 0.3, d)
    x = rng.normal(size=(len(labels), d)) + separation * rng.normal(size=(len(counts), d))[labels]
    return (x * scale) @ np.linalg.qr(rng.normal(size=(d, d)))[0] + 5.0, labels


def coordinates(rng, **settings):
    """Principal coordinates `[n, p]`, labels and variances of such samples."""
    x, labels = people(rng, **settings)
    y, variances, _, _ = reference.principal_coordinates(x)
    return y, labels, variances


def random_axes(rng, num_members, num_axes, p):
    return np.stack([rng.permutation(p)[:num_axes] for _ in range(num_members)]).astype(np.int32)


def posteriors(rng, shape=(5, 7, 4)):
    """Random log posteriors, some of them sharp."""
    logits = rng.normal(size=shape) * rng.choice([0.5, 3.0, 10.0], size=(*shape[:1], 1, 1))
    return logits - np.log(np.exp(logits).sum(axis=-1, keepdims=True))
