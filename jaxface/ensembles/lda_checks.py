"""Checks of the arguments of an LDA member, with the remedy in the message. Traced values are not checked."""

import numpy as np
from jax.typing import ArrayLike

from jaxface.core import checks

__all__ = []

# Rounding of float32 coordinates leaves correlations of 1e-4 between axes that differ by 1e6 in variance.
_CORRELATED = 1e-2
_LEAST_VARIANCE = 1e-6


def check_samples(
    y: ArrayLike, labels: ArrayLike, axes: ArrayLike, *, num_classes: int, ridge: ArrayLike
) -> tuple[ArrayLike, ArrayLike]:
    """Labels and axes as signed integers, after `check_images` and checks of the classes, the axes and the ridge."""
    checks.at_least("num_classes", num_classes, 2, "discrimination needs two classes")
    checks.at_least("number of axes", np.shape(axes)[1], 1)
    checks.shapes(ridge=(ridge, ""))
    checks.between("ridge", ridge, 0.0, np.inf, closed_high=False)
    return check_images(y, labels, axes, num_classes=num_classes)


def check_images(y: ArrayLike, labels: ArrayLike, axes: ArrayLike, *, num_classes: int) -> tuple[ArrayLike, ArrayLike]:
    """Labels and axes as signed integers: finite y, dense labels, an image of every class, axes that exist."""
    checks.floating(y=y)
    checks.finite(y=y)
    checks.at_least("num_classes", num_classes, 1)
    labels = checks.dense_labels("labels", labels, num_classes)
    checks.between("axes", axes, -1, np.shape(y)[1] - 1)
    checks.every_label("labels", labels, num_classes)  # each class needs a centre
    return labels, checks.fits_int32("axes", axes)


def check_width(num_components: int | None, *, num_axes: int, num_classes: int) -> int:
    """The number of directions to keep, by default min(k, c - 1)."""
    if num_components is None:
        return min(num_axes, num_classes - 1)
    checks.at_least("num_components", num_components, 1)
    checks.at_most("num_components", num_components, num_axes, "the axes of a member")
    checks.at_most("num_components", num_components, num_classes - 1, "the rank of the between-class scatter")
    return num_components


def check_principal(y: ArrayLike) -> None:
    """Refuses y `[n, p]` unless columns are centred and uncorrelated: `S_t v = diag(S_t) v` for one generic v."""
    if not checks.is_concrete(y):
        return
    values = np.asarray(y)
    # Scaled to magnitude 1, so that squares neither overflow nor underflow.
    values = np.ldexp(values, -np.frexp(np.abs(values).max(initial=0))[1])
    variances = (values * values).mean(axis=0)
    usable = variances > _LEAST_VARIANCE * variances.max(initial=0.0)
    deviations = np.sqrt(variances, where=usable, out=np.ones_like(variances))
    direction = np.where(usable, np.cos(np.arange(len(usable), dtype=values.dtype)), 0)
    back = values.T @ (values @ (direction / deviations)) / deviations / len(values)
    wrong = (
        np.abs(np.where(usable, back - direction, 0)) + np.abs(np.where(usable, values.mean(axis=0), 0)) / deviations
    )
    if wrong.max(initial=0.0) > _CORRELATED:
        raise ValueError(
            "y must be the principal coordinates of these very samples, columns centred and uncorrelated; "
            f"column {int(wrong.argmax())} is not. Give other coordinates to fit_bags, with weights of 1."
        )


def check_rank(axes: ArrayLike, num_samples: int, num_classes: int, *, ridge: ArrayLike) -> None:
    """Refuses more than n - c axes without a ridge."""
    most = num_samples - num_classes
    if _may_be_singular(axes, ridge) and (largest := int(_num_used(axes).max(initial=0))) > most:
        raise ValueError(
            f"axes must hold at most N - C = {num_samples} - {num_classes} = {most} axes a member, the rank of S_w; "
            f"got M0 + M1 = {largest}. Take fewer, or a ridge above 0, for example 0.1."
        )


def check_bags(
    sample_weights: ArrayLike, labels: ArrayLike, axes: ArrayLike, *, ridge: ArrayLike, unbiased: bool
) -> None:
    """Refuses negative weights, bags of one person and, without a ridge, more axes than the rank of S_w in a bag."""
    checks.shapes(sample_weights=(sample_weights, "m n"))
    checks.not_narrow("sample_weights", sample_weights)
    if not (checks.is_concrete(sample_weights) and checks.is_concrete(labels)):
        return
    checks.between("sample_weights", sample_weights, 0.0, np.inf, closed_high=False)
    is_drawn = np.asarray(sample_weights) > 0
    people = np.stack([np.unique(np.asarray(labels)[bag]).size for bag in is_drawn])
    fewest = int(people.argmin())
    if people[fewest] < 2:
        raise ValueError(f"sample_weights must leave two people in every bag; bag {fewest} has {people[fewest]}.")
    different = is_drawn.sum(axis=1)
    least = int((different - people).argmin())
    if checks.is_concrete(unbiased) and unbiased and different[least] <= people[least]:
        raise ValueError(
            f"sample_weights must leave two images of somebody in every bag; bag {least} holds {different[least]} "
            f"different images of {people[least]} people, which leaves nothing to estimate S_w from. "
            "Take larger bags, or unbiased=False."
        )
    if not _may_be_singular(axes, ridge):
        return
    spare = different - people - _num_used(axes)
    tightest = int(spare.argmin())
    if spare[tightest] < 0:
        raise ValueError(
            f"axes must not outnumber the different images of a bag less its people, the rank of S_w; bag {tightest} "
            f"has {different[tightest]} images of {people[tightest]} people for {_num_used(axes)[tightest]} axes. "
            "Take fewer axes or larger bags, or a ridge above 0, for example 0.1."
        )


def _may_be_singular(axes: ArrayLike, ridge: ArrayLike) -> bool:
    return checks.is_concrete(axes) and checks.is_concrete(ridge) and not np.all(np.asarray(ridge) > 0)


def _num_used(axes: ArrayLike) -> np.ndarray:
    return (np.asarray(axes) >= 0).sum(axis=1)
