"""The transformation table of `jaxface.sparse`."""

import jax
import numpy as np

from jaxface.linalg import gram
from jaxface.sparse import atom_update, batch_step, dictionary, kernel_ksvd, ksvd, omp, online, residuals
from jaxface.sparse.atom_update import Codebook
from jaxface.sparse.dictionary import Dictionary, KernelDictionary, SparseCode
from tests.transformations import Case

N, D, K, S = 9, 6, 8, 2
MASK = np.array([True, False, True, True, False, False])
SEEN = np.flatnonzero(MASK).astype(np.int32)
BETA = {"beta": np.float32(3)}
SWEEPS = {"sparsity": S, "num_iters": 1}
LEARN = {"mask": MASK, "num_atoms": K, **SWEEPS}


def key(rng):
    return jax.random.key(int(rng.integers(1000)))


def signals(rng):
    return rng.normal(size=(N, D))


def signal(rng):
    return rng.normal(size=D)


def atoms(rng):
    """Of lengths that differ."""
    return Dictionary(atoms=rng.normal(size=(D, K)))


def a_gram_matrix(rng):
    x = rng.normal(size=(D, K))
    return x.T @ x


def kernel_atoms(rng):
    a = 0.5 * rng.normal(size=(N, K))
    kernel, train = gram.Gaussian(bandwidth=rng.uniform(3, 5)), signals(rng)
    return KernelDictionary(kernel=kernel, train=train, coefficients=a, gram=a.T @ np.asarray(kernel(train, train)) @ a)


def unit_rows(rng):
    rows = rng.normal(size=(K, D))
    return rows / np.linalg.norm(rows, axis=1, keepdims=True)


def products(rng):
    """Of other atoms: the two are independent arguments."""
    rows = unit_rows(rng)
    return rows @ rows.T


def code(rng):
    return SparseCode(np.array([5, 2], np.int32), rng.normal(size=S))


def codes(rng):
    indices = np.stack([rng.permutation(K)[:S] for _ in range(N)]).astype(np.int32)
    return SparseCode(indices, rng.normal(size=(N, S)))


def book(rng):
    unit = rng.normal(size=(K, D))
    return Codebook(unit / np.linalg.norm(unit, axis=1, keepdims=True), codes(rng), signals(rng))


def state(rng):
    return jax.tree.map(np.asarray, online.init(atoms(rng)))


CASES = [
    Case(dictionary.decode, lambda r: (atoms(r), code(r))),
    Case(dictionary.as_vector, lambda r: (code(r),), {"num_atoms": K}),
    Case(dictionary.shrink, lambda r: (signal(r), np.float64(0.3)), grad=(0, 1)),
    Case(dictionary.unit_atoms, lambda r: (r.normal(size=(D, K)),), grad=(0,)),
    Case(dictionary.weighted_sum, lambda r: (r.normal(size=(K, D)), np.array([1, 4], np.int32), r.normal(size=2)),
         grad=(0, 2)),
    Case(omp.encode, lambda r: (atoms(r), signal(r)), {"sparsity": S}, grad=(0, 1), factor=10),
    Case(omp.encode_batch, lambda r: (atoms(r), signals(r)), {"sparsity": S}, grad=(0, 1), factor=10),
    Case(omp.encode_gram, lambda r: (a_gram_matrix(r), r.normal(size=K), np.float64(50)), {"sparsity": S},
         grad=(0, 1), factor=100),
    Case(omp.kernel_encode, lambda r: (kernel_atoms(r), signal(r)), {"sparsity": S}, grad=(1,), factor=100),
    Case(residuals.residual, lambda r: (atoms(r), signal(r)), {"sparsity": S}, grad=(0, 1), factor=10),
    Case(residuals.kernel_residual, lambda r: (kernel_atoms(r), signal(r)), {"sparsity": S}, grad=(1,), factor=100),
    Case(atom_update.update_atoms, lambda r: (book(r),), {"atom_update": atom_update.approximate}),
    Case(atom_update.count_users, lambda r: (codes(r),), {"num_atoms": K}),
    Case(ksvd.init, lambda r: (key(r), signals(r)), {"num_atoms": K}),
    Case(ksvd.code_signals, lambda r: (atoms(r), signals(r)), {"sparsity": S, "block_size": 4}, factor=10),
    Case(ksvd.fit, lambda r: (signals(r), atoms(r)), SWEEPS, factor=10),
    Case(ksvd.trace, lambda r: (signals(r), atoms(r)), SWEEPS, factor=10),
    Case(ksvd.is_too_coherent, lambda r: (r.normal(size=(K, D)), np.float64(0.5))),
    Case(ksvd.replace_atoms, lambda r: (book(r), signals(r), r.random(K) < 0.5)),
    Case(kernel_ksvd.init, lambda r: (key(r), kernel_atoms(r).kernel, signals(r)), {"num_atoms": K}),
    Case(kernel_ksvd.fit, lambda r: (kernel_atoms(r),), SWEEPS, factor=1e4),
    Case(ksvd.substitutes, lambda r: (r.random(N), r.random(N), r.random(K) < 0.5)),
    Case(batch_step.repeats, lambda r: (r.uniform(-1, 1, size=(K, K)), np.float64(0.5))),
    Case(batch_step.gram, lambda r: (r.normal(size=(K, D)),)),
    Case(batch_step.code, lambda r: (unit_rows(r), products(r), signals(r)), {"sparsity": S, "block_size": 4},
         factor=10),
    Case(batch_step.weigh, lambda r: (codes(r),), {"num_atoms": K}),
    Case(batch_step.correlate, lambda r: (codes(r), signals(r)), {"num_atoms": K}),
    Case(batch_step.guarded, lambda r: (r.normal(size=(K, D)), 9 * r.random(K), r.random(K), codes(r)),
         {"block_size": 4}),
    Case(batch_step.replace, lambda r: (unit_rows(r), signals(r), r.permutation(N)[:K], r.random(K) < 0.5)),
    Case(online.init, lambda r: (atoms(r),)),
    Case(online.update, lambda r: (state(r), signals(r)), {"sparsity": S}, factor=100),
]  # fmt: skip

EXEMPT = [
    atom_update.approximate,  # take a function; update_atoms runs them
    atom_update.exact,
    omp.batch_encoder,  # returns a function, which encode_batch runs
    omp.unit_encoder,  # the same, which batch_step.code runs
    atom_update.users_by_atom,  # places of entries, which batch_step.correlate reads
    batch_step.fade,  # a number of numbers
    online.batch_size,  # an integer of an integer
    online.fit_stream,  # a loop on the host over online.update
    kernel_ksvd.gram_bytes,  # an integer
    dictionary.check_dictionary,  # raise or return nothing
    dictionary.check_sparsity,
]
