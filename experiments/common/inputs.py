"""From a config to faces and vectors."""

import dataclasses
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from ml_collections import ConfigDict

from jaxface import data
from jaxface.core import checks
from jaxface.data import LabeledImages, overlap, stream
from jaxface.data.stream import Source
from jaxface.faces import pipeline
from jaxface.faces.pipeline import ImagePipeline
from jaxface.runtime import sections
from jaxface.runtime.workdir import Workdir

BLOCK = 32  # images in flight


@dataclasses.dataclass(frozen=True, kw_only=True, eq=False)
class Vectors:
    """Known people as vectors: encoded images, or embeddings of another tool."""

    x: np.ndarray  # [n, d]
    ids: np.ndarray  # int32 [n]; all -1 where nobody knows whom the rows show
    names: tuple[str | int, ...]
    files: tuple[str, ...] = ()
    images: np.ndarray | None = None  # for pictures of a report
    credit: str = ""


def path_of(config: ConfigDict) -> str | tuple[Path, ...] | None:
    """The path of a section's data, for the record of a run; None when the section names no set.

    Vectors may come with other files: their labels, the archives of a list.
    """
    if config.loader in ("embeddings", "stream") and config.root is not None:
        return data.embeddings.sources(config.root, labels=given(config.options).get("labels"))
    return str(data.orl.find()) if config.root is None and config.loader == "orl" else config.root


def given(options: ConfigDict) -> dict[str, Any]:
    """The options of a loader that are not None: a config lists those of several loaders."""
    return {name: value for name, value in options.items() if value is not None}


def load_faces(config: ConfigDict) -> LabeledImages:
    """The labelled faces that `config.data` names; one photo under two names is refused."""
    loader: Callable[..., LabeledImages] = sections.one("config.data.loader", config.loader, data.LOADERS)
    _check_root(config)
    faces = loader(config.root, **sections.arguments(given(config.options), loader))
    overlap.refuse_shared_rows(overlap.Known(faces.images, faces.ids, faces.names), source=_source(config))
    return faces


def load_vectors(config: ConfigDict, steps: ImagePipeline) -> Vectors:
    """Faces through the image steps, or vectors as they are with `loader = "embeddings"`.

    The format of a file of vectors is told by the file; the options `features`, `labels` and `files` name its arrays
    or columns, or a file of labels, and with `min_people = 0` labels may be missing.
    """
    checks.one_of("config.data.loader", config.loader, (*data.LOADERS, "embeddings"))
    if config.loader != "embeddings":
        return vectors_of(load_faces(config), steps)
    _check_root(config)
    # Options of an image loader that the reader of embeddings does not take have no meaning here.
    loaded = data.embeddings.load(config.root, **sections.arguments_of(data.embeddings.load, given(config.options)))
    overlap.refuse_shared_rows(overlap.Known(loaded.features, loaded.ids, loaded.names), source=_source(config))
    x = loaded.features.astype(working_dtype())
    return Vectors(x=x, ids=loaded.ids, names=loaded.names, files=loaded.files)


def load_stream(config: ConfigDict) -> Source:
    """Vectors that stay on the disk, with `loader = "stream"`: a `.npy` with a file of labels, or a `.npz`."""
    _check_root(config)
    return stream.from_file(config.root, **sections.arguments_of(stream.from_file, given(config.options)))


def write_vectors(workdir: Workdir, name: str, vectors: Vectors, rows: np.ndarray) -> None:
    """Writes some of the vectors with names of their own, for `experiments.score`."""
    files = [f"person-{vectors.ids[row]:05d}/{k:05d}" for k, row in enumerate(rows)]
    labels = [str(vectors.names[person]) for person in vectors.ids[rows]]
    arrays = {"features": vectors.x[rows], "labels": np.asarray(labels), "files": np.asarray(files)}
    workdir.write_arrays(name, arrays)


def vectors_of(faces: LabeledImages, steps: ImagePipeline) -> Vectors:
    """Faces and their vectors by the image steps."""
    images = jnp.asarray(faces.images, working_dtype())
    x = np.asarray(pipeline.encode_batch(steps, images, block_size=BLOCK))
    return Vectors(x=x, ids=faces.ids, names=faces.names, files=faces.files, images=faces.images, credit=faces.credit)


def encode(images: jax.Array, steps: tuple) -> jax.Array:
    """Vectors `[n, d]` of images by the image steps of a config."""
    return pipeline.encode_batch(pipeline.build(steps), jnp.asarray(images), block_size=BLOCK)


def working_dtype() -> jnp.dtype:
    """float64 where the launcher switched it on, else float32."""
    return jnp.zeros(()).dtype


def _source(config: ConfigDict) -> str:
    """The name of a set in messages."""
    return config.root or f"the set {config.loader!r}"


def _check_root(config: ConfigDict) -> None:
    """Only the ORL faces come with an extra; everything else is the user's own copy."""
    if config.root is None and config.loader != "orl":
        raise ValueError(
            f"the section with loader = {config.loader!r} lacks its root: name your copy, for example "
            "--config.data.root=FOLDER (of a score: --config.images.root, --config.gallery.root, --config.probes.root)."
        )
