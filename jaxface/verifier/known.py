"""What a reduction is fitted to: the vectors of known people, or their sums where the vectors stay on a disk."""

from typing import NamedTuple, Protocol

import jax

from jaxface.core.fitinfo import FitInfo
from jaxface.linalg import class_stats
from jaxface.linalg.class_stats import Stats
from jaxface.subspace import LinearMap, lda, pca
from jaxface.verifier.training import fit_reduction

__all__ = []

_RIDGE = 0.1  # of the LDA: people with one photo leave the scatter within people to the others

Reduced = tuple[LinearMap, FitInfo]


class Known(Protocol):
    """Known people, and what can be fitted to them."""

    @property
    def num_components(self) -> int:
        """Most axes that a reduction keeps."""

    def mean(self) -> jax.Array:
        """Of all vectors `[d]`."""

    def principal(self, *, whiten: bool) -> Reduced:
        """The axes of the largest variances."""

    def discriminant(self) -> Reduced:
        """The axes that tell people apart, of one variance within people."""


class Rows(NamedTuple):
    """Vectors in memory."""

    key: jax.Array
    x: jax.Array  # [n, d]
    ids: jax.Array  # int32 [n]
    num_people: int
    num_components: int

    def mean(self) -> jax.Array:
        """Of all vectors `[d]`."""
        return self.x.mean(axis=0)

    def principal(self, *, whiten: bool) -> Reduced:
        """PCA, randomised for many rows."""
        return fit_reduction(self.key, self.x, num_components=self.num_components, length_normalize=whiten)

    def discriminant(self) -> Reduced:
        """LDA within the principal axes."""
        return lda.fit(
            self.x,
            self.ids,
            num_classes=self.num_people,
            num_components=min(self.num_components, self.num_people - 1),
            pca_components=self.num_components,
            ridge=_RIDGE,
        )


class Sums(NamedTuple):
    """Sums over the vectors of each person."""

    stats: Stats
    num_components: int

    def mean(self) -> jax.Array:
        """Of all vectors `[d]`."""
        return class_stats.total(self.stats).mean

    def principal(self, *, whiten: bool) -> Reduced:
        """PCA of the second moment."""
        return pca.from_moments(self.stats, num_components=self.num_components, whiten=whiten)

    def discriminant(self) -> Reduced:
        """LDA within the principal axes."""
        num_people = int((self.stats.count > 0).sum())
        width = min(self.num_components, num_people - 1)
        return lda.from_stats(self.stats, num_components=width, pca_components=self.num_components, ridge=_RIDGE)
