"""Frames of a track: images of one person that share a part of their noise.

In a track of m frames the noise of two frames has the correlation r: a share r of T_eps is common to the track. Then
the track is worth `m / (1 + (m - 1) r)` independent images, whatever else the person has, and the deviations of its
frames from their mean are those of the noise `(1 - r) T_eps`. Both are exact:

    track_weights    the weight of each frame, `1 / (1 + (m - 1) r)`, for scores and posteriors of the person
    collect_tracks   statistics with the likelihood of correlated frames: for fits, and to choose r on held-out tracks
"""

import jax
import jax.numpy as jnp
import numpy as np
from jax.typing import ArrayLike

from jaxface.core import checks
from jaxface.joint_bayes.stats import collect
from jaxface.linalg.class_stats import Stats

__all__ = ["collect_tracks", "track_weights"]


def track_weights(tracks: ArrayLike, *, num_tracks: int, correlation: jax.Array | float) -> jax.Array:
    """The weight `[n]` of each frame from its track `[n]`, dense ids with -1 for a frame alone.

    `correlation` r is that of the noise of two frames of a track, in [0, 1]: 0 for independent frames, 1 if a track is
    worth one image. Differentiable in r.
    """
    checks.shapes(tracks=(tracks, "n"), correlation=(correlation, ""))
    checks.between("correlation", correlation, 0.0, 1.0)
    tracks = jnp.asarray(checks.dense_labels("tracks", tracks, num_tracks, padding=True))
    correlation = _floating(correlation)
    size = _sizes(tracks, tracks >= 0, num_tracks, correlation.dtype)
    return 1 / (1 + (size - 1) * correlation)


def collect_tracks(
    x: ArrayLike,
    ids: ArrayLike,
    tracks: ArrayLike,
    *,
    num_people: int,
    num_tracks: int,
    correlation: jax.Array | float,
    shift: ArrayLike,
) -> Stats:
    """`stats.collect` for frames x `[n, d]` with tracks `[n]`: a track shows one person, -1 marks an image alone.

    correlation     of the noise of two frames of a track, in [0, 1)

    The statistics carry the exact likelihood of the frames, so that held-out people choose the correlation. Differences
    between the frames of a track are stretched to the noise of independent images; the mean of the track stays.
    """
    checks.samples(x=(x, "n d"), beside={"ids": (ids, "n"), "tracks": (tracks, "n"), "correlation": (correlation, "")})
    checks.between("correlation", correlation, 0.0, 1.0, closed_high=False)
    ids = jnp.asarray(checks.dense_labels("ids", ids, num_people, padding=True))
    tracks = jnp.asarray(checks.dense_labels("tracks", tracks, num_tracks, padding=True))
    _one_person_each(ids, tracks, num_tracks)
    x = jnp.asarray(x)
    correlation = jnp.asarray(correlation, x.dtype)
    in_track = (tracks >= 0) & (ids >= 0)
    size = _sizes(tracks, in_track, num_tracks, x.dtype)
    place = jnp.where(in_track, tracks, num_tracks)
    total = jax.ops.segment_sum(x, place, num_tracks + 1)[place]
    mean = jnp.where(in_track[:, None], total / size[:, None], x)
    shared = 1 + (size - 1) * correlation  # the variance of sqrt(m) times the mean of m frames
    ratio = jnp.where(size > 1, shared / (1 - correlation), 1)
    stretched = mean + jnp.sqrt(ratio)[:, None] * (x - mean)
    stats = collect(stretched, ids, num_people=num_people, shift=shift, weights=1 / shared)
    # One direction of a track of m frames has the variance `shared`, the other m - 1 have 1 - r.
    apart = jnp.where(size > 1, (size - 1) * jnp.log1p(-correlation), 0)
    log_weight = -jnp.where(ids >= 0, (jnp.log(shared) + apart) / size, 0).sum()
    return stats._replace(log_weight=log_weight.astype(stats.sum.dtype))


def _sizes(tracks: jax.Array, in_track: jax.Array, num_tracks: int, dtype: np.dtype) -> jax.Array:
    """How many frames the track of each frame has `[n]`; 1 for an image alone."""
    place = jnp.where(in_track, tracks, num_tracks)
    number = jax.ops.segment_sum(in_track.astype(dtype), place, num_tracks + 1)[place]
    return jnp.where(in_track, number, 1)


def _floating(value: jax.Array | float) -> jax.Array:
    value = jnp.asarray(value)
    return value if jnp.issubdtype(value.dtype, jnp.floating) else value.astype(jnp.result_type(float))


def _one_person_each(ids: jax.Array, tracks: jax.Array, num_tracks: int) -> None:
    """Refuses a track with frames of two people."""
    if not (checks.is_concrete(ids) and checks.is_concrete(tracks)):
        return
    person, track = np.asarray(ids), np.asarray(tracks)  # inside jit an operation of JAX would make tracers of them
    kept = (person >= 0) & (track >= 0)
    person, track = person[kept], track[kept]
    low, high = np.full(num_tracks, np.iinfo(np.int32).max), np.full(num_tracks, -1)
    np.minimum.at(low, track, person)
    np.maximum.at(high, track, person)
    mixed = np.flatnonzero((high >= 0) & (low != high))
    if mixed.size:
        raise ValueError(
            f"tracks must be of one person each; {mixed.size} of {num_tracks} are not, the first is track {mixed[0]} "
            f"with people {low[mixed[0]]} and {high[mixed[0]]}. Give the frames of each person tracks of their own."
        )
