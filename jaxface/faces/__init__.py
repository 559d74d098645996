"""Faces: pixels to vectors. One floating image in [0, 1] goes in, grey or colour; `vmap` for more.

    pixels      checks of images, and the NaN rule
    separable   Y = L X R', and the matrices that resample one axis
    geometry    crop, resize (area, linear, lanczos), flip, Rec. 601 grey
    local_norm  zero mean and unit variance in a window: normalize
    tps         thin-plate splines: warp of landmarks onto a reference
    lbp         uniform local binary patterns in a grid of cells: codes, histograms, encode
    hog         oriented gradients: cell_histograms (dense), encode (L2-Hys blocks)
    color_hist  L*u*v* of sRGB: rgb_to_luv, hard_histogram, soft_histogram (16^3 bins)
    variation   one image mirrored, shifted, scaled, brighter at random: vary
    block_dct   zig-zag DCT-II coefficients of a 16 x 16 grid of blocks: encode
    local_descriptors  HOG and LBP of the patches of a dense grid at several scales: encode
    pipeline    a saved composition of steps: build, encode, encode_batch

The texture and colour features of the null-space paper (NP-PER, section 6.2) are `block_dct.encode`, 1,024
values, and `color_hist.hard_histogram`, 4,096 values; the landmark warp of its section 6.1 is `tps.warp`.

Points are (x, y) = (column, row) in pixels, crops (top, left, height, width), as in `jaxface.data`.

`STEPS` names the steps of a pipeline: functions of an image and static arguments. A warp is not among them, for its
landmarks differ from image to image.
"""

from collections.abc import Callable

import jax

from jaxface.faces import block_dct, color_hist, geometry, hog, lbp, local_norm

__all__ = ["STEPS"]

# The steps of a pipeline by the names that configs use.
STEPS: dict[str, Callable[..., jax.Array]] = {
    "crop": geometry.crop,
    "resize": geometry.resize,
    "flip": geometry.flip,
    "to_gray": geometry.to_gray,
    "local_norm": local_norm.normalize,
    "lbp": lbp.encode,
    "hog": hog.encode,
    "hog_cells": hog.cell_histograms,
    "rgb_to_luv": color_hist.rgb_to_luv,
    "luv_histogram": color_hist.hard_histogram,
    "luv_soft_histogram": color_hist.soft_histogram,
    "block_dct": block_dct.encode,
}
