"""Fastfood DW-KSVD beyond the nearly linear range: narrower bandwidths, sines or pairs, and two ways back.

A bandwidth puts the share `quantile` of the data in the range where a form can be inverted entry by entry: |V y| up to
pi / 2 for the sine and pi for pairs of cosine and sine. With a smaller share the kernel is less linear, and features
beyond the range are folded: clipped arcsines or angles are then wrong, and Gauss-Newton starts from them.
"""

import dataclasses
from collections.abc import Mapping
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from ml_collections import ConfigDict

from experiments.common import fields
from experiments.hallucinate import claims, methods
from experiments.hallucinate.faces import FoldFaces
from jaxface import features, hallucination
from jaxface.core import prng
from jaxface.features import forms
from jaxface.hallucination.fastfood import FastfoodDictionaryHallucinator
from jaxface.reports import figures
from jaxface.reports.figures import Curve
from jaxface.reports.html import Picture, Section
from jaxface.reports.tables import Cell, Estimate, Table, percent, with_interval
from jaxface.runtime.workdir import Workdir

METHOD = "fastfood_5x"  # of the settings, in all but form, quantile and inverse
BASELINES = ("matched_dw_ksvd",)
_FORMS = {"sin": "sine", "cos_sin": "pairs"}
_WAYS = {
    "least_squares": "entry by entry",
    "conjugate_gradient": "entry by entry, conjugate gradients",
    "gauss_newton": "Gauss-Newton",
}


def check(config: ConfigDict) -> None:
    """Refuses values that no fit can use."""
    fields.shares(config, "quantiles", above_zero=True, section="bandwidths")
    fields.words(config, "forms", features.FORMS, section="bandwidths")
    fields.words(config, "inverses", features.INVERSES, section="bandwidths")
    fields.counts(config, "max_faces", "max_tests", minimum=2, section="bandwidths")


def stages(config: ConfigDict, fold: FoldFaces, mask: np.ndarray, workdir: Workdir) -> dict[str, np.ndarray]:
    """A stage for each form and quantile: PSNR `[q]`, shares and sizes by name; and for the baselines."""
    some = _some(config, fold)
    found: dict[str, np.ndarray] = {"ids": some.test_ids, "num_train": np.asarray(len(some.train))}
    for name in BASELINES:
        arrays = workdir.stage(f"bandwidths-{name}", partial(_baseline, config, name, some, mask))
        found |= {f"{name}/{field}": value for field, value in arrays.items()}
    for form in config.bandwidths.forms:
        for quantile in config.bandwidths.quantiles:
            name = f"{form}-{quantile:g}"
            arrays = workdir.stage(f"bandwidths-{name}", partial(_of_bandwidth, config, form, quantile, some, mask))
            found |= {f"{name}/{field}": value for field, value in arrays.items()}
    return found


def _some(config: ConfigDict, fold: FoldFaces) -> FoldFaces:
    """At most so many faces that train and that are tested, drawn at random."""
    rng = np.random.default_rng((config.seed, 9))
    train, test = (
        np.sort(rng.permutation(len(x))[:most])
        for x, most in ((fold.train, config.bandwidths.max_faces), (fold.test, config.bandwidths.max_tests))
    )
    return fold._replace(
        train=fold.train[train],
        train_ids=fold.train_ids[train],
        is_tuning=fold.is_tuning[train],
        test=fold.test[test],
        test_ids=fold.test_ids[test],
    )


def _baseline(config: ConfigDict, name: str, fold: FoldFaces, mask: np.ndarray) -> dict[str, np.ndarray]:
    images = methods.of_fold(config, name, fold, mask)["images"]
    return {"psnr": methods.psnr(images, fold.test)}


def _of_bandwidth(
    config: ConfigDict, form: str, quantile: float, fold: FoldFaces, mask: np.ndarray
) -> dict[str, np.ndarray]:
    settings: dict[str, Any] = {**methods.arguments(config.settings[METHOD]), "form": form, "quantile": quantile}
    key = prng.stream(jax.random.key(config.seed), METHOD)
    model = methods.fitted(methods.METHODS["fastfood_dw_ksvd"], key, fold.train, mask, settings, shape=fold.shape).model
    assert isinstance(model, FastfoodDictionaryHallucinator)
    arrays = {"size": np.asarray(size(model, fold.train))}
    for inverse in config.bandwidths.inverses:
        other = dataclasses.replace(model, inverse=inverse)
        report = hallucination.validity(other, jnp.asarray(fold.test[:, mask]))
        arrays[f"{inverse}/psnr"] = methods.psnr(methods.rebuilt(other, fold.test, mask), fold.test)
        arrays[f"{inverse}/clipped"] = np.asarray(report.share_clipped)
        arrays[f"{inverse}/residual"] = np.asarray(report.residual)
    return arrays


def size(model: FastfoodDictionaryHallucinator, x: np.ndarray) -> float:
    """The root mean square of the entries of `V y` of faces x `[n, d]`: the kernel is nearly linear well below 1."""
    face_map = model.signals.face_map
    projected = features.feature_matrix(face_map, jnp.asarray(x) - model.mean[None, :], form=forms.identity)
    return float(jnp.sqrt((projected**2).mean()))


def table(config: ConfigDict, found: Mapping[str, np.ndarray]) -> Table:
    """PSNR by form, quantile and way back, less that of the baseline on the same faces."""
    rows: list[tuple[Cell, ...]] = []
    base = found[f"{BASELINES[0]}/psnr"]
    draws = {"num_resamples": config.num_resamples, "seed": config.seed}
    for form in config.bandwidths.forms:
        for quantile in config.bandwidths.quantiles:
            name = f"{form}-{quantile:g}"
            for inverse in config.bandwidths.inverses:
                values = found[f"{name}/{inverse}/psnr"]
                rows.append(
                    (
                        _FORMS[form],
                        percent(1 - quantile),
                        Estimate(float(found[f"{name}/size"]), digits=2),
                        _WAYS[inverse],
                        with_interval(claims.difference(values, found["ids"], **draws)),
                        with_interval(claims.difference(values - base, found["ids"], **draws)),
                        percent(float(found[f"{name}/{inverse}/clipped"].mean())),
                        Estimate(float(np.median(found[f"{name}/{inverse}/residual"])), digits=3),
                    )
                )
    columns = ("form", "folded, %", "size of V y", "way back", "PSNR, dB", "above DW-KSVD, dB", "clipped %", "residual")
    caption = f"{int(found['num_train']):,} faces train; DW-KSVD has the beta of Fastfood; 95 % intervals over people"
    return Table(columns, rows, caption)


def section(config: ConfigDict, found: Mapping[str, np.ndarray]) -> Section:
    """The section of the report."""
    lines = []
    for form in config.bandwidths.forms:
        names = [f"{form}-{quantile:g}" for quantile in sorted(config.bandwidths.quantiles, reverse=True)]
        sizes = [float(found[f"{name}/size"]) for name in names]
        for inverse in config.bandwidths.inverses:
            mean = [float(found[f"{name}/{inverse}/psnr"].mean()) for name in names]
            lines.append(Curve(f"{_FORMS[form]}, {_WAYS[inverse]}", sizes, mean))
    figure = figures.curves(
        lines,
        x_label="root mean square of V y: the kernel is nearly linear at the left",
        y_label="PSNR, dB",
        title="Narrower bandwidths",
        reference=float(found[f"{BASELINES[0]}/psnr"].mean()),
    )
    return Section(
        "Beyond the nearly linear range",
        (
            "The sine can be inverted where the kernel is nearly linear, and there codes of features are nearly codes "
            "of pixels. With narrower bandwidths the kernel bends more, and more features are folded. Pairs of cosine "
            "and sine can be inverted at half the bandwidth, and Gauss-Newton starts from the inverse of the entries.",
            Picture("bandwidths.svg", figures.to_svg(figure), "Dotted: DW-KSVD with the beta of Fastfood."),
            table(config, found),
        ),
    )
