"""Every message of the room once: what came, what was expected, what to do."""

import jax
import numpy as np
import pytest

from jaxface.features import (
    MAPS,
    choose_bandwidth,
    dekernelize,
    fastfood,
    forms,
    invert,
    invert_matrix,
    maps,
    median_distance,
    spectra,
)
from tests.features.draws import KINDS, a_map

KEY, X = jax.random.key(0), np.ones((3, 6))


def drawn(kind="fastfood", **changes):
    return MAPS[kind](**({"key": KEY, "input_dim": 6, "num_features": 20, "bandwidth": 1.0} | changes))


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"bandwidth": 0.0}, r"bandwidth must lie in \(0, inf\); got 0.0"),
        ({"bandwidth": -1}, r"bandwidth must lie in \(0, inf\); got -1"),
        ({"bandwidth": float("nan")}, r"bandwidth must lie in \(0, inf\); got nan"),
        ({"bandwidth": np.ones(2)}, r"bandwidth must have shape \[\]; got shape \(2,\)"),
        ({"num_features": 0}, "num_features must be at least 1; got 0"),
        ({"input_dim": 0}, "input_dim must be at least 1; got 0"),
        ({"num_features": 2.5}, "num_features must be an integer; got 2.5"),
        ({"key": np.zeros(2, np.uint32)}, "key must be a typed PRNG key"),
    ],
)
def test_init(kind, changes, message):
    with pytest.raises(ValueError, match=message):
        drawn(kind, **changes)


@pytest.mark.parametrize("kind", ["orthogonal", "fastfood", "sorf"])
def test_a_kernel_that_is_not_rotation_invariant(kind):
    with pytest.raises(ValueError, match="such as laplacian, needs kitchen_sinks"):
        drawn(kind, spectrum=spectra.laplacian)


def test_a_bandwidth_that_vanishes_in_the_type_of_the_map():
    with pytest.raises(ValueError, match=r"bandwidth must lie in \(0, inf\); got 0.0"):
        drawn(bandwidth=1e-50, dtype=np.float32)


CASES = {
    "fewer features than dimensions to invert": (
        lambda: invert(a_map("fastfood", num_features=5), np.zeros(5), form=forms.sin),
        r"num_features of the map must be at least 6 \(fewer do not determine x\); got 5",
    ),
    "phases of another map": (
        lambda: maps.transform(a_map("fastfood"), X[0], form=forms.random_phase(KEY, num_features=1)),
        r"u must have shape \[..., f\] with f = 1; got shape \(20,\)",
    ),
    "no smoothness": (lambda: spectra.matern(nu=0.0), r"nu must lie in \(0, inf\); got 0.0"),
    "a vector of another dimension": (
        lambda: maps.project(a_map("fastfood"), np.ones(5)),
        r"x must have shape \[6\].*got shape \(5,\)",
    ),
    "rows for a vector": (
        lambda: maps.transform(a_map("fastfood"), X, form=forms.sin),
        r"x must have shape \[6\]; got shape \(3, 6\)",
    ),
    "a vector for rows": (
        lambda: maps.feature_matrix(a_map("fastfood"), X[0], form=forms.sin),
        r"x must have shape \[n, 6\]; got shape \(6,\)",
    ),
    "float16": (
        lambda: maps.feature_matrix(a_map("fastfood"), X.astype(np.float16), form=forms.sin),
        "got dtype float16",
    ),
    "integer pixels": (
        lambda: maps.feature_matrix(a_map("fastfood"), X.astype(np.uint8), form=forms.sin),
        "x must be a floating point array; got dtype uint8",
    ),
    "no rows in a block": (
        lambda: maps.feature_matrix(a_map("fastfood"), X, form=forms.sin, block_size=0),
        "block_size must be at least 1; got 0",
    ),
    "frequencies of another number": (
        lambda: maps.transpose(a_map("fastfood"), np.ones(6)),
        r"u must have shape \[20\]",
    ),
    "the inverse of a tall map": (
        lambda: maps.inverse(a_map("fastfood"), np.ones(20)),
        r"num_features must be 8, the \(padded\) dimension, for V to have an inverse; got 20",
    ),
    "phases without number": (
        lambda: forms.random_phase(KEY, num_features=0),
        "num_features must be at least 1; got 0",
    ),
    "a random phase to invert": (
        lambda: invert(a_map("fastfood"), np.ones(20), form=forms.random_phase(KEY, num_features=20)),
        "form must be sin, cos_sin or complex to be inverted; got RandomPhase.*keep cos_sin",
    ),
    "sines where pairs are said to be": (
        lambda: invert(a_map("fastfood"), np.ones(20), form=forms.cos_sin),
        r"features must have shape \[40\].*got shape \(20,\)",
    ),
    "one vector for a matrix of them": (
        lambda: invert_matrix(a_map("fastfood"), np.ones(20), form=forms.sin),
        r"features must have shape \[n, 20\]; got shape \(20,\)",
    ),
    "no rows in a block of features": (
        lambda: invert_matrix(a_map("fastfood"), np.ones((2, 20)), form=forms.sin, block_size=0),
        "block_size must be at least 1; got 0",
    ),
    "no iterations of conjugate gradients": (
        lambda: dekernelize.conjugate_gradient(a_map("fastfood"), num_iters=0),
        "num_iters must be at least 1; got 0",
    ),
    "no iterations of Gauss-Newton": (
        lambda: dekernelize.gauss_newton(a_map("fastfood"), num_iters=0),
        "num_iters must be at least 1; got 0",
    ),
    "no inner iterations": (
        lambda: dekernelize.gauss_newton(a_map("fastfood"), num_inner_iters=0),
        "num_inner_iters must be at least 1; got 0",
    ),
    "one sample for a distance": (
        lambda: median_distance(KEY, X[:1]),
        r"number of samples must be at least 2 \(a distance needs two\); got 1",
    ),
    "equal samples": (
        lambda: median_distance(KEY, X),
        r"median distance of the rows of x must lie in \(0, inf\); got 0.0",
    ),
    "a quantile of zero": (
        lambda: choose_bandwidth(KEY, X, init=fastfood.init, num_features=8, quantile=0.0),
        r"quantile must lie in \(0, 1\]; got 0.0",
    ),
    "zero vectors": (
        lambda: choose_bandwidth(KEY, 0 * X, init=fastfood.init, num_features=8, quantile=0.9),
        r"quantile of \|V x\| must lie in \(0, inf\); got 0.0",
    ),
    "integer pixels for a bandwidth": (
        lambda: choose_bandwidth(KEY, X.astype(np.uint8), init=fastfood.init, num_features=8, quantile=0.9),
        "x must be a floating point array; got dtype uint8",
    ),
    "no samples": (
        lambda: choose_bandwidth(KEY, X[:0], init=fastfood.init, num_features=8, quantile=0.9),
        "number of samples must be at least 1; got 0",
    ),
}


@pytest.mark.parametrize("what", CASES)
def test_message(what):
    call, message = CASES[what]
    with pytest.raises(ValueError, match=message):
        call()


def test_traced_values_are_not_looked_at():
    drawn = a_map("fastfood")  # outside of the program: a map that is kept must not hold its tracers
    with np.errstate(invalid="ignore"):
        jax.jit(lambda x: maps.transform(drawn, x, form=forms.sin))(np.full(6, np.nan))
