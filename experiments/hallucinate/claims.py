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


class Printed(NamedTuple):
    """The paper's numbers of a method, in its Tables 1 and 2."""

    psnr: float  # dB
    deviation: float
    rate: float  # VR at 1 % FAR
    eer: float


PRINTED = {
    "pca": Printed(12.7439, 2.1288, 0.046, 0.452),
    "ksvd": Printed(14.0720, 2.0532, 0.438, 0.165),
    "dw_ksvd": Printed(17.6402, 2.3757, 0.826, 0.056),
    "fastfood_5x_dekernelized": Printed(17.7842, 2.2480, 0.848, 0.050),
    "fastfood_5x": Printed(18.9251, 2.3213, 0.919, 0.033),
    "fastfood_10x": Printed(20.1496, 2.4243, 0.951, 0.025),
}
PRINTED |= {"streamed_dw_ksvd": PRINTED["dw_ksvd"]} | {
    f"streamed_{kind}": PRINTED[f"fastfood_{kind}"] for kind in ("5x_dekernelized", "5x", "10x")
}
PRINTED_ORIGINAL = (0.982, 0.014)  # VR at 1 % FAR and EER of the original faces


class Claim(NamedTuple):
    """`better` reconstructs better than `worse`."""

    better: str
    worse: str

    @property
    def printed(self) -> float:
        """By so much in the paper (dB), NaN where it says nothing."""
        better, worse = PRINTED.get(self.better), PRINTED.get(self.worse)
        if better is None or worse is None or better is worse:  # the same method of the paper, from other data
            return math.nan
        return better.psnr - worse.psnr


CLAIMS = (
    Claim("ksvd", "pca"),
    Claim("dw_ksvd", "ksvd"),
    Claim("fastfood_5x_dekernelized", "dw_ksvd"),
    Claim("fastfood_5x", "dw_ksvd"),
    Claim("fastfood_10x", "dw_ksvd"),
    Claim("fastfood_5x", "fastfood_5x_dekernelized"),
    Claim("fastfood_10x", "fastfood_5x"),
    Claim("fastfood_5x", "matched_dw_ksvd"),
    Claim("streamed_5x", "streamed_dw_ksvd"),
    Claim("streamed_10x", "streamed_dw_ksvd"),
    Claim("streamed_10x", "streamed_5x_some"),
    Claim("streamed_5x", "streamed_matched"),
    Claim("streamed_5x_dekernelized", "streamed_dw_ksvd"),
    Claim("streamed_5x_some", "streamed_5x_dekernelized"),
    Claim("streamed_5x_few", "streamed_matched_few"),
    Claim("streamed_5x", "streamed_5x_few"),
    Claim("streamed_dw_ksvd", "dw_ksvd"),
    Claim("streamed_5x", "fastfood_5x"),
    Claim("ridge", "streamed_5x"),
    Claim("ridge", "streamed_10x"),
    Claim("fastfood_10x", "ridge"),
    Claim("fastfood_ridge", "ridge"),
    Claim("kernel_ridge", "fastfood_ridge"),
    Claim("network", "ridge"),
)


def table(psnr: Mapping[str, np.ndarray], ids: np.ndarray, names: Names, *, num_resamples: int, seed: int) -> Table:
    """Mean differences on the same faces, with intervals over people, and a verdict for each claim."""
    rows: list[tuple[Cell, ...]] = []
    for claim in CLAIMS:
        if claim.better not in psnr or claim.worse not in psnr:
            continue
        gain = difference(psnr[claim.better] - psnr[claim.worse], ids, num_resamples=num_resamples, seed=seed)
        is_printed = not {claim.better, claim.worse} & set(names.changed)
        printed = Estimate(claim.printed if is_printed else math.nan, digits=2)
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
