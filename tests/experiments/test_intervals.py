"""The intervals that studies print lie in the range of their quantity, or are absent."""

import math

import numpy as np
import pytest

from configs import verify as config_file
from experiments.hallucinate import claims
from experiments.kernel_maps import applications, pictures
from experiments.tour import committees as committee_section
from experiments.verify import report as transfer_report
from experiments.verify.measures import MEASURES
from jaxface.metrics import RATE, intervals

SKEWED = np.array([0.02, 0.0, 0.3, 0.04, 0.0])  # Student's t: -32 % to 46 %


def test_rates_and_bits_of_transfer_stay_in_their_range():
    config = config_file.get_config("smoke")
    for i, measure in enumerate(MEASURES):
        found = transfer_report.estimate(config, i, SKEWED + (measure != "EER") * 0.01)
        assert 0 < found.low < found.value < found.high
        assert measure != "EER" or found.high < 1
        difference = transfer_report.estimate(config, i, SKEWED + 0.5, SKEWED[::-1])
        assert difference.low < 0.5 < difference.high
        few = transfer_report.estimate(config, i, SKEWED[:3])
        assert math.isnan(few.low)
        assert "[" not in str(few)


def test_rates_of_other_studies_stay_in_their_range():
    for found in (
        committee_section._rate(SKEWED, 1.0),
        applications.percent({"test to train": np.ones(1)}, SKEWED),
    ):
        assert 0 < found.low < found.value < found.high < 1
    error = pictures.over_draws(SKEWED + 0.001)
    assert 0 < error.low < error.estimate


@pytest.mark.parametrize("values", [np.full(12, 0.3), np.array([0.1, 0.4, -0.2])])
def test_without_an_interval_there_is_no_verdict(values):
    found = claims.difference(values, np.arange(len(values)), num_resamples=50, seed=0)
    assert claims.verdict(found) == "no interval"
    assert intervals.split_interval(abs(values), test_to_train=0.0, within=RATE).estimate == pytest.approx(
        abs(values).mean()
    )
