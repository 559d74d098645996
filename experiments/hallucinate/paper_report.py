"""Tables 1 and 2 of the paper beside ours, and its Figures 4, 6 and 7."""

import math
from collections.abc import Mapping

import numpy as np

from experiments.hallucinate import claims
from experiments.hallucinate.found import Found
from experiments.hallucinate.matching import ORIGINAL
from experiments.hallucinate.pairs_report import Matched
from jaxface.reports import distribution_figures, figures, sheets
from jaxface.reports.html import Block, Picture, Section
from jaxface.reports.tables import Cell, Estimate, Table, percent, percent_interval


def tables(found: Found, results: Mapping[str, Matched]) -> Section:
    """The numbers of the paper and those of this run, method by method."""
    nothing = Estimate(math.nan)
    rate, eer = claims.PRINTED_ORIGINAL
    rows: list[tuple[Cell, ...]] = [
        (
            "original faces",
            *[nothing] * 4,
            percent(rate),
            percent_interval(results[ORIGINAL].rate),
            percent(eer),
            percent_interval(results[ORIGINAL].eer),
        )
    ]
    for name, values in found.psnr.items():
        if name not in claims.PRINTED or name in found.names.changed:
            continue
        printed = claims.PRINTED[name]
        rows.append(
            (
                found.names.labels[name],
                Estimate(printed.psnr, digits=2),
                Estimate(float(values.mean()), digits=2),
                Estimate(printed.deviation, digits=2),
                Estimate(float(values.std()), digits=2),
                percent(printed.rate),
                percent_interval(results[name].rate),
                percent(printed.eer),
                percent_interval(results[name].eer),
            )
        )
    quantities = ("PSNR, dB", "deviation", "VR % at 1 % FAR", "EER %")
    columns = ("method", *(f"{what}, {whose}" for what in quantities for whose in ("paper", "here")))
    return Section(
        "The paper's tables",
        (
            "The paper's faces are 16,028 of FRGC, controlled photographs of 466 people, and its dictionaries have "
            "15,000 atoms (Fastfood 5x) and 30,000 (10x) from 1,000,000 mugshots. FRGC is not public. The levels "
            "of two sets of faces cannot be compared; the order of the methods can.",
            Table(columns, rows, "Tables 1 and 2 of the paper, and this run"),
        ),
    )


def fidelity(found: Found, shown: tuple[str, ...]) -> Section:
    """Figures 6 and 7: a marker for each person, and the distribution of all images with fitted Gaussians."""
    values = {found.names.labels[name]: found.psnr[name] for name in shown}
    _, index = np.unique(found.ids, return_inverse=True)
    by_person = {label: np.bincount(index, each) / np.bincount(index) for label, each in values.items()}
    subjects = distribution_figures.subjects(
        by_person, x_label="person, from the hardest to the easiest", y_label="mean PSNR, dB", title="Each person"
    )
    histogram = distribution_figures.histograms(
        values, x_label="PSNR, dB", y_label="% of the images", title="All images"
    )
    return Section(
        "Fidelity",
        (
            "Difficult faces are difficult for every method: faces differ far more than methods.",
            Picture(
                "psnr_people.svg",
                figures.to_svg(subjects),
                "Markers: mean PSNR of a person, in one order of the people for all methods; lines: mean over people. "
                "As Figure 6 of the paper.",
            ),
            Picture(
                "psnr_histogram.svg",
                figures.to_svg(histogram),
                "Distribution of the PSNR of images with the Gaussian of the same mean and deviation. As Figure 7.",
            ),
        ),
    )


def atoms(found: Found) -> Section:
    """Figure 4: atoms of whole faces, and their part for the pixels that are seen, by method."""
    blocks: list[Block] = [
        "Grey is zero; each picture is stretched by itself. An atom of pixels contains its part for what is seen; an "
        "atom of features has two parts, each taken back by the inverse of its own map."
    ]
    for name, (faces, parts) in found.atoms.items():
        seen = np.zeros((len(parts), found.mask.size))
        seen[:, found.mask] = parts
        stack = np.stack([faces, seen]).reshape(2, -1, *found.shape)
        title = found.names.labels[name]
        blocks.append(
            sheets.sheet(
                f"atoms_{name}.png",
                stack,
                row_labels=("whole face", "what is seen"),
                title=title,
                caption=f"The first {len(faces)} atoms of {title}.",
                symmetric=True,
                cell=0.6,
            )
        )
    return Section("Atoms", blocks)
