"""Random dictionaries and signals."""

import jax.numpy as jnp
import numpy as np

from jaxface.sparse.dictionary import Dictionary


def unit_columns(rng, d, k):
    atoms = rng.normal(size=(d, k))
    return atoms / np.linalg.norm(atoms, axis=0)


def dictionary(rng, d=8, k=12, *, unit=True):
    """Atoms of length one, or of lengths over three decades."""
    atoms = unit_columns(rng, d, k)
    return Dictionary(atoms=jnp.asarray(atoms if unit else atoms * np.geomspace(0.03, 30, k)))


def sparse_signals(rng, atoms, n, sparsity, noise=0.0):
    """Signals of a few atoms each, and their dense codes `[n, k]`."""
    codes = np.zeros((n, atoms.shape[1]))
    for row in codes:
        row[rng.permutation(atoms.shape[1])[:sparsity]] = rng.normal(size=sparsity) + 3 * rng.choice([-1, 1], sparsity)
    return codes @ atoms.T + noise * rng.normal(size=(n, len(atoms))), codes


def faces(rng, n=40, shape=(6, 5)):
    """Smooth images in [0, 1] with a few degrees of freedom and a little noise."""
    rows, columns = np.meshgrid(*(np.linspace(-1, 1, size) for size in shape), indexing="ij")
    waves = np.stack([np.cos((1 + i) * rows + j * columns) for i in range(3) for j in range(3)]).reshape(9, -1)
    x = 0.5 + 0.1 * rng.normal(size=(n, 9)) @ waves + 0.01 * rng.normal(size=(n, rows.size))
    return np.clip(x, 0, 1)


def top_mask(shape=(6, 5), num_rows=3):
    mask = np.zeros(shape, bool)
    mask[:num_rows] = True
    return mask.ravel()


def signals(rng, n=90, d=8):
    """More signals than two chunks of users, of uneven use: few atoms explain much."""
    return rng.normal(size=(n, d)) * np.linspace(3, 0.3, d)


def start(rng, k=12, d=8):
    return dictionary(rng, d=d, k=k)


def centered_faces(rng):
    """Faces about their mean, in float32."""
    x = faces(rng).astype(np.float32)
    return x - x.mean(axis=0)
