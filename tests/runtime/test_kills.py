"""Kills at random moments, when JAXFACE_KILLS says how many: some minutes each ten."""

import os

import pytest

from tests.runtime import kills


@pytest.mark.skipif("JAXFACE_KILLS" not in os.environ, reason="JAXFACE_KILLS is not set: a number of kills")
def test_a_killed_run_ends_as_one_that_was_not():
    assert kills.main([f"--count={os.environ['JAXFACE_KILLS']}", f"--seed={os.environ.get('JAXFACE_SEED', 0)}"]) == 0
