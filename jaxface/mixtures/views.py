"""Views that share a latent z: densities by Woodbury's identity, in which no matrix grows with the number of views.

In a component, view v is `v = mean + W z + eps` with `z ~ N(0, I)` `[d]` and `eps ~ N(0, Psi)`; given z the views are
independent. With sums over the views and r = v - mean,

    M = I + sum W'Psi^-1 W = L L'          u = L^-1 sum W'Psi^-1 r          log|Sigma| = log|M| + sum log|Psi|
    r'Sigma^-1 r = sum r'Psi^-1 r - u'u    E[z | views] = L^-T u            Cov[z | views] = M^-1

A missing view is left out of the sums, and with d = 0 this is a mixture of Gaussians.
"""

import math
from typing import Any, NamedTuple, Protocol, Self

import jax
import jax.numpy as jnp
import numpy as np
from jax.typing import ArrayLike

from jaxface.core import checks, machine
from jaxface.core.program import program
from jaxface.linalg import scaling
from jaxface.linalg.small_cholesky import inverse_factor, log_det

__all__ = ["View", "log_density", "log_responsibilities", "responsibilities"]


class View(NamedTuple):
    """One view in every component."""

    mean: jax.Array  # [k, n]
    loadings: jax.Array  # [k, n, d], W
    noise: jax.Array  # [k, n], the diagonal of Psi, or [k, n, n]


class Mixture(Protocol):
    """The interface of a mixture: `PCCAMixture` has two views, `GMM` one with d = 0, `MultiviewMixture` any number."""

    @property
    def log_weights(self) -> jax.Array:
        """`[k]`."""

    @property
    def views(self) -> tuple[View, ...]:
        """The views in the order of the data."""

    def with_views(self, log_weights: jax.Array, views: tuple[View, ...]) -> Self:
        """The same model with other values."""


class Whitening(NamedTuple):
    """The distances `(r - mean)'Psi^-1 (r - mean)` to all components, prepared for one wide product.

    With diagonal noise they are `matrix'[r^2, r] + offset`, with full noise the squared lengths of `matrix'r - offset`.
    """

    matrix: jax.Array  # [2 n, k], rows 1 / psi and -2 mean / psi; or [n, n, k], R' with R Psi R' = I
    offset: jax.Array  # [k]; or [n, k]


class _Factor(NamedTuple):
    """The noise of one view in every component, factorised."""

    whitening: Whitening
    weighted: jax.Array  # [k, n, d], Psi^-1 W
    gram: jax.Array  # [k, d, d], W'Psi^-1 W
    log_noise: jax.Array  # [k], log|Psi|


class Woodbury(NamedTuple):
    """Factors of all components, prepared for many samples `[n]`; n is summed over the views.

    Dimensions are measured in powers of two near their noise, because squares of very small or large numbers are out of
    range. For numbers of ordinary size the powers are zero and nothing changes.
    """

    origin: jax.Array  # [n], the mean of the mixture, subtracted from samples before anything is squared
    powers: jax.Array  # int32 [n], the units
    factors: jax.Array  # [n], 2^-powers: r = factors (v - origin)
    log_unit: jax.Array  # [], log density of r minus log density of v
    mean: jax.Array  # [k, n], of the components, in r
    log_constant: jax.Array  # [k], log w - (n log 2 pi + log|Sigma|) / 2
    whitening: tuple[Whitening, ...]  # of each view
    gain: jax.Array  # [n + 1, d, k]; u = gain'[r, 1]
    inner: jax.Array  # [k, d, d], L^-1


class Evaluation(NamedTuple):
    """One sample under every component."""

    log_joint: jax.Array  # [k], log w p(r | component)
    u: jax.Array  # [d, k]


def is_full(noise: jax.Array) -> bool:
    """Whether noise or a second moment holds matrices `[k, n, n]` instead of diagonals `[k, n]`."""
    return noise.ndim == 3


def is_not_constant(variance: jax.Array, mean: jax.Array) -> jax.Array:
    """Whether dimensions vary by more than the rounding of a constant."""
    return variance > (64 * machine.eps(variance.dtype) * mean) ** 2


def typical_variance(variance: jax.Array, mean: jax.Array) -> jax.Array:
    """The mean variance `[]` of a view; where no dimension varies the mean square, or 1 if that is zero too."""
    average = jnp.where(is_not_constant(variance, mean), variance, 0).mean()
    square = (mean * mean).mean()
    return jnp.where(average > 0, average, jnp.where(square > 0, square, 1))


def diagonal(noise: jax.Array) -> jax.Array:
    """Variances `[k, n]`."""
    return jnp.diagonal(noise, axis1=1, axis2=2) if is_full(noise) else noise


def noise_powers(noise: jax.Array) -> jax.Array:
    """Powers of two int32 `[n]` near the standard deviations of the noise; 0 for those of ordinary size."""
    return scaling.row_exponents(diagonal(noise).T, reach=2 * scaling.ORDINARY)[:, 0] // 2


def in_units(view: View, powers: jax.Array) -> View:
    """The view with its dimensions in units of `2^powers` `[n]`, or in one unit `[]` for all."""
    powers = jnp.broadcast_to(powers, view.mean.shape[1:])
    both = powers[None, :, None] + powers[None, None, :] if is_full(view.noise) else 2 * powers[None, :]
    return View(
        scaling.shifted(view.mean, -powers[None, :]),
        scaling.shifted(view.loadings, -powers[None, :, None]),
        scaling.shifted(view.noise, -both),
    )


def factorize(log_weights: jax.Array, views: tuple[View, ...]) -> Woodbury:
    """Factors of a mixture for these views: Cholesky of d x d and, for full noise, n x n matrices."""
    k, _, d = views[0].loadings.shape
    # Only rounding depends on the origin, so no gradient needs to flow through it.
    share = jax.lax.stop_gradient(jax.nn.softmax(log_weights))
    origin = [jax.lax.stop_gradient(share @ view.mean) for view in views]
    powers = [noise_powers(view.noise) for view in views]
    views = tuple(
        in_units(view._replace(mean=view.mean - start[None, :]), power)
        for view, start, power in zip(views, origin, powers, strict=True)
    )
    factors = [_factor(view) for view in views]
    m, log_noise = jnp.broadcast_to(jnp.eye(d, dtype=log_weights.dtype), (k, d, d)), jnp.zeros_like(log_weights)
    for factor in factors:
        m, log_noise = m + factor.gram, log_noise + factor.log_noise
    inner = inverse_factor(m)
    mean = jnp.concatenate([view.mean for view in views], axis=1)
    gain = jnp.concatenate([factor.weighted for factor in factors], axis=1) @ inner.mT
    units = jnp.concatenate(powers)
    log_norm = mean.shape[1] * math.log(2 * math.pi) + log_noise + log_det(inner)
    return Woodbury(
        origin=jnp.concatenate(origin),
        powers=units,
        factors=scaling.shifted(jnp.ones_like(units, mean.dtype), -units),
        log_unit=math.log(2) * units.sum().astype(mean.dtype),
        mean=mean,
        log_constant=log_weights - log_norm / 2,
        whitening=tuple(factor.whitening for factor in factors),
        gain=jnp.concatenate([gain, -jnp.einsum("kn,knd->kd", mean, gain)[:, None]], axis=1).transpose(1, 2, 0),
        inner=inner,
    )


@program
def _factor(view: View) -> _Factor:
    """The noise of one view, factorised; the mean is that in the coordinates r."""
    if is_full(view.noise):
        root = inverse_factor(view.noise)
        white = root @ view.loadings
        whitening = Whitening(root.transpose(2, 1, 0), jnp.einsum("kmn,kn->mk", root, view.mean))
        return _Factor(whitening, root.mT @ white, white.mT @ white, log_det(root))
    scaled = view.mean / view.noise
    matrix = jnp.concatenate([1 / view.noise, -2 * scaled], axis=1)
    weighted = view.loadings / view.noise[:, :, None]
    whitening = Whitening(matrix.T, (view.mean * scaled).sum(axis=1))
    return _Factor(whitening, weighted, view.loadings.mT @ weighted, jnp.log(view.noise).sum(axis=1))


def evaluate(woodbury: Woodbury, v: jax.Array) -> Evaluation:
    """Joint log densities and latent coordinates of one sample v `[n]`, its views one after the other.

    `vmap` turns each product into one wide product for all samples.
    """
    r = (v - woodbury.origin) * woodbury.factors
    u = jnp.tensordot(jnp.append(r, 1), woodbury.gain, 1)
    squared, start = -(u * u).sum(axis=0), 0
    for whitening in woodbury.whitening:
        matrix = whitening.matrix
        part = r[start : (start := start + matrix.shape[0] // (1 if is_full(matrix) else 2))]
        squared = squared + distance(whitening, part)
    return Evaluation(woodbury.log_constant - squared / 2, u)


def distance(whitening: Whitening, r: jax.Array) -> jax.Array:
    """`(r - mean)'Psi^-1 (r - mean)` `[k]` of one view r `[n]`."""
    matrix, offset = whitening
    if is_full(matrix):
        white = jnp.tensordot(r, matrix, 1) - offset
        return (white * white).sum(axis=0)
    return squares_beside(r) @ matrix + offset


def squares_beside(r: jax.Array) -> jax.Array:
    """`[r^2, r]` of rows `[..., n]`: distances with diagonal noise, and their sums, are linear in this vector."""
    return jnp.concatenate([r * r, r], axis=-1)


def batched_matvec(matrices: jax.Array, vectors: jax.Array) -> jax.Array:
    """`A_k b_k` `[k, n]` of `[k, n, d]` and `[k, d]`."""
    return jnp.einsum("knd,kd->kn", matrices, vectors)


def block_diagonal(*blocks: jax.Array) -> jax.Array:
    """The square matrix with the square blocks along its diagonal."""
    ends = np.cumsum([len(block) for block in blocks])
    pads = [(end - len(block), ends[-1] - end) for block, end in zip(blocks, ends, strict=True)]
    return jnp.concatenate([jnp.pad(block, ((0, 0), pad)) for block, pad in zip(blocks, pads, strict=True)])


def latent_mean(woodbury: Woodbury, u: jax.Array) -> jax.Array:
    """(18): `E[z | views] = L^-T u` `[k, d]`."""
    return jnp.einsum("kij,ik->kj", woodbury.inner, u)


def latent_cov(woodbury: Woodbury) -> jax.Array:
    """(19): `Cov[z | views] = M^-1` `[k, d, d]`, the same for every sample."""
    return woodbury.inner.mT @ woodbury.inner


def log_density(model: Mixture, *views: ArrayLike | None) -> jax.Array:
    """`log p(v)` of one sample, a vector for each view; a view that is None is integrated out."""
    woodbury, v = woodbury_of_given_views(model, views)
    return jax.nn.logsumexp(evaluate(woodbury, v).log_joint) - woodbury.log_unit


def log_responsibilities(model: Mixture, *views: ArrayLike | None) -> jax.Array:
    """(13): `log p(component | v)` `[k]` of one sample; a view that is None is integrated out."""
    return jax.nn.log_softmax(evaluate(*woodbury_of_given_views(model, views)).log_joint)


def responsibilities(model: Mixture, *views: ArrayLike | None) -> jax.Array:
    """(13): `p(component | v)` `[k]` of one sample; a view that is None is integrated out."""
    return jnp.exp(log_responsibilities(model, *views))


def woodbury_of_given_views(model: Mixture, views: tuple[ArrayLike | None, ...]) -> tuple[Woodbury, jax.Array]:
    """The factors of the views that are not None, and the values of these views in one vector `[n]`."""
    pairs = [pair for pair in zip(model.views, checked(model, views), strict=True) if pair[1] is not None]
    if not pairs:
        known = " or ".join(name for name, _ in names(len(views)))
        raise ValueError(f"{known} must be given; got None for every view.")
    woodbury = factorize(model.log_weights, tuple(view for view, _ in pairs))
    return woodbury, jnp.concatenate([jnp.asarray(v) for _, v in pairs])


def checked(model: Mixture, views: tuple[ArrayLike | None, ...], leading: str | tuple[str, ...] = "") -> list[Any]:
    """The views unchanged, after a check against the model; `leading` names the axes in front, for all views or each.

    A view of one sample may be missing, that is None; views of several samples may not. The model is checked, too: one
    kind of noise, one number of components and one number of latent dimensions.
    """
    if len(views) != len(model.views):
        raise ValueError(f"the model has {len(model.views)} views; got {len(views)}. Pass None for a missing view.")
    if len({is_full(view.noise) for view in model.views}) > 1:
        shapes = " and ".join(str(view.noise.shape) for view in model.views)
        every = "both" if len(views) == 2 else "all"
        raise ValueError(f"noise must be diagonal in {every} views, or full in {every}; got shapes {shapes}.")
    specs: dict[str, tuple[Any, str]] = {"log_weights": (model.log_weights, "k")}
    in_front = (leading,) * len(views) if isinstance(leading, str) else leading
    for (name, axis), view, params, axes in zip(names(len(views)), views, model.views, in_front, strict=True):
        if view is None and axes:
            raise ValueError(f"{name} must be given; got None. Only functions of one sample accept a missing view.")
        joined = "_" if len(views) <= 2 else " of "
        named = {f"{field}{joined}{name}": value for field, value in params._asdict().items()}
        axes_of_fields = f"k {axis}", f"k {axis} d", f"k {axis} {axis}" if is_full(params.noise) else f"k {axis}"
        specs |= {field: (named[field], shape) for field, shape in zip(named, axes_of_fields, strict=True)}
        if view is not None:
            checks.floating(**{name: view})
            specs[name] = view, f"{axes} {axis}".strip()
        checks.floating(**named)
    checks.shapes(**specs)
    return list(views)


def names(number: int) -> tuple[tuple[str, str], ...]:
    """What messages call the views and their dimensions: x and y, or, of more than two views, view 0 and so on."""
    if number <= 2:
        return (("x", "n"), ("y", "m"))[:number]
    return tuple((f"view {v}", f"n{v}") for v in range(number))
