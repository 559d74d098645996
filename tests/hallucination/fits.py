"""A fit of every method for faces in units of `scale`, with settings for small images."""

import functools

import jax
import numpy as np
import optax

from jaxface import hallucination
from jaxface.linalg import gram
from tests.sparse import draws

KEY = jax.random.key(0)
MASK = draws.top_mask()
DICTIONARY = {"num_atoms": 10, "sparsity": 3, "num_iters": 2}
FASTFOOD = DICTIONARY | {"beta": 4.0, "expansion": 5, "quantile": 1.0}
NETWORK = {"ridge": 0.01, "width": 8, "num_layers": 2, "batch_size": 10, "dropout": 0.0, "optimizer": optax.adam(1e-3)}
RIDGE = functools.partial(hallucination.fit_ridge, ridge=1e-2)
ONE = np.float32(1)


def by_name(name, x, mask, **settings):
    model, info, _ = hallucination.fit(hallucination.METHODS[name], x, mask, key=KEY, **settings)
    return model, info


def gaussian_ridge(x, mask, scale=ONE):
    return hallucination.fit_kernel_ridge(gram.gaussian(bandwidth=2 * scale), x, mask, ridge=1e-2)


def linear_ridge(x, mask, scale=ONE):
    return hallucination.fit_kernel_ridge(gram.linear(), x, mask, ridge=1e-2)


def fastfood_ridge(x, mask, scale=ONE):
    return by_name("fastfood_ridge", x, mask, num_features=64, bandwidth=2 * scale, ridge=1e-2)


FITS = {
    "pca": lambda x, mask, scale=ONE: by_name("pca", x, mask, num_components=3),
    "pca_prior": lambda x, mask, scale=ONE: by_name("pca_prior", x, mask, num_components=5),
    "ridge": lambda x, mask, scale=ONE: by_name("ridge", x, mask, ridge=1e-2),
    "kernel_ridge": gaussian_ridge,
    "fastfood_ridge": fastfood_ridge,
    "ksvd": lambda x, mask, scale=ONE: by_name("ksvd", x, mask, **DICTIONARY),
    "dw_ksvd": lambda x, mask, scale=ONE: by_name("dw_ksvd", x, mask, beta=4.0, **DICTIONARY),
    "fastfood_dw_ksvd": lambda x, mask, scale=ONE: by_name("fastfood_dw_ksvd", x, mask, **FASTFOOD),
    "fastfood_dw_ksvd_dekernelized": lambda x, mask, scale=ONE: by_name(
        "fastfood_dw_ksvd_dekernelized", x, mask, **FASTFOOD
    ),
}
IN_ANY_UNIT = FITS | {
    "for_psnr": lambda x, mask, scale=ONE: hallucination.fit_for_psnr(RIDGE, x, mask, num_rounds=2),
    "linear_kernel": linear_ridge,
    "network": lambda x, mask, scale=ONE: by_name("network", x, mask, num_epochs=2, **NETWORK),
}


def mean_square(a, b):
    return float(((np.asarray(a) - np.asarray(b)) ** 2).mean())


def dense(fast_map):
    """V `[f, d]`."""
    return np.asarray(jax.vmap(fast_map.project, out_axes=1)(np.eye(fast_map.input_dim)))


def faces(rng):
    return draws.faces(rng).astype(np.float32)
