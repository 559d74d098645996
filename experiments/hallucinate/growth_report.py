"""Dictionaries with more atoms than pixels: what more faces bring."""

from collections.abc import Mapping

import numpy as np
from ml_collections import ConfigDict

from experiments.hallucinate import claims
from experiments.hallucinate.found import Found
from jaxface.reports import figures
from jaxface.reports.figures import Curve
from jaxface.reports.html import Picture, Section

# Methods that differ in the number of faces alone, by what they share.
FAMILIES: Mapping[str, tuple[str, ...]] = {
    "DW-KSVD, beta of Fastfood": ("streamed_matched_few", "streamed_matched_some", "streamed_matched"),
    "Fastfood DW-KSVD 5x": ("streamed_5x_few", "streamed_5x_some", "streamed_5x"),
}
FEWER_FACES = tuple(name for family in FAMILIES.values() for name in family[:-1])


def sections(config: ConfigDict, found: Found) -> tuple[Section, ...]:
    """PSNR against the number of faces, for the families of which several were run; nothing if there are none."""
    lines = []
    for label, names in FAMILIES.items():
        here = [name for name in names if name in found.psnr]
        if len(here) < 2:
            continue
        means = [
            claims.difference(found.psnr[name], found.ids, num_resamples=config.num_resamples, seed=config.seed)
            for name in here
        ]
        faces = [config.settings[name].num_faces for name in here]
        values, low, high = (np.array([float(field) for field in fields]) for fields in zip(*means, strict=True))
        lines.append(Curve(label, faces, values, low, high))
    if not lines:
        return ()
    reference = float(found.psnr["ridge"].mean()) if "ridge" in found.psnr else None
    figure = figures.curves(
        lines, x_label="faces in the pass", y_label="PSNR, dB", title="More faces", log_x=True, reference=reference
    )
    num_atoms = config.settings[FAMILIES["Fastfood DW-KSVD 5x"][0]].num_atoms
    return (
        Section(
            "More atoms than pixels",
            (
                f"{num_atoms:,} atoms for {found.mask.size:,} pixels, learnt in one pass over variations of the "
                f"{found.num_train:,} faces that train: mirrored, shifted, scaled, brighter or darker. The variations "
                "show no other people.",
                Picture(
                    "psnr_faces.svg",
                    figures.to_svg(figure),
                    "Mean PSNR with 95 % intervals over people"
                    + ("; dotted: ridge regression on the faces without variations." if reference else "."),
                ),
            ),
        ),
    )
