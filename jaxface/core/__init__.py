"""What every room stands on: parameters, keys, checks, reports of fits, loops, blocks, counting, placement.

labels      labels of any kind as dense integers
pytree      the `params` dataclass, stacking of ensembles
prng        named key streams and keys of members
checks      errors at public doors
dtypes      kinds of dtypes, without JAX where NumPy knows the type
messages    words for messages: values, near misses, texts from outside
fitinfo     Status, FitInfo, raise_if_failed
lazy        modules of a room, imported at their first use
guards      chex, imported at its first use
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

from jaxface.core import lazy

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

__getattr__ = lazy.modules_of(__name__, __all__)
