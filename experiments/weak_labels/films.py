"""Videos of one's own: folders of frames, in which a detector finds a face and its landmarks.

    VIDEOS/anna/first/0001.jpg    one folder a person, in it one folder of frames a video

The first half of a person's videos are for training, the others for testing. Needs the extra `embed`.
"""

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from ml_collections import ConfigDict

from experiments.embed import faces
from experiments.embed.faces import Networks
from experiments.weak_labels.tracks import Filmed
from jaxface.core import messages
from jaxface.core.labels import natural_key
from jaxface.data import Listing, folders, images
from jaxface.runtime.log import progress

_REACH = 3.5  # half the side of what is cut out around a face, in root mean square distances of its landmarks
_SPREAD = 0.24  # that distance in a warped face, in sides of the picture
_HEIGHT = 0.54  # where the mean of the landmarks lies in a warped face, in sides from the top


class Seen(NamedTuple):
    """A frame that shows a face."""

    cut: np.ndarray  # [2 size, 2 size], grey: what surrounds the face
    points: np.ndarray  # [5, 2], landmarks in pixels of the cut
    still: np.ndarray  # [size, size], the middle of the frame, for pictures
    landmarks: np.ndarray  # [5, 2], in pixels of the frame


class Place(NamedTuple):
    """Where a frame belongs, or each of n frames: then the fields are `[n]`."""

    person: Any
    track: Any
    number: Any  # within its video
    is_training: Any


def read(config: ConfigDict) -> Filmed:
    """Every frame that shows a face, with landmarks in the scale of the warped face; the others are left out."""
    networks = faces.load_networks(config.videos.min_score)
    films = _films(config.videos.root)
    frames = list(_frames(films))
    looked = ((_seen(networks, config, path), place) for place, path in progress(frames, "frames of videos"))
    found = [(seen, place) for seen, place in looked if seen is not None]
    if not found:
        raise ValueError(
            f"no frame below {messages.printable(config.videos.root)} shows a face with a score of "
            f"{config.videos.min_score} or more. Lower config.videos.min_score, or see whether the frames are upright."
        )
    seen = Seen(*map(np.array, zip(*(each for each, _ in found), strict=True)))
    place = Place(*map(np.array, zip(*(each for _, each in found), strict=True)))
    _check_both_sides(place, [name for name, _ in films])
    landmarks, reference = _in_scale(seen.landmarks, place.track, config.videos.size)
    return Filmed(
        frames=seen.cut,
        points=seen.points,
        reference=reference,
        stills=seen.still,
        landmarks=landmarks,
        tracks=place.track.astype(np.int32),
        numbers=place.number,
        ids=place.person.astype(np.int32),
        is_training=place.is_training,
        is_test=~place.is_training,
        num_without=len(frames) - len(found),
    )


def _films(root: str) -> list[tuple[str, Listing]]:
    """The people and their videos; a person needs two."""
    if not os.path.isdir(root):
        raise FileNotFoundError(f"config.videos.root must be a folder; {messages.printable(root)} is none.")
    names = [entry.name for entry in Path(root).iterdir() if entry.is_dir() and not entry.name.startswith(".")]
    films = [(name, folders.scan(Path(root) / name, min_people=1)) for name in sorted(names, key=natural_key)]
    for person, listing in films:
        if len(listing.names) < 2:
            raise ValueError(
                "every person needs two videos below config.videos.root, one to train and one to test; "
                f"{messages.printable(person)} has one. Put the frames of each video into a folder of its own: "
                "VIDEOS/anna/first/0001.jpg."
            )
    if len(films) < 2:
        raise ValueError(
            "config.videos.root must hold a folder for each of two people or more, in it a folder of frames for each "
            f"video; {messages.printable(root)} has {len(films)} such folders."
        )
    return films


def _frames(films: list[tuple[str, Listing]]) -> Iterator[tuple[Place, Path]]:
    """Every frame of every video, in time."""
    track = 0
    for person, (_, listing) in enumerate(films):
        paths, num_training = listing.paths(), len(listing.names) // 2
        for video in range(len(listing.names)):
            for number, row in enumerate(np.flatnonzero(listing.ids == video)):
                yield Place(person, track, number, video < num_training), paths[row]
            track += 1


def _seen(networks: Networks, config: ConfigDict, path: Path) -> Seen | None:
    """The largest face of a frame; None where there is none."""
    photo = images.read_image(path, color=True)
    levels = (255 * photo[:, :, ::-1]).round().astype(np.uint8)  # OpenCV: blue first
    landmarks = faces.landmarks(networks, levels, face="largest", max_side=config.videos.max_side)
    if landmarks is None:
        return None
    grey, center = photo @ np.array([0.299, 0.587, 0.114], photo.dtype), landmarks.mean(axis=0)
    reach = max(1.0, _REACH * np.sqrt(((landmarks - center) ** 2).sum(axis=1).mean()))
    size = config.videos.size
    corner, side = np.round(center - reach).astype(int), round(2 * reach)
    points = (landmarks - corner + 0.5) * (2 * size / side) - 0.5
    shorter = min(grey.shape)
    middle = np.array([grey.shape[1] - shorter, grey.shape[0] - shorter]) // 2
    return Seen(_square(grey, corner, side, 2 * size), points, _square(grey, middle, shorter, size), landmarks)


def _square(grey: np.ndarray, corner: np.ndarray, side: int, size: int) -> np.ndarray:
    """A square of an image at another size: means where it shrinks; beyond the border the nearest pixel."""
    from PIL import Image

    rows, columns = (
        np.clip(np.arange(start, start + side), 0, length - 1)
        for start, length in zip(corner[::-1], grey.shape, strict=True)
    )
    square = Image.fromarray(grey[np.ix_(rows, columns)].astype(np.float32))
    return np.asarray(square.resize((size, size), Image.Resampling.BOX))


def _in_scale(landmarks: np.ndarray, tracks: np.ndarray, size: int) -> tuple[np.ndarray, np.ndarray]:
    """Landmarks `[n, 5, 2]` in units in which a face has the size of a warped one, and the mean face `[5, 2]`.

    One scale for each video, so that movement towards the camera is movement.
    """
    away = landmarks - landmarks.mean(axis=1, keepdims=True)
    spread = np.sqrt((away**2).sum(axis=2).mean(axis=1))
    mean = (away / spread[:, None, None]).mean(axis=0)
    unit = _SPREAD * size / np.sqrt((mean**2).sum(axis=1).mean())
    of_track = {track: float(np.median(spread[tracks == track])) for track in np.unique(tracks)}
    scale = _SPREAD * size / np.array([of_track[track] for track in tracks])
    return landmarks * scale[:, None, None], mean * unit + np.array([(size - 1) / 2, _HEIGHT * size])


def _check_both_sides(place: Place, names: list[str]) -> None:
    """Everybody has faces to train on and faces to test."""
    for person, name in enumerate(names):
        own = place.is_training[place.person == person]
        if own.all() or not own.any():
            raise ValueError(
                "every person needs faces in videos for training and in others for testing; in one half of the videos "
                f"of {messages.printable(name)} no face was found. Lower config.videos.min_score."
            )
