"""The quality of photos in a verifier: how much it helps beside the same kind without it.

A quality says which photos are alike, and held-out people say by how much their weights differ (`joint_bayes.quality`):
the weight of a photo is `exp(alpha (u - mean of u))` of the quality u of its bin. In every fold the training people fit
a model for each alpha, the calibration people choose alpha and calibrate the ratios, and the test people are scored.
"""

import csv
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import jax.numpy as jnp
import numpy as np
from ml_collections import ConfigDict

from experiments.common import weighted
from experiments.common.inputs import Vectors
from experiments.verifier import evidence, report
from experiments.verifier.evidence import Evidence, Pooled
from experiments.verifier.sides import Sides
from jaxface import verifier
from jaxface.core import messages
from jaxface.core.fitinfo import Status
from jaxface.core.labels import dense
from jaxface.data import pairs
from jaxface.joint_bayes import quality
from jaxface.reports.html import Section
from jaxface.reports.tables import Cell, Table
from jaxface.verifier import Verifier, kinds

LENGTH = "length"
AWARE = "{}, by quality"


def kinds_of(config: ConfigDict) -> tuple[str, ...]:
    """The kinds that take weights: those by Joint Bayes."""
    return tuple(kind for kind in config.kinds if not kinds.KINDS[kind].is_cosine)


def path_of(config: ConfigDict) -> str | None:
    """The file that `config.quality` names, beside the vectors."""
    return config.quality.rsplit(":", 1)[0] if config.quality is not None and ":" in config.quality else None


def read(config: ConfigDict, vectors: Vectors) -> np.ndarray | None:
    """The quality of every vector `[n]` that `config.quality` names, larger for better photos; None without it.

    `length` is the logarithm of the length of a vector, `NAME` an array of the `.npz` of the vectors, and
    `FILE.csv:COLUMN` a column of a file with a row for each file, such as `faces.csv:score` of `experiments.embed`.
    """
    source = config.quality
    if source is None:
        return None
    if not kinds_of(config):
        raise ValueError("config.quality needs a kind by Joint Bayes among config.kinds: a cosine takes no weights.")
    if source == LENGTH:
        values = np.log(np.maximum(np.linalg.norm(vectors.x, axis=1), np.finfo(vectors.x.dtype).tiny))
    elif ":" in source:
        path, column = source.rsplit(":", 1)
        values = _of_csv(path, column, vectors.files)
    else:
        values = _of_archive(config.data.root, source)
    if values.shape != (len(vectors.x),) or not np.isfinite(values).all():
        raise ValueError(
            f"config.quality = {source!r} must give one finite number for each of the {len(vectors.x)} vectors; got "
            f"shape {values.shape}, {int((~np.isfinite(values)).sum())} of them not finite."
        )
    return values


def _of_archive(path: str | None, name: str) -> np.ndarray:
    if path is None or Path(path).suffix != ".npz":
        raise ValueError(
            f"config.quality = {name!r} names an array of a .npz of vectors, and the data are none. Give "
            f"{LENGTH!r}, or FILE.csv:COLUMN with the column `file`."
        )
    with np.load(path, allow_pickle=False) as arrays:
        if name not in arrays:
            near = messages.did_you_mean(name, arrays)
            raise ValueError(f"config.quality = {name!r} is no array of {messages.printable(path)}.{near}")
        return np.asarray(arrays[name], np.float64)


def _of_csv(path: str, column: str, files: Sequence[str]) -> np.ndarray:
    if not files:
        raise ValueError("config.quality names a file of qualities, and these vectors have no names of files.")
    header, *rows = csv.reader(Path(path).read_text(encoding="utf-8").splitlines())
    places = []
    for name in ("file", column):
        if name not in header:
            raise ValueError(f"{messages.printable(path)} has no column {name!r}; it has {', '.join(header)}.")
        places.append(header.index(name))
    value_of = {row[places[0]]: row[places[1]] for row in rows}
    if missing := [file for file in files if not value_of.get(file)]:
        raise ValueError(
            f"{messages.printable(path)} has no {column!r} of {len(missing)} files, the first "
            f"{messages.printable(missing[0])!r}."
        )
    return np.array([float(value_of[file]) for file in files])


def measure(
    config: ConfigDict, vectors: Vectors, levels: np.ndarray, side: Sides, fitted: Sequence[Verifier | None]
) -> dict[str, np.ndarray]:
    """Calibrated ratios `[kinds, pairs]` of every kind by Joint Bayes with weights, and the exponents `[kinds]`.

    `fitted` are the verifiers without weights, of all kinds. A kind whose fit failed has NaN ratios.
    """
    found = [
        _scored(config, vectors, levels, side, model)
        for kind, model in zip(config.kinds, fitted, strict=True)
        if kind in kinds_of(config)
    ]
    scores, alphas = zip(*found, strict=True)
    return {"quality scores": np.stack(scores), "quality exponents": np.array(alphas)}


def _scored(
    config: ConfigDict, vectors: Vectors, levels: np.ndarray, side: Sides, model: Verifier | None
) -> tuple[np.ndarray, float]:
    nothing = np.full(len(side.trial.first), np.nan), np.nan
    if model is None:
        return nothing
    train, held = side.split.train, side.split.held_out
    z = verifier.encode_vectors(model, jnp.asarray(vectors.x))
    bins = quality.bins_of(levels, quality.bin_edges(levels[train], num_bins=config.num_quality_bins))
    known, new = (_collected(config, z, vectors.ids, bins, rows, shift=model.model.mean) for rows in (train, held))
    means = quality.bin_means(levels[train], bins[train], num_bins=config.num_quality_bins)
    candidates = quality.exponents(known, means, np.asarray(config.quality_exponents))
    chosen, info = quality.fit_candidates(known, new, candidates, num_iters=config.num_iters)
    place = int(chosen.chosen)
    if int(info.status[place]) >= Status.NON_FINITE:
        return nothing
    weights = np.asarray(chosen.weights)[bins]
    rows = held[pairs.limited(vectors.ids[held], max_rows=config.max_images)]
    trial = pairs.all_pairs(vectors.ids[rows])
    raw = [
        weighted.pair_scores(chosen.model, weights[some], z[some], np.stack([each.first, each.second], axis=1))
        for some, each in ((rows, trial), (side.rows, side.trial))
    ]
    return evidence.calibrated(raw[0], trial.is_same, raw[1]), float(config.quality_exponents[place])


def _collected(config: ConfigDict, z: Any, ids: np.ndarray, bins: np.ndarray, rows: np.ndarray, *, shift: Any) -> Any:
    people = dense(ids[rows])
    settings = {"num_people": len(people.names), "num_bins": config.num_quality_bins, "shift": shift}
    return quality.collect_bins(z[rows], people.ids, bins[rows], **settings)


def section(
    config: ConfigDict, measured: Sequence[Mapping[str, np.ndarray]], pooled: Pooled, plain: Mapping[str, Evidence]
) -> tuple[Section, dict[str, float]]:
    """Each kind without and with the quality on the same pairs, their difference, and the numbers by name."""
    rows: list[tuple[Cell, ...]] = []
    results: dict[str, float] = {}
    scores = np.concatenate([arrays["quality scores"] for arrays in measured], axis=1)
    exponents = np.stack([arrays["quality exponents"] for arrays in measured])
    for k, kind in enumerate(kinds_of(config)):
        name = AWARE.format(kind)
        if kind not in plain or np.isnan(scores[k]).any():
            rows.append((name, *report.estimates(config, None)))
            continue
        aware = evidence.of_ratios(config, pooled, scores[k])
        less = aware.less(plain[kind])
        rows += [(kind, *report.estimates(config, plain[kind])), (name, *report.estimates(config, aware))]
        rows.append(("the second less the first", *report.cells(less)))
        results |= {f"{name}: {each}": value for each, value in evidence.numbers(config, aware).items()}
        results |= {f"{name}, less without, {end}": float(getattr(less.eer, end)) for end in ("low", "high")}
    chosen = "; ".join(
        f"{kind}: {', '.join(f'{alpha:g}' for alpha in exponents[:, k])}" for k, kind in enumerate(kinds_of(config))
    )
    text = (
        f"The quality {config.quality!r} gives every photo a weight, which is a precision: {config.num_quality_bins} "
        "bins, and one exponent for all that the likelihood of the calibration people chooses; 0 is the model without "
        f"weights. Exponents of the folds: {chosen}. Both rows of a kind have the same people and pairs, and the "
        "difference is over the same resamples of people. The saved verifier is without weights."
    )
    caption = f"Without and with the quality; {report.resampled(config)}"
    return Section("With the quality of the photos", (text, Table(report.columns(config), rows, caption))), results
