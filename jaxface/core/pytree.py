"""Parameters as pytrees: the `params` dataclass, and ensembles as a leading axis."""

import dataclasses
from collections.abc import Iterable
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
    cls = dataclasses.dataclass(frozen=True, kw_only=True, eq=False)(cls)
    fields = dataclasses.fields(cls)  # type: ignore[arg-type]
    leaves = [field.name for field in fields if not field.metadata.get("static")]
    statics = [field.name for field in fields if field.metadata.get("static")]
    keys = [jax.tree_util.GetAttrKey(name) for name in leaves]

    def flatten(tree: T) -> tuple[list[Any], tuple[Any, ...]]:
        return [getattr(tree, name) for name in leaves], tuple(getattr(tree, name) for name in statics)

    def flatten_with_keys(tree: T) -> tuple[list[tuple[Any, Any]], tuple[Any, ...]]:
        values, structure = flatten(tree)
        return list(zip(keys, values, strict=True)), structure

    def unflatten(structure: tuple[Any, ...], values: Iterable[Any]) -> T:
        return cls(**dict(zip(leaves, values, strict=True)), **dict(zip(statics, structure, strict=True)))

    # Not `register_dataclass`: in JAX 0.10 the structures of two classes compare equal if they have the same number of
    # leaves and equal static fields. `jit` then calls the program of the other class where their hashes collide.
    jax.tree_util.register_pytree_with_keys(cls, flatten_with_keys, unflatten, flatten)
    return cls


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
