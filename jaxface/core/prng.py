"""Keys: typed, explicit, used once, and independent of how many others are drawn."""

import hashlib

import jax
import jax.numpy as jnp

from jaxface.core import checks

__all__ = ["member_keys", "stream"]


def stream(key: jax.Array, name: str) -> jax.Array:
    """The key of a named purpose: folds in a hash of `name` that is the same on every machine and run."""
    checks.typed_key(key)
    digest = hashlib.sha256(name.encode()).digest()
    return jax.random.fold_in(key, int.from_bytes(digest[:4], "little"))


def member_keys(key: jax.Array, num: int) -> jax.Array:
    """Keys `[num]` of ensemble members: key 7 is the same whether there are 10 or 100 members."""
    checks.typed_key(key)
    checks.at_least("num", num, 1)
    return jax.vmap(jax.random.fold_in, in_axes=(None, 0))(key, jnp.arange(num, dtype=jnp.uint32))
