"""The interval of a difference in words."""

import numpy as np

from jaxface.metrics.intervals import Interval


def verdict(interval: Interval, *, below: str, above: str, neither: str) -> str:
    """`below` or `above` for an interval on that side of zero, `neither` for one that contains zero."""
    if np.isnan(interval.low) or np.isnan(interval.high):
        return "no interval"
    if interval.high < 0:
        return below
    return above if interval.low > 0 else neither
