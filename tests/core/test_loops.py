import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxface.core import loops
from jaxface.core.fitinfo import Status
from tests.tolerances import assert_close


def halve(x):
    return x / 2, 1 + x


def test_fixed_length_returns_the_whole_trace():
    x, trace = loops.iterate(halve, jnp.asarray(8.0), num_iters=3)
    assert_close(x, 1.0)
    assert_close(trace.objective, np.array([9.0, 5.0, 3.0]))
    assert (int(trace.status), int(trace.num_iters)) == (Status.OK, 3)


def test_tolerance_stops_early_and_leaves_nan_behind():
    x, trace = loops.iterate(halve, jnp.asarray(8.0), num_iters=50, tol=1e-3)
    done = int(trace.num_iters)
    assert int(trace.status) == Status.OK
    assert done < 20
    values = np.asarray(trace.objective)
    assert np.isfinite(values[:done]).all()
    assert np.isnan(values[done:]).all()
    assert abs(values[done - 1] - values[done - 2]) <= 1e-3 * values[done - 1]
    assert abs(values[done - 2] - values[done - 3]) > 1e-3 * values[done - 2]
    assert_close(x, 8.0 / 2**done)


def test_a_tolerance_not_reached_and_a_nan_are_statuses():
    assert int(loops.iterate(halve, jnp.asarray(8.0), num_iters=3, tol=1e-9)[1].status) == Status.MAX_ITERS
    for tol in (0.0, 1e-9):
        _, trace = loops.iterate(lambda x: (x - 1, jnp.log(x)), jnp.asarray(2.5), num_iters=9, tol=tol)
        assert int(trace.status) == Status.NON_FINITE
    assert int(trace.num_iters) == 4  # the while loop stops at the first NaN


def test_members_stop_on_their_own_under_vmap():
    starts = jnp.array([1.0, 1e6])
    x, trace = jax.vmap(lambda s: loops.iterate(halve, s, num_iters=60, tol=1e-3))(starts)
    assert trace.num_iters[0] < trace.num_iters[1]
    for k in range(2):
        single, _ = loops.iterate(halve, starts[k], num_iters=60, tol=1e-3)
        assert_close(x[k], single)


def test_fixed_loop_has_a_gradient():
    assert_close(jax.grad(lambda s: loops.iterate(halve, s, num_iters=3)[0])(8.0), 0.125)


def test_errors():
    with pytest.raises(ValueError, match="num_iters must be at least 1; got 0"):
        loops.iterate(halve, jnp.asarray(1.0), num_iters=0)
    with pytest.raises(ValueError, match=r"tol must lie in \[0, 1\]; got -1.0"):
        loops.iterate(halve, jnp.asarray(1.0), num_iters=1, tol=-1.0)
