"""Groups cut from simulated videos: faces that drift, talk and turn, warped to one shape by their landmarks.

A frame belongs to the group of the frame before as long as the face moves little; nobody names a group.
"""

from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from ml_collections import ConfigDict

from experiments.common import inputs
from experiments.weak_labels import draws
from experiments.weak_labels.draws import Draws, Problem
from experiments.weak_labels.methods import METHODS
from jaxface.data import groups, synthetic
from jaxface.data.splits import Split
from jaxface.data.synthetic import FaceTracks
from jaxface.faces import tps
from jaxface.runtime.log import progress

TRAINING_RUNS = 2  # of the first track of a person; the second track is for testing


def errors(config: ConfigDict, size: int) -> dict[str, np.ndarray]:
    """Nearest-neighbour error `[videos]` of every method with groups of at most `size` frames.

    Settings are chosen on groups held out of the first videos.
    """
    by_method: dict[str, list[float]] = {name: [] for name in config.videos.methods}
    settings: dict[str, Any] = {}
    for number in progress(range(config.videos.num_draws), f"videos, groups of {size}"):
        task, grouping = video(config, size, number)
        for name in by_method:
            if number == 0:
                settings[name] = draws.choose_setting(config.videos, task, grouping, METHODS[name])
            z = draws.embed(task, grouping, METHODS[name], settings[name]).z
            by_method[name].append(float(draws.errors(task, grouping, z, gallery="grouped")[0]))
    return {name: np.array(values) for name, values in by_method.items()}


def video(config: ConfigDict, size: int, number: int) -> tuple[Problem, Draws]:
    """One set of simulated videos: warped faces, and groups of frames by movement."""
    study = config.videos
    rng = np.random.default_rng((config.seed, number))
    filmed = synthetic.face_tracks(
        rng, num_people=study.num_people, tracks_per_person=2, runs_per_track=3, frames_per_run=study.frames_per_run
    )
    x = inputs.encode(warped(filmed, study.size), config.image_steps)
    is_first = filmed.tracks % 2 == 0
    is_training = is_first & (filmed.frames < TRAINING_RUNS * study.frames_per_run)
    landmarks, tracks = filmed.landmarks[is_training], filmed.tracks[is_training]
    group_ids = groups.track_groups(landmarks, tracks, threshold=study.movement, max_size=size, min_size=2)
    split = Split(np.flatnonzero(is_training), np.flatnonzero(~is_first))
    task = draws.problem_of(x, filmed.data.ids, split)
    kept = group_ids >= 0
    grouping = Draws(split.train[kept][None, :], group_ids[kept][None, :], int(group_ids.max()) + 1)
    return task, grouping


def warped(filmed: FaceTracks, size: int) -> jax.Array:
    """Every face warped so that its landmarks lie where the mean face has them, `[n, size, size]`."""
    height, width = filmed.data.images.shape[1:3]
    scale = np.array([(size - 1) / (width - 1), (size - 1) / (height - 1)])
    reference = filmed.landmarks.mean(axis=0) * scale
    images, landmarks, reference = (
        jnp.asarray(each, inputs.working_dtype()) for each in (filmed.data.images, filmed.landmarks, reference)
    )
    return _warped(images, landmarks, reference, size=size)


@partial(jax.jit, static_argnames="size")
def _warped(images: jax.Array, landmarks: jax.Array, reference: jax.Array, *, size: int) -> jax.Array:
    def one(task: tuple[jax.Array, jax.Array]) -> jax.Array:
        return tps.warp(*task, reference, height=size, width=size, ridge=1e-6)

    return jax.lax.map(one, (images, landmarks), batch_size=inputs.BLOCK)
