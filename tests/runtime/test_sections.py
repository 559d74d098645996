import pytest
from ml_collections import ConfigDict

from jaxface.runtime import sections


def fit(x, *, num_iters, ridge=0.0):
    return x, num_iters, ridge


def score(x, *, rank):
    return x, rank


def test_sections_become_keyword_arguments():
    section = ConfigDict({"num_iters": 3, "ridge": 0.1, "rank": 2}).lock()
    values = sections.arguments(section, fit, score)
    assert fit(1, **sections.arguments_of(fit, values)) == (1, 3, 0.1)
    assert score(1, **sections.arguments_of(score, values)) == (1, 2)
    assert sections.one("method", "fit", {"fit": fit}) is fit


def test_a_typo_names_the_nearest():
    with pytest.raises(
        ValueError,
        match=r"'num_iter' is not an argument of .*fit \(it takes num_iters, ridge\)\. Did you mean 'num_iters'",
    ):
        sections.arguments({"num_iter": 3}, fit)
    with pytest.raises(ValueError, match=r"config\.method must be one of 'fit'; got 'fitt'\. Did you mean 'fit'"):
        sections.one("config.method", "fitt", {"fit": fit})
