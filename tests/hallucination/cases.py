"""The transformation table of `jaxface.hallucination`."""

import numpy as np

from jaxface.hallucination import (
    dictionary,
    fastfood,
    kernel,
    linear,
    measurement,
    methods,
    network,
    reconstruction,
    signals,
)
from jaxface.hallucination.dictionary import DictionaryHallucinator
from jaxface.hallucination.fastfood import FastfoodDictionaryHallucinator
from jaxface.hallucination.linear import AffineHallucinator
from jaxface.sparse.dictionary import Dictionary
from tests.features.cases import fast
from tests.sparse.cases import BETA, LEARN, MASK, SEEN, D, K, N, S, a_gram_matrix, kernel_atoms, key, signal
from tests.sparse.cases import signals as rows
from tests.transformations import Case


def matrix_model(rng):
    return AffineHallucinator(mean=signal(rng), visible=SEEN, matrix=rng.normal(size=(3, D)))


def measured_model(rng):
    stacked = AffineHallucinator(
        mean=rng.normal(size=D + 3), visible=D + np.arange(3), matrix=rng.normal(size=(3, D + 3))
    )
    return measurement.MeasuredHallucinator(operator=rng.normal(size=(3, D)), stacked=stacked)


def atoms_model(rng):
    return DictionaryHallucinator(mean=signal(rng), visible=SEEN, atoms=rng.normal(size=(D, K)), sparsity=S)


def feature_model(rng):
    made = signals.FeatureSignals(
        mean=signal(rng),
        visible=SEEN,
        face_map=fast(rng, 8, 2, input_dim=D, num_features=16),
        visible_map=fast(rng, 4, 4, input_dim=3, num_features=16),
        visible_weight=np.float64(2),
    )
    return FastfoodDictionaryHallucinator(signals=made, atoms=rng.normal(size=(32, K)), sparsity=S)


def pixel_weights(rng):
    return signals.PixelSignals(mean=signal(rng), visible=SEEN, weights=rng.uniform(1, 2, D))


def atoms_of(rng, size):
    return Dictionary(atoms=rng.normal(size=(size, K)))


def maps_of(model):
    return signals.Maps(face=model.signals.face_map, visible=model.signals.visible_map)


def layers(rng):
    shapes = {"linear": (3, D), "first": (3, 4), "others": (1, 4, 4), "biases": (2, 4), "last": (4, D), "offset": (D,)}
    return network.Layers(**{name: rng.normal(size=shape) for name, shape in shapes.items()})


def pixels(rng):
    return rng.normal(size=3)


CASES = [
    Case(reconstruction.reconstruct, lambda r: (matrix_model(r), pixels(r)), grad=(1,)),
    Case(reconstruction.reconstruct, lambda r: (atoms_model(r), pixels(r)), grad=(1,), factor=10, variant="atoms"),
    Case(reconstruction.reconstruct_matrix, lambda r: (matrix_model(r), r.normal(size=(5, 3))), {"block_size": 2},
         grad=(1,)),
    Case(reconstruction.with_visible, lambda r: (matrix_model(r), signal(r), pixels(r)), grad=(1, 2)),
    Case(measurement.with_measurement, lambda r: (measured_model(r), signal(r), pixels(r)), grad=(1, 2), factor=10),
    Case(reconstruction.checked, lambda r: (rows(r),), {"mask": MASK}),
    Case(reconstruction.checked_weights, lambda r: (r.random(N), rows(r)), grad=(0,)),
    Case(linear.fit_pca, lambda r: (rows(r),), {"mask": MASK, "num_components": 2}, factor=100),
    Case(linear.fit_pca_prior, lambda r: (rows(r),), {"mask": MASK, "num_components": 2}, factor=100),
    Case(linear.fit_ridge, lambda r: (rows(r),), {"mask": MASK, "ridge": 0.1}, factor=10),
    Case(linear.report, lambda r: (r.normal(size=(3, 4)), np.float64(0.1))),
    Case(linear.penalized_solve, lambda r: (a_gram_matrix(r), r.normal(size=(K, 2)), np.float64(2)),
         factor=10),
    Case(kernel.fit_kernel_ridge, lambda r: (kernel_atoms(r).kernel, rows(r)),
         {"mask": MASK, "ridge": 0.1}, factor=10),
    Case(kernel.fit_fastfood_ridge, lambda r: (key(r), rows(r)),
         {"mask": MASK, "ridge": 0.1, "num_features": 8, "bandwidth": np.float32(2)}, factor=100),
    Case(signals.pixel_signals, lambda r: (rows(r),), {"mask": MASK, **BETA}),
    Case(dictionary.pixel_hallucinator, lambda r: (pixel_weights(r), atoms_of(r, D)), {"sparsity": S}),
    Case(fastfood.feature_hallucinator, lambda r: (feature_model(r).signals, atoms_of(r, 32)), {"sparsity": S}),
    Case(dictionary.fit_dw_ksvd, lambda r: (key(r), rows(r)), {**LEARN, **BETA}, factor=10),
    Case(dictionary.fit_ksvd, lambda r: (key(r), rows(r)), LEARN, factor=10),
    Case(network.network, lambda r: (layers(r), r.normal(size=(5, 3))), grad=(0, 1)),
    Case(fastfood.validity, lambda r: (feature_model(r), r.normal(size=(4, 3))), factor=100),
    Case(fastfood.effective_beta, lambda r: (maps_of(feature_model(r)), np.float64(2)), grad=(1,)),
]  # fmt: skip

EXEMPT = [
    fastfood.feature_reconstruction,  # returns a function, which validity runs
    signals.draw_maps,  # on the host: the bandwidths come from the data
    signals.feature_signals,  # the same
    signals.name_of,  # a word for a function
    fastfood.fit_fastfood_dw_ksvd,  # on the host
    fastfood.invert_atoms,
    fastfood.atom_images,  # the same
    methods.fit,  # runs any fit of the table
    measurement.fit_measured,  # the same
    reconstruction.fit_for_psnr,  # on the host
    network.fit_network,  # the same
    dictionary.check_visible,  # raises or returns nothing
]
