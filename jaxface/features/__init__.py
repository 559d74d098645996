"""Explicit feature maps of kernels in log-linear time, and the way back (Fastfood Dictionary Learning for
Periocular-Based Full Face Hallucination, sections 2 and 3.2).

A map is a random matrix V `[f, d]` of frequencies (f is d' of the paper, `num_features` here) and a form: the inner
product of the features of two vectors estimates a kernel. Every map is drawn by the `init(key, *, input_dim,
num_features, bandwidth, spectrum)` of its module; all other functions are in `maps` and serve every map.

    kitchen_sinks  (7): independent frequencies, dense
    orthogonal     orthogonal directions, dense: less variance
    fastfood       (8): S H G Pi H B, four numbers a row
    sorf           three Hadamard transforms with signs
    maps           project (V x), transpose (V'u), inverse, transform, feature_matrix, dense_matrix, gram_matrix
    forms          (9) complex, (10)-(13) cos_sin, (16) sin, and the random-phase cosine; and their inverses
    spectra        Gaussian, Matern, Laplacian
    bandwidth      median_distance for the kernel, choose_bandwidth for the way back
    dekernelize    (19), (20) and beyond: least squares, conjugate gradients, Gauss-Newton
    validity       the report on an inverse
    units          a map for vectors in another unit, in which V'V is in range
    trig           float32 sines and their inverses as polynomials

Where the printed text differs from this code, the text is wrong: sine or cosine alone do not estimate the Gaussian
kernel, S must give rows of lengths chi(d) / sigma, blocks are stacked vertically, and what (19) needs is
|V x| <= pi / 2, not |x| <= pi / 2.
"""

from collections.abc import Callable

from jaxface.features import dekernelize, fastfood, forms, kitchen_sinks, orthogonal, sorf, spectra
from jaxface.features.bandwidth import choose_bandwidth, median_distance
from jaxface.features.dekernelize import Method, invert, invert_matrix
from jaxface.features.forms import Form
from jaxface.features.maps import (
    FeatureMap,
    dense_matrix,
    feature_matrix,
    gram_matrix,
    project,
    transform,
    transpose,
)
from jaxface.features.validity import Validity

# Ways to draw V, by the names that configs use.
MAPS: dict[str, Callable[..., FeatureMap]] = {
    "kitchen_sinks": kitchen_sinks.init,
    "orthogonal": orthogonal.init,
    "fastfood": fastfood.init,
    "sorf": sorf.init,
}
# Forms with real features and an inverse.
FORMS: dict[str, Form] = {"cos_sin": forms.cos_sin, "sin": forms.sin}
# Ways back from features to the vector.
INVERSES: dict[str, Method] = {
    "least_squares": dekernelize.least_squares,
    "conjugate_gradient": dekernelize.conjugate_gradient,
    "gauss_newton": dekernelize.gauss_newton,
}

__all__ = [
    "FORMS",
    "INVERSES",
    "MAPS",
    "FeatureMap",
    "Validity",
    "choose_bandwidth",
    "dekernelize",
    "dense_matrix",
    "fastfood",
    "feature_matrix",
    "forms",
    "gram_matrix",
    "invert",
    "invert_matrix",
    "kitchen_sinks",
    "median_distance",
    "orthogonal",
    "project",
    "sorf",
    "spectra",
    "transform",
    "transpose",
]
