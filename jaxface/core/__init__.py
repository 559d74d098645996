"""What every room stands on: parameters, keys, checks, reports of fits, loops, blocks, counting, placement.

labels      labels of any kind as dense integers
pytree      the `params` dataclass, stacking of ensembles
prng        named key streams and keys of members
checks      errors at public doors
dtypes      kinds of dtypes, without JAX where NumPy knows the type
messages    words for messages: values, near misses, texts from outside
fitinfo     Status, FitInfo, raise_if_failed
machine     the rounding unit and the smallest number of a type
loops       a fixed number of steps, or until the objective settles
blocks      rows in padded blocks, one function for all rows
prefetch    the next item is read in a thread
search      the best rows of a gallery for each probe (search_tiles, gallery_parts); the least entry of each row
mate_ranks  the best people of a gallery, and the rank of the mate by counting
pair_counts counts of the scores of all pairs, tile by tile (score_tiles)
mesh        placement on devices
processes   what the processes of one run tell each other
"""

import importlib
from types import ModuleType
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from jaxface.core import (
        blocks,
        checks,
        dtypes,
        fitinfo,
        labels,
        loops,
        machine,
        mate_ranks,
        mesh,
        messages,
        pair_counts,
        prefetch,
        prng,
        processes,
        pytree,
        search,
    )

__all__ = [
    "blocks",
    "checks",
    "dtypes",
    "fitinfo",
    "labels",
    "loops",
    "machine",
    "mate_ranks",
    "mesh",
    "messages",
    "pair_counts",
    "prefetch",
    "prng",
    "processes",
    "pytree",
    "search",
]


def __getattr__(name: str) -> ModuleType:
    """Modules are imported at their first use: the metrics and the data need the checks, which do without JAX."""
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return importlib.import_module(f"{__name__}.{name}")
