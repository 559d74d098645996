"""Explicit feature maps of kernels in log-linear time, and the way back (Fastfood Dictionary Learning for
Periocular-Based Full Face Hallucination, sections 2 and 3.2).

A map is a random matrix V `[f, d]` of frequencies, `num_features` = f = d' of the paper, and a form; the inner product
of two feature vectors estimates a kernel. All maps have one interface: `init(key, *, input_dim, num_features,
bandwidth, spectrum)`, `project` (V x), `transpose` (V'u), `gram_product`, `inverse`, `transform`, `feature_matrix` and
`dense_matrix`, each also a function of the module of the map.

    kitchen_sinks  (7): independent frequencies, dense
    orthogonal     orthogonal directions, dense: less variance
    fastfood       (8): S H G Pi H B, four numbers a row
    sorf           three Hadamard transforms with signs
    maps           what they share
    forms          (9) complex, (10)-(13) cos_sin, (16) sin, and the random-phase cosine; and their inverses
    spectra        Gaussian, Matern, Laplacian
    bandwidth      median_distance for the kernel, choose_bandwidth for the way back
    dekernelize    (19), (20) and beyond: least squares, conjugate gradients, Gauss-Newton, each with a Validity
    units          a map for vectors in another unit, in which V'V is in range
    trig           float32 sines and their inverses as polynomials

Where the printed text differs from this code, the text is wrong: sine or cosine alone do not estimate the Gaussian
kernel, S must give rows of lengths chi(d) / sigma, blocks are stacked vertically, and what (19) needs is
|V x| <= pi / 2, not |x| <= pi / 2.
"""

from collections.abc import Callable

from jaxface.features import dekernelize, fastfood, forms, kitchen_sinks, orthogonal, sorf, spectra
from jaxface.features.bandwidth import choose_bandwidth, median_distance
from jaxface.features.dekernelize import Validity, invert, invert_matrix
from jaxface.features.maps import (
    FeatureMap,
    dense_matrix,
    feature_matrix,
    gram_matrix,
    gram_product,
    inverse,
    project,
    transform,
    transpose,
)

MAPS: dict[str, Callable[..., FeatureMap]] = {
    "kitchen_sinks": kitchen_sinks.init,
    "orthogonal": orthogonal.init,
    "fastfood": fastfood.init,
    "sorf": sorf.init,
}
FORMS = {"cos_sin": forms.cos_sin, "sin": forms.sin, "complex": forms.complex}

__all__ = [
    "FORMS",
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
    "gram_product",
    "inverse",
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
