import chex
import numpy as np
import pytest

from jaxface.core import guards


def test_guards_are_those_of_chex():
    assert guards.assert_rank is chex.assert_rank
    with pytest.raises(AssertionError):
        guards.assert_rank(np.zeros(2), 2)


def test_names_that_modules_may_lack_are_not_asked_of_chex():
    assert not hasattr(guards, "__path__")
