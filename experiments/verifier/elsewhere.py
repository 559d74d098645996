"""Other people, seen by another camera, as the source of a verifier: what their model gives without and with names.

`config.source` holds vectors of other people by the same network or image steps; their Joint Bayes model is fitted
once. In every fold it moves to the photos of the people who fit: to their mean, by each adaptation without the names
of these photos, and by the transfer with names. All are calibrated on the same people, and stand beside the verifiers
of these people alone.
"""

import functools
from collections.abc import Callable, Mapping, Sequence
from functools import partial

import numpy as np
from ml_collections import ConfigDict

from experiments.common import inputs
from experiments.common.inputs import Vectors
from experiments.verifier import evidence, report
from experiments.verifier.evidence import Evidence, Pooled
from experiments.verifier.sides import Sides
from experiments.verify import domains, transfer
from experiments.verify.transfer import Source
from jaxface.data import pairs
from jaxface.faces.pipeline import ImagePipeline
from jaxface.reports.html import Section
from jaxface.reports.tables import Cell, Table

METHODS = (
    "source model, mean of these photos",
    "source model, CORAL, no names",
    "source model, CORAL+, no names",
    "source model, Kaldi's adaptation, no names",
    "transfer with names",
)
_OWN = "Joint Bayes"  # the kind that takes the same features of these people alone


def read(config: ConfigDict, vectors: Vectors, steps: ImagePipeline) -> Callable[[], Source] | None:
    """The model of the people of `config.source`, fitted when a fold first asks for it; None without them."""
    if config.source.root is None:
        return None
    loaded = inputs.load_vectors(config.source, steps)
    domains.check_sides(loaded, vectors)
    return functools.cache(partial(transfer.source_model, _settings(config), loaded, None))


def _settings(config: ConfigDict) -> ConfigDict:
    """The fields of a transfer."""
    shared = {name: config[name] for name in ("seed", "num_components", "num_iters")}
    return ConfigDict({**shared, "weights": config.source.weights, "length_normalize": False})


def measure(config: ConfigDict, source: Source, vectors: Vectors, side: Sides) -> dict[str, np.ndarray]:
    """Calibrated ratios `[methods, pairs]` of the test pairs, and the weight of the source in the transfer."""
    held = side.split.held_out
    held = held[pairs.limited(vectors.ids[held], max_rows=config.max_images)]
    problem = transfer.prepare(_settings(config), source, vectors, side.split._replace(held_out=held, test=side.rows))
    fitted = transfer.moved(_settings(config), problem)
    trial = pairs.all_pairs(vectors.ids[held])
    scores = []
    for model in fitted.models:
        of_held = transfer.pair_scores(model, problem.features["held_out"], trial)
        of_test = transfer.pair_scores(model, problem.features["test"], side.trial)
        scores.append(evidence.calibrated(of_held, trial.is_same, of_test))
    return {"source scores": np.stack(scores), "source weight": fitted.chosen[0]}


def section(
    config: ConfigDict, measured: Sequence[Mapping[str, np.ndarray]], pooled: Pooled, plain: Mapping[str, Evidence]
) -> tuple[Section, dict[str, float]]:
    """Every method on the same pairs, its difference to the source model, and the numbers by name."""
    scores = np.concatenate([arrays["source scores"] for arrays in measured], axis=1)
    found = {
        method: evidence.of_ratios(config, pooled, ratios)
        for method, ratios in zip(METHODS, scores, strict=True)
        if not np.isnan(ratios).any()
    }
    own = {f"{_OWN}, these people alone": plain[_OWN]} if _OWN in plain else {}
    rows: list[tuple[Cell, ...]] = [(name, *report.estimates(config, each)) for name, each in (own | found).items()]
    first = found.get(METHODS[0])
    differences: list[tuple[Cell, ...]] = [
        (name, *report.cells(each.less(first)))
        for name, each in (own | found).items()
        if first is not None and each is not first
    ]
    weights = ", ".join(f"{float(arrays['source weight']):g}" for arrays in measured)
    text = (
        f"The people of {config.source.root} are the source: other people by another camera. Their model is moved to "
        "the photos of the people who fit. The rows of the source model use no names of these photos. The transfer "
        "uses the names, with the weight of the source that the likelihood of the calibration people chooses (folds: "
        f"{weights}). "
        "Photos without names do not tell which new variance is people and which is noise, so no adaptation is safe. "
        "The saved verifier is one of these people alone."
    )
    tables = (
        Table(report.columns(config), rows, f"The same pairs for every row; {report.resampled(config)}"),
        Table(
            report.columns(config), differences, f"Less the first method; rates in points; {report.resampled(config)}"
        ),
    )
    results = {
        f"{name}: {each}": value for name, one in found.items() for each, value in evidence.numbers(config, one).items()
    }
    return Section("From another camera", (text, *tables)), results
