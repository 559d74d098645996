import jax.numpy as jnp
import numpy as np
import pytest

from jaxface.core.fitinfo import Status
from jaxface.losses import minimize
from tests.losses.cases import quadratic
from tests.tolerances import assert_close


def lifted(params, data):
    return 1 + quadratic(params, data)


def test_lbfgs_and_adam_reach_the_minimum():
    start, target = {"x": jnp.zeros(3)}, jnp.array([1.0, -2.0, 3.0])
    found, info = minimize(quadratic, start, target, num_iters=10)
    assert_close(found["x"], target, factor=1e3)
    assert_close(info.objective[0], 14.0)
    found, info = minimize(quadratic, start, target, num_iters=800, learning_rate=0.05)
    assert_close(found["x"], target, factor=1e6)
    assert int(info.status) == Status.OK


def test_tolerance_stops_early_and_nan_is_a_status():
    start = {"x": jnp.zeros(3)}
    _, info = minimize(lifted, start, jnp.ones(3), num_iters=500, learning_rate=0.05, tol=1e-6)
    assert int(info.num_iters) < 500
    _, info = minimize(quadratic, start, jnp.full(3, np.nan), num_iters=3, learning_rate=0.05)
    assert int(info.status) == Status.NON_FINITE


@pytest.mark.parametrize("learning_rate", [None, 0.1])
def test_new_data_do_not_recompile(learning_rate):
    from jaxface.losses.minimization import _minimize

    minimize(quadratic, {"x": jnp.zeros(2)}, jnp.ones(2), num_iters=2, learning_rate=learning_rate)
    before = _minimize._cache_size()
    minimize(quadratic, {"x": jnp.ones(2)}, jnp.zeros(2), num_iters=2, learning_rate=learning_rate)
    assert _minimize._cache_size() == before


def length(params, data):
    return jnp.sqrt((params["x"] ** 2).sum()) + data


@pytest.mark.parametrize("learning_rate", [None, 0.1])
@pytest.mark.parametrize("num_iters", [1, 3])
def test_parameters_that_are_nan_are_a_status(num_iters, learning_rate):
    """The loss is finite at the start and its gradient is not: the last step is in no trace."""
    found, info = minimize(length, {"x": jnp.zeros(2)}, 0.0, num_iters=num_iters, learning_rate=learning_rate)
    assert np.isnan(found["x"]).all()
    assert int(info.status) == Status.NON_FINITE
