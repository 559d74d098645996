"""Sparse codes and dictionaries (Juefei-Xu and Savvides, Fastfood Dictionary Learning for Periocular-Based Full Face
Hallucination; the faces are made in `hallucination`).

    dictionary   Dictionary, KernelDictionary, SparseCode; decode, dense; shrink (21)
    omp          Algorithm 1 as Batch-OMP: encode, encode_batch, encode_gram; kernel_encode (3)
    atom_update  the codebook stage of Algorithm 2: approximate and exact
    ksvd         Algorithm 2: init, fit, trace
    online       the same problem on a stream of batches: init, update, fit_stream
    kernel_ksvd  (1)-(3), the baseline with n x n kernel values

Where the printed text differs from this code, the text is wrong: (21) shrinks where any entry is too large, by the
largest of the atom; inside Algorithm 2 it would do nothing, for atoms have length one.
"""

from jaxface.sparse import kernel_ksvd, ksvd, omp, online
from jaxface.sparse.atom_update import approximate, exact
from jaxface.sparse.dictionary import Dictionary, KernelDictionary, SparseCode, decode, dense

ATOM_UPDATES = {"approximate": approximate, "exact": exact}

__all__ = [
    "ATOM_UPDATES",
    "Dictionary",
    "KernelDictionary",
    "SparseCode",
    "decode",
    "dense",
    "kernel_ksvd",
    "ksvd",
    "omp",
    "online",
]
