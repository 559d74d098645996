"""Pairs of descriptors: the dense patches of images, or a file that holds one pair an image."""

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from ml_collections import ConfigDict

from experiments.common import fields, inputs
from jaxface import data
from jaxface.core import checks, prng
from jaxface.core.blocks import each_row
from jaxface.core.fitinfo import raise_if_failed
from jaxface.data import LabeledImages, overlap
from jaxface.data.splits import Split, few_shot
from jaxface.faces import local_descriptors
from jaxface.runtime import sections
from jaxface.runtime.log import progress
from jaxface.runtime.workdir import Workdir
from jaxface.subspace import LinearMap, pca, transform

SOURCES = ("images", "views")
_IMAGES = 8  # in flight

Pair = tuple[jax.Array, jax.Array]
Options = tuple[tuple[str, Any], ...]  # arguments of `local_descriptors.encode`, hashable


class Sets(NamedTuple):
    """The data that descriptors are computed from, and the person on each image."""

    values: tuple[jax.Array, ...]  # images [i, h, w]; or the two views [i, n] and [i, m]
    ids: np.ndarray  # int32 [i]
    names: tuple[str | int, ...]
    credit: str
    options: Options


class Descriptors(NamedTuple):
    """Principal coordinates of both kinds of descriptors; the axes come from training images."""

    x: jax.Array  # [i, s, r], of every image
    y: jax.Array  # [i, s, r]
    sample: Pair  # [u, r] each, the descriptors of training images that mixtures are fitted to
    maps: tuple[LinearMap, LinearMap]  # of descriptors to these coordinates


def check(config: ConfigDict, *, section: str = "") -> None:
    """Refuses values of fields that cannot work; the tour has the same fields in a section."""
    fields.counts(config, "num_train", "num_splits", "num_axes", "num_descriptors", "num_components", section=section)
    fields.counts(config, "latent_dim", "num_iters", "logistic.num_iters", "joint_bayes.num_iters", section=section)
    fields.counts(config, "max_images", minimum=2, section=section)
    fields.shares(config, "joint_bayes.prior_weight", section=section)
    fields.not_negative(config, "logistic.ridge", section=section)


def path_of(config: ConfigDict) -> str | tuple[Path, ...] | None:
    """The path of the images or the views, for the record of a run."""
    return config.views.root if config.source != "images" else inputs.path_of(config.data)


def load(config: ConfigDict) -> Sets:
    """Images, or the two views that `config.views` names."""
    checks.one_of("config.source", config.source, SOURCES)
    if config.source == "images":
        return of_faces(config, inputs.load_faces(config.data))
    if config.views.root is None:
        raise ValueError("--config.views.root is missing: name a MATLAB file with a cell array of views.")
    file = data.matlab.load_views(config.views.root, views=config.views.variable, labels=config.views.labels)
    for name, place in (("x", config.views.x), ("y", config.views.y)):
        checks.at_most(f"config.views.{name}", place, len(file.views) - 1, f"the file has {len(file.views)} views")
    for place in (config.views.x, config.views.y):
        known = overlap.Known(file.views[place], file.ids, file.names)
        overlap.refuse_shared_rows(known, source=f"view {place} of {config.views.root}")
    pair = (jnp.asarray(file.views[place], inputs.working_dtype()) for place in (config.views.x, config.views.y))
    return Sets(tuple(pair), file.ids, file.names, config.views.credit, ())


def of_faces(config: ConfigDict, faces: LabeledImages) -> Sets:
    """Images whose dense patches are the descriptors."""
    options = tuple(sections.arguments(config.descriptors, local_descriptors.encode).items())
    images = jnp.asarray(faces.images, inputs.working_dtype())
    return Sets((images,), faces.ids, faces.names, faces.credit, options)


def random_splits(config: ConfigDict, ids: np.ndarray, num_train: int) -> list[Split]:
    """Splits with `num_train` training images of each person; the test images are the same for every such number."""
    most = max(config.num_train)
    fewest = int(np.bincount(ids).min())
    checks.at_most("config.num_train", most, fewest - 1, f"somebody has {fewest} images, and one must be left")
    return few_shot(ids, num_train=num_train, most_train=most, seed=config.seed, num_splits=config.num_splits)


def stages(
    config: ConfigDict,
    workdir: Workdir,
    faces: Any,
    num_train: int,
    of_split: Callable[[ConfigDict, Any, Split, int], dict[str, np.ndarray]],
) -> list[dict[str, np.ndarray]]:
    """One stage for each split with `num_train` training images of each person."""
    drawn = random_splits(config, faces.ids, num_train)
    return [
        workdir.stage(f"train-{num_train}-split-{number}", partial(of_split, config, faces, split, number))
        for number, split in enumerate(progress(drawn, f"{num_train} images a person"))
    ]


def descriptors_of(config: ConfigDict, sets: Sets, split: Split, number: int) -> Descriptors:
    """PCA of each view on descriptors drawn from the training images, then the coordinates of every image."""
    key = jax.random.fold_in(jax.random.key(config.seed), number)
    rng = np.random.default_rng((config.seed, 2, number))
    length = jax.eval_shape(partial(_pairs, sets.options), tuple(v[0] for v in sets.values))[0].shape[0]
    num_images = len(split.train)
    num_drawn = min(length, -(-config.num_descriptors // num_images))
    places = rng.permuted(np.tile(np.arange(length), (num_images, 1)), axis=1)[:, :num_drawn]
    drawn = _drawn(tuple(v[split.train] for v in sets.values), jnp.asarray(places), options=sets.options)
    maps = []
    for name, view in zip("xy", drawn, strict=True):
        flat = view.reshape(-1, view.shape[2])
        width = min(config.num_axes, flat.shape[1], flat.shape[0] - 1)
        axes, info = pca.fit_randomized(prng.stream(key, f"axes of {name}"), flat, num_components=width)
        raise_if_failed(info, f"PCA of view {name}")
        maps.append(axes)
    x, y = _reduced(sets.values, tuple(maps), options=sets.options)
    chosen_x, chosen_y = (view[split.train[:, None], places].reshape(-1, view.shape[2]) for view in (x, y))
    return Descriptors(x, y, (chosen_x, chosen_y), (maps[0], maps[1]))


def _pairs(options: Options, image: tuple[jax.Array, ...]) -> Pair:
    """The descriptors `[s, n]` and `[s, m]` of one image; an image of two views has one pair."""
    if len(image) == 2:
        return image[0][None], image[1][None]
    descriptors = local_descriptors.encode(image[0], **dict(options))
    return descriptors.x, descriptors.y


@partial(jax.jit, static_argnames="options")
def _drawn(values: tuple[jax.Array, ...], places: jax.Array, *, options: Options) -> Pair:
    """The descriptors at these places `[i, u]` of every image."""

    def of_image(image_and_places: tuple[tuple[jax.Array, ...], jax.Array]) -> Pair:
        image, places = image_and_places
        x, y = _pairs(options, image)
        return x[places], y[places]

    return jax.lax.map(of_image, (values, places), batch_size=_IMAGES)


@partial(jax.jit, static_argnames="options")
def _reduced(values: tuple[jax.Array, ...], maps: tuple[LinearMap, ...], *, options: Options) -> Pair:
    def of_image(image: tuple[jax.Array, ...]) -> Pair:
        x, y = (each_row(transform, axes, view) for axes, view in zip(maps, _pairs(options, image), strict=True))
        return x, y

    return jax.lax.map(of_image, values, batch_size=_IMAGES)
