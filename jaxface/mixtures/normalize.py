"""From blocks to a vector: signed square root, unit length per block and component, unit length of the whole.

A block is `[k, f]`, one row a component. Lengths and roots are gradient-safe at zero; what is zero stays zero.
"""

import jax
import jax.numpy as jnp

from jaxface.linalg import distances

__all__ = ["Blocks", "concatenated", "standard"]

Blocks = tuple[jax.Array, ...]


def signed_sqrt(x: jax.Array) -> jax.Array:
    """`sign(x) sqrt |x|`: the power normalisation with exponent 1/2; derivative 0 at 0."""
    return jnp.sign(x) * distances.safe_sqrt(jnp.abs(x))


def per_component(block: jax.Array) -> jax.Array:
    """Rows `[k, f]` of unit length: no component outweighs another by holding more descriptors."""
    return distances.normalize(block)


def concatenated(blocks: Blocks) -> jax.Array:
    """The blocks as they are, in one vector, each component after component."""
    return jnp.concatenate([block.reshape(-1) for block in blocks])


def standard(blocks: Blocks) -> jax.Array:
    """Signed square root, rows of unit length, and a vector of unit length: the factor 1 / N cancels."""
    return distances.normalize(concatenated(tuple(per_component(signed_sqrt(block)) for block in blocks)))


def power(blocks: Blocks) -> jax.Array:
    """Signed square root and a vector of unit length, without the rows': the usual form for Fisher vectors."""
    return distances.normalize(concatenated(tuple(signed_sqrt(block) for block in blocks)))
