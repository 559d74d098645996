"""Groups cut from videos: faces that drift, talk and turn, warped to one shape by their landmarks.

A frame belongs to the group of the frame before as long as the face moves little; nobody names a group. The videos are
simulated, or the user's own (`films`).
"""

from functools import partial
from typing import Any, NamedTuple

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
_SHOWN_GROUPS, _SHOWN_FRAMES = 6, 9  # in the report


class Filmed(NamedTuple):
    """Frames with one face each."""

    frames: np.ndarray  # [n, h, w], grey, in [0, 1]: what surrounds the face
    points: np.ndarray  # [n, p, 2], landmarks in pixels of these
    reference: np.ndarray  # [p, 2], where they are to lie in a warped face
    stills: np.ndarray  # [n, h, w], whole frames for pictures
    landmarks: np.ndarray  # [n, p, 2], in the unit of `movement`
    tracks: np.ndarray  # int32 [n]
    numbers: np.ndarray  # int64 [n], of the frame in its video
    ids: np.ndarray  # int32 [n]
    is_training: np.ndarray  # bool [n]
    is_test: np.ndarray  # bool [n]
    num_without: Any = 0  # frames in which no face was found


def errors(config: ConfigDict, size: int, own: Filmed | None = None) -> dict[str, np.ndarray]:
    """Identification error `[videos]` of every method with groups of at most `size` frames.

    Settings are chosen on groups held out of the first videos.
    """
    by_method: dict[str, list[float]] = {name: [] for name in config.videos.methods}
    settings: dict[str, Any] = {}
    count = config.videos.num_draws if own is None else 1
    for number in progress(range(count), f"videos, groups of {size}"):
        task, grouping = video(config, size, number, own)
        for name in by_method:
            if number == 0:
                settings[name] = draws.choose_setting(config.videos, task, grouping, METHODS[name])
            embedded = draws.embed(task, grouping, METHODS[name], settings[name])
            by_method[name].append(float(draws.errors(task, grouping, embedded, gallery="grouped")[0]))
    return {name: np.array(values) for name, values in by_method.items()}


def video(config: ConfigDict, size: int, number: int, own: Filmed | None = None) -> tuple[Problem, Draws]:
    """Warped faces of one set of videos, and groups of at most `size` frames by movement."""
    filmed = simulated(config, number) if own is None else own
    x = inputs.encode(warped(filmed, config.videos.size), config.image_steps)
    group_ids = grouped(config, filmed, size)
    train = np.flatnonzero(filmed.is_training)
    task = draws.problem_of(x, filmed.ids, Split(train, np.flatnonzero(filmed.is_test)))
    kept = np.flatnonzero(group_ids >= 0)
    return task, Draws(kept[None, :], group_ids[kept][None, :], int(group_ids.max()) + 1)


def grouped(config: ConfigDict, filmed: Filmed, size: int) -> np.ndarray:
    """The groups `[n]` of the training frames, -1 for the others and for frames in no group."""
    train = np.flatnonzero(filmed.is_training)
    found = groups.track_groups(
        filmed.landmarks[train],
        filmed.tracks[train],
        threshold=config.videos.movement,
        max_size=size,
        min_size=2,
        frames=filmed.numbers[train],
    )
    if found.max() < 1:
        raise ValueError(
            f"the training videos have {found.max() + 1} groups of two frames or more between which a face moves by at "
            f"most config.videos.movement = {config.videos.movement} pixels of a warped face. Raise it."
        )
    group_ids = np.full(len(filmed.ids), -1, np.int32)
    group_ids[train] = found
    return group_ids


def simulated(config: ConfigDict, number: int) -> Filmed:
    """One set of drawn faces that drift, turn, talk and sometimes jump."""
    study = config.videos
    made = synthetic.face_tracks(
        np.random.default_rng((config.seed, number)),
        num_people=study.num_people,
        tracks_per_person=2,
        runs_per_track=3,
        frames_per_run=study.frames_per_run,
    )
    is_first = made.tracks % 2 == 0
    is_training = is_first & (made.frames < TRAINING_RUNS * study.frames_per_run)
    return drawn(made, study.size)._replace(is_training=is_training, is_test=~is_first)


def drawn(made: FaceTracks, size: int) -> Filmed:
    """Drawn faces, to be warped onto their mean landmarks in a picture of `size` pixels a side."""
    images = made.data.images
    height, width = images.shape[1:3]
    scale = np.array([(size - 1) / (width - 1), (size - 1) / (height - 1)])
    return Filmed(
        frames=images,
        points=made.landmarks,
        reference=made.landmarks.mean(axis=0) * scale,
        stills=images,
        landmarks=made.landmarks,
        tracks=made.tracks,
        numbers=made.frames.astype(np.int64),
        ids=made.data.ids,
        is_training=np.ones(len(images), bool),
        is_test=np.zeros(len(images), bool),
    )


def warped(filmed: Filmed, size: int) -> jax.Array:
    """Every face warped so that its landmarks lie where the reference has them, `[n, size, size]`."""
    images, points, reference = (
        jnp.asarray(each, inputs.working_dtype()) for each in (filmed.frames, filmed.points, filmed.reference)
    )
    return _warped(images, points, reference, size=size)


def shown(config: ConfigDict, own: Filmed | None = None) -> dict[str, np.ndarray]:
    """Figure 5: a whole frame, then warped faces of the same group, `[groups, 1 + frames, size, size]`."""
    size = config.videos.size
    filmed = simulated(config, 0) if own is None else own
    group_ids = grouped(config, filmed, max(config.videos.sizes))
    rows = []
    for person in np.unique(filmed.ids)[:_SHOWN_GROUPS]:
        own_groups = group_ids[(filmed.ids == person) & (group_ids >= 0)]
        if own_groups.size:
            members = np.flatnonzero(group_ids == np.bincount(own_groups).argmax())
            rows.append(members[np.linspace(0, len(members) - 1, _SHOWN_FRAMES).round().astype(int)])
    chosen = np.array(rows)
    some = filmed._replace(frames=filmed.frames[chosen.ravel()], points=filmed.points[chosen.ravel()])
    faces = np.asarray(warped(some, size)).reshape(*chosen.shape, size, size)
    stills = np.stack([_shrunk(filmed.stills[row], size) for row in chosen[:, 0]])
    return {"pictures": np.concatenate([stills[:, None], faces], axis=1)}


def _shrunk(image: np.ndarray, size: int) -> np.ndarray:
    """A picture `[size, size]` of a square one, pixel by pixel."""
    place = (np.arange(size) * image.shape[0] / size).astype(int)
    return image[place][:, place]


@partial(jax.jit, static_argnames="size")
def _warped(images: jax.Array, points: jax.Array, reference: jax.Array, *, size: int) -> jax.Array:
    def one(task: tuple[jax.Array, jax.Array]) -> jax.Array:
        return tps.warp(*task, reference, height=size, width=size, ridge=1e-6)

    return jax.lax.map(one, (images, points), batch_size=inputs.BLOCK)
