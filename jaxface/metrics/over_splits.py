"""Intervals of a mean over random splits or repeats, widened for the samples that splits share."""

import math

import numpy as np
import numpy.typing as npt

from jaxface.core import checks
from jaxface.metrics import inputs, ranges
from jaxface.metrics.inputs import Array
from jaxface.metrics.ranges import Interval, Range

__all__ = ["paired_interval", "split_interval"]


def paired_interval(
    first: npt.ArrayLike, second: npt.ArrayLike, *, test_to_train: float, within: Range, level: float = 0.95
) -> Interval:
    """Student's t interval of the mean of `first - second` `[n]`: one statistic of two methods on the same n splits.

    Random splits of one data set share samples, so their results are correlated and the plain variance s^2 /
    n is too small. With `test_to_train` = test size / training size of a split it is (1/n + test_to_train)
    s^2 instead (Nadeau and Bengio, 2003); give 0 for splits that share nothing, such as repeats on fresh
    data. `within` is the range of the statistic itself, RATE, POSITIVE, SIGNED or (low, high): the limits are
    cut at the largest difference that it allows, -1 and 1 for two rates. Below five splits, and where all
    differences are equal, the limits are NaN: there is no interval.
    """
    sizes = checks.shapes(first=(first, "n"), second=(second, "n"))
    checks.at_least("the number of splits", sizes["n"], 1)
    one, other = inputs.numbers("first", first), inputs.numbers("second", second)
    ranges.check("first", one, within)
    ranges.check("second", other, within)
    difference, widest = one - other, within[1] - within[0]
    mean = float(difference.mean())
    reach = _reach(difference, float(np.abs([one, other]).max()), test_to_train, level)
    if math.isnan(reach):
        return Interval(mean, math.nan, math.nan)
    return Interval(mean, max(mean - reach, -widest), min(mean + reach, widest))


def split_interval(values: npt.ArrayLike, *, test_to_train: float, within: Range, level: float = 0.95) -> Interval:
    """The interval of the mean of one method's statistic `[n]` over n random splits, inside its range.

    The standard error is that of `paired_interval`, and the limits are those of `ranges`: a score interval for
    RATE or any (low, high), a log scale for POSITIVE, Student's t itself for SIGNED, NaN below five splits and
    where all values are equal.
    """
    checks.at_least("the number of splits", checks.shapes(values=(values, "n"))["n"], 1)
    numbers = inputs.numbers("values", values)
    ranges.check("values", numbers, within)
    mean = float(numbers.mean())
    reach = _reach(numbers, float(np.abs(numbers).max()), test_to_train, level)
    if math.isnan(reach):
        return Interval(mean, math.nan, math.nan)
    return Interval(mean, *ranges.limits(mean, reach, within))


def _reach(values: Array, scale: float, test_to_train: float, level: float) -> float:
    """Half the width in Student's t: quantile times standard error; NaN where values `[n]` give no interval.

    scale: the magnitude of what the values were computed from.
    """
    checks.between("test_to_train", test_to_train, 0.0, math.inf, closed_high=False)
    checks.between("level", level, 0.0, 1.0, closed_low=False, closed_high=False)
    if values.size < ranges.FEWEST or ranges.equal(values, scale):
        return math.nan
    variance = float(values.var(ddof=1)) * (1.0 / values.size + test_to_train)
    return ranges.student_t(level, values.size - 1) * math.sqrt(variance)
