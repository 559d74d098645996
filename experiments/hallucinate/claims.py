"""Which statements of the paper hold on these faces, also beside regressions as baselines."""

import math
from collections.abc import Mapping
from typing import NamedTuple

import numpy as np

from experiments.common import verdicts
from experiments.hallucinate.methods import Names
from jaxface.metrics import bootstrap
from jaxface.metrics.intervals import Interval
from jaxface.reports.tables import Cell, Estimate, Table, with_interval


class Claim(NamedTuple):
    """`better` reconstructs better than `worse`, by so much in the paper (dB)."""

    better: str
    worse: str
    printed: float | None  # None where the paper says nothing


CLAIMS = (
    Claim("ksvd", "pca", 1.33),
    Claim("dw_ksvd", "ksvd", 3.57),
    Claim("fastfood_5x_dekernelized", "dw_ksvd", 0.14),
    Claim("fastfood_5x", "dw_ksvd", 1.28),
    Claim("fastfood_10x", "dw_ksvd", 2.51),
    Claim("fastfood_5x", "fastfood_5x_dekernelized", 1.14),
    Claim("fastfood_10x", "fastfood_5x", 1.22),
    Claim("fastfood_5x", "matched_dw_ksvd", None),
    Claim("fastfood_10x", "ridge", None),
    Claim("fastfood_ridge", "ridge", None),
    Claim("kernel_ridge", "fastfood_ridge", None),
    Claim("network", "ridge", None),
)


def table(psnr: Mapping[str, np.ndarray], ids: np.ndarray, names: Names, *, num_resamples: int, seed: int) -> Table:
    """Mean differences on the same faces, with intervals over people, and a verdict for each claim."""
    rows: list[tuple[Cell, ...]] = []
    for claim in CLAIMS:
        if claim.better not in psnr or claim.worse not in psnr:
            continue
        gain = difference(psnr[claim.better] - psnr[claim.worse], ids, num_resamples=num_resamples, seed=seed)
        is_printed = claim.printed is not None and not {claim.better, claim.worse} & set(names.changed)
        printed = Estimate(claim.printed if is_printed and claim.printed is not None else math.nan, digits=2)
        statement = f"{names.labels[claim.better]} above {names.labels[claim.worse]}"
        rows.append((statement, printed, with_interval(gain), verdict(gain)))
    return Table(
        ("statement", "paper, dB", "here, dB", "on these faces"),
        rows,
        "Mean difference of PSNR on the same faces, 95 % intervals over people",
    )


def difference(values: np.ndarray, ids: np.ndarray, *, num_resamples: int, seed: int) -> Interval:
    """Mean with its interval; the same people are drawn for every difference."""
    return bootstrap.mean_interval(values, ids, rng=np.random.default_rng(seed), num_resamples=num_resamples)


def verdict(interval: Interval) -> str:
    """Whether a claim holds, in words."""
    return verdicts.verdict(interval, below="the other way round", above="holds", neither="not decided")
