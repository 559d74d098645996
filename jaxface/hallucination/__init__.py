"""A whole face from a part of it, most of all from the eye region (Juefei-Xu and Savvides, Fastfood Dictionary Learning
for Periocular-Based Full Face Hallucination).

    reconstruction  what all models share: reconstruct, reconstruct_matrix, with_visible, fit_for_psnr
    linear          fit_pca, fit_pca_prior, fit_ridge
    kernel          fit_kernel_ridge, fit_fastfood_ridge
    signals         what dictionaries learn from: pixel_signals (14), feature_signals (17), a batch at a time
    dictionary      fit_ksvd, fit_dw_ksvd (14), (15); pixel_hallucinator of a dictionary from a stream
    fastfood        fit_fastfood_dw_ksvd (17), validity, invert_atoms and atom_images (18)-(20),
                    effective_beta; feature_hallucinator
    network         fit_network, with features that are learnt
    methods         the table METHODS, and fit for any of them
    measurement     fit_measured: any linear measurement in the place of visible pixels; with_measurement

Where the printed text differs from this code, the text is wrong: the visible rows are weighted by sqrt(1 + beta) and
not 1 + sqrt(beta).

Every method is `fit(x, mask, ...)` for faces x `[n, d]` and a mask `[d]` of the pixels that will be seen, and returns a
model for `reconstruct`. A random method takes a key first, and `fit_kernel_ridge` a kernel.
"""

from jaxface.hallucination.dictionary import fit_dw_ksvd, fit_ksvd, pixel_hallucinator
from jaxface.hallucination.fastfood import (
    atom_images,
    effective_beta,
    feature_hallucinator,
    fit_fastfood_dw_ksvd,
    invert_atoms,
    validity,
)
from jaxface.hallucination.kernel import fit_fastfood_ridge, fit_kernel_ridge
from jaxface.hallucination.linear import fit_pca, fit_pca_prior, fit_ridge
from jaxface.hallucination.measurement import fit_measured, with_measurement
from jaxface.hallucination.methods import METHODS, Fitted, Method, fit
from jaxface.hallucination.network import fit_network
from jaxface.hallucination.reconstruction import (
    Hallucinator,
    fit_for_psnr,
    reconstruct,
    reconstruct_matrix,
    with_visible,
)
from jaxface.hallucination.signals import draw_maps, feature_signals, pixel_signals

__all__ = [
    "METHODS",
    "Fitted",
    "Hallucinator",
    "Method",
    "atom_images",
    "draw_maps",
    "effective_beta",
    "feature_hallucinator",
    "feature_signals",
    "fit",
    "fit_dw_ksvd",
    "fit_fastfood_dw_ksvd",
    "fit_fastfood_ridge",
    "fit_for_psnr",
    "fit_kernel_ridge",
    "fit_ksvd",
    "fit_measured",
    "fit_network",
    "fit_pca",
    "fit_pca_prior",
    "fit_ridge",
    "invert_atoms",
    "pixel_hallucinator",
    "pixel_signals",
    "reconstruct",
    "reconstruct_matrix",
    "validity",
    "with_measurement",
    "with_visible",
]
