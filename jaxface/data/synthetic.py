"""Data with known truth: every generator returns the parameters and hidden values of its data too.

gaussian_identities  the Joint Bayes model, x = mean + identity + noise
rendered_faces       drawn faces of many people under changing pose, light and expression
face_tracks          drawn faces that move slowly, with jumps where a group ends
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from jaxface.core import checks
from jaxface.data import rendering
from jaxface.data.datasets import LabeledImages

__all__ = ["FaceTracks", "face_tracks", "gaussian_identities", "rendered_faces"]


class GaussianIdentities(NamedTuple):
    """Samples of the Joint Bayes model."""

    features: np.ndarray  # float64 [n, d]
    ids: np.ndarray  # int32 [n], rows of a person are consecutive
    identities: np.ndarray  # [c, d], the hidden part of each person, without the mean
    mean: np.ndarray  # [d]
    identity_cov: np.ndarray  # [d, d]
    noise_cov: np.ndarray  # [d, d]


class RenderedFaces(NamedTuple):
    """Drawn faces and the numbers they were drawn from."""

    data: LabeledImages  # images [n, h, w]
    identities: tuple[rendering.Identity, ...]  # [c]
    captures: tuple[rendering.Capture, ...]  # [n]
    landmarks: np.ndarray  # float64 [n, 13, 2], (x, y) in pixels; see rendering.LANDMARKS


class FaceTracks(NamedTuple):
    """Drawn faces followed over time."""

    data: LabeledImages  # images [n, h, w], one row a frame
    tracks: np.ndarray  # int32 [n]
    frames: np.ndarray  # int32 [n], 0, 1, 2, ... in each track
    landmarks: np.ndarray  # float64 [n, 13, 2], (x, y) in pixels
    groups: np.ndarray  # int32 [n], the runs between jumps


def gaussian_identities(
    rng: np.random.Generator,
    *,
    num_people: int,
    images_per_person: int | Sequence[int] | np.ndarray,
    dim: int,
    mean: Any = None,
    identity_cov: Any = None,
    noise_cov: Any = None,
) -> GaussianIdentities:
    """x_ij = mean + identity_i + noise_ij, identity_i ~ N(0, identity_cov), noise_ij ~ N(0, noise_cov).

    images_per_person: one count, or one for each person.
    identity_cov, noise_cov: may be singular; by default drawn with a condition number of e^3, the noise with half the
        variance of the identities.
    """
    checks.at_least("dim", dim, 1)
    ids = _ids_from_counts(num_people, images_per_person)
    mean = rng.normal(size=dim) if mean is None else np.asarray(mean, np.float64)
    identity_cov = _random_covariance(rng, dim) if identity_cov is None else np.asarray(identity_cov, np.float64)
    noise_cov = 0.5 * _random_covariance(rng, dim) if noise_cov is None else np.asarray(noise_cov, np.float64)
    square = f"{dim} {dim}"
    checks.shapes(mean=(mean, f"{dim}"), identity_cov=(identity_cov, square), noise_cov=(noise_cov, square))
    identities = rng.normal(size=(num_people, dim)) @ _square_root("identity_cov", identity_cov)
    noise = rng.normal(size=(ids.size, dim)) @ _square_root("noise_cov", noise_cov)
    return GaussianIdentities(mean + identities[ids] + noise, ids, identities, mean, identity_cov, noise_cov)


def _random_covariance(rng: np.random.Generator, dim: int, *, decay: float = 3.0) -> np.ndarray:
    """Q diag(exp(-decay j / dim)) Q' with uniformly random axes Q: `[dim, dim]`, condition number exp(decay)."""
    basis = np.linalg.qr(rng.normal(size=(dim, dim)))[0]
    return (basis * np.exp(-decay * np.arange(dim) / dim)) @ basis.T


def rendered_faces(
    rng: np.random.Generator,
    *,
    num_people: int,
    images_per_person: int | Sequence[int] | np.ndarray,
    size: tuple[int, int] = (64, 64),
    pose: float = 1.0,
    lighting: float = 1.0,
    expression: float = 1.0,
    noise: float = 0.02,
) -> RenderedFaces:
    """Drawn faces `[n, h, w]` in [0, 1] of people named person0, person1, ...

    pose, lighting, expression: how strongly these vary, 0 for not at all. noise: standard deviation of the pixels.
    """
    ids = _ids_from_counts(num_people, images_per_person)
    identities = _draw_identities(rng, num_people)
    captures = tuple(_draw_captures(rng, ids.size, size, pose, lighting, expression))
    faces = [identities[person] for person in ids]
    return RenderedFaces(
        _drawn(rng, faces, captures, ids, size, noise),
        identities,
        captures,
        _landmarks(faces, captures, size),
    )


def face_tracks(
    rng: np.random.Generator,
    *,
    num_people: int,
    tracks_per_person: int,
    runs_per_track: int,
    frames_per_run: int,
    size: tuple[int, int] = (64, 64),
    step: float = 0.5,
    lighting: float = 1.0,
    expression: float = 1.0,
    noise: float = 0.02,
) -> FaceTracks:
    """Tracks of faces that drift by at most `step` pixels a frame, and jump at the end of each run of frames.

    Pose, lighting and expression drift as well, so the landmarks move by a little more than `step`. A jump crosses
    the middle of the image, by 0.1 of its shorter side or more: any threshold between tells the runs apart.
    """
    _check_counts(
        num_people=num_people,
        tracks_per_person=tracks_per_person,
        runs_per_track=runs_per_track,
        frames_per_run=frames_per_run,
    )
    num_frames = runs_per_track * frames_per_run
    num_tracks = num_people * tracks_per_person
    tracks = np.repeat(np.arange(num_tracks, dtype=np.int32), num_frames)
    ids = (tracks // tracks_per_person).astype(np.int32)
    identities = _draw_identities(rng, num_people)
    captures = [
        capture
        for _ in range(num_tracks)
        for capture in _drifting_captures(rng, runs_per_track, frames_per_run, size, step, lighting, expression)
    ]
    faces = [identities[person] for person in ids]
    return FaceTracks(
        data=_drawn(rng, faces, captures, ids, size, noise),
        tracks=tracks,
        frames=np.tile(np.arange(num_frames, dtype=np.int32), num_tracks),
        landmarks=_landmarks(faces, captures, size),
        groups=(np.arange(tracks.size) // frames_per_run).astype(np.int32),
    )


def _check_counts(**counts: int) -> None:
    for name, value in counts.items():
        checks.at_least(name, value, 1)


def _ids_from_counts(num_people: int, images_per_person: Any) -> np.ndarray:
    checks.at_least("num_people", num_people, 1)
    counts = np.asarray(images_per_person)
    if counts.shape not in ((), (num_people,)) or counts.dtype.kind not in "iu" or counts.min() < 1:
        raise ValueError(
            f"images_per_person must be one count, or one for each of the {num_people} people, all at least 1; "
            f"got {images_per_person!r}."
        )
    return np.repeat(np.arange(num_people, dtype=np.int32), counts)


def _square_root(name: str, covariance: np.ndarray) -> np.ndarray:
    """A symmetric root; refuses a matrix that is no covariance."""
    values, vectors = np.linalg.eigh(covariance)
    tol = 1e-10 * max(values[-1], 0.0)
    if not np.allclose(covariance, covariance.T, rtol=0, atol=tol) or values[0] < -tol:
        raise ValueError(
            f"{name} must be symmetric and positive semi-definite; its eigenvalues run from {values[0]:g} to "
            f"{values[-1]:g}."
        )
    root: np.ndarray = (vectors * np.sqrt(np.clip(values, 0, None))) @ vectors.T
    return root


def _draw_identities(rng: np.random.Generator, num: int) -> tuple[rendering.Identity, ...]:
    """People around the mean face, within 2.5 standard deviations: a lip of negative height would not be drawn."""
    z = np.clip(rng.normal(size=(num, len(rendering.MEAN_FACE))), -2.5, 2.5)
    return tuple(rendering.Identity(*row) for row in np.array(rendering.MEAN_FACE) + z * np.array(rendering.SPREAD))


def _capture(
    z: np.ndarray, size: tuple[int, int], pose: float, lighting: float, expression: float
) -> rendering.Capture:
    """A capture from ten standard normal numbers and the strength of each kind of change."""
    shift = 0.012 * min(size) * pose
    return rendering.Capture(
        shift_x=shift * z[0],
        shift_y=shift * z[1],
        log_scale=0.02 * pose * z[2],
        roll=0.03 * pose * z[3],
        yaw=0.12 * pose * z[4],
        light_x=0.35 * lighting * z[5],
        light_y=0.2 * lighting * z[6],
        smile=0.5 * expression * z[7],
        mouth_open=min(1.0, 0.3 * expression * abs(z[8])),
        squint=min(1.0, 0.3 * expression * abs(z[9])),
    )


def _draw_captures(
    rng: np.random.Generator, num: int, size: tuple[int, int], pose: float, lighting: float, expression: float
) -> list[rendering.Capture]:
    return [_capture(z, size, pose, lighting, expression) for z in rng.normal(size=(num, 10))]


def _drifting_captures(
    rng: np.random.Generator,
    num_runs: int,
    frames_per_run: int,
    size: tuple[int, int],
    step: float,
    lighting: float,
    expression: float,
) -> list[rendering.Capture]:
    """One track: the position walks inside a box and crosses it at each jump, the rest is a slow autoregression."""
    box = 0.14 * min(size)
    position = rng.uniform(-box, box, 2)
    z = rng.normal(size=10)
    captures = []
    for frame in range(num_runs * frames_per_run):
        angle, length = rng.uniform(0, 2 * np.pi), step * rng.uniform()
        if frame and frame % frames_per_run == 0:
            position = -np.where(position < 0, -1, 1) * rng.uniform(0.5 * box, box, 2)
        elif frame:
            position = np.clip(position + length * np.array([np.cos(angle), np.sin(angle)]), -box, box)
            z = 0.995 * z + 0.1 * rng.normal(size=10)
        capture = _capture(z, size, 0.3, lighting, expression)
        captures.append(capture._replace(shift_x=position[0], shift_y=position[1]))
    return captures


def _drawn(
    rng: np.random.Generator,
    faces: Sequence[rendering.Identity],
    captures: Sequence[rendering.Capture],
    ids: np.ndarray,
    size: tuple[int, int],
    noise: float,
) -> LabeledImages:
    images = np.empty((len(faces), *size), np.float32)
    for row, (face, capture) in enumerate(zip(faces, captures, strict=True)):
        images[row] = np.clip(rendering.render(face, capture, size=size) + noise * rng.normal(size=size), 0, 1)
    names = tuple(f"person{person}" for person in range(ids.max() + 1))
    return LabeledImages(images=images, ids=ids, names=names, credit="drawn by jaxface.data.rendering")


def _landmarks(
    faces: Sequence[rendering.Identity], captures: Sequence[rendering.Capture], size: tuple[int, int]
) -> np.ndarray:
    return np.stack(
        [rendering.landmarks(face, capture, size=size) for face, capture in zip(faces, captures, strict=True)]
    )
