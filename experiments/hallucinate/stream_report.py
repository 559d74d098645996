"""The section of the report on a dictionary from a stream."""

from collections.abc import Mapping

import numpy as np
from ml_collections import ConfigDict

from jaxface.reports.html import Section
from jaxface.reports.tables import Cell, Estimate, Table

_TITLES = {"dw_ksvd": "DW-KSVD", "fastfood_dw_ksvd": "Fastfood DW-KSVD {expansion}x"}


def section(config: ConfigDict, streamed: Mapping[str, np.ndarray]) -> Section:
    """What was learnt from, and each dictionary on faces that were held out; `config` is the section `streaming`."""
    num_faces, size, twice = (int(streamed[name]) for name in ("num_faces", "batch_size", "num_seen_twice"))
    what = "variations of the training faces" if config.num_faces else "training faces"
    replaced, cut = (int(streamed[name]) for name in ("num_replaced", "num_cut"))
    seen = f"each seen once, and the first {twice:,} again at the end" if twice else "each seen once"
    return Section(
        "A dictionary from a stream",
        (
            f"{_TITLES[config.method].format(**config)} from {num_faces:,} {what}, {seen}, in batches of {size:,}. "
            f"The stream remembers its {config.num_atoms:,} atoms and three numbers for each. {replaced:,} "
            f"atoms were placed anew, and {cut:,} steps were shortened so that the error could not rise. A run that "
            "was killed goes on from its last checkpoint, with the same result.",
            table(config, streamed),
        ),
    )


def table(config: ConfigDict, streamed: Mapping[str, np.ndarray]) -> Table:
    """Relative errors, PSNR of the faces that each dictionary reconstructs, and what it kept."""
    names = [str(name) for name in streamed["names"]]
    whole = [error for name, error in zip(names, streamed["errors"], strict=True) if name.startswith("K-SVD")]
    rows: list[tuple[Cell, ...]] = [
        (
            name,
            Estimate(float(error), digits=4),
            Estimate(float(error / whole[0]), digits=3) if whole else "–",
            Estimate(float(psnr), digits=2),
            Estimate(float(size) / 1e6, digits=2) if size else "–",
        )
        for name, error, psnr, size in zip(names, streamed["errors"], streamed["psnr"], streamed["bytes"], strict=True)
    ]
    return Table(
        ("dictionary", "relative error", "against K-SVD", "PSNR, dB", "kept in memory, MB"),
        rows,
        f"held-out people; {config.num_atoms:,} atoms in {int(streamed['num_signals']):,} dimensions, "
        f"{config.sparsity} a face",
    )
