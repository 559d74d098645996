"""The core every room stands on: parameters, keys, checks, reports of fits, loops, blocks, counting, placement.

labels      any labels as dense integers
pytree      the `params` dataclass, stacking ensembles
prng        named key streams and member keys
checks      boundary errors
fitinfo     Status, FitInfo, raise_if_failed
loops       a fixed number of steps, or until the objective settles
blocks      padded row blocks
pair_counts counting scores on the device
mesh        placement on devices
"""
