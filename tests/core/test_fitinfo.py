import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxface.core import fitinfo
from jaxface.core.fitinfo import FitError, Status


def info(status, num_iters=0):
    return fitinfo.iterative(status=status, num_iters=num_iters, objective=jnp.zeros(3))


def test_good_statuses_pass():
    fitinfo.raise_if_failed(info(Status.OK))
    fitinfo.raise_if_failed(info(Status.MAX_ITERS))


@pytest.mark.parametrize("status", [s for s in Status if s >= Status.NON_FINITE])
def test_every_failure_names_cause_and_remedy(status):
    with pytest.raises(
        FitError, match=rf"em\.fit ended in {status.name} after 3 iterations: .+\. Remedy: .+\."
    ) as caught:
        fitinfo.raise_if_failed(info(status, 3), "em.fit")
    assert caught.value.status is status


def test_batches_say_how_many_and_which():
    batch = jax.vmap(lambda s: fitinfo.closed_form(dtype=jnp.float32, status=s))(jnp.array([0, 4, 0, 2]))
    with pytest.raises(FitError, match=r"fit ended in RANK_DEFICIENT for 2 of 4 members \(first: 1\)"):
        fitinfo.raise_if_failed(batch)


def test_worst_and_finite():
    assert int(fitinfo.worst(Status.OK, jnp.asarray(4), Status.MAX_ITERS)) == 4
    assert bool(fitinfo.all_finite({"a": jnp.ones(2), "b": jnp.arange(3)}))
    assert not bool(fitinfo.all_finite({"a": jnp.array([1.0, np.nan])}))


def test_nan_in_the_inputs_outranks_every_other_status():
    for status in Status:
        assert int(fitinfo.or_non_finite(status, {"x": jnp.ones(2), "labels": jnp.arange(3)})) == status
        assert int(fitinfo.or_non_finite(status, (jnp.array([1.0, np.inf]),))) == Status.NON_FINITE


def test_the_first_condition_that_holds_names_the_status():
    lost, singular = jnp.array([True, False, True, False]), jnp.array([True, True, False, False])
    status = fitinfo.diagnose(
        (lost, Status.NON_FINITE), (singular, Status.RANK_DEFICIENT), otherwise=jnp.array([0, 0, 0, 1])
    )
    assert status.dtype == jnp.int32
    assert status.tolist() == [Status.NON_FINITE, Status.RANK_DEFICIENT, Status.NON_FINITE, Status.MAX_ITERS]
    assert int(fitinfo.diagnose((False, Status.NOT_PSD))) == Status.OK


def test_a_report_of_steps_has_one_type():
    steps = jnp.zeros(3, jnp.float32)
    report = fitinfo.iterative(status=Status.OK, num_iters=3, objective=steps, jitter=0.5, num_replaced=2)
    assert [field.dtype.name for field in report] == ["int32", "int32", "float32", "int32", "float32", "int32"]
    assert (int(report.num_iters), int(report.rank), float(report.jitter), int(report.num_replaced)) == (3, -1, 0.5, 2)
    closed = fitinfo.closed_form(dtype=jnp.float32, rank=4)
    assert (int(closed.num_iters), closed.objective.shape, int(closed.rank)) == (0, (0,), 4)


def test_a_failure_in_a_batch_of_two_axes_is_named_by_both():
    batch = info(jnp.array([[0, 0], [0, 3]]), 2)._replace(num_iters=jnp.full((2, 2), 2))
    with pytest.raises(FitError, match=r"NOT_PSD for 1 of 4 members \(first: 1, 1\) after 2 iterations"):
        fitinfo.raise_if_failed(batch)


def test_no_remedy_names_a_function():
    """A report does not say which fit made it, and not every fit has the routes of another."""
    for cause, remedy in fitinfo._REMEDIES.values():
        assert "fit_" not in cause + remedy
        assert "route" not in remedy
