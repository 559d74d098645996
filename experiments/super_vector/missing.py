"""Views removed at random, in training, at test or in both: who is it, by what is left?

Each image is one sample with a vector for every view. A mixture of probabilistic CCA is fitted to the training images,
which are also the gallery; the code of an image comes from the views that it has. Beside the codes of the model stand
the joined views themselves, with the mean or with the model's prediction in the place of a missing one.
"""

from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from ml_collections import ConfigDict

from experiments.common import fields, inputs, models
from experiments.common.publish import publish
from experiments.super_vector import missing_report, sets
from experiments.super_vector.missing_report import METHODS
from jaxface import data, mixtures
from jaxface.core import prng
from jaxface.core.fitinfo import FitInfo, Status, raise_if_failed
from jaxface.data import overlap
from jaxface.data.splits import Split
from jaxface.linalg import distances
from jaxface.metrics import identification
from jaxface.mixtures import MultiviewMixture, encoding, multiview
from jaxface.runtime.workdir import Workdir

SOURCE = "missing"  # the value of `config.source` that asks for this study

Vectors = tuple[jax.Array, ...]


class Views(NamedTuple):
    """Every view of every image, and the person on it."""

    views: tuple[np.ndarray, ...]  # [i, n] each
    ids: np.ndarray  # int32 [i]
    names: tuple[str | int, ...]


def run(config: ConfigDict, workdir: Workdir) -> dict[str, Any]:
    """One stage for each split and number of training images."""
    sets.check(config)
    fields.shares(config, "missing.shares")
    workdir.uses(data=sets.path_of(config))
    faces = load(config)
    errors, ratios = {}, {}
    for num_train in config.num_train:
        parts = sets.stages(config, workdir, faces, num_train, of_split)
        models.write(workdir, parts[0])
        errors[num_train] = np.stack([part["errors"] for part in parts], axis=-1)
        ratios[num_train] = float(np.mean([part["test to train"] for part in parts]))
    made = missing_report.Measured(missing_report.conditions(config), errors, ratios)
    publish(
        workdir,
        title="Super vectors with missing views",
        lead=f"{len(faces.names)} people, {len(faces.ids)} images of {len(faces.views)} views, {config.num_splits} "
        "random splits. Every view of an image is removed with the same probability; the last one stays.",
        headline=missing_report.headline(config, made),
        sections=missing_report.sections(config, made),
        credits=(config.views.credit,),
    )
    return missing_report.results(made)


def load(config: ConfigDict) -> Views:
    """All views of the file that `config.views` names."""
    if config.views.root is None:
        raise ValueError("--config.views.root is missing: name a MATLAB file with a cell array of views.")
    file = data.matlab.load_views(config.views.root, views=config.views.variable, labels=config.views.labels)
    for place, view in enumerate(file.views):
        overlap.refuse_shared_rows(
            overlap.Known(view, file.ids, file.names), source=f"view {place} of {config.views.root}"
        )
    return Views(tuple(np.asarray(view, np.float64) for view in file.views), file.ids, file.names)


def of_split(config: ConfigDict, faces: Views, split: Split, number: int) -> dict[str, np.ndarray]:
    """Errors `[conditions, methods]` of one split; the gaps of a larger share contain those of a smaller one."""
    key = prng.stream(jax.random.fold_in(jax.random.key(config.seed), number), "missing views")
    drawn = np.random.default_rng((config.seed, 4, number)).random((len(faces.ids), len(faces.views)))
    is_train = np.isin(np.arange(len(faces.ids)), split.train)
    errors, kept = [], None
    for train_share, test_share in missing_report.conditions(config):
        present = presence(drawn, np.where(is_train, train_share, test_share))
        views = coordinates(config, faces.views, present, split.train)
        settings = {name: config[name] for name in ("num_components", "latent_dim", "num_iters")}
        codes, model, info = codes_of(key, views, present, split.train, **settings)
        if int(info.status) != Status.RANK_DEFICIENT:  # noise at its floor, which a fit of few images may have
            raise_if_failed(info, "mixture of the views")
        kept = model if kept is None else kept
        errors.append([error(codes[name], faces.ids, split) for name in METHODS])
    saved = models.arrays_of(mixture=kept) if number == 0 else {}
    return saved | {"errors": np.array(errors), "test to train": np.asarray(split.test_to_train)}


def presence(drawn: np.ndarray, share: np.ndarray) -> np.ndarray:
    """Bool `[i, v]`: a view is missing where its number in `drawn` is below the share `[i]` of its image.

    The view of the largest number stays, so that every image has one.
    """
    return (drawn >= share[:, None]) | (drawn == drawn.max(axis=1, keepdims=True))


def coordinates(
    config: ConfigDict, views: tuple[np.ndarray, ...], present: np.ndarray, train: np.ndarray
) -> tuple[np.ndarray, ...]:
    """Principal coordinates of every view with unit total variance, 0 where it is missing; axes from training images.

    On the host in float64: the number of training images that have a view differs between splits, and each number
    would be a program.
    """
    found = []
    for v, view in enumerate(views):
        own = view[train[present[train, v]]]
        mean = own.mean(axis=0)
        _, values, axes = np.linalg.svd(own - mean, full_matrices=False)
        width = min(config.num_axes, *(size - 1 for size in own.shape))
        scale = np.linalg.norm(values[:width]) / np.sqrt(len(own))
        reduced = np.zeros((len(view), config.num_axes))
        reduced[:, :width] = (view - mean) @ axes[:width].T / scale
        found.append(np.where(present[:, [v]], reduced, 0).astype(inputs.working_dtype()))
    return tuple(found)


@partial(jax.jit, static_argnames=("num_components", "latent_dim", "num_iters"))
def codes_of(
    key: jax.Array,
    views: Vectors,
    present: jax.Array,
    train: jax.Array,
    *,
    num_components: int,
    latent_dim: int,
    num_iters: int,
) -> tuple[dict[str, jax.Array], MultiviewMixture, FitInfo]:
    """The codes `[i, f]` of all images by a model of the training images: one program, whatever is missing."""
    own, own_present = tuple(view[train] for view in views), present[train]
    start = multiview.init(key, own, present=own_present, num_components=num_components, latent_dim=latent_dim)
    model, info = multiview.fit(own, start, present=own_present, num_iters=num_iters)
    alone = tuple(view[:, None] for view in views)
    codes = mixtures.encode_batch(model, *alone, encoder=vectors_of, present=present[:, None, :], block_size=64)
    return codes, model, info


def vectors_of(model: MultiviewMixture, *views: jax.Array, present: Any, **_: Any) -> dict[str, jax.Array]:
    """Every code of one image, of unit length."""
    moments = mixtures.e_step(model, *views, present=present)[0]
    filled = []
    for given, view, sums in zip(views, model.views, moments.views, strict=True):
        guess = moments.weight @ view.mean + jnp.einsum("knd,kd->n", view.loadings, moments.latent)
        filled.append(jnp.where(sums.weight.sum() > 0, given[0], guess))
    by_mean, by_model = jnp.concatenate([view[0] for view in views]), jnp.concatenate(filled)
    scoring = encoding.precomputed(encoding.closed_form(model, *views, present=present))
    codes = (
        distances.normalize(by_mean),
        distances.normalize(by_model),
        mixtures.latent_vector(model, *views, scoring=scoring),
        mixtures.super_vector(model, *views, scoring=scoring),
    )
    return dict(zip(METHODS, codes, strict=True))


def error(codes: jax.Array, ids: np.ndarray, split: Split) -> float:
    """Share of probes whose nearest training image by the cosine is of somebody else."""
    vectors = np.asarray(codes)
    cosines = vectors[split.train] @ vectors[split.test].T
    return float(identification.nearest_neighbor_error(cosines, ids[split.train], ids[split.test]))
