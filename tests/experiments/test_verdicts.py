"""Intervals of differences in words."""

import numpy as np
import pytest

from experiments.common.verdicts import verdict
from jaxface.metrics.intervals import Interval


@pytest.mark.parametrize(
    ("low", "high", "word"),
    [(-2.0, -1.0, "less"), (1.0, 2.0, "more"), (-1.0, 1.0, "open"), (0.0, 1.0, "open"), (-1.0, 0.0, "open")],
)
def test_the_side_of_zero_decides(low, high, word):
    assert verdict(Interval((low + high) / 2, low, high), below="less", above="more", neither="open") == word


@pytest.mark.parametrize(("low", "high"), [(np.nan, 1.0), (-1.0, np.nan), (np.nan, np.nan)])
def test_without_an_interval_there_is_no_verdict(low, high):
    assert verdict(Interval(0.0, low, high), below="less", above="more", neither="open") == "no interval"
