"""Confidence intervals of a mean over random splits and of a share of trials, inside the range of the quantity.

    split_interval   the mean of one method over splits
    paired_interval  the difference of two methods over the same splits
    wilson           a share of independent trials

Random splits of one data set share samples, so their results are correlated and the plain variance s^2 / n of their
mean is too small. With `test_to_train`, the size of the test part divided by that of the training part, it is
(1/n + test_to_train) s^2 (Nadeau and Bengio, 2003).

Student's t knows no range: over five splits it gives error rates of -31 % and negative Cllr. With the mean m of n
values, its standard error s and the quantile t of Student's t with n - 1 degrees of freedom the limits are:

    bounded in [a, b], such as rates   the mu with |m - mu| <= t s sqrt((mu - a)(b - mu) / ((m - a)(b - m)))
    above a, such as Cllr              a + (m - a) exp(+- t s / (m - a))
    of any sign                        m +- t s

The first is Wilson's score interval with the effective number of trials (m - a)(b - m) / s^2: the spread of a rate
shrinks towards the ends of its range, so the distance to a candidate mu is measured by the spread that mu would
have. It copes with values at 0 and 1. The second is Student's t on a log scale. Both agree with the third where s is
small against the distance to the ends. Below five values, and where all values are equal, there is no interval: the
limits are NaN.
"""

import math
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from jaxface.core import checks
from jaxface.metrics import arguments, verification
from jaxface.metrics.arguments import Array

__all__ = ["FEWEST", "POSITIVE", "RATE", "SIGNED", "Interval", "Range", "paired_interval", "split_interval", "wilson"]


class Interval(NamedTuple):
    """An estimate between its limits; arrays where the statistic is one. Limits are NaN where there is no interval."""

    estimate: Array | float
    low: Array | float
    high: Array | float


Range = tuple[float, float]  # the lowest and the highest value that a quantity can have
RATE: Range = (0.0, 1.0)  # error rates, EER
POSITIVE: Range = (0.0, math.inf)  # Cllr, times
SIGNED: Range = (-math.inf, math.inf)  # logarithms, anything without an end

FEWEST = 5  # splits or people; fewer say nothing about their spread
_ROUNDING = 1e-12  # relative; values that differ by less are equal
_ABSENT = (math.nan, math.nan)


def split_interval(values: npt.ArrayLike, *, test_to_train: float, within: Range, level: float = 0.95) -> Interval:
    """The interval of the mean of one method's statistic `[n]` over n random splits, inside its range `within`.

    Give `test_to_train` = 0 for splits that share nothing, such as repeats on fresh data.
    """
    checks.at_least("the number of splits", checks.shapes(values=(values, "n"))["n"], 1)
    numbers = arguments.numbers("values", values)
    _check_range("values", numbers, within)
    mean = float(numbers.mean())
    reach = _reach(numbers, float(np.abs(numbers).max()), test_to_train, level)
    return Interval(mean, *(_ABSENT if math.isnan(reach) else _limits(mean, reach, within)))


def paired_interval(
    first: npt.ArrayLike, second: npt.ArrayLike, *, test_to_train: float, within: Range, level: float = 0.95
) -> Interval:
    """Student's t interval of the mean of `first - second` `[n]`: one statistic of two methods on the same n splits.

    `within` is the range of the statistic itself; the limits are cut at the largest difference that it allows, -1
    and 1 for two rates. Whether the interval excludes 0 is what Student's t says.
    """
    sizes = checks.shapes(first=(first, "n"), second=(second, "n"))
    checks.at_least("the number of splits", sizes["n"], 1)
    one, other = arguments.numbers("first", first), arguments.numbers("second", second)
    _check_range("first", one, within)
    _check_range("second", other, within)
    difference, widest = one - other, within[1] - within[0]
    mean = float(difference.mean())
    reach = _reach(difference, float(np.abs([one, other]).max()), test_to_train, level)
    if math.isnan(reach):
        return Interval(mean, *_ABSENT)
    return Interval(mean, max(mean - reach, -widest), min(mean + reach, widest))


def wilson(successes: float, trials: int, *, level: float = 0.95) -> Interval:
    """Wilson score interval of a share of independent trials; sensible at 0 and at all successes.

    A mean number of successes, of several draws of so many trials, need not be whole.

    (k + z^2/2) / (n + z^2) +- z sqrt(k (n - k) / n + z^2 / 4) / (n + z^2)
    """
    checks.at_least("trials", trials, 1)
    checks.between("successes", successes, 0, trials)
    check_level(level)
    z = float(verification.probit((1.0 + level) / 2.0))
    center = (successes + z * z / 2.0) / (trials + z * z)
    half = z / (trials + z * z) * math.sqrt(successes * (trials - successes) / trials + z * z / 4.0)
    low = 0.0 if successes == 0 else center - half
    high = 1.0 if successes == trials else center + half
    return Interval(successes / trials, low, high)


def check_level(level: float) -> None:
    """Refuses a level of confidence that is no probability between 0 and 1."""
    checks.between("level", level, 0.0, 1.0, closed_low=False, closed_high=False)


def _check_range(name: str, values: Array, within: Range) -> None:
    """Refuses a `within` that is no range, and values outside of it."""
    low, high = within
    if not low < high or (math.isinf(low) and not math.isinf(high)):
        raise ValueError(
            f"within must be (low, high) with low < high, of which high may be inf, or both may be; got {within}. "
            "Give intervals.RATE, intervals.POSITIVE or intervals.SIGNED, or the range of the quantity."
        )
    checks.finite(**{name: values})
    slack = _ROUNDING * max(abs(end) for end in (*within, 1.0) if math.isfinite(end))
    outside = (values < low - slack) | (values > high + slack)
    if outside.any():
        raise ValueError(
            f"{name} must lie in the range [{low:g}, {high:g}] given by within; got {values[outside][0]:g}. "
            "Give the range of the quantity: intervals.RATE for rates in [0, 1], intervals.SIGNED for any number."
        )


def _reach(values: Array, scale: float, test_to_train: float, level: float) -> float:
    """Half the width in Student's t, quantile times standard error; NaN where values `[n]` give no interval.

    scale: the magnitude of the numbers that the values were computed from.
    """
    checks.between("test_to_train", test_to_train, 0.0, math.inf, closed_high=False)
    check_level(level)
    if values.size < FEWEST or float(np.ptp(values)) <= _ROUNDING * scale:
        return math.nan
    variance = float(values.var(ddof=1)) * (1.0 / values.size + test_to_train)
    return _student_t(level, values.size - 1) * math.sqrt(variance)


def _student_t(level: float, freedom: int) -> float:
    """The t with P(|T| <= t) = level."""
    from scipy import special

    return float(special.stdtrit(freedom, (1.0 + level) / 2.0))


def _limits(mean: float, reach: float, within: Range) -> tuple[float, float]:
    """Limits of a mean in the range of its values; reach: t s."""
    low, high = within
    if math.isinf(low):
        return mean - reach, mean + reach
    return _limits_above(mean, reach, low) if math.isinf(high) else _score_limits(mean, reach, within)


def _limits_above(mean: float, reach: float, low: float) -> tuple[float, float]:
    """Limits above `low` by a log scale."""
    distance = mean - low
    if distance <= 0.0:
        return _ABSENT
    factor = math.exp(min(reach / distance, 700.0))  # 700: the largest power of e in float64
    return low + distance / factor, low + distance * factor


def _score_limits(mean: float, reach: float, within: Range) -> tuple[float, float]:
    """Score limits in [a, b]."""
    low, high = within
    share, width = (mean - low) / (high - low), high - low
    spread = share * (1.0 - share)
    if spread <= 0.0:
        return _ABSENT
    k = (reach / width) ** 2 / spread
    center, half = (share + k / 2.0) / (1.0 + k), math.sqrt(k * spread + k * k / 4.0) / (1.0 + k)
    return low + width * max(center - half, 0.0), low + width * min(center + half, 1.0)
