"""From the parts of a code to one vector: signed square root, unit length per part and component, unit total length.

A part is `[k, f]` with one row a component. Lengths and roots are gradient-safe at zero, and zeros stay zero.
"""

import jax
import jax.numpy as jnp

from jaxface.linalg import distances

__all__ = ["concatenate", "power", "standard", "unit_rows"]

Parts = tuple[jax.Array, ...]


def concatenate(parts: Parts) -> jax.Array:
    """The parts unchanged in one vector, each component after component."""
    return jnp.concatenate([part.reshape(-1) for part in parts])


def power(parts: Parts) -> jax.Array:
    """Signed square root and a vector of unit length, with rows of any length: the usual form for Fisher vectors."""
    return distances.normalize(concatenate(tuple(signed_sqrt(part) for part in parts)))


def unit_rows(parts: Parts) -> jax.Array:
    """Signed square root and rows of unit length: `standard` before its last step, for codes that are joined first."""
    return concatenate(tuple(per_component(signed_sqrt(part)) for part in parts))


def standard(parts: Parts) -> jax.Array:
    """Signed square root, rows of unit length, and a vector of unit length: the factor 1 / N cancels."""
    return distances.normalize(unit_rows(parts))


def signed_sqrt(x: jax.Array) -> jax.Array:
    """`sign(x) sqrt |x|`: the power normalisation with exponent 1/2; derivative 0 at 0."""
    return jnp.sign(x) * distances.safe_sqrt(jnp.abs(x))


def per_component(part: jax.Array) -> jax.Array:
    """Rows `[k, f]` of unit length, so that no component gains weight from the number of its descriptors."""
    return distances.normalize(part)
