"""A verifier from vectors on a disk: one pass for all kinds, and one more for each kind with vectors of one length.

Memory holds the sums of each person and a few batches, however many vectors there are.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from jaxface import joint_bayes
from jaxface.core.fitinfo import FitInfo
from jaxface.joint_bayes.stream import Source
from jaxface.linalg import class_stats
from jaxface.linalg.class_stats import Stats
from jaxface.subspace import LinearMap
from jaxface.verifier import kinds
from jaxface.verifier.coordinates import reduce
from jaxface.verifier.kinds import Kind
from jaxface.verifier.known import Sums
from jaxface.verifier.model import Verifier

__all__ = ["fit_stream"]


def fit_stream(
    kind: Kind,
    source: Source,
    *,
    num_people: int,
    num_iters: int,
    batch_size: int,
    num_components: int | None = None,
    stats: Stats | None = None,
) -> tuple[Verifier, FitInfo]:
    """`fit_kind` from a source of rows `[n, d]`, such as `data.stream.from_npy` gives; memory holds sums of people.

    num_people, num_iters, num_components  as of `fit_kind`; rows with the id -1 are left out
    batch_size  rows of a batch
    stats       `joint_bayes.collect_stream` of this source, where several kinds are fitted; None reads the source

    Vectors of one length have sums of their own: such a kind reads the source once more. With several processes of
    `jax.distributed` each reads its share, and all of them have the same verifier.
    """
    if stats is None:
        stats = joint_bayes.collect_stream(source, num_people=num_people, batch_size=batch_size)
    num_rows = int(np.count_nonzero(np.asarray(source.ids) >= 0))
    reduction, of_reduction = kind.reduction(Sums(stats, kinds.most_axes(num_components, num_rows, *source.row_shape)))
    if kind.length_normalize:
        mapped = _OfOneLength(source, reduction)
        stats = joint_bayes.collect_stream(mapped, num_people=num_people, batch_size=batch_size)
    else:
        stats = class_stats.change_basis(stats, reduction.basis, reduction.mean)
    return kinds.of_stats(kind, stats, reduction, of_reduction, num_iters=num_iters)


class _OfOneLength(NamedTuple):
    """The rows of a source, reduced and brought to one length."""

    source: Source
    reduction: LinearMap

    @property
    def num_rows(self) -> int:
        return self.source.num_rows

    @property
    def row_shape(self) -> tuple[int, ...]:
        return (self.reduction.basis.shape[1],)

    @property
    def dtype(self) -> np.dtype:
        return np.dtype(self.reduction.basis.dtype)

    @property
    def ids(self) -> np.ndarray:
        return self.source.ids

    @property
    def name(self) -> str:
        return f"{self.source.name}, reduced"

    def read_range(self, start: int, stop: int, /) -> np.ndarray:
        """Rows [start, stop)."""
        rows = jnp.asarray(self.source.read_range(start, stop), self.dtype)
        return np.asarray(_of_one_length(self.reduction, rows))


@jax.jit
def _of_one_length(reduction: LinearMap, rows: jax.Array) -> jax.Array:
    return reduce(reduction, rows, length_normalize=True)
