"""What a fit reports beside its parameters, and how that becomes an error on the host.

Nothing raises inside `jit`: a fit returns a status code, and `raise_if_failed` turns it into a message with the
likely cause and the remedy. A fallback that changes the mathematics is never silent: it stands in a field here.
"""

import enum
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np


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
    objective: jax.Array  # [t], value after each iteration, NaN where none was done
    rank: jax.Array  # int32 [], numerical rank found; -1 where the question does not arise
    jitter: jax.Array  # [], ridge or floor that was really used; 0 when none
    num_replaced: jax.Array  # int32 [], components re-seeded or atoms replaced


class FitError(RuntimeError):
    """A fit ended in a status that makes its parameters unusable."""

    def __init__(self, message: str, status: Status):
        super().__init__(message)
        self.status = status


def closed_form(
    *, dtype: Any, status: Any = Status.OK, rank: Any = -1, jitter: Any = 0.0, objective: Any = None
) -> FitInfo:
    """The report of a fit without iterations."""
    return FitInfo(
        status=jnp.asarray(status, jnp.int32),
        num_iters=jnp.zeros((), jnp.int32),
        objective=jnp.zeros((0,), dtype) if objective is None else objective,
        rank=jnp.asarray(rank, jnp.int32),
        jitter=jnp.asarray(jitter, dtype),
        num_replaced=jnp.zeros((), jnp.int32),
    )


def worst(*statuses: Any) -> jax.Array:
    """The most severe of several statuses."""
    return jnp.stack([jnp.asarray(s, jnp.int32) for s in statuses]).max()


def all_finite(tree: Any) -> jax.Array:
    """True when every floating leaf of `tree` is finite."""
    leaves = [leaf for leaf in jax.tree.leaves(tree) if jnp.issubdtype(jnp.result_type(leaf), jnp.inexact)]
    return jnp.stack([jnp.isfinite(leaf).all() for leaf in leaves] or [jnp.asarray(True)]).all()


_REMEDIES = {
    Status.NON_FINITE: (
        "a value became NaN or infinite",
        "check the data for NaN and extreme scales (jaxface.core.checks.finite), or work in float64",
    ),
    Status.NOT_PSD: (
        "a covariance that must be positive definite is not",
        "raise the relative ridge or floor, reduce the dimension by PCA, or work in float64",
    ),
    Status.RANK_DEFICIENT: (
        "the samples have a lower rank than the method needs, often because of duplicates or too few samples",
        "remove duplicates, use the float64 rank-revealing route, or reduce the dimension",
    ),
    Status.UNIDENTIFIED: (
        "the data do not determine the parameters, for example when nobody has two images",
        "add people with two or more images, or a prior with a weight above 0",
    ),
    Status.EMPTY_COMPONENT: (
        "a component or cluster ended without samples",
        "ask for fewer components, or try another key",
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
    where = "" if status.size == 1 else f" for {failed.size} of {status.size} members (first: {failed[0]})"
    iters = np.atleast_1d(np.asarray(info.num_iters)).flat[failed[0]]
    after = f" after {iters} iterations" if iters else ""
    raise FitError(f"{what} ended in {code.name}{where}{after}: {cause}. Remedy: {remedy}.", code)
