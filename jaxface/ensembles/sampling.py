"""Draws that make members differ: axes, people, images, candidates for a parameter.

A draw is an array of integers with the members in front, and member i is the same whatever their number. All draws are
without replacement, but for `bootstrap` and the one in `image_bags`.
"""

from collections.abc import Callable
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.typing import ArrayLike

from jaxface.core import checks, prng

__all__ = [
    "bootstrap",
    "class_bags",
    "class_weights",
    "feature_subspaces",
    "image_bags",
    "parameter_subsets",
    "row_weights",
]


def feature_subspaces(
    key: jax.Array,
    variances: ArrayLike,
    *,
    num_members: int,
    num_fixed: ArrayLike,
    num_random: ArrayLike,
    width: int | None = None,
    floor: float = 1e-5,
) -> jax.Array:
    """Axes `[m, width]` of every member: the first M0 principal axes and M1 random ones of the others.

    `variances` `[p]` descend; only axes with more than `floor` times the largest are drawn, for members divide by them,
    and smaller ones magnify rounding. `floor=0` draws from every axis with any variance, as the slides do. M0 and M1
    may be traced when a `width` of at least M0 + M1 (the default) is given; places beyond M0 + M1 hold -1. With one key
    the draws of M1 = 20 begin with those of M1 = 10.
    """
    _check_members(num_members)
    for name, number in (("num_fixed", num_fixed), ("num_random", num_random)):
        checks.shapes(**{name: (number, "")})
        checks.fits_int32(name, number)
    width = _static_width(num_fixed, num_random) if width is None else width
    check_subspace(variances, num_fixed, num_random, width=width, floor=floor)
    usable = _usable(variances, floor)
    draw = partial(_subspace, usable=usable, num_fixed=num_fixed, num_random=num_random, width=width)
    return jax.vmap(draw)(prng.member_keys(key, num_members))


def class_bags(key: jax.Array, *, num_members: int, num_classes: int, bag_size: int) -> jax.Array:
    """People `[m, c1]` of every member: `bag_size` of the c classes, ascending."""
    checks.at_least("num_classes", num_classes, 2, "discrimination needs two classes")
    checks.at_least("bag_size", bag_size, 2, "discrimination needs two classes")
    checks.at_most("bag_size", bag_size, num_classes, "the number of classes")
    return _subsets(key, num_members, num_classes, bag_size)


def parameter_subsets(key: jax.Array, *, num_members: int, num_candidates: int, subset_size: int) -> jax.Array:
    """Candidates `[m, rho]` that every member may choose from, `rho = subset_size` of them; see `members.choose`.

    At rho = num_candidates all members choose alike, at rho = 1 by chance alone.
    """
    checks.at_least("num_candidates", num_candidates, 1)
    checks.at_least("subset_size", subset_size, 1)
    checks.at_most("subset_size", subset_size, num_candidates, "the number of candidates")
    return _subsets(key, num_members, num_candidates, subset_size)


def image_bags(
    key: jax.Array,
    labels: ArrayLike,
    *,
    num_members: int,
    num_classes: int,
    images_per_class: int,
    bootstrap: bool = False,
) -> jax.Array:
    """Rows `[m, c n1]` of every member: n1 = `images_per_class` images of each class of labels `[n]`, class by class.

    With `bootstrap` they are drawn with replacement. A class whose n1 draws are all one image is drawn again, for it
    would tell nothing about S_w.
    """
    checks.shapes(labels=(labels, "n"))
    checks.at_least("num_classes", num_classes, 1)
    labels = checks.dense_labels("labels", labels, num_classes)
    checks.at_least("images_per_class", images_per_class, 2, "one image tells nothing about S_w")
    _check_members(num_members)
    _check_images(labels, num_classes, images_per_class, bootstrap)
    draw = _bootstrap if bootstrap else _without_replacement
    keys = prng.member_keys(key, num_members)
    return _image_bags(keys, jnp.asarray(labels), draw=draw, num_classes=num_classes, images_per_class=images_per_class)


@partial(jax.jit, static_argnames=("draw", "num_classes", "images_per_class"))
def _image_bags(
    keys: jax.Array, labels: jax.Array, *, draw: Callable[..., jax.Array], num_classes: int, images_per_class: int
) -> jax.Array:
    member = partial(draw, labels=labels, num_classes=num_classes, images_per_class=images_per_class)
    return jax.vmap(member)(keys).reshape(len(keys), -1)


def bootstrap(key: jax.Array, *, num_members: int, num_rows: int, bag_size: int | None = None) -> jax.Array:
    """Rows `[m, bag_size]` of every member, drawn with replacement from all n; by default as many as there are.

    Of n rows n draws hold `1 - (1 - 1/n)^n` different ones, about 63.2 %. Classes play no part: `image_bags` draws as
    many images of each.
    """
    checks.at_least("num_rows", num_rows, 1)
    size = num_rows if bag_size is None else bag_size
    checks.at_least("bag_size", size, 1)
    _check_members(num_members)
    draw = partial(jax.random.randint, shape=(size,), minval=0, maxval=num_rows, dtype=jnp.int32)
    return jax.vmap(draw)(prng.member_keys(key, num_members))


def class_weights(classes: ArrayLike, labels: ArrayLike) -> jax.Array:
    """Bags of people `[m, c1]` as weights `[m, n]` of the images: 1 for all images of the people drawn, 0 else."""
    checks.shapes(classes=(classes, "m b"), labels=(labels, "n"))
    classes, labels = (jnp.asarray(_signed(*each)) for each in (("classes", classes), ("labels", labels)))
    return (classes[:, :, None] == labels[None, None, :]).any(axis=1).astype(jnp.int32)


def row_weights(rows: ArrayLike, *, num_rows: int) -> jax.Array:
    """Bags of images `[m, b]` as weights `[m, n]`: how often each image was drawn."""
    checks.shapes(rows=(rows, "m b"))
    checks.at_least("num_rows", num_rows, 1)
    rows = checks.dense_labels("rows", rows, num_rows)
    ones = jnp.ones(np.shape(rows)[1], jnp.int32)
    return jax.vmap(lambda drawn: jax.ops.segment_sum(ones, drawn, num_rows))(jnp.asarray(rows))


def _signed(name: str, labels: Any) -> Any:
    """Dense labels of any number of classes."""
    return checks.dense_labels(name, labels, np.iinfo(np.int32).max)


def _subspace(
    key: jax.Array, *, usable: jax.Array, num_fixed: ArrayLike, num_random: ArrayLike, width: int
) -> jax.Array:
    place = jnp.arange(usable.shape[0], dtype=jnp.uint32)
    fixed = place < jnp.asarray(num_fixed, jnp.uint32)
    rank = jnp.where(fixed, place, jax.random.bits(key, place.shape, jnp.uint32))
    group = jnp.where(usable, jnp.where(fixed, 0, 1), 2)
    chosen = jnp.lexsort((rank, group))[:width].astype(jnp.int32)
    number = jnp.asarray(num_fixed, jnp.int32) + jnp.asarray(num_random, jnp.int32)
    return jnp.where((jnp.arange(width) < number) & usable[chosen], chosen, -1)


def _subsets(key: jax.Array, num_members: int, population: int, size: int) -> jax.Array:
    _check_members(num_members)
    keys = prng.member_keys(key, num_members)
    drawn = jax.vmap(lambda one: jax.random.permutation(one, population)[:size])(keys)
    return jnp.sort(drawn, axis=1).astype(jnp.int32)


def _without_replacement(key: jax.Array, *, labels: jax.Array, num_classes: int, images_per_class: int) -> jax.Array:
    shuffled = jnp.lexsort((jax.random.bits(key, labels.shape, jnp.uint32), labels)).astype(jnp.int32)
    start, _ = _class_ranges(labels, num_classes)
    return shuffled[start[:, None] + jnp.arange(images_per_class, dtype=jnp.int32)[None, :]]


def _bootstrap(key: jax.Array, *, labels: jax.Array, num_classes: int, images_per_class: int) -> jax.Array:
    start, count = _class_ranges(labels, num_classes)

    def draw(key: jax.Array) -> jax.Array:
        return jax.random.randint(key, (num_classes, images_per_class), 0, count[:, None], dtype=jnp.int32)

    def is_one_image(drawn: jax.Array) -> jax.Array:
        return (drawn == drawn[:, :1]).all(axis=1) & (count > 1)

    def again(state: tuple[jax.Array, jax.Array]) -> tuple[jax.Array, jax.Array]:
        key, drawn = state
        key, now = jax.random.split(key)
        return key, jnp.where(is_one_image(drawn)[:, None], draw(now), drawn)

    key, first = jax.random.split(key)
    _, drawn = jax.lax.while_loop(lambda state: is_one_image(state[1]).any(), again, (key, draw(first)))
    return jnp.argsort(labels).astype(jnp.int32)[start[:, None] + drawn]


def _class_ranges(labels: jax.Array, num_classes: int) -> tuple[jax.Array, jax.Array]:
    """Where each class starts in the sorted labels, and its number of images, `[c]`."""
    count = jax.ops.segment_sum(jnp.ones(labels.shape, jnp.int32), labels, num_classes)
    return jnp.cumsum(count, dtype=jnp.int32) - count, count


def _usable(variances: ArrayLike, floor: float) -> jax.Array:
    """Axes `[p]` whose variance is above the floor."""
    variances = jnp.asarray(variances)
    return variances > floor * variances.max()


def _static_width(num_fixed: ArrayLike, num_random: ArrayLike) -> int:
    if not (checks.is_concrete(num_fixed) and checks.is_concrete(num_random)):
        raise ValueError("width must be given when num_fixed or num_random is traced: it is the shape of the draws.")
    return int(np.asarray(num_fixed) + np.asarray(num_random))


def _check_members(num_members: int) -> None:
    checks.at_least("num_members", num_members, 1, "a committee has members")


def check_subspace(
    variances: ArrayLike, num_fixed: ArrayLike, num_random: ArrayLike, *, width: int, floor: float
) -> None:
    """Refuses sizes that `feature_subspaces` cannot draw from these variances."""
    p = checks.samples(variances=(variances, "p"))["p"]
    checks.between("floor", floor, 0.0, 1.0, closed_high=False)
    checks.at_least("width", width, 1)
    checks.at_most("width", width, p, "the number of axes")
    if not all(checks.is_concrete(value) for value in (variances, num_fixed, num_random)):
        return
    fixed, drawn, known = int(np.asarray(num_fixed)), int(np.asarray(num_random)), np.asarray(variances)
    pool = int((known > floor * known.max(initial=0)).sum())  # not by `_usable`: inside jit that would be traced
    checks.at_least("num_fixed", fixed, 0)
    checks.at_least("num_random", drawn, 0)
    checks.at_most("num_fixed + num_random", fixed + drawn, width, "the width of the draws")
    if fixed + drawn > pool:
        raise ValueError(
            f"num_fixed + num_random must be at most {pool}, the axes whose variance is above the floor; "
            f"got {fixed} + {drawn}. Take fewer axes or a lower floor."
        )


def _check_images(labels: ArrayLike, num_classes: int, images_per_class: int, bootstrap: bool) -> None:
    if not checks.is_concrete(labels):
        return
    counts = np.bincount(np.asarray(labels), minlength=num_classes)
    fewest = int(counts.argmin())
    if counts[fewest] < 2:
        raise ValueError(
            f"labels must hold at least two images of every class to bag images; class {fewest} has {counts[fewest]}. "
            "Remove such people, or bag people with class_bags."
        )
    if not bootstrap and counts[fewest] < images_per_class:
        raise ValueError(
            f"images_per_class must be at most {counts[fewest]}, the images of class {fewest}; got {images_per_class}. "
            "Take fewer, or bootstrap=True."
        )
