"""The two sides of a transfer study: images or embeddings of some people, and of other people seen differently."""

import dataclasses

import numpy as np
from ml_collections import ConfigDict

from experiments.common import inputs, people
from experiments.common.inputs import Vectors
from experiments.verify import camera
from jaxface.data import LabeledImages, overlap
from jaxface.faces import pipeline

CAMERA = "camera"  # the loader of a target that is the source, seen by a simulated camera


def is_simulated(config: ConfigDict) -> bool:
    """Whether the target is the source through a simulated camera: on request, and for the demonstration faces."""
    return config.target.loader == CAMERA or (config.target.loader is None and config.data.loader == "orl")


def load(config: ConfigDict) -> tuple[Vectors, Vectors]:
    """Source and target: two sets of different people, or one set and its images through a simulated camera."""
    if is_simulated(config):
        if config.data.loader == "embeddings":
            raise ValueError(
                f"--config.target.loader={CAMERA} needs images: embeddings have no camera to change. Name a target "
                "file with other people: --config.target.loader=embeddings --config.target.root=FILE."
            )
        faces = inputs.load_faces(config.data)
        return clean_and_changed(config, faces, np.random.default_rng((config.seed, 0)))
    if config.target.loader is None:
        raise ValueError(
            "--config.target.loader is missing: this study takes a model of some people to other people in another "
            "setting. Name the images or embeddings of these: --config.target.loader=folders "
            f"--config.target.root=FOLDER. With --config.target.loader={CAMERA} the other setting is a simulated "
            f"camera of {config.camera.size} x {config.camera.size} pixels, for a demonstration on your images."
        )
    steps = pipeline.build(config.image_steps)
    source, target = (
        people.chosen(config, inputs.load_vectors(section, steps)) for section in (config.data, config.target)
    )
    check_sides(source, target)
    return source, target


def check_sides(source: Vectors, target: Vectors) -> None:
    """Refuses sides with other features, and sides that show the same person."""
    if source.x.shape[1] != target.x.shape[1]:
        raise ValueError(
            f"source and target must have the same features; got {source.x.shape[1]} and {target.x.shape[1]} "
            "dimensions. Give images one size, or embeddings of one tool."
        )
    overlap.refuse_shared_people(
        source=overlap.Known(source.x, source.ids, source.names),
        target=overlap.Known(target.x, target.ids, target.names),
    )


def clean_and_changed(config: ConfigDict, faces: LabeledImages, rng: np.random.Generator) -> tuple[Vectors, Vectors]:
    """The faces as they are, and the same people and shots through the simulated camera of a config."""
    steps = pipeline.build(config.image_steps)
    seen = camera.other_camera(faces.images, size=config.camera.size, noise=config.camera.noise, rng=rng)
    return inputs.vectors_of(faces, steps), inputs.vectors_of(dataclasses.replace(faces, images=seen), steps)
