"""Sparse codes, dictionaries, and a face from its eye region (Juefei-Xu and Savvides, Fastfood Dictionary Learning
for Periocular-Based Full Face Hallucination).

    dictionary                Dictionary, KernelDictionary, SparseCode; decode, dense; shrink (21)
    omp                       Algorithm 1 as Batch-OMP: encode, encode_batch, encode_gram; kernel_encode (3)
    atom_update               the codebook stage of Algorithm 2: approximate and exact
    ksvd                      Algorithm 2: init, fit, trace
    online                    the same problem on a stream of batches: init, update, fit_stream
    kernel_ksvd               (1)-(3), the baseline with n x n kernel values
    hallucination             what all methods share: reconstruct, reconstruct_matrix, with_visible, fit_for_psnr
    linear_hallucination      fit_pca, fit_pca_prior, fit_ridge
    kernel_hallucination      fit_kernel_ridge, fit_fastfood_ridge
    dictionary_hallucination  fit_ksvd, fit_dw_ksvd (14), (15)
    fastfood_hallucination    fit_fastfood_dw_ksvd (17), fit_fastfood_dw_ksvd_dekernelized (18)-(20), effective_beta
    network_hallucination     fit_network, with features that are learnt

Where the printed text differs from this code, the text is wrong: the visible rows are weighted by sqrt(1 + beta) and
not 1 + sqrt(beta); (21) shrinks where any entry is too large, by the largest of the atom; inside Algorithm 2 it would
do nothing, for atoms have length one.

Every method is `fit(x, mask, ...)` for faces x `[n, d]` and a mask `[d]` of the pixels that will be seen, and gives a
model for `reconstruct`. `METHODS` draw nothing, `RANDOM_METHODS` take a key first, and `KERNEL_METHODS` a kernel.
"""

from jaxface.sparse import hallucination, kernel_ksvd, ksvd, omp, online
from jaxface.sparse.atom_update import approximate, exact
from jaxface.sparse.dictionary import Dictionary, KernelDictionary, SparseCode, decode, dense
from jaxface.sparse.dictionary_hallucination import fit_dw_ksvd, fit_ksvd
from jaxface.sparse.fastfood_hallucination import (
    draw_maps,
    effective_beta,
    fit_fastfood_dw_ksvd,
    fit_fastfood_dw_ksvd_dekernelized,
    share_clipped,
)
from jaxface.sparse.hallucination import fit_for_psnr, reconstruct, reconstruct_matrix, with_visible
from jaxface.sparse.kernel_hallucination import fit_fastfood_ridge, fit_kernel_ridge
from jaxface.sparse.linear_hallucination import fit_pca, fit_pca_prior, fit_ridge
from jaxface.sparse.network_hallucination import fit_network

METHODS = {"pca": fit_pca, "pca_prior": fit_pca_prior, "ridge": fit_ridge}
RANDOM_METHODS = {
    "ksvd": fit_ksvd,
    "dw_ksvd": fit_dw_ksvd,
    "fastfood_dw_ksvd": fit_fastfood_dw_ksvd,
    "fastfood_dw_ksvd_dekernelized": fit_fastfood_dw_ksvd_dekernelized,
    "fastfood_ridge": fit_fastfood_ridge,
    "network": fit_network,
}
KERNEL_METHODS = {"kernel_ridge": fit_kernel_ridge}
ATOM_UPDATES = {"approximate": approximate, "exact": exact}

__all__ = [
    "ATOM_UPDATES",
    "KERNEL_METHODS",
    "METHODS",
    "RANDOM_METHODS",
    "Dictionary",
    "KernelDictionary",
    "SparseCode",
    "decode",
    "dense",
    "draw_maps",
    "effective_beta",
    "fit_dw_ksvd",
    "fit_fastfood_dw_ksvd",
    "fit_fastfood_dw_ksvd_dekernelized",
    "fit_fastfood_ridge",
    "fit_for_psnr",
    "fit_kernel_ridge",
    "fit_ksvd",
    "fit_network",
    "fit_pca",
    "fit_pca_prior",
    "fit_ridge",
    "hallucination",
    "kernel_ksvd",
    "ksvd",
    "omp",
    "online",
    "reconstruct",
    "reconstruct_matrix",
    "share_clipped",
    "with_visible",
]
