"""The methods of the config: each section of `config.settings` names a method of the library's table and its settings.

A setting that is a tuple is a grid. People who were held out choose the values with the best mean PSNR, and these
people then train too. Settings that are words stand for functions of the library.
"""

import itertools
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, NamedTuple, Protocol

import jax
import jax.numpy as jnp
import numpy as np
import optax
from ml_collections import ConfigDict

from experiments.common import fields, models
from experiments.hallucinate.faces import FoldFaces
from jaxface import features, hallucination, sparse
from jaxface.core import prng
from jaxface.core.fitinfo import FitInfo, raise_if_failed
from jaxface.features import dekernelize, forms
from jaxface.hallucination import Fitted, Hallucinator, Method
from jaxface.hallucination.dictionary import DictionaryHallucinator
from jaxface.hallucination.fastfood import FastfoodDictionaryHallucinator
from jaxface.linalg import gram
from jaxface.metrics import reconstruction
from jaxface.runtime import sections
from jaxface.sparse import atom_update
from jaxface.sparse.dictionary import Dictionary

FUNCTIONS: dict[str, Mapping[str, Callable[..., Any]]] = {  # settings that are words
    "form": features.FORMS,
    "inverse": features.INVERSES,
    "atom_update": sparse.ATOM_UPDATES,
}
_ATOMS = 12  # of a dictionary in a picture
_CODED = 1000  # faces whose codes give the usual size of an atom of features
PAPER_EXPANSIONS = {
    "fastfood_5x_dekernelized": 5,
    "fastfood_5x": 5,
    "fastfood_10x": 10,
    "matched_dw_ksvd": 5,
    "streamed_5x_dekernelized": 5,
    "streamed_5x": 5,
    "streamed_10x": 10,
}


def matched_dw_ksvd(
    key: jax.Array,
    x: jax.Array,
    mask: np.ndarray,
    *,
    beta: float,
    expansion: int,
    quantile: float,
    form: forms.Form = forms.sin,
    num_atoms: int,
    sparsity: int,
    num_iters: int,
    atom_update: atom_update.AtomUpdate = atom_update.approximate,
) -> tuple[Hallucinator, FitInfo]:
    """DW-KSVD that counts the visible pixels as Fastfood DW-KSVD with the same beta does.

    beta, expansion, quantile, form: those of Fastfood DW-KSVD
    num_atoms, sparsity, num_iters, atom_update: those of DW-KSVD
    """
    effective = effective_beta(key, x, mask, beta=beta, expansion=expansion, quantile=quantile, form=form)
    sizes = {"num_atoms": num_atoms, "sparsity": sparsity, "num_iters": num_iters}
    return hallucination.fit_dw_ksvd(key, x, mask, beta=effective, atom_update=atom_update, **sizes)


def effective_beta(
    key: jax.Array, x: jax.Array, mask: np.ndarray, *, beta: float, expansion: int, quantile: float, form: forms.Form
) -> jax.Array:
    """The beta in the image that corresponds to a beta in the feature space of Fastfood."""
    maps = hallucination.draw_maps(key, x, mask, expansion=expansion, quantile=quantile, form=form)
    return hallucination.effective_beta(maps, beta)


class Learn(Protocol):
    """A dictionary of the features of variations of faces x, from one pass over a stream (`streaming.learn`)."""

    def __call__(
        self,
        key: jax.Array,
        x: jax.Array,
        features: Callable[[jax.Array], jax.Array],
        *,
        num_atoms: int,
        sparsity: int,
        num_faces: int,
    ) -> tuple[Dictionary, FitInfo]:
        """The dictionary, and the report on the pass."""


def streamed_dw_ksvd(
    key: jax.Array,
    x: jax.Array,
    mask: np.ndarray,
    *,
    learn: Learn,
    beta: float | jax.Array,
    num_atoms: int,
    sparsity: int,
    num_faces: int,
) -> tuple[Hallucinator, FitInfo]:
    """DW-KSVD with its dictionary from a stream."""
    signals = hallucination.pixel_signals(x, mask, beta=beta)
    sizes = {"num_atoms": num_atoms, "sparsity": sparsity, "num_faces": num_faces}
    dictionary, info = learn(key, x, signals.transform, **sizes)
    return hallucination.pixel_hallucinator(signals, dictionary, sparsity=sparsity), info


def streamed_matched_dw_ksvd(
    key: jax.Array,
    x: jax.Array,
    mask: np.ndarray,
    *,
    learn: Learn,
    beta: float,
    expansion: int,
    quantile: float,
    form: forms.Form = forms.sin,
    num_atoms: int,
    sparsity: int,
    num_faces: int,
) -> tuple[Hallucinator, FitInfo]:
    """`matched_dw_ksvd` with its dictionary from a stream."""
    effective = effective_beta(key, x, mask, beta=beta, expansion=expansion, quantile=quantile, form=form)
    sizes = {"num_atoms": num_atoms, "sparsity": sparsity, "num_faces": num_faces}
    return streamed_dw_ksvd(key, x, mask, learn=learn, beta=effective, **sizes)


def streamed_fastfood_dw_ksvd(
    key: jax.Array,
    x: jax.Array,
    mask: np.ndarray,
    *,
    learn: Learn,
    beta: float,
    expansion: int,
    quantile: float,
    form: forms.Form = forms.sin,
    inverse: dekernelize.Method = dekernelize.least_squares,
    num_atoms: int,
    sparsity: int,
    num_faces: int,
) -> tuple[Hallucinator, FitInfo]:
    """Fastfood DW-KSVD with its dictionary from a stream: features are made for each batch and not kept."""
    signals = hallucination.feature_signals(key, x, mask, beta=beta, expansion=expansion, quantile=quantile, form=form)
    sizes = {"num_atoms": num_atoms, "sparsity": sparsity, "num_faces": num_faces}
    dictionary, info = learn(key, x, signals.transform, **sizes)
    return hallucination.feature_hallucinator(signals, dictionary, sparsity=sparsity, inverse=inverse), info


_STREAM = "{num_atoms:,} atoms, {num_faces:,} faces"
_NEEDS = ("key", "learn")
METHODS: Mapping[str, Method] = hallucination.METHODS | {
    "matched_dw_ksvd": Method("DW-KSVD, beta of Fastfood {expansion}x", matched_dw_ksvd, needs=("key",)),
    "streamed_dw_ksvd": Method(f"DW-KSVD, {_STREAM}", streamed_dw_ksvd, needs=_NEEDS, is_in_paper=True),
    "streamed_fastfood_dw_ksvd": Method(
        f"Fastfood DW-KSVD {{expansion}}x, {_STREAM}",
        streamed_fastfood_dw_ksvd,
        needs=_NEEDS,
        validity=hallucination.validity,
        is_in_paper=True,
    ),
    "streamed_fastfood_dw_ksvd_dekernelized": Method(
        f"Fastfood DW-KSVD {{expansion}}x, de-kernelised, {_STREAM}",
        streamed_fastfood_dw_ksvd,
        needs=_NEEDS,
        invert=hallucination.invert_atoms,
        is_in_paper=True,
    ),
    "streamed_matched_dw_ksvd": Method(
        f"DW-KSVD, beta of Fastfood {{expansion}}x, {_STREAM}", streamed_matched_dw_ksvd, needs=_NEEDS
    ),
}


def gaussian(median: jax.Array, *, bandwidth: float) -> gram.Gaussian:
    """The Gaussian kernel with its bandwidth in units of the median distance of the visible parts."""
    return gram.gaussian(bandwidth=bandwidth * median)


def adam(num_steps: int, *, learning_rate: float, weight_decay: float) -> optax.GradientTransformation:
    """Adam; the learning rate rises for a twentieth of the steps, then falls as a cosine."""
    rate = optax.warmup_cosine_decay_schedule(0.0, learning_rate, num_steps // 20, num_steps)
    return optax.adamw(rate, b2=0.99, weight_decay=weight_decay)


# What a method needs and the study makes of settings.
NEEDS: dict[str, Callable[..., Any]] = {"kernel": gaussian, "optimizer": adam}


class Names(NamedTuple):
    """How the report calls the sections of the settings that were run, and what kind of method each is."""

    labels: Mapping[str, str]
    paper: tuple[str, ...]  # methods of the paper
    others: tuple[str, ...]  # methods of the library that are not in the paper
    changed: tuple[str, ...]  # not with the expansion of the paper, so no number of the paper belongs to them


def names(config: ConfigDict) -> Names:
    """The methods of a study."""
    chosen = {name: config.settings[name].method for name in config.methods}
    return Names(
        labels={name: METHODS[method].title.format(**config.settings[name]) for name, method in chosen.items()},
        paper=tuple(name for name, method in chosen.items() if METHODS[method].is_in_paper),
        others=tuple(
            name
            for name, method in chosen.items()
            if method in hallucination.METHODS and not METHODS[method].is_in_paper
        ),
        changed=tuple(
            name
            for name, expansion in PAPER_EXPANSIONS.items()
            if name in chosen and config.settings[name].expansion != expansion
        ),
    )


def arguments(section: ConfigDict) -> dict[str, Any]:
    """The settings of a section, checked against the fit of its method and the functions for its needs."""
    method = METHODS[section.method]
    settings = {name: value for name, value in section.items() if name != "method"}
    return sections.arguments(settings, method.fit, *(NEEDS[word] for word in method.needs if word in NEEDS))


def check(config: ConfigDict, *, section: str = "") -> None:
    """Refuses unknown methods, and settings that their fits do not take."""
    inner = config[section] if section else config
    fields.words(config, "methods", inner.settings.keys(), section=section)
    for name in inner.settings:
        fields.words(config, f"settings.{name}.method", METHODS, section=section)
        for field in arguments(inner.settings[name]):
            if field in FUNCTIONS:
                fields.words(config, f"settings.{name}.{field}", FUNCTIONS[field], section=section)
            else:
                fields.not_negative(config, f"settings.{name}.{field}", section=section)


def of_fold(
    config: ConfigDict,
    name: str,
    fold: FoldFaces,
    mask: np.ndarray,
    *,
    is_kept: bool = False,
    learn: Learn | None = None,
) -> dict[str, np.ndarray]:
    """Reconstructions `[q, d]` of the faces of a fold, the settings used, the atoms replaced, the validity.

    With `is_kept` the model too. Methods with a dictionary from a stream need `learn`.
    """
    key = prng.stream(jax.random.key(config.seed), name)
    section = config.settings[name]
    method = METHODS[section.method]
    fit = partial(fitted, method, key, shape=fold.shape, learn=learn)
    settings = chosen(section, fold, mask, fit)
    model, info, validity = fit(fold.train, mask, settings)
    arrays = {f"setting/{field}": np.asarray(value) for field, value in settings.items()}
    if method.fit in (matched_dw_ksvd, streamed_matched_dw_ksvd):
        known = sections.arguments_of(effective_beta, with_functions(settings))
        arrays["setting/effective beta"] = np.asarray(effective_beta(key, jnp.asarray(fold.train), mask, **known))
    if method.validity is not None:
        validity = method.validity(model, fold.test[:, mask])
    if validity is not None:
        arrays |= {f"validity/{field}": np.asarray(value) for field, value in validity._asdict().items()}
    arrays |= models.arrays_of(**{name: model}) | shown_atoms(model, fold.train) if is_kept else {}
    return arrays | {"images": rebuilt(model, fold.test, mask), "num_replaced": np.asarray(info.num_replaced)}


def shown_atoms(model: Hallucinator, x: np.ndarray) -> dict[str, np.ndarray]:
    """The first atoms of a model for a picture, of whole faces `[k, d]` and of the visible pixels `[k, v]`."""
    if isinstance(model, DictionaryHallucinator):
        faces, parts = model.atoms, model.atoms[model.visible]
    elif isinstance(model, FastfoodDictionaryHallucinator) and model.signals.form == "sin":
        faces, parts = hallucination.atom_images(model, x[:_CODED])
    else:
        return {}
    return {"atoms/face": np.asarray(faces.T[:_ATOMS]), "atoms/seen": np.asarray(parts.T[:_ATOMS])}


def fitted(
    method: Method,
    key: jax.Array,
    x: np.ndarray,
    mask: np.ndarray,
    settings: Mapping[str, Any],
    *,
    shape: tuple[int, int],
    learn: Learn | None = None,
) -> Fitted:
    """A fit that did not fail; methods that use the symmetry of faces get it if the mask is symmetric."""
    values, faces = with_functions(settings), jnp.asarray(x)
    places = np.arange(x.shape[1]).reshape(shape)[:, ::-1].ravel()
    if np.array_equal(mask[places], mask):
        values |= sections.arguments_of(method.fit, {"mirror": places})
    if "learn" in method.needs:
        values["learn"] = learn
    kernel = None
    if "kernel" in method.needs:
        kernel = gaussian(_median(key, faces, mask), bandwidth=values.pop("bandwidth"))
    if "bandwidth" in method.needs:
        values["bandwidth"] = values["bandwidth"] * _median(key, faces, mask)
    if "optimizer" in method.needs:
        num_steps = values["num_epochs"] * (len(x) // values["batch_size"])
        rates = {name: values.pop(name) for name in sections.arguments_of(adam, values)}
        values["optimizer"] = adam(num_steps, **rates)
    found = hallucination.fit(method, faces, mask, key=key, kernel=kernel, **values)
    raise_if_failed(found.info, method.title.format(**settings))
    return found


def with_functions(settings: Mapping[str, Any]) -> dict[str, Any]:
    """Settings with the functions that their words stand for."""
    return {name: FUNCTIONS[name][value] if name in FUNCTIONS else value for name, value in settings.items()}


def chosen(section: ConfigDict, fold: FoldFaces, mask: np.ndarray, fit: Callable[..., Fitted]) -> dict[str, Any]:
    """The settings of a section, those with a grid chosen by the PSNR on held-out people."""
    settings = arguments(section)
    grids = {field: value for field, value in settings.items() if isinstance(value, tuple)}
    if not grids:
        return settings
    train, held_out = fold.train[~fold.is_tuning], fold.train[fold.is_tuning]
    best, highest = settings, -np.inf
    for values in itertools.product(*grids.values()):
        candidate = settings | dict(zip(grids, values, strict=True))
        value = psnr(rebuilt(fit(train, mask, candidate).model, held_out, mask), held_out).mean()
        best, highest = (candidate, value) if value > highest else (best, highest)
    return best


def rebuilt(model: Hallucinator, x: np.ndarray, mask: np.ndarray) -> np.ndarray:
    """Faces `[q, d]` in [0, 1] from the visible pixels of x `[q, d]`."""
    return np.clip(np.asarray(hallucination.reconstruct_matrix(model, x[:, mask])), 0, 1)


def psnr(images: np.ndarray, originals: np.ndarray) -> np.ndarray:
    """PSNR of each image `[q]` in dB, at a peak of 1."""
    return reconstruction.psnr(images, originals, peak=1.0, axis=1)


def means(found: Mapping[str, np.ndarray]) -> dict[str, float]:
    """Mean PSNR of arrays whose names end with it, by the rest of their names."""
    return {name.removesuffix("/psnr"): float(each.mean()) for name, each in found.items() if name.endswith("/psnr")}


def _median(key: jax.Array, x: jax.Array, mask: np.ndarray) -> jax.Array:
    """The median distance of the visible parts of faces."""
    return features.median_distance(prng.stream(key, "distances"), x[:, mask])
