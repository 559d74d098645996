"""The faces room's rows of the transformation table."""

import jax
import numpy as np

from jaxface.faces import (
    block_dct,
    color_hist,
    geometry,
    hog,
    lbp,
    local_descriptors,
    local_norm,
    pipeline,
    pixels,
    separable,
    tps,
    variation,
)
from tests.transformations import Case

REFERENCE = np.array([[3.0, 4.0], [12.0, 4.0], [8.0, 9.0], [4.0, 14.0], [11.0, 13.0]])  # (x, y): eyes, nose, mouth


def gray(rng):
    return (rng.random((18, 16)),)


def color(rng):
    return (rng.random((7, 6, 3)),)


def bright(rng):
    """Colours away from the small kink of the sRGB curve at 0.04045."""
    return (0.1 + 0.9 * rng.random((7, 6, 3)),)


def landmarks(rng):
    return REFERENCE + rng.normal(size=REFERENCE.shape)


def spline_arguments(rng):
    return landmarks(rng), landmarks(rng)


def transform_arguments(rng):
    spline = tps.ThinPlateSpline(
        mean=rng.normal(size=2),
        scale=np.float64(7.0),
        knots=rng.normal(size=(5, 2)),
        weights=rng.normal(size=(5, 2)),
        affine=rng.normal(size=(3, 2)),
    )
    return spline, 16 * rng.random((6, 2))


def warp_arguments(rng):
    return rng.random((18, 16)), landmarks(rng), landmarks(rng)


def sample_arguments(rng):
    return rng.random((7, 6, 3)), 6 * rng.random((5, 2))


PIPELINE = pipeline.build(
    [
        ("to_gray", {}),
        ("resize", {"height": 8, "width": 8, "method": "area"}),
        ("block_dct", {"grid": (2, 2)}),
    ]
)

CASES = [
    Case(separable.apply, lambda rng: (rng.random((4, 7)), *color(rng), rng.random((5, 6))), grad=(0, 1, 2)),
    Case(geometry.crop, gray, static={"top": 2, "left": 3, "height": 5, "width": 4}, grad=(0,)),
    Case(geometry.resize, color, static={"height": 5, "width": 9, "method": "area"}, grad=(0,), variant="area"),
    Case(
        geometry.resize,
        color,
        static={"height": 5, "width": 9, "method": "linear"},
        grad=(0,),
        variant="linear",
    ),
    Case(
        geometry.resize,
        gray,
        static={"height": 5, "width": 9, "method": "lanczos"},
        grad=(0,),
        variant="lanczos",
    ),
    Case(geometry.flip, color, grad=(0,)),
    Case(geometry.to_gray, color, grad=(0,)),
    Case(local_norm.normalize, gray, static={"window": 3}, grad=(0,)),
    Case(local_norm.normalize, color, static={"window": 3}, grad=(0,), variant="color"),
    Case(tps.interpolant, spline_arguments, static={"ridge": 0.0}, grad=(0, 1)),
    Case(tps.transform, transform_arguments, grad=(0, 1)),
    Case(tps.bilinear, sample_arguments, grad=(0, 1)),
    Case(tps.warp, warp_arguments, static={"height": 12, "width": 10, "ridge": 0.1}, grad=(0, 1, 2)),
    Case(lbp.codes, gray, static={"radius": 1.5, "num_points": 6}),
    Case(lbp.codes_or_none, gray, static={"radius": 1.5, "num_points": 6}),
    Case(pixels.known, lambda r: (*gray(r), *gray(r)), grad=(1,)),
    Case(lbp.histograms, gray, static={"radius": 2, "cells": (2, 3)}),
    Case(lbp.encode, gray, static={"cells": (3, 2), "radii": (1, 2), "num_points": 4, "root": True}),
    Case(hog.cell_histograms, gray, static={"cell": 4, "num_bins": 9}, grad=(0,)),
    Case(hog.encode, gray, static={"cell": 4, "num_bins": 6, "block": 2, "signed": True}, grad=(0,)),
    Case(
        local_descriptors.encode,
        gray,
        static={"cells": (3, 4), "radii": (1, 1.5), "block": 2, "stride": 4, "num_bins": 4, "num_points": 4},
        grad=(0,),
    ),
    Case(color_hist.rgb_to_luv, bright, grad=(0,)),
    Case(color_hist.hard_histogram, color, static={"num_bins": 8}),
    Case(color_hist.soft_histogram, color, static={"num_bins": 4}, grad=(0,)),
    Case(block_dct.encode, gray, static={"grid": (4, 3)}, grad=(0,)),
    Case(
        variation.vary,
        lambda rng: (jax.random.key(int(rng.integers(1000))), *gray(rng)),
        static={"flip": True, "shift": 1.5, "scale": 0.1, "brightness": 0.2},
        grad=(1,),
    ),
    Case(pipeline.encode, lambda rng: (PIPELINE, *gray(rng)), grad=(1,)),
    Case(pipeline.encode_batch, lambda rng: (PIPELINE, rng.random((3, 9, 9, 3))), static={"block_size": 2}),
]

EXEMPT: list = [
    # Checks: they look at shapes and dtypes and return nothing.
    pixels.require,
    pixels.require_floating,
    pixels.require_gray,
    pixels.require_color,
    # NumPy constants of static sizes, made while a function is traced.
    separable.area_weights,
    separable.linear_weights,
    separable.lanczos_weights,
    lbp.uniform_table,
    block_dct.dct_matrix,
    block_dct.zigzag,
    # Between configs and the static steps of a pipeline: no arrays.
    pipeline.build,
]
