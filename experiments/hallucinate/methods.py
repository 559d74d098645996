"""Every method behind one interface, `fit(key, faces, mask, **settings)`, with its settings from the config.

A setting that is a tuple is a grid: the values with the best mean PSNR on the people who were held out are taken, and
these people then train too.
"""

import functools
import inspect
import itertools
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import optax
from ml_collections import ConfigDict

from experiments.common import fields
from experiments.hallucinate.faces import FoldFaces
from jaxface import features, hallucination
from jaxface.core import prng
from jaxface.core.fitinfo import FitInfo, raise_if_failed
from jaxface.hallucination.reconstruction import Hallucinator
from jaxface.linalg import gram
from jaxface.metrics import reconstruction
from jaxface.runtime import sections

Fit = Callable[..., tuple[Hallucinator, FitInfo]]


class Method(NamedTuple):
    """What a table calls it, and its fit."""

    title: str
    fit: Fit


def without_key(fit: Fit) -> Fit:
    """A fit that draws nothing, with the arguments of the others."""

    @functools.wraps(fit)
    def ignoring_key(key: jax.Array, x: jax.Array, mask: np.ndarray, **settings: Any) -> tuple[Hallucinator, FitInfo]:
        return fit(x, mask, **settings)

    return ignoring_key


def expanded(fit: Fit, expansion: int) -> Fit:
    """A fit with a fixed expansion of its feature map: the method is called by it, so no setting may change it."""

    @functools.wraps(fit)
    def with_expansion(*arguments: Any, **settings: Any) -> tuple[Hallucinator, FitInfo]:
        return fit(*arguments, expansion=expansion, **settings)

    signature = inspect.signature(fit)
    left = [each for name, each in signature.parameters.items() if name != "expansion"]
    with_expansion.__signature__ = signature.replace(parameters=left)  # type: ignore[attr-defined]
    return with_expansion


def matched_dw_ksvd(
    key: jax.Array,
    x: jax.Array,
    mask: np.ndarray,
    *,
    beta: float,
    quantile: float,
    num_atoms: int,
    sparsity: int,
    num_iters: int,
) -> tuple[Hallucinator, FitInfo]:
    """DW-KSVD with the beta that `beta` amounts to in the feature space of Fastfood DW-KSVD 5x."""
    effective = effective_beta(key, x, mask, beta=beta, quantile=quantile)
    return hallucination.fit_dw_ksvd(
        key, x, mask, beta=effective, num_atoms=num_atoms, sparsity=sparsity, num_iters=num_iters
    )


def effective_beta(key: jax.Array, x: jax.Array, mask: np.ndarray, *, beta: float, quantile: float) -> jax.Array:
    """What a beta of the feature space of Fastfood 5x is in the image."""
    maps = hallucination.draw_maps(key, x, mask, expansion=5, quantile=quantile)
    return hallucination.effective_beta(maps, beta)


def kernel_ridge(
    key: jax.Array, x: jax.Array, mask: np.ndarray, *, bandwidth: float, ridge: float
) -> tuple[Hallucinator, FitInfo]:
    """Exact Gaussian kernel ridge; the bandwidth is in units of the median distance of the visible parts."""
    kernel = gram.gaussian(bandwidth=bandwidth * _median(key, x, mask))
    return hallucination.fit_kernel_ridge(kernel, x, mask, ridge=ridge)


def fastfood_ridge(
    key: jax.Array, x: jax.Array, mask: np.ndarray, *, num_features: int, bandwidth: float, ridge: float
) -> tuple[Hallucinator, FitInfo]:
    """The same with random features."""
    width = bandwidth * _median(key, x, mask)
    return hallucination.fit_fastfood_ridge(key, x, mask, num_features=num_features, bandwidth=width, ridge=ridge)


def network(
    key: jax.Array,
    x: jax.Array,
    mask: np.ndarray,
    *,
    num_epochs: int,
    batch_size: int,
    learning_rate: float,
    weight_decay: float,
    ridge: float,
    width: int,
    num_layers: int,
    dropout: float,
    mirror: np.ndarray | None = None,
) -> tuple[Hallucinator, FitInfo]:
    """A network by Adam: the learning rate rises for a twentieth of the steps, then falls as a cosine."""
    num_steps = num_epochs * (len(x) // batch_size)
    rate = optax.warmup_cosine_decay_schedule(0.0, learning_rate, num_steps // 20, num_steps)
    return hallucination.fit_network(
        key, x, mask, num_epochs=num_epochs, batch_size=batch_size, ridge=ridge, width=width, num_layers=num_layers,
        dropout=dropout, optimizer=optax.adamw(rate, b2=0.99, weight_decay=weight_decay), mirror=mirror,
    )  # fmt: skip


METHODS: Mapping[str, Method] = {
    "pca": Method("PCA, least squares", without_key(hallucination.fit_pca)),
    "ksvd": Method("K-SVD", hallucination.fit_ksvd),
    "dw_ksvd": Method("DW-KSVD", hallucination.fit_dw_ksvd),
    "fastfood_5x_dekernelized": Method(
        "Fastfood DW-KSVD 5x, de-kernelised", expanded(hallucination.fit_fastfood_dw_ksvd_dekernelized, 5)
    ),
    "fastfood_5x": Method("Fastfood DW-KSVD 5x", expanded(hallucination.fit_fastfood_dw_ksvd, 5)),
    "fastfood_10x": Method("Fastfood DW-KSVD 10x", expanded(hallucination.fit_fastfood_dw_ksvd, 10)),
    "matched_dw_ksvd": Method("DW-KSVD, beta of Fastfood 5x", matched_dw_ksvd),
    "pca_prior": Method("PCA with a Gaussian prior", without_key(hallucination.fit_pca_prior)),
    "ridge": Method("ridge regression", without_key(hallucination.fit_ridge)),
    "fastfood_ridge": Method("Fastfood ridge", fastfood_ridge),
    "kernel_ridge": Method("Gaussian kernel ridge, exact", kernel_ridge),
    "network": Method("network on ridge", network),
}
PAPER = ("pca", "ksvd", "dw_ksvd", "fastfood_5x_dekernelized", "fastfood_5x", "fastfood_10x")  # in its order


def check(config: ConfigDict, *, section: str = "") -> None:
    """Refuses unknown methods, and settings that their fits do not take."""
    fields.words(config, "methods", METHODS, section=section)
    inner = config[section] if section else config
    for name in inner.settings:
        settings = sections.arguments(inner.settings[name], METHODS[name].fit)
        fields.not_negative(config, *(f"settings.{name}.{field}" for field in settings), section=section)


def of_fold(config: ConfigDict, name: str, fold: FoldFaces, mask: np.ndarray) -> dict[str, np.ndarray]:
    """Reconstructions `[q, d]` of the faces of a fold, the settings used, and how many atoms were replaced."""
    key = prng.stream(jax.random.key(config.seed), name)
    fit = partial(fitted, name, key, shape=fold.shape)
    settings = chosen(config, name, fold, mask, fit)
    model, info = fit(fold.train, mask, settings)
    found = {f"setting/{field}": np.asarray(value) for field, value in settings.items()}
    if name == "matched_dw_ksvd":
        known = sections.arguments_of(effective_beta, settings)
        found["setting/effective beta"] = np.asarray(effective_beta(key, jnp.asarray(fold.train), mask, **known))
    return found | {"images": rebuilt(model, fold.test, mask), "num_replaced": np.asarray(info.num_replaced)}


def fitted(
    name: str, key: jax.Array, x: np.ndarray, mask: np.ndarray, settings: Mapping[str, Any], *, shape: tuple[int, int]
) -> tuple[Hallucinator, FitInfo]:
    """A fit that went well; methods that know of symmetry are told of it, where the mask has it."""
    places = np.arange(x.shape[1]).reshape(shape)[:, ::-1].ravel()
    symmetry = {"mirror": places} if np.array_equal(mask[places], mask) else {}
    fit = METHODS[name].fit
    model, info = fit(key, jnp.asarray(x), mask, **settings, **sections.arguments_of(fit, symmetry))
    raise_if_failed(info, METHODS[name].title)
    return model, info


def chosen(config: ConfigDict, name: str, fold: FoldFaces, mask: np.ndarray, fit: Callable[..., Any]) -> dict[str, Any]:
    """The settings of the config, those with a grid by the PSNR on held-out people."""
    section = sections.arguments(config.settings[name], METHODS[name].fit)
    grids = {field: value for field, value in section.items() if isinstance(value, tuple)}
    if not grids:
        return section
    train, held_out = fold.train[~fold.is_tuning], fold.train[fold.is_tuning]
    best, most = section, -np.inf
    for values in itertools.product(*grids.values()):
        settings = section | dict(zip(grids, values, strict=True))
        reached = psnr(rebuilt(fit(train, mask, settings)[0], held_out, mask), held_out).mean()
        best, most = (settings, reached) if reached > most else (best, most)
    return best


def rebuilt(model: Hallucinator, x: np.ndarray, mask: np.ndarray) -> np.ndarray:
    """Faces `[q, d]` in [0, 1] from the visible pixels of x `[q, d]`."""
    return np.clip(np.asarray(hallucination.reconstruct_matrix(model, x[:, mask])), 0, 1)


def psnr(images: np.ndarray, originals: np.ndarray) -> np.ndarray:
    """PSNR of each image `[q]` in dB, at a peak of 1."""
    return reconstruction.psnr(images, originals, peak=1.0, axis=1)


def _median(key: jax.Array, x: jax.Array, mask: np.ndarray) -> jax.Array:
    return features.median_distance(prng.stream(key, "distances"), x[:, mask])
