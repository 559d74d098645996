"""Low-rank identity: `T_mu = F F'` with F `[d, r]` and any T_eps, by PX-EM.

EM cannot change the range of a low-rank T_mu; the regression of the images on the factors can. An image of person i is
`x_ij = mean + F h_i + eps_ij` with `h_i ~ N(0, I)`. With F turned within its range so that `F'T_eps^-1 F = diag(l)`
and `b = F'T_eps^-1 s` of a person with m images that sum to s,

    E[h] = b / (1 + m l)      Cov[h] = diag(1 / (1 + m l))
    K = sum E[hh'] / n        H = sum m E[hh']        B = sum s E[h]'        M = sum x x' over all images
    F <- B H^-1 chol(K)       T_eps <- (M - B H^-1 B') / k

A step takes products of `[c, d]` with `[d, r]`, one Cholesky factor of T_eps and an eigenproblem of r x r; `em` takes
an eigenproblem of d x d and products of `[c, d]` with `[d, d]`. For d up to some thousands: `init_factors` needs no
eigenproblem of d x d either.

A fit works in coordinates in which the T_eps of its start is I. There the difference M - B H^-1 B' loses digits by
factors of 1 + m l only, and not by the condition number of T_eps.
"""

from functools import partial
from typing import NamedTuple

import jax
import jax.numpy as jnp

from jaxface.core import checks, fitinfo, loops, machine
from jaxface.core.fitinfo import FitInfo
from jaxface.joint_bayes import em, moment_start, posterior
from jaxface.joint_bayes.model import JointBayes, LowRankJointBayes, to_dense
from jaxface.joint_bayes.stats import GroupedStats, by_person, grouped, mean_weight, num_images, rows_about
from jaxface.linalg import krylov, psd, spectral, triangular
from jaxface.linalg.class_stats import Stats, recenter

__all__ = ["fit_factors", "fit_low_rank", "init_factors", "leading_factors"]

_NUM_PASSES = 6  # of the power iteration of `init_factors`; EM turns the directions afterwards


class Whitened(NamedTuple):
    """Statistics about the mean of a model, in the coordinates `L^-1 x` of the Cholesky factor L of its T_eps."""

    rows: jax.Array  # [rows, d], sqrt(m) ybar
    second_moment: jax.Array  # [d, d], M
    lower: jax.Array  # [d, d], L
    square: jax.Array  # [d, d], L'L: the trace of `L A L'` is the sum of `square * A`
    stats: GroupedStats  # for the counts


class State(NamedTuple):
    """A model in whitened coordinates."""

    root: jax.Array  # [d, r], F
    white: jax.Array  # [d, r], C^-1 F
    lower: jax.Array  # [d, d], Cholesky factor C of T_eps
    size: jax.Array  # [], tr T_eps^-1 M
    jitter: jax.Array  # [], the largest ridge so far, in the units of the images


class Latent(NamedTuple):
    """Sums over people at a state."""

    people: jax.Array  # [r, r], of E[hh']
    images: jax.Array  # [r, r], of m E[hh'], H
    cross: jax.Array  # [d, r], of s E[h]', B
    explained: jax.Array  # [], of b'E[h]
    values: jax.Array  # [r], l


def leading_factors(model: JointBayes, *, rank: int) -> LowRankJointBayes:
    """The model with the `rank` directions of T_mu that have the largest ratios to T_eps. Gradients are stopped."""
    checks.at_least("rank", rank, 1)
    checks.at_most("rank", rank, len(model.mean), "the dimension")
    model = jax.lax.stop_gradient(model)
    basis = posterior.diagonal_basis(model)
    root = (basis.inverse.T * jnp.sqrt(basis.values)[None, :])[:, :rank]
    return LowRankJointBayes(mean=model.mean, root=root, noise_cov=model.noise_cov)


def init_factors(stats: Stats, *, rank: int, ridge: float = 1e-3) -> LowRankJointBayes:
    """Approximates the moments `em.init` with `rank` directions of T_mu, without an eigenproblem of d x d.

    The directions come from a few steps of power iteration. `ridge` is added to T_eps, relative to its mean
    eigenvalue, and is the smallest ratio of T_mu to T_eps in any direction. Gradients are stopped.
    """
    checks.at_least("rank", rank, 1)
    checks.at_most("rank", rank, stats.sum.shape[1], "the dimension")
    checks.positive("ridge", ridge)
    stats = jax.lax.stop_gradient(stats)
    moments = moment_start.moments_of(stats)
    noise = psd.add_ridge(psd.symmetrize(moments.noise), ridge)
    lower = psd.cholesky(noise)
    people = by_person(recenter(stats, moments.mean))
    values, directions = _leading(_whitened_rows(lower, people, moments.mean), rank=rank)
    degrees = jnp.maximum((people.num_people > 0).sum() - 1, 1)
    ratios = jnp.maximum((values / degrees - 1) / moments.effective, ridge)
    return LowRankJointBayes(mean=moments.mean, root=(lower @ directions) * jnp.sqrt(ratios)[None, :], noise_cov=noise)


@partial(jax.jit, static_argnames="rank")
def _leading(rows: jax.Array, *, rank: int) -> tuple[jax.Array, jax.Array]:
    """The largest eigenvalues `[rank]` of R'R of rows R `[n, d]` and their directions `[d, rank]`, nearly."""

    def product(directions: jax.Array) -> jax.Array:
        return rows.T @ (rows @ directions)

    # No symmetry of data hides a direction from cos(j^2).
    d = rows.shape[1]
    start = jnp.cos(jnp.arange(d * rank, dtype=rows.dtype) ** 2).reshape(d, rank)
    found = krylov.leading_subspace(product, product, start, num_passes=_NUM_PASSES)
    values, turn = spectral.eigh(found.T @ product(found))
    return values, found @ turn


def fit_low_rank(
    stats: Stats, init: JointBayes, *, rank: int, num_iters: int, tol: float = 0.0, floor: float = 1e-6
) -> tuple[JointBayes, FitInfo]:
    """`fit_factors` from the `rank` leading directions of a dense model; the result is dense too.

    With `rank` = d the fit is that of `em.fit(..., e_step=posterior.expanded)`. Gradients are stopped.
    """
    stats, init, _ = em.checked_problem(stats, init, None, 0.0, e_step=posterior.expanded)
    model, info = fit_factors(
        stats, leading_factors(init, rank=rank), num_iters=num_iters, tol=tol, floor=floor, expand=True
    )
    return to_dense(model), info


def fit_factors(
    stats: Stats,
    init: LowRankJointBayes,
    *,
    num_iters: int,
    tol: float = 0.0,
    floor: float = 1e-6,
    expand: bool = True,
) -> tuple[LowRankJointBayes, FitInfo]:
    """The most likely model with as many factors as `init`; the fit may change their range and keeps the mean.

    There is no prior. `floor` and the statuses are those of `em.fit`. `expand=False` leaves out chol(K): plain EM of
    the factors, which rises too and needs more steps. Gradients are stopped.
    """
    checks.shapes(sum=(stats.sum, "c d"), mean=(init.mean, "d"), root=(init.root, "d r"), noise=(init.noise_cov, "d d"))
    checks.floating(sum=stats.sum, root=init.root)
    em.at_least_two_people(stats)
    checks.positive("floor", floor)
    dtype = jnp.result_type(*jax.tree.leaves((stats, init)))
    stats, init = jax.tree.map(lambda leaf: jnp.asarray(leaf, dtype), (stats, init))
    return _fit(grouped(stats), init, num_iters=num_iters, tol=tol, floor=floor, expand=expand)


@partial(jax.jit, static_argnames=("num_iters", "tol", "floor", "expand"))
def _fit(
    stats: GroupedStats, init: LowRankJointBayes, *, num_iters: int, tol: float, floor: float, expand: bool
) -> tuple[LowRankJointBayes, FitInfo]:
    stats, init = jax.lax.stop_gradient((posterior.whole_numbers(stats), init))
    data, start = whitened(stats, init)
    state, trace = loops.iterate(
        lambda state: update(state, data, floor=floor, expand=expand), start, num_iters=num_iters, tol=tol
    )
    jitter = state.jitter
    status = fitinfo.worst(trace.status, em.diagnosis(stats, init, None, jnp.zeros_like(jitter), jitter))
    info = fitinfo.iterative(status=status, num_iters=trace.num_iters, objective=trace.objective, jitter=jitter)
    half = data.lower @ state.lower
    return LowRankJointBayes(mean=init.mean, root=data.lower @ state.root, noise_cov=half @ half.T), info


def whitened(stats: GroupedStats, model: LowRankJointBayes) -> tuple[Whitened, State]:
    """The statistics in the coordinates of the model, and the model itself in them, whose T_eps is I there.

    Gradients are stopped.
    """
    stats, model = jax.lax.stop_gradient((stats, model))
    lower = psd.cholesky(model.noise_cov)
    within = triangular.whiten(lower, stats.within)
    rows = _whitened_rows(lower, stats, model.mean)
    data = Whitened(rows, psd.symmetrize(within + rows.T @ rows), lower, lower.T @ lower, stats)
    root, zero = triangular.solve(lower, model.root), jnp.zeros((), rows.dtype)
    return data, State(root, root, jnp.eye(len(lower), dtype=rows.dtype), jnp.trace(data.second_moment), zero)


def _whitened_rows(lower: jax.Array, stats: GroupedStats, mean: jax.Array) -> jax.Array:
    rows = rows_about(stats, mean) * jnp.sqrt(stats.row_count)[:, None]
    return triangular.solve(lower, rows.T).T


@partial(jax.jit, static_argnames=("floor", "expand"))
def update(state: State, data: Whitened, *, floor: float, expand: bool) -> tuple[State, jax.Array]:
    """One step: the new state, and the log-likelihood at the old one. Gradients are stopped."""
    state, data = jax.lax.stop_gradient((state, data))
    sums = _latent(state, data)
    n, k = data.stats.num_people.sum(), num_images(data.stats)
    regression = psd.solve(sums.images, sums.cross.T).T
    noise = psd.symmetrize(data.second_moment - regression @ sums.cross.T) / k
    growth = psd.cholesky(sums.people / n) if expand else jnp.eye(len(sums.values), dtype=noise.dtype)
    root = regression @ growth
    lower, jitter = _floored(noise, root, data, floor)
    white = triangular.solve(lower, regression)
    # M = k T_eps + B H^-1 B', less the ridge: no solve with M.
    size = k * len(lower) + (white * (white @ sums.images)).sum() - k * _size_of_ridge(lower, data, jitter)
    new = State(root, white @ growth, lower, size, jnp.maximum(state.jitter, jitter))
    return new, _log_likelihood(state, data, sums)


def _latent(state: State, data: Whitened) -> Latent:
    """The E-step: F turned so that its coordinates are independent, then products with `[d, r]`."""
    values, turn = spectral.eigh(state.white.T @ state.white)
    values = jnp.maximum(values, 0)
    count = data.stats.row_count[:, None]
    b = data.rows @ triangular.solve_transposed(state.lower, state.white @ turn)  # b / sqrt(m)
    h = b / (1 + count * values[None, :])  # E[h] / sqrt(m)
    spread = 1 / (1 + data.stats.count[None, :] * values[:, None])  # [r, g], variances of h
    of_people, of_images = spread @ data.stats.num_people, spread @ (data.stats.num_people * data.stats.count)
    scaled = count * h  # sqrt(m) E[h]
    return Latent(
        people=h.T @ scaled + jnp.diag(of_people),
        images=scaled.T @ scaled + jnp.diag(of_images),
        cross=data.rows.T @ scaled,
        explained=(b * scaled).sum(),
        values=values,
    )


def _floored(noise: jax.Array, root: jax.Array, data: Whitened, floor: float) -> tuple[jax.Array, jax.Array]:
    """The Cholesky factor of T_eps, with the ridge of `em.floored` where a pivot in the units of the images needs it.

    The Cholesky factor of `L T_eps L'` is L times that of T_eps, so its pivots are products.
    """
    d, lower = len(noise), psd.cholesky(noise)
    least = ((jnp.diagonal(lower) * jnp.diagonal(data.lower)) ** 2).min()
    of_images = (data.square * noise).sum() + mean_weight(data.stats) * ((data.square @ root) * root).sum()
    floor = max(floor, d * machine.eps(noise.dtype))
    jitter = jnp.where(least >= floor * of_images / d, 0, floor * of_images / d)

    def with_ridge() -> jax.Array:
        inverse = triangular.inverse(data.lower)
        return psd.cholesky(noise + jitter * (inverse @ inverse.T))

    return jax.lax.cond(jitter > 0, with_ridge, lambda: lower), jitter


def _size_of_ridge(lower: jax.Array, data: Whitened, jitter: jax.Array) -> jax.Array:
    """`jitter tr T_eps^-1` in the units of the images."""

    def size() -> jax.Array:
        inverse = triangular.inverse(data.lower @ lower)
        return jitter * (inverse**2).sum()

    return jax.lax.cond(jitter > 0, size, lambda: jnp.zeros_like(jitter))


def _log_likelihood(state: State, data: Whitened, sums: Latent) -> jax.Array:
    """`-1/2 [k d log 2 pi + k log|T_eps| + tr T_eps^-1 M + sum_ia log(1 + m_i l_a) - sum b'E[h]]`.

    With weights also `d L / 2`, where L is the sum of log weights.
    """
    stats, d, k = data.stats, len(state.lower), num_images(data.stats)
    couplings = stats.num_people @ jnp.log1p(stats.count[:, None] * sums.values[None, :]).sum(axis=1)
    log_det = 2 * (jnp.log(jnp.diagonal(state.lower)) + jnp.log(jnp.diagonal(data.lower))).sum()
    constant = k * d * jnp.log(jnp.asarray(2 * jnp.pi, state.size.dtype))
    unweighted = -(constant + k * log_det + state.size + couplings - sums.explained) / 2
    return unweighted if stats.log_weight is None else unweighted + d * stats.log_weight / 2
