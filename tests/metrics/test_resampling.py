"""Resamples of people: blocks change nothing."""

import functools

import numpy as np
import pytest

from jaxface.metrics import bootstrap, resampling
from tests.metrics.people import people_pairs, tied_people
from tests.tolerances import assert_close


@pytest.mark.parametrize("limit", [1, 7, 40, 1000])
def test_blocks_change_nothing(rng, monkeypatch, limit):
    pairs = tied_people(rng, num_people=8, images=4, decimals=1)
    draw = functools.partial(bootstrap.subject_bootstrap, *pairs, num_resamples=45, threshold=-2.0)
    whole = draw(rng=np.random.default_rng(5))
    monkeypatch.setattr(resampling, "_MOST_ELEMENTS", limit)
    assert_close(draw(rng=np.random.default_rng(5)), whole)


def test_resamples_go_in_blocks_and_not_one_by_one(rng, monkeypatch):
    calls = []
    weigh = resampling.weigh
    monkeypatch.setattr(resampling, "weigh", lambda ranked, block: calls.append(len(block)) or weigh(ranked, block))
    pairs = people_pairs(rng, num_people=40, images=4)
    bootstrap.subject_bootstrap(*pairs, rng=rng, num_resamples=1000)
    assert sum(calls) == 1 + 1000
    assert len(calls) <= 40
