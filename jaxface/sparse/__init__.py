"""Sparse codes and dictionaries (Juefei-Xu and Savvides, Fastfood Dictionary Learning for Periocular-Based Full Face
Hallucination; the room `hallucination` makes faces of them).

    dictionary   Dictionary, KernelDictionary, SparseCode; decode, as_vector; shrink (21)
    omp          Algorithm 1 as Batch-OMP: encode, encode_batch, encode_gram; kernel_encode (3)
    atom_update  the codebook stage of Algorithm 2: approximate and exact
    ksvd         Algorithm 2: init, fit, trace
    online       the same problem on a stream of batches: init, update, fit_stream, batch_size
    batch_step   the step of a batch: weights for atoms, a guard for its length
    kernel_ksvd  (1)-(3), the baseline with n x n kernel values
    residuals    residual, kernel_residual: classification by the dictionary of every class, reference [29]

Where the printed text differs from this code, the text is wrong: (21) shrinks an atom if any of its entries is too
large, by its largest entry; inside Algorithm 2 it would do nothing, because atoms have length one.
"""

from jaxface.sparse import kernel_ksvd, ksvd, omp, online
from jaxface.sparse.atom_update import AtomUpdate, approximate, exact
from jaxface.sparse.dictionary import Dictionary, KernelDictionary, SparseCode, as_vector, decode
from jaxface.sparse.residuals import kernel_residual, residual

# Ways to update an atom of a dictionary, by the names that configs use.
ATOM_UPDATES: dict[str, AtomUpdate] = {"approximate": approximate, "exact": exact}

__all__ = [
    "ATOM_UPDATES",
    "Dictionary",
    "KernelDictionary",
    "SparseCode",
    "as_vector",
    "decode",
    "kernel_ksvd",
    "kernel_residual",
    "ksvd",
    "omp",
    "online",
    "residual",
]
