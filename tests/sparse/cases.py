"""The transformation table of `jaxface.sparse`."""

import jax
import numpy as np

from jaxface.features import fastfood
from jaxface.linalg import gram
from jaxface.sparse import (
    atom_update,
    dictionary,
    dictionary_hallucination,
    fastfood_hallucination,
    hallucination,
    kernel_hallucination,
    kernel_ksvd,
    ksvd,
    linear_hallucination,
    network_hallucination,
    omp,
    online,
)
from jaxface.sparse.atom_update import Codebook
from jaxface.sparse.dictionary import Dictionary, KernelDictionary, SparseCode
from jaxface.sparse.dictionary_hallucination import DictionaryHallucinator
from jaxface.sparse.fastfood_hallucination import FastfoodDictionaryHallucinator
from jaxface.sparse.linear_hallucination import AffineHallucinator
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


def matrix_model(rng):
    return AffineHallucinator(mean=signal(rng), visible=SEEN, matrix=rng.normal(size=(3, D)))


def atoms_model(rng):
    return DictionaryHallucinator(mean=signal(rng), visible=SEEN, atoms=rng.normal(size=(D, K)), sparsity=S)


def feature_model(rng):
    settings = {"num_features": 16, "dtype": np.float64}
    return FastfoodDictionaryHallucinator(
        mean=signal(rng),
        visible=SEEN,
        face_map=fastfood.init(key(rng), input_dim=D, bandwidth=rng.uniform(3, 5), **settings),
        visible_map=fastfood.init(key(rng), input_dim=3, bandwidth=rng.uniform(3, 5), **settings),
        face_atoms=rng.normal(size=(16, K)),
        visible_atoms=rng.normal(size=(16, K)),
        sparsity=S,
    )


def maps_of(model):
    return fastfood_hallucination.Maps(face=model.face_map, visible=model.visible_map)


def layers(rng):
    shapes = {"linear": (3, D), "first": (3, 4), "others": (1, 4, 4), "biases": (2, 4), "last": (4, D), "offset": (D,)}
    return network_hallucination.Weights(**{name: rng.normal(size=shape) for name, shape in shapes.items()})


def pixels(rng):
    return rng.normal(size=3)


CASES = [
    Case(dictionary.decode, lambda r: (atoms(r), code(r))),
    Case(dictionary.dense, lambda r: (code(r),), {"num_atoms": K}),
    Case(dictionary.shrink, lambda r: (signal(r), np.float64(0.3)), grad=(0, 1)),
    Case(dictionary.unit_atoms, lambda r: (r.normal(size=(D, K)),), grad=(0,)),
    Case(dictionary.weighted_sum, lambda r: (r.normal(size=(K, D)), np.array([1, 4], np.int32), r.normal(size=2)),
         grad=(0, 2)),
    Case(omp.encode, lambda r: (atoms(r), signal(r)), {"sparsity": S}, grad=(0, 1), factor=10),
    Case(omp.encode_batch, lambda r: (atoms(r), signals(r)), {"sparsity": S}, grad=(0, 1), factor=10),
    Case(omp.encode_gram, lambda r: (a_gram_matrix(r), r.normal(size=K), np.float64(50)), {"sparsity": S},
         grad=(0, 1), factor=100),
    Case(omp.kernel_encode, lambda r: (kernel_atoms(r), signal(r)), {"sparsity": S}, grad=(1,), factor=100),
    Case(atom_update.update_atoms, lambda r: (book(r),), {"update": atom_update.approximate}),
    Case(atom_update.count_users, lambda r: (codes(r),), {"num_atoms": K}),
    Case(ksvd.init, lambda r: (key(r), signals(r)), {"num_atoms": K}),
    Case(ksvd.code_signals, lambda r: (atoms(r), signals(r)), {"sparsity": S, "block_size": 4}, factor=10),
    Case(ksvd.fit, lambda r: (signals(r), atoms(r)), SWEEPS, factor=10),
    Case(ksvd.trace, lambda r: (signals(r), atoms(r)), SWEEPS, factor=10),
    Case(ksvd.repeats, lambda r: (r.normal(size=(K, D)), np.float64(0.5))),
    Case(ksvd.replace_atoms, lambda r: (book(r), signals(r), r.random(K) < 0.5)),
    Case(kernel_ksvd.init, lambda r: (key(r), kernel_atoms(r).kernel, signals(r)), {"num_atoms": K}),
    Case(kernel_ksvd.fit, lambda r: (kernel_atoms(r),), SWEEPS, factor=1e4),
    Case(online.init, lambda r: (atoms(r),)),
    Case(online.update, lambda r: (state(r), signals(r)), {"sparsity": S}, factor=100),
    Case(hallucination.reconstruct, lambda r: (matrix_model(r), pixels(r)), grad=(1,)),
    Case(hallucination.reconstruct, lambda r: (atoms_model(r), pixels(r)), grad=(1,), factor=10, variant="atoms"),
    Case(hallucination.reconstruct_matrix, lambda r: (matrix_model(r), r.normal(size=(5, 3))), {"block_size": 2},
         grad=(1,)),
    Case(hallucination.with_visible, lambda r: (matrix_model(r), signal(r), pixels(r)), grad=(1, 2)),
    Case(hallucination.checked, lambda r: (signals(r),), {"mask": MASK}),
    Case(hallucination.checked_weights, lambda r: (r.random(N), signals(r)), grad=(0,)),
    Case(linear_hallucination.fit_pca, lambda r: (signals(r),), {"mask": MASK, "num_components": 2}, factor=100),
    Case(linear_hallucination.fit_pca_prior, lambda r: (signals(r),), {"mask": MASK, "num_components": 2}, factor=100),
    Case(linear_hallucination.fit_ridge, lambda r: (signals(r),), {"mask": MASK, "ridge": 0.1}, factor=10),
    Case(linear_hallucination.report, lambda r: (r.normal(size=(3, 4)), np.float64(0.1))),
    Case(linear_hallucination.penalized_solve, lambda r: (a_gram_matrix(r), r.normal(size=(K, 2)), np.float64(2)),
         factor=10),
    Case(kernel_hallucination.fit_kernel_ridge, lambda r: (kernel_atoms(r).kernel, signals(r)),
         {"mask": MASK, "ridge": 0.1}, factor=10),
    Case(kernel_hallucination.fit_fastfood_ridge, lambda r: (key(r), signals(r)),
         {"mask": MASK, "ridge": 0.1, "num_features": 8, "bandwidth": np.float32(2)}, factor=100),
    Case(dictionary_hallucination.fit_dw_ksvd, lambda r: (key(r), signals(r)), {**LEARN, **BETA}, factor=10),
    Case(dictionary_hallucination.fit_ksvd, lambda r: (key(r), signals(r)), LEARN, factor=10),
    Case(network_hallucination.network, lambda r: (layers(r), r.normal(size=(5, 3))), grad=(0, 1)),
    Case(fastfood_hallucination.share_clipped, lambda r: (feature_model(r), pixels(r))),
    Case(fastfood_hallucination.effective_beta, lambda r: (maps_of(feature_model(r)), np.float64(2)), grad=(1,)),
]  # fmt: skip

EXEMPT = [
    atom_update.approximate,  # take a function; update_atoms runs them
    atom_update.exact,
    omp.batch_encoder,  # returns a function, which encode_batch runs
    fastfood_hallucination.feature_reconstruction,  # the same: share_clipped
    fastfood_hallucination.draw_maps,  # on the host: the bandwidths come from the data
    fastfood_hallucination.fit_fastfood_dw_ksvd,  # the same
    fastfood_hallucination.fit_fastfood_dw_ksvd_dekernelized,
    hallucination.fit_for_psnr,  # on the host
    network_hallucination.fit_network,  # the same
    online.fit_stream,  # a loop on the host over online.update
    kernel_ksvd.gram_bytes,  # an integer
    dictionary.check_dictionary,  # raise or return nothing
    dictionary.check_sparsity,
    dictionary_hallucination.check_visible,
]
