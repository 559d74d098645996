"""De-kernelisation: from features back to the vector, `x = argmin |form(V x) - features|`.

Each entry of the features gives an entry of V x, by `arcsin(sqrt f z)` (19) or as the angle of a pair. This is exact
while every |V x| is at most pi / 2, or pi for pairs: a condition on V x and not, as printed, on x. Then x is the
solution of a least-squares problem (20). The methods:

    least_squares       the inverse of V'V, made once for all vectors: the fastest while d is below a few thousand
    conjugate_gradient  products with V and V' only: for any d
    gauss_newton        minimises |form(V x) - features| itself, from the solution of (20): for folded entries
    square              the exact inverse of a single block, f = D: D log D, but ill conditioned

A method takes the map, prepares whatever depends on the map alone, and returns the solver for one vector. Features
outside the range of the form are clipped and counted; a NaN among the features makes all of x NaN. The zeros that pad
x are not solved for. Gradients come from the equation that defines x (the implicit-function rule), not from the
iterations.
"""

from collections.abc import Callable
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
from jax.typing import ArrayLike

from jaxface.core import blocks, checks, machine
from jaxface.features import forms, maps, units, validity
from jaxface.features.forms import Form
from jaxface.features.maps import FeatureMap
from jaxface.features.validity import Validity
from jaxface.linalg import krylov, psd, scaling, triangular
from jaxface.linalg.krylov import Solution

__all__ = [
    "Method",
    "conjugate_gradient",
    "gauss_newton",
    "invert",
    "invert_matrix",
    "least_squares",
    "solver",
    "square",
]

Solver = Callable[[jax.Array, Form], Solution]
Method = Callable[[FeatureMap], Solver]  # prepares the solver of one vector

BLOCK_SIZE = 128  # vectors in flight: products of that many keep two cores busy


def least_squares(params: FeatureMap) -> Solver:
    """(20) `x = (V'V)^-1 V' angles` by the inverse of V'V `[d, d]`: one product for many vectors.

    The normal equations lose as many digits as the condition number of V'V has, twice as many as a factorisation of V:
    one digit of float32 at f = 1.25 d, hardly any from 5 d on. RANK_DEFICIENT where V'V has no inverse in this
    precision.
    """
    gram = jax.lax.stop_gradient(maps.gram_matrix(params))
    lower = psd.cholesky(gram)
    inverse = triangular.solve_product(lower, jnp.eye(gram.shape[0], dtype=gram.dtype))
    is_definite = psd.is_definite(lower)
    return partial(_normal_equations, params, lambda b: _closed_form(b @ inverse)._replace(is_converged=is_definite))


def conjugate_gradient(params: FeatureMap, *, tol: float | None = None, num_iters: int = 500) -> Solver:
    """(20) by conjugate gradients, to a relative residual `tol` of the normal equations (default eps)."""
    checks.at_least("num_iters", num_iters, 1)

    def solver(b: jax.Array) -> Solution:
        return krylov.conjugate_gradient(
            maps.gram_operator(params), b, tol=machine.eps(b.dtype) if tol is None else tol, num_iters=num_iters
        )

    return partial(_normal_equations, params, solver)


def square(params: FeatureMap) -> Solver:
    """`x = V^-1 angles` for f = D; errors of the features grow by up to the root of the condition number."""
    return lambda features, form: _closed_form(params.inverse(forms.inverse(form).angles(features).angles))


def gauss_newton(
    params: FeatureMap, *, tol: float | None = None, num_iters: int = 50, num_inner_iters: int = 30
) -> Solver:
    """`min |form(V x) - features|^2` by damped Gauss-Newton from (20), each step by conjugate gradients.

    Ends when a step is below `tol` relative to x (default 64 eps). A step that does not lower the objective is undone,
    and the damping is raised.
    """
    checks.at_least("num_iters", num_iters, 1)
    checks.at_least("num_inner_iters", num_inner_iters, 1)
    start = conjugate_gradient(params, tol=1e-3, num_iters=num_inner_iters)
    _, largest = validity.spectral_range(params)

    def solve(features: jax.Array, form: Form) -> Solution:
        def residual(x: jax.Array) -> jax.Array:
            return form(params.project(x)) - features

        def gradient(x: jax.Array) -> jax.Array:
            value, pull = jax.vjp(residual, x)
            return pull(value)[0]

        def descend(_: Any, x: jax.Array) -> tuple[jax.Array, Any]:
            limit = 64 * machine.eps(x.dtype) if tol is None else tol
            end = _damped(residual, x, 1e-3 * largest, tol=limit, num_iters=num_iters, num_inner_iters=num_inner_iters)
            # custom_root needs tangents of all that the solver reports: only floats have tangents.
            return end.x, (end.num_iters.astype(x.dtype), end.is_converged.astype(x.dtype))

        def tangent_solve(product: krylov.Operator, b: jax.Array) -> jax.Array:
            def solver(product: krylov.Operator, b: jax.Array) -> jax.Array:
                return krylov.conjugate_gradient(product, b, tol=machine.eps(b.dtype), num_iters=500).x

            return jax.lax.custom_linear_solve(product, b, solver, symmetric=True)  # the Hessian

        first = jax.lax.stop_gradient(start(features, form).x)
        x, (steps, is_converged) = jax.lax.custom_root(gradient, first, descend, tangent_solve, has_aux=True)
        return Solution(x, steps.astype(jnp.int32), is_converged > 0)

    return solve


def invert(
    params: FeatureMap, features: ArrayLike, *, form: Form, method: Method = least_squares
) -> tuple[jax.Array, Validity]:
    """The vector `[d]` of features `[f]` (`[2 f]` with `forms.cos_sin`), and its validity.

    Set the options of a method with `functools.partial` once and reuse the result: `jit` knows a method by its
    identity.
    """
    features, form = _checked(params, features, form, "")
    return _invert(params, features, form=form, method=method)


def invert_matrix(
    params: FeatureMap,
    features: ArrayLike,
    *,
    form: Form,
    method: Method = least_squares,
    block_size: int = BLOCK_SIZE,
) -> tuple[jax.Array, Validity]:
    """`invert` of the rows of features `[n, f]`, `block_size` at a time; the method prepares once for all of them."""
    features, form = _checked(params, features, form, "n ")
    checks.at_least("block_size", block_size, 1)
    return _invert_matrix(params, features, form=form, method=method, block_size=block_size)


@partial(jax.jit, static_argnames=("form", "method"))
def _invert(params: FeatureMap, features: jax.Array, *, form: Form, method: Method) -> tuple[jax.Array, Validity]:
    return _inverse(params, form, method)(features)


@partial(jax.jit, static_argnames=("form", "method", "block_size"))
def _invert_matrix(
    params: FeatureMap, features: jax.Array, *, form: Form, method: Method, block_size: int
) -> tuple[jax.Array, Validity]:
    return blocks.map_rows(_inverse(params, form, method), features, block_size=block_size)


def solver(params: FeatureMap, form: Form, method: Method = least_squares) -> Callable[[jax.Array], jax.Array]:
    """A function of the features `[f]` of one vector that gives the vector, to be mapped inside one program."""
    own, power = units.in_own_unit(params)
    solve = method(own)
    return lambda features: scaling.shifted(solve(features, form).x, power)


def _inverse(params: FeatureMap, form: Form, method: Method) -> Callable[[jax.Array], tuple[jax.Array, Validity]]:
    """The inverse of one vector, with everything prepared that depends on the map alone."""
    params, power = units.in_own_unit(params)
    solve, conditioning = method(params), validity.conditioning(params)

    def inverse(features: jax.Array) -> tuple[jax.Array, Validity]:
        solution = solve(features, form)
        report = validity.of_solution(params, features, solution, form, conditioning)
        return scaling.shifted(solution.x, power), report

    return inverse


def _normal_equations(
    params: FeatureMap, solver: Callable[[jax.Array], Solution], features: jax.Array, form: Form
) -> Solution:
    """(20), differentiated through `V'V x = V' angles` whatever `solver` solves it with."""

    def solve(_: Any, b: jax.Array) -> tuple[jax.Array, Any]:
        solution = solver(b)
        return solution.x, (solution.num_iters, solution.is_converged)

    b = params.transpose(forms.inverse(form).angles(features).angles)
    x, report = jax.lax.custom_linear_solve(maps.gram_operator(params), b, solve, symmetric=True, has_aux=True)
    return Solution(x, *report)


def _damped(
    residual: Callable[[jax.Array], jax.Array],
    x: jax.Array,
    damping: jax.Array,
    *,
    tol: float,
    num_iters: int,
    num_inner_iters: int,
) -> Solution:
    """Steps `(J'J + damping I)^-1 J'r`, the damping falling tenfold after a success and rising after a failure."""

    def objective(x: jax.Array) -> jax.Array:
        return (residual(x) ** 2).sum()

    def running(state: Any) -> jax.Array:
        step, _, _, _, is_settled = state
        return (step < num_iters) & ~is_settled

    def body(state: Any) -> Any:
        step, x, value, damping, _ = state
        at_x, push = jax.linearize(residual, x)
        pull = jax.linear_transpose(push, x)

        def product(v: jax.Array) -> jax.Array:
            return pull(push(v))[0] + damping * v

        move = krylov.conjugate_gradient(product, pull(at_x)[0], tol=1e-3, num_iters=num_inner_iters).x
        after = objective(x - move)
        is_lower = after <= value * (1 + 64 * machine.eps(x.dtype))  # at the minimum, a rise by rounding is allowed
        is_settled = jnp.linalg.norm(move) <= tol * jnp.linalg.norm(x)
        x, value = jnp.where(is_lower, x - move, x), jnp.where(is_lower, after, value)
        return step + 1, x, value, jnp.where(is_lower, damping / 10, damping * 10), is_settled

    start = (jnp.zeros((), jnp.int32), x, objective(x), damping, jnp.asarray(False))
    step, x, _, _, is_settled = jax.lax.while_loop(running, body, start)
    return Solution(x, step, is_settled)


def _closed_form(x: jax.Array) -> Solution:
    return Solution(x, jnp.zeros((), jnp.int32), jnp.asarray(True))


def _checked(params: FeatureMap, features: ArrayLike, form: Form, rows: str) -> tuple[jax.Array, Form]:
    checks.at_least("num_features of the map", params.num_features, params.input_dim, "fewer do not determine x")
    if not jnp.iscomplexobj(features):
        checks.floating(features=features)
    features, form = forms.real(jnp.asarray(features), form)
    checks.shapes(features=(features, f"{rows}{forms.inverse(form).width * params.num_features}"))
    checks.floating(features=features)
    return features, form
