"""Is the reconstruction recognised? KCFA of people who train, and all pairs of original and reconstructed faces.

All pairs are counted and none is kept, so 16,028 images a side are 257 million pairs in the memory of two histograms.
Intervals over people and calibrations need scores. Those of all pairs are kept while a fold has at most `max_kept`
images, and otherwise those of people drawn at random whose images are at most as many.
"""

from collections.abc import Mapping
from functools import partial
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from ml_collections import ConfigDict

from experiments.common import inputs
from experiments.hallucinate.faces import FoldFaces
from jaxface.core import blocks, pair_counts
from jaxface.core.fitinfo import raise_if_failed
from jaxface.linalg import gram
from jaxface.subspace import KernelMap, kcfa

SPAN = (-1.0, 1.0)  # of cosines

ORIGINAL = "original"
_ROWS = 512  # images that KCFA describes at a time: each needs a kernel value of every training image


class Counted(NamedTuple):
    """Counts of all pairs but those of one image with itself, and the scores for intervals."""

    genuine: np.ndarray  # int64 [b + 2]
    impostor: np.ndarray
    scores: np.ndarray  # float32 [m, m], of the images that are kept


def of_fold(
    config: ConfigDict, fold: FoldFaces, images: Mapping[str, np.ndarray], *, seed: int
) -> dict[str, np.ndarray]:
    """Originals `[q, d]` against originals, and against the reconstructions `[q, d]` of every method."""
    filters = trained(config, fold)
    originals = described(filters, fold.test)
    kept = images_kept(fold.test_ids, most=config.max_kept, seed=seed)
    found = {"num_filters": np.asarray(filters.coefficients.shape[1]), "kept": kept}
    for name, faces in {ORIGINAL: fold.test, **images}.items():
        rows = originals if name == ORIGINAL else described(filters, faces)
        counted = all_pairs(originals, rows, fold.test_ids, kept, num_bins=config.num_bins)
        found |= {f"{field}/{name}": value for field, value in counted._asdict().items()}
    return found


def images_kept(ids: np.ndarray, *, most: int, seed: int) -> np.ndarray:
    """Rows `[m]` whose scores are kept: all if they are at most `most`, or else those of people drawn at random.

    People are drawn one after the other as long as the images of all of them fit; two are always kept.
    """
    if len(ids) <= most:
        return np.arange(len(ids))
    people, sizes = np.unique(ids, return_counts=True)
    order = np.random.default_rng((seed, 6)).permutation(people.size)
    fitting = np.count_nonzero(np.cumsum(sizes[order]) <= most)
    return np.flatnonzero(np.isin(ids, people[order[: max(fitting, 2)]]))


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


@jax.jit
def _describe(filters: KernelMap, images: jax.Array) -> jax.Array:
    return blocks.map_rows(partial(kcfa.encode, filters), images, block_size=_ROWS)


def all_pairs(gallery: np.ndarray, probes: np.ndarray, ids: np.ndarray, kept: np.ndarray, *, num_bins: int) -> Counted:
    """Counts of all pairs of rows of gallery and probes `[q, c]` but those of one image, which has one row in each.

    The scores are those of the rows `kept` `[m]`.
    """
    images = np.arange(len(ids)), np.arange(len(ids))
    counts = pair_counts.count_cross(
        inner_products, None, gallery, ids, probes, ids, images=images, num_bins=num_bins, span=SPAN
    )
    return Counted(counts.genuine, counts.impostor, gallery[kept] @ probes[kept].T)


def inner_products(_: None, a: jax.Array, b: jax.Array) -> jax.Array:
    """`a b'`, the cosines of unit rows."""
    return a @ b.T
