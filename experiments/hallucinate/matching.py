"""Is the reconstruction recognised? KCFA of people who train, and all pairs of original and reconstructed faces."""

from collections.abc import Mapping
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from ml_collections import ConfigDict

from experiments.common import inputs
from experiments.hallucinate.faces import FoldFaces
from jaxface.core import pair_counts
from jaxface.core.fitinfo import raise_if_failed
from jaxface.linalg import gram
from jaxface.subspace import KernelMap, kcfa

SPAN = (-1.0, 1.0)  # of cosines

ORIGINAL = "original"


class Counted(NamedTuple):
    """Counts of all pairs but those of one image with itself, and the scores for intervals."""

    genuine: np.ndarray  # int64 [b + 2]
    impostor: np.ndarray
    scores: np.ndarray  # float32 [q, q]


def of_fold(config: ConfigDict, fold: FoldFaces, images: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
    """Originals `[q, d]` against originals, and against the reconstructions `[q, d]` of every method."""
    filters = trained(config, fold)
    originals = described(filters, fold.test)
    probes = {ORIGINAL: originals} | {name: described(filters, each) for name, each in images.items()}
    found = {"num_filters": np.asarray(filters.coefficients.shape[1])}
    for name, rows in probes.items():
        counted = all_pairs(originals, rows, fold.test_ids, num_bins=config.num_bins)
        found |= {f"{field}/{name}": value for field, value in counted._asdict().items()}
    return found


def trained(config: ConfigDict, fold: FoldFaces) -> KernelMap:
    """Filters of the people with at least `min_images` training images, in float64."""
    people, counts = np.unique(fold.train_ids, return_counts=True)
    chosen = people[counts >= config.min_images]
    rows = np.isin(fold.train_ids, chosen)
    x = jnp.asarray(fold.train[rows], inputs.working_dtype())
    labels = np.searchsorted(chosen, fold.train_ids[rows])
    kernel = gram.gaussian(bandwidth=kcfa.median_distance(x))
    filters, info = kcfa.fit(kernel, x, labels, num_classes=chosen.size, ridge=config.ridge)
    raise_if_failed(info, "KCFA")
    return filters


def described(filters: KernelMap, images: np.ndarray) -> np.ndarray:
    """Unit responses `[q, c]`."""
    return np.asarray(_describe(filters, jnp.asarray(images, filters.train.dtype)), np.float32)


_describe = jax.jit(jax.vmap(kcfa.encode, in_axes=(None, 0)))


def all_pairs(gallery: np.ndarray, probes: np.ndarray, ids: np.ndarray, *, num_bins: int) -> Counted:
    """Counts of all pairs of a gallery row and a probe row `[q, c]` but those of one image, which are of one number."""
    images = np.arange(len(ids)), np.arange(len(ids))
    counts = pair_counts.count_cross(
        inner_products, None, gallery, ids, probes, ids, images=images, num_bins=num_bins, span=SPAN
    )
    return Counted(counts.genuine, counts.impostor, gallery @ probes.T)


def inner_products(_: None, a: jax.Array, b: jax.Array) -> jax.Array:
    """`a b'`, the cosines of unit rows."""
    return a @ b.T
