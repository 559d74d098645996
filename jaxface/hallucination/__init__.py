"""A whole face from a part of it, most of all from the eye region (Juefei-Xu and Savvides, Fastfood Dictionary Learning
for Periocular-Based Full Face Hallucination).

    reconstruction  what all models share: reconstruct, reconstruct_matrix, with_visible, fit_for_psnr
    linear          fit_pca, fit_pca_prior, fit_ridge
    kernel          fit_kernel_ridge, fit_fastfood_ridge
    dictionary      fit_ksvd, fit_dw_ksvd (14), (15)
    fastfood        fit_fastfood_dw_ksvd (17), validity and invert_atoms (18)-(20), effective_beta
    network         fit_network, with features that are learnt
    methods         the table METHODS, and fit for any of them

Where the printed text differs from this code, the text is wrong: the visible rows are weighted by sqrt(1 + beta) and
not 1 + sqrt(beta).

Every method is `fit(x, mask, ...)` for faces x `[n, d]` and a mask `[d]` of the pixels that will be seen, and returns a
model for `reconstruct`. A random method takes a key first, and `fit_kernel_ridge` a kernel.
"""

from jaxface.hallucination.dictionary import fit_dw_ksvd, fit_ksvd
from jaxface.hallucination.fastfood import draw_maps, effective_beta, fit_fastfood_dw_ksvd, invert_atoms, validity
from jaxface.hallucination.kernel import fit_fastfood_ridge, fit_kernel_ridge
from jaxface.hallucination.linear import fit_pca, fit_pca_prior, fit_ridge
from jaxface.hallucination.methods import METHODS, Fitted, Method, fit
from jaxface.hallucination.network import fit_network
from jaxface.hallucination.reconstruction import (
    Hallucinator,
    fit_for_psnr,
    reconstruct,
    reconstruct_matrix,
    with_visible,
)

__all__ = [
    "METHODS",
    "Fitted",
    "Hallucinator",
    "Method",
    "draw_maps",
    "effective_beta",
    "fit",
    "fit_dw_ksvd",
    "fit_fastfood_dw_ksvd",
    "fit_fastfood_ridge",
    "fit_for_psnr",
    "fit_kernel_ridge",
    "fit_ksvd",
    "fit_network",
    "fit_pca",
    "fit_pca_prior",
    "fit_ridge",
    "invert_atoms",
    "reconstruct",
    "reconstruct_matrix",
    "validity",
    "with_visible",
]
