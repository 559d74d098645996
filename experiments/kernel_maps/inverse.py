"""The way back to the image against |x| / sigma: in the range where a form is one to one, and far beyond.

Since V x depends on x / sigma alone, one map of bandwidth 1 serves all ratios: the faces are given that length.
"""

import jax
import jax.numpy as jnp
import numpy as np
from ml_collections import ConfigDict

from jaxface.core import prng
from jaxface.features import dekernelize, fastfood, feature_matrix, forms, invert_matrix
from jaxface.linalg import distances

METHODS = {
    "arcsin, clipped": (forms.sin, dekernelize.least_squares),
    "angles of pairs": (forms.cos_sin, dekernelize.least_squares),
    "sine, Gauss-Newton": (forms.sin, dekernelize.gauss_newton),
    "pairs, Gauss-Newton": (forms.cos_sin, dekernelize.gauss_newton),
}


def round_trips(config: ConfigDict, images: jax.Array) -> dict[str, np.ndarray]:
    """Of every method, for every expansion: error, residual and share out of range `[ratios, images]`.

    `folded` is the share of |V x| beyond pi / 2 that the images `[n, h, w]` have; `back` `[ratios, h, w]` is the
    first one as it came back at the largest expansion.
    """
    key, settings = jax.random.key(config.seed), config.inverse
    x = images.reshape(len(images), -1)
    rows = jax.random.choice(prng.stream(key, "images"), x.shape[0], (settings.num_images,), replace=False)
    origin, length = x.mean(axis=0), distances.norm(x[rows] - x.mean(axis=0)[None, :])
    directions = (x[rows] - origin[None, :]) / length[:, None]
    found = {
        "ratios": np.asarray(settings.ratios),
        "shown ratios": np.asarray(settings.shown),
        "faces": np.asarray(images[rows]),
    }
    ratios = jnp.repeat(jnp.asarray(settings.ratios, x.dtype), settings.num_images)[:, None]
    shape = (len(settings.ratios), settings.num_images)
    for expansion in settings.expansions:
        params = fastfood.init(
            prng.stream(key, "map"), input_dim=x.shape[1], num_features=expansion * x.shape[1], bandwidth=1.0,
            dtype=x.dtype,
        )  # fmt: skip
        u = ratios * jnp.tile(feature_matrix(params, directions, form=forms.identity), (len(settings.ratios), 1))
        found[f"folded/{expansion}"] = np.asarray((jnp.abs(u) > jnp.pi / 2).mean(axis=1)).reshape(shape)
        for name, (form, method) in METHODS.items():
            back, validity = invert_matrix(params, jax.vmap(form)(u), form=form, method=method)
            back = (back / ratios).reshape(*shape, -1)
            found |= {
                f"error/{name}/{expansion}": np.asarray(distances.norm(back - directions[None])),
                f"residual/{name}/{expansion}": np.asarray(validity.residual).reshape(shape),
                f"share/{name}/{expansion}": np.asarray(validity.share_out_of_range).reshape(shape),
            }
            if expansion == max(settings.expansions):
                faces = origin[None, :] + length[0] * back[:, 0]
                found[f"back/{name}"] = np.asarray(faces).reshape(-1, *images.shape[1:])
    return found
