"""Sets of different sizes in arrays, with weights that tell descriptors from padding."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from jax.typing import ArrayLike

from jaxface.mixtures.views import names

__all__ = ["pad_sets"]


class PaddedSets(NamedTuple):
    """Ragged sets in arrays."""

    views: tuple[np.ndarray, ...]  # [i, s, n] of each view, 0 where padded
    sample_weights: np.ndarray  # [i, s], 1 for a descriptor, 0 for padding


def pad_sets(*views: Sequence[ArrayLike]) -> PaddedSets:
    """Ragged sets, a list of `[s_i, n]` for each view, padded to the longest; on the host."""
    for (name, _), view in zip(names(len(views)), views, strict=True):
        for number, rows in enumerate(view):
            width = np.shape(view[0])[-1] if np.ndim(view[0]) else 0
            if np.ndim(rows) != 2 or np.shape(rows)[1] != width:
                raise ValueError(
                    f"{name} must hold sets [s, n] of one width n; got shape {np.shape(rows)} for image {number}."
                )
    lengths = [[len(np.asarray(rows)) for rows in view] for view in views]
    for other in lengths[1:]:
        if other != lengths[0]:
            raise ValueError(f"views must have the same descriptors of every image; got {lengths[0]} and {other}.")
    if not lengths or min(lengths[0], default=0) < 1:
        raise ValueError(f"every image must have a descriptor; got numbers {lengths[0] if lengths else []}.")
    longest = max(lengths[0])
    sample_weights = (np.arange(longest)[None, :] < np.asarray(lengths[0])[:, None]).astype(np.float32)
    return PaddedSets(tuple(_padded(view, longest) for view in views), sample_weights)


def _padded(view: Sequence[ArrayLike], longest: int) -> np.ndarray:
    return np.stack([np.pad(rows, ((0, longest - len(rows)), (0, 0))) for rows in map(np.asarray, view)])
