"""Committees: many LDAs on random subspaces instead of one, with few images of everybody."""

from collections.abc import Mapping

import jax
import jax.numpy as jnp
import numpy as np
from ml_collections import ConfigDict

from experiments.committee import methods
from experiments.committee.methods import COMMITTEES, METHODS
from experiments.committee.report import REPEATED, repeats_default
from experiments.committee.samples import random_samples
from experiments.common import inputs
from experiments.tour.part import Part
from jaxface.data import LabeledImages
from jaxface.ensembles import POSTERIORS, RULES, growth, log_posteriors
from jaxface.metrics import intervals
from jaxface.reports import figures
from jaxface.reports.figures import Curve
from jaxface.reports.html import Picture, Section
from jaxface.reports.tables import Cell, Estimate, Table, percent_interval


def run(config: ConfigDict, faces: LabeledImages, rng: np.random.Generator) -> dict[str, np.ndarray]:
    """Errors `[methods, splits]` and the growth of the committee under every rule, on the first split."""
    x = inputs.encode(jnp.asarray(faces.images, inputs.working_dtype()), config.image_steps)
    (num_train,) = config.num_train
    found, grown, ratio = [], {}, 0.0
    for number, samples in enumerate(random_samples(config, x, faces.ids, num_train)):
        found.append(methods.errors(config, samples, number)["errors"])
        ratio = len(samples.probes) / len(samples.train)
        if number == 0:
            drawn = methods.committees(config, samples, jax.random.key(int(rng.integers(2**31))))
            posteriors = log_posteriors(drawn[COMMITTEES[0]], samples.probes, posterior=POSTERIORS[config.posterior])
            grown = {
                f"growth {name}": np.asarray(growth(posteriors, samples.probe_ids, rule=rule).accuracy)
                for name, rule in RULES.items()
            }
    errors = np.stack(found, axis=-1)
    return {"errors": errors, "num_train": np.asarray(num_train), "test_to_train": np.asarray(ratio), **grown}


def render(arrays: Mapping[str, np.ndarray], faces: LabeledImages) -> Part:
    """The table, and error against the number of members."""
    ratio = float(arrays["test_to_train"])
    rates: dict[str, Cell] = {
        name: _rate(errors, ratio)
        for name, errors in zip(METHODS, arrays["errors"], strict=True)
        if not np.isnan(errors).any()
    }
    is_repeated = repeats_default([arrays["errors"]])
    lines = [
        Curve(name.removeprefix("growth "), np.arange(1, len(accuracy) + 1), 100 * (1 - accuracy))
        for name, accuracy in arrays.items()
        if name.startswith("growth ")
    ]
    figure = figures.curves(lines, x_label="members", y_label="error %", title="Fusion rules", markers=False)
    section = Section(
        "Committees of LDAs on random subspaces",
        (
            f"With {int(arrays['num_train'])} images a person one LDA has too many pixels and too few images. Members "
            "of a committee see the leading principal axes and random ones of the others, and their posteriors are "
            "fused.",
            Table(
                ("method", "error % [95 % interval]"),
                [
                    (name, rate)
                    for name, rate in rates.items()
                    if not (is_repeated and name == f"{COMMITTEES[1]}, sum rule")
                ],
                f"Identification, mean over {arrays['errors'].shape[-1]} random splits; more by experiments.committee"
                + (f". {REPEATED}" if is_repeated else ""),
            ),
            Picture("committee.svg", figures.to_svg(figure), "First split; the table has the mean over all of them."),
        ),
    )
    shown = f"{COMMITTEES[0]}, sum rule"
    headline: list[tuple[Cell, ...]] = [("committee", f"{shown}: error %", rates[shown])]
    mean = arrays["errors"].mean(axis=-1)
    results = {f"error, {name}": float(error) for name, error in zip(METHODS, mean, strict=True) if not np.isnan(error)}
    return Part(section, headline, results)


def _rate(errors: np.ndarray, ratio: float) -> Estimate:
    """The mean over splits."""
    return percent_interval(intervals.split_interval(errors, test_to_train=ratio, within=intervals.RATE))
