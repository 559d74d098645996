"""Tables, galleries and figures of the study of hallucination."""

import math
from collections.abc import Mapping

import numpy as np
from ml_collections import ConfigDict

from experiments.hallucinate import (
    bandwidths,
    claims,
    growth_report,
    kernels,
    measurements,
    neutral,
    pairs_report,
    paper_report,
    stream_report,
)
from experiments.hallucinate.found import Found, Others
from experiments.hallucinate.matching import ORIGINAL
from experiments.hallucinate.methods import Names, psnr
from experiments.hallucinate.pairs_report import Matched
from jaxface.metrics import reconstruction
from jaxface.reports import sheets
from jaxface.reports.html import Section
from jaxface.reports.tables import Cell, Estimate, Table, percent, percent_interval, with_interval


def headline(config: ConfigDict, found: Found, results: Mapping[str, Matched]) -> Table:
    """Tables 1 and 2 of the paper in one."""
    original, nothing = results[ORIGINAL], Estimate(math.nan)
    rows: list[tuple[Cell, ...]] = [
        ("original faces", *[nothing] * 4, percent_interval(original.rate), percent_interval(original.eer))
    ]
    for name, values in found.psnr.items():
        mean = claims.difference(values, found.ids, num_resamples=config.num_resamples, seed=config.seed)
        shown = np.where(found.mask[None, :], found.originals, found.images[name])
        rows.append(
            (
                found.names.labels[name],
                with_interval(mean),
                Estimate(float(values.std()), digits=2),
                Estimate(float(psnr(shown, found.originals).mean()), digits=2),
                Estimate(_ssim(found, name), digits=2),
                percent_interval(results[name].rate),
                percent_interval(results[name].eer),
            )
        )
    return Table(
        ("method", "PSNR, dB", "deviation", "seen put back", "SSIM", "VR % at 1 % FAR", "EER %"),
        rows,
        f"{len(found.ids)} faces of {np.unique(found.ids).size} people whom no model saw; 95 % intervals over people",
    )


def _ssim(found: Found, name: str) -> float:
    shape = (-1, *found.shape)
    values = reconstruction.ssim(found.images[name].reshape(shape), found.originals.reshape(shape), peak=1.0)
    return float(values.mean())


def sections(
    config: ConfigDict,
    found: Found,
    results: Mapping[str, Matched],
    others: Others,
    streamed: Mapping[str, np.ndarray],
) -> tuple[Section, ...]:
    """The body of the report."""
    return (
        _gallery(config, found),
        paper_report.tables(found, results),
        _claims(config, found, results),
        *growth_report.sections(config, found),
        paper_report.fidelity(found, _shown(found)),
        neutral.section(found, num_resamples=config.num_resamples, seed=config.seed),
        paper_report.atoms(found),
        pairs_report.section(config, found, results, _shown(found)),
        measurements.section(config, others.measured, found.shape),
        bandwidths.section(config, others.narrow),
        stream_report.section(config.streaming, streamed),
        kernels.section(config, others.burden, others.named),
        _inverses(found),
        _settings(found),
    )


def sheet(found: Found, rows: np.ndarray, names: tuple[str, ...]) -> np.ndarray:
    """Pictures `[2 + methods, people, h, w]`: originals, what is seen of them, and reconstructions."""
    originals = found.originals[rows]
    seen = np.where(found.mask[None, :], originals, 1.0)
    stack = np.stack([originals, seen, *(found.images[name][rows] for name in names)])
    return stack.reshape(*stack.shape[:2], *found.shape)


def _gallery(config: ConfigDict, found: Found) -> Section:
    people, first = np.unique(found.ids, return_index=True)
    rows = first[np.linspace(0, len(people) - 1, min(config.num_shown, len(people))).round().astype(int)]
    names = _shown(found)
    labels = ("original", "what is seen", *(found.names.labels[name] for name in names))
    share = found.mask.mean()
    return Section(
        "Faces from their eye region",
        (
            f"Every method sees {100 * share:.0f} % of the pixels and reconstructs the rest. None of these people was "
            "in training.",
            sheets.sheet(
                "gallery.png",
                sheet(found, rows, names),
                row_labels=labels,
                caption="The first image of people across all folds.",
                cell=0.82,
            ),
        ),
    )


def _claims(config: ConfigDict, found: Found, results: Mapping[str, Matched]) -> Section:
    table = claims.table(found.psnr, found.ids, found.names, num_resamples=config.num_resamples, seed=config.seed)
    blocks: list[str | Table] = [
        "The paper ranks its methods by PSNR on 16,028 images of FRGC. Equal beta is not an equal comparison: in the "
        "feature space of Fastfood the visible part counts about twice as much, so DW-KSVD is also fitted with the "
        "beta that this amounts to. Regressions are not in the paper.",
        table,
        *in_words(found.names, found.psnr, results),
    ]
    return Section("What holds", blocks)


def in_words(names: Names, psnr: Mapping[str, np.ndarray], results: Mapping[str, Matched]) -> list[str]:
    """The order of the methods of the paper, and the gain of the best of the others."""
    mean = {name: float(values.mean()) for name, values in psnr.items()}
    if not names.paper:
        return []
    by_psnr = " < ".join(f"{names.labels[name]} {mean[name]:.2f}" for name in sorted(names.paper, key=mean.__getitem__))
    rates = {name: float(results[name].rate.estimate) for name in names.paper}
    by_rate = " < ".join(
        f"{names.labels[name]} {100 * rates[name]:.0f}" for name in sorted(names.paper, key=rates.__getitem__)
    )
    words = [
        f"Methods of the paper by PSNR: {by_psnr} dB.",
        f"By VR % at 1 % FAR: {by_rate}; original faces {100 * float(results[ORIGINAL].rate.estimate):.0f}.",
    ]
    if names.others:
        best, theirs = max(names.others, key=mean.__getitem__), max(names.paper, key=mean.__getitem__)
        words.append(
            f"The best of the others, {names.labels[best]}, reaches {mean[best]:.2f} dB, "
            f"{mean[best] - mean[theirs]:+.2f} against the best of the paper, {names.labels[theirs]}."
        )
    return words


def _shown(found: Found) -> tuple[str, ...]:
    """The methods in galleries and figures: those of the paper, ridge regression and the best of all.

    Of methods that differ in the number of faces alone, the one with the most.
    """
    mean = {name: values.mean() for name, values in found.psnr.items()}
    best = max(mean, key=mean.__getitem__)
    return tuple(
        name for name in mean if name in (*found.names.paper, "ridge", best) and name not in growth_report.FEWER_FACES
    )


def _inverses(found: Found) -> Section:
    rows: list[tuple[Cell, ...]] = [
        (
            found.names.labels[name],
            len(report["residual"]),
            *(percent(report[field].mean(), digits=2) for field in ("share_clipped", "share_out_of_range")),
            Estimate(float(np.median(report["residual"])), digits=3),
            Estimate(float(np.median(report["conditioning"]))),
        )
        for name, report in found.validity.items()
    ]
    columns = ("method", "inverses", "clipped %", "out of range %", "residual", "condition number")
    return Section(
        "The way back from features",
        (
            "Fastfood dictionaries invert the features of every reconstruction, or those of every atom once. Features "
            "that no image has are clipped; the residual, |phi(x) - features| / |features|, is large for them.",
            Table(columns, rows, "Means of the shares, medians of residual and condition number, all folds"),
        ),
    )


def _settings(found: Found) -> Section:
    rows: list[tuple[Cell, ...]] = [(found.names.labels[name], words) for name, words in found.settings.items()]
    return Section(
        "Settings",
        (
            "Settings with a grid were chosen by PSNR on people who were held out of training; folds may differ.",
            Table(("method", "settings"), rows, "As used"),
        ),
    )
