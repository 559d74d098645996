"""Parameters as pytrees: the `params` dataclass, and ensembles as a leading axis."""

import dataclasses
from typing import Any, TypeVar, dataclass_transform

import jax
import jax.numpy as jnp

__all__ = ["member", "num_members", "params", "stack", "static", "unbounded", "whole"]

T = TypeVar("T")


def static(**kwargs: Any) -> Any:
    """A field of a `params` class that is part of the structure (hashable, never traced) and not a leaf."""
    return dataclasses.field(metadata={"static": True}, **kwargs)


def whole(**kwargs: Any) -> Any:
    """A leaf that holds integers, such as indices; the other leaves hold floating point numbers."""
    return dataclasses.field(metadata={"whole": True}, **kwargs)


def unbounded(**kwargs: Any) -> Any:
    """A leaf in which infinities have a meaning, such as the logarithm of a weight of zero."""
    return dataclasses.field(metadata={"unbounded": True}, **kwargs)


@dataclass_transform(
    frozen_default=True, kw_only_default=True, eq_default=False, field_specifiers=(static, whole, unbounded)
)
def params(cls: type[T]) -> type[T]:
    """Makes `cls` a frozen, keyword-only dataclass that is a pytree: what a user would save.

    It works under jit, vmap, grad and `jax.tree.map`; unlike a NamedTuple it does not add or multiply by accident.
    There is no validation at construction, for transformations put placeholders into the fields.
    """
    return jax.tree_util.register_dataclass(dataclasses.dataclass(frozen=True, kw_only=True, eq=False)(cls))


def stack(members: list[T]) -> T:
    """Stacks equal structures leaf by leaf: `[m]` single parameters become one with a leading axis m."""
    if not members:
        raise ValueError("members must hold at least one tree; got an empty list.")
    first: Any = jax.tree.structure(members[0])
    for index, other in enumerate(members):
        if jax.tree.structure(other) != first:
            raise ValueError(
                f"members must share one structure and the same static fields; member {index} has "
                f"{jax.tree.structure(other)}, member 0 has {first}."
            )
    return jax.tree.map(lambda *leaves: jnp.stack(leaves), *members)


def member(tree: T, index: Any) -> T:
    """Member `index` of a stacked tree; also takes a slice or an index array."""
    return jax.tree.map(lambda leaf: leaf[index], tree)


def num_members(tree: Any) -> int:
    """The common size of the leading axis."""
    sizes = {jnp.shape(leaf)[:1] for leaf in jax.tree.leaves(tree)}
    if len(sizes) != 1 or sizes == {()}:
        raise ValueError(f"tree must have one leading member axis on every leaf; got leading sizes {sizes}.")
    ((size,),) = sizes
    return size
