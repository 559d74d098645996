"""Other measurements than the eye region: other parts of the face, random pixels, small images."""

from collections.abc import Mapping
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from ml_collections import ConfigDict

from experiments.common import fields
from experiments.hallucinate import claims, faces, methods
from experiments.hallucinate.faces import FoldFaces
from jaxface import hallucination
from jaxface.core import prng
from jaxface.core.fitinfo import raise_if_failed
from jaxface.hallucination import Fitted
from jaxface.reports import sheets
from jaxface.reports.html import Block, Section
from jaxface.reports.tables import Cell, Table, with_interval


def check(config: ConfigDict) -> None:
    """Refuses methods that a measurement cannot be given to, and values that no fit can use."""
    fields.words(config, "methods", config.settings.keys(), section="measurements")
    for name in config.measurements.methods:
        method = methods.METHODS[config.settings[name].method]
        if set(method.needs) - {"key"}:
            raise ValueError(
                f"config.measurements.methods must need nothing but faces and a key; {name!r} needs "
                f"{', '.join(method.needs)}."
            )
    fields.counts(config, "max_faces", "factor", section="measurements")
    fields.shares(config, "share", above_zero=True, section="measurements")
    fields.positive(config, "ridge", section="measurements")


def smaller(shape: tuple[int, int], factor: int) -> np.ndarray:
    """The operator `[v, h w]` of the means over squares of `factor` pixels a side."""
    for name, size in zip(("height", "width"), shape, strict=True):
        if size % factor:
            raise ValueError(f"config.measurements.factor must divide the {name}, {size}; got {factor}.")
    rows, columns = (np.kron(np.eye(size // factor), np.full((1, factor), 1 / factor)) for size in shape)
    return np.kron(rows, columns)


def kinds(config: ConfigDict, shape: tuple[int, int]) -> dict[str, np.ndarray]:
    """Masks `[d]` and operators `[v, d]` by name."""
    height, width = shape
    rng = np.random.default_rng(config.seed)
    factor = config.measurements.factor
    return {
        "left half": faces.rectangle(shape, (0, height, 0, width // 2)),
        "lower half": faces.rectangle(shape, (height // 2, height, 0, width)),
        f"{100 * config.measurements.share:.0f} % of the pixels": rng.random(height * width)
        < config.measurements.share,
        f"{height // factor} x {width // factor} pixels": smaller(shape, factor),
    }


def of_fold(config: ConfigDict, fold: FoldFaces) -> dict[str, np.ndarray]:
    """PSNR `[q]` and pictures of some people, by measurement and method; what is seen as a picture."""
    rows = np.random.default_rng((config.seed, 10)).permutation(len(fold.train))[: config.measurements.max_faces]
    train = fold.train[np.sort(rows)]
    shown = np.unique(fold.test_ids, return_index=True)[1][: config.num_shown]
    arrays = {"ids": fold.test_ids, "num_train": np.asarray(len(train))}
    for kind, measured in kinds(config, fold.shape).items():
        arrays[f"{kind}/seen"] = _picture(measured, fold.test[shown])
        for name in config.measurements.methods:
            images = reconstructed(config, name, train, fold.test, measured)
            arrays[f"{kind}/{name}/psnr"] = methods.psnr(images, fold.test)
            arrays[f"{kind}/{name}/images"] = images[shown]
    return arrays


def reconstructed(
    config: ConfigDict, name: str, train: np.ndarray, test: np.ndarray, measured: np.ndarray
) -> np.ndarray:
    """Faces `[q, d]` in [0, 1] from a mask or an operator, by a method fitted to the faces `train` `[n, d]`."""
    section = config.settings[name]
    method = methods.METHODS[section.method]
    settings: dict[str, Any] = methods.with_functions(methods.arguments(section))
    if "ridge" in settings:
        settings["ridge"] = config.measurements.ridge
    key = prng.stream(jax.random.key(config.seed), name) if "key" in method.needs else None
    found: Fitted
    if measured.dtype == bool:
        found = hallucination.fit(method, jnp.asarray(train), measured, key=key, **settings)
        seen = test[:, measured]
    else:
        found = hallucination.fit_measured(method, jnp.asarray(train), measured, key=key, **settings)
        seen = (test @ measured.T).astype(test.dtype)
    raise_if_failed(found.info, method.title.format(**section))
    return np.clip(np.asarray(hallucination.reconstruct_matrix(found.model, seen)), 0, 1)


def _picture(measured: np.ndarray, x: np.ndarray) -> np.ndarray:
    """What is seen of faces x `[q, d]`: the visible pixels on white, or the small image in the size of the face."""
    if measured.dtype == bool:
        return np.where(measured[None, :], x, 1.0)
    weight = (measured > 0).astype(x.dtype)
    return np.asarray((x @ measured.T) @ weight)


def section(config: ConfigDict, found: Mapping[str, np.ndarray], shape: tuple[int, int]) -> Section:
    """The section of the report."""
    names = config.measurements.methods
    labels = {name: _label(config, name) for name in names}
    draws = {"num_resamples": config.num_resamples, "seed": config.seed}
    rows: list[tuple[Cell, ...]] = []
    blocks: list[Block] = []
    for number, kind in enumerate(kinds(config, shape)):
        values = [found[f"{kind}/{name}/psnr"] for name in names]
        rows.append((kind, *(with_interval(claims.difference(each, found["ids"], **draws)) for each in values)))
        stack = np.stack([found[f"{kind}/seen"], *(found[f"{kind}/{name}/images"] for name in names)])
        blocks.append(
            sheets.sheet(
                f"measurement_{number}.png",
                stack.reshape(*stack.shape[:2], *shape),
                row_labels=("what is seen", *labels.values()),
                title=kind,
                caption=f"Faces from {kind}.",
                cell=0.7,
            )
        )
    caption = f"PSNR, dB; {int(found['num_train']):,} faces train; 95 % intervals over people"
    return Section(
        "Other measurements",
        (
            "Any subset of the pixels can be visible, and any linear measurement can stand in the place of pixels: "
            "here means over squares, so that the reconstruction is a super-resolution.",
            Table(("what is seen", *labels.values()), rows, caption),
            *blocks,
        ),
    )


def _label(config: ConfigDict, name: str) -> str:
    return methods.METHODS[config.settings[name].method].title.format(**config.settings[name])
