"""Statistics of labelled samples by definition, class by class, in float64."""

import jax.numpy as jnp
import numpy as np

from jaxface.linalg.class_stats import Stats


def collected(x, labels, num_classes, shift, dtype=np.float64):
    y = np.asarray(x, float) - np.asarray(shift, float)
    of_class = [y[labels == c] for c in range(num_classes)]
    sums = np.stack([rows.sum(axis=0) for rows in of_class])
    leaves = np.array([len(rows) for rows in of_class]), sums, y.T @ y, shift
    return Stats(*(jnp.asarray(leaf, dtype) for leaf in leaves))
