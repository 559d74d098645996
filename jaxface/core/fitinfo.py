"""What a fit reports beside its parameters, and how that becomes an error on the host.

Nothing raises inside `jit`: a fit returns a status code, and `raise_if_failed` turns it into a message with the
likely cause and the remedy. A fallback that changes the mathematics is never silent: it stands in a field here.
"""

import enum
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.typing import DTypeLike

__all__ = [
    "FitError",
    "FitInfo",
    "Status",
    "all_finite",
    "closed_form",
    "diagnose",
    "iterative",
    "or_non_finite",
    "raise_if_failed",
    "worst",
]


class Status(enum.IntEnum):
    """Outcome of a fit, ordered by severity."""

    OK = 0
    MAX_ITERS = 1
    NON_FINITE = 2
    NOT_PSD = 3
    RANK_DEFICIENT = 4
    UNIDENTIFIED = 5
    EMPTY_COMPONENT = 6


class FitInfo(NamedTuple):
    """Report of a fit; under `vmap` every field gains the leading axis."""

    status: jax.Array  # int32 [], a Status
    num_iters: jax.Array  # int32 [], iterations done; 0 for a closed form
    objective: jax.Array  # [t], value at the parameters that step t starts from, the first at init; NaN without a step
    rank: jax.Array  # int32 [], numerical rank found; -1 where the question does not arise
    jitter: jax.Array  # [], ridge or floor really added, in the units of the matrix it was added to; 0 when none
    num_replaced: jax.Array  # int32 [], components or atoms that were started anew


class FitError(RuntimeError):
    """A fit ended in a status that makes its parameters unusable."""

    def __init__(self, message: str, status: Status):
        super().__init__(message)
        self.status = status


def closed_form(*, dtype: DTypeLike, status: Any = Status.OK, rank: Any = -1, jitter: Any = 0.0) -> FitInfo:
    """The report of a fit without iterations."""
    return iterative(status=status, num_iters=0, objective=jnp.zeros((0,), dtype), rank=rank, jitter=jitter)


def iterative(
    *, status: Any, num_iters: Any, objective: jax.Array, rank: Any = -1, jitter: Any = 0.0, num_replaced: Any = 0
) -> FitInfo:
    """The report of a fit in steps; the jitter takes the type of the objective `[t]`."""
    return FitInfo(
        status=jnp.asarray(status, jnp.int32),
        num_iters=jnp.asarray(num_iters, jnp.int32),
        objective=objective,
        rank=jnp.asarray(rank, jnp.int32),
        jitter=jnp.asarray(jitter, objective.dtype),
        num_replaced=jnp.asarray(num_replaced, jnp.int32),
    )


def diagnose(*cases: tuple[Any, Any], otherwise: Any = Status.OK) -> jax.Array:
    """The status of the first case `(condition, status)` whose condition holds, int32; `otherwise` where none does.

    Conditions are Boolean scalars, or arrays of one shape such as `[m]` for the members of an ensemble.
    """
    status = jnp.asarray(otherwise, jnp.int32)
    for condition, code in reversed(cases):
        status = jnp.where(condition, jnp.asarray(code, jnp.int32), status)
    return status


def worst(*statuses: Any) -> jax.Array:
    """The most severe of several statuses."""
    return jnp.stack([jnp.asarray(s, jnp.int32) for s in statuses]).max()


def or_non_finite(status: Any, inputs: Any) -> jax.Array:
    """`status`, or NON_FINITE where `inputs` hold NaN or infinity: no other status means anything then."""
    return diagnose((~all_finite(inputs), Status.NON_FINITE), otherwise=status)


def all_finite(tree: Any) -> jax.Array:
    """True when every floating leaf of `tree` is finite."""
    leaves = [leaf for leaf in jax.tree.leaves(tree) if jnp.issubdtype(jnp.result_type(leaf), jnp.inexact)]
    return jnp.stack([jnp.isfinite(leaf).all() for leaf in leaves] or [jnp.asarray(True)]).all()


_REMEDIES = {
    Status.NON_FINITE: (
        "a value became NaN or infinite, or too small to keep its digits",
        "check the data for NaN (jaxface.core.checks.finite) and for a unit with squares that are too large or too "
        "small, or work in float64",
    ),
    Status.NOT_PSD: (
        "a covariance or Gram matrix that must be positive definite is not, to rounding",
        "add samples or reduce the dimension, raise the ridge or floor if this fit takes one, or work in float64",
    ),
    Status.RANK_DEFICIENT: (
        "the samples have a lower rank than the method needs, often because of duplicates or too few samples",
        "remove duplicates, add samples or reduce the dimension, give a ridge if this fit takes one, or work in "
        "float64",
    ),
    Status.UNIDENTIFIED: (
        "the data do not determine the parameters, as when no person has two images, when two groups of views are "
        "never seen together, or when every candidate gives the truth a probability of zero",
        "add people with two or more images, samples that connect the views, or data that depend on every parameter, "
        "or give a prior if this fit takes one",
    ),
    Status.EMPTY_COMPONENT: (
        "a component or cluster ended without samples",
        "ask for fewer components, add samples, or start elsewhere",
    ),
}


def raise_if_failed(info: FitInfo, what: str = "fit") -> None:
    """Raises FitError with cause and remedy when `info`, or any member of a batch of them, failed."""
    status = np.atleast_1d(np.asarray(info.status))
    failed = np.flatnonzero(status >= Status.NON_FINITE)
    if failed.size == 0:
        return
    code = Status(int(status.flat[failed[0]]))
    cause, remedy = _REMEDIES[code]
    first = ", ".join(str(place) for place in np.unravel_index(failed[0], status.shape))
    where = "" if status.size == 1 else f" for {failed.size} of {status.size} members (first: {first})"
    iters = np.atleast_1d(np.asarray(info.num_iters)).flat[failed[0]]
    after = f" after {iters} iterations" if iters else ""
    raise FitError(f"{what} ended in {code.name}{where}{after}: {cause}. Remedy: {remedy}.", code)
