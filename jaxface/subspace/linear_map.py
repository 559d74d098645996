"""The affine map `z = W'(x - mean)` that every linear subspace method returns."""

import jax
import jax.numpy as jnp

from jaxface.core import checks
from jaxface.core.pytree import params

__all__ = ["LinearMap", "compose", "reconstruct"]


@params
class LinearMap:
    """A mean and a basis; columns beyond the numerical rank of the fit are zero."""

    mean: jax.Array  # [d]
    basis: jax.Array  # [d, r], W

    def check(self) -> None:
        """Refuses shapes that do not fit."""
        checks.shapes(mean=(self.mean, "... d"), basis=(self.basis, "... d r"))


def transform(linear_map: LinearMap, x: jax.Array) -> jax.Array:
    """`W'(x - mean)`: `[d]` to `[r]`."""
    checks.floating(x=x)
    checks.shapes(mean=(linear_map.mean, "d"), x=(x, "d"))
    return (x - linear_map.mean) @ linear_map.basis


def reconstruct(linear_map: LinearMap, z: jax.Array) -> jax.Array:
    """`mean + W z`: `[r]` to `[d]`; the nearest point of the subspace when W is orthonormal."""
    checks.floating(z=z)
    checks.shapes(basis=(linear_map.basis, "d r"), z=(z, "r"))
    return linear_map.mean + linear_map.basis @ z


def leading(linear_map: LinearMap, width: jax.Array | int) -> LinearMap:
    """The map that keeps the first `width` columns and zeros the rest."""
    keep = jnp.arange(linear_map.basis.shape[1]) < width
    return LinearMap(mean=linear_map.mean, basis=jnp.where(keep[None, :], linear_map.basis, 0))


def compose(first: LinearMap, second: LinearMap) -> LinearMap:
    """One map for `transform(second, transform(first, x))`; the basis of `first`, `[d, p]`, must be orthonormal.

    Many fits on the same images are cheapest in coordinates of their span: all principal axes, then the fits in p
    dimensions instead of d, then this.
    """
    return LinearMap(mean=reconstruct(first, second.mean), basis=first.basis @ second.basis)
