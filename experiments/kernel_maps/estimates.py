"""Kernel matrices estimated by maps of growing size.

The first rows of a map are those of a smaller one, so one draw and one projection serve all sizes.
"""

from collections.abc import Callable, Sequence
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
from ml_collections import ConfigDict

from jaxface.core import prng
from jaxface.features import MAPS, feature_matrix, forms, median_distance
from jaxface.features.maps import FeatureMap
from jaxface.linalg import gram
from jaxface.runtime.log import progress
from jaxface.subspace import pca

Form = Callable[[jax.Array, jax.Array], jax.Array]  # (key, projections [n, f]) -> features


def cos_sin(key: jax.Array, u: jax.Array) -> jax.Array:
    """Pairs, `[n, 2 f]`."""
    return forms.cos_sin(u)


def sin(key: jax.Array, u: jax.Array) -> jax.Array:
    """The sine alone, `[n, f]`."""
    return forms.sin(u)


def random_phase(key: jax.Array, u: jax.Array) -> jax.Array:
    """One cosine with a phase, `[n, f]`."""
    return jax.vmap(forms.random_phase(key, num_features=u.shape[1], dtype=u.dtype))(u)


def sine_kernel(x: jax.Array, y: jax.Array) -> jax.Array:
    """What the sine alone estimates at bandwidth 1: `(k(x - y) - k(x + y)) / 2`."""
    kernel = gram.gaussian(bandwidth=1.0)
    return (kernel(x, y) - kernel(x, -y)) / 2


def errors(config: ConfigDict, x: jax.Array) -> dict[str, np.ndarray]:
    """Every map and every form on the rows of x; `small` are the maps on their leading principal components."""
    small = pca.fit(x, num_components=config.estimates.small_dim)[0]
    images, components = points(config, x), points(config, (x - small.mean[None, :]) @ small.basis)
    on_components = {f"small {name}": value for name, value in of_maps(config, components).items()}
    return of_maps(config, images) | of_forms(config, images) | on_components


def points(config: ConfigDict, x: jax.Array) -> jax.Array:
    """Some rows of x in units of their median distance, so that the bandwidth is 1."""
    key, num = jax.random.key(config.seed), config.estimates.num_images
    rows = x[jax.random.choice(prng.stream(key, "rows"), x.shape[0], (num,), replace=False)]
    return rows / median_distance(prng.stream(key, "median"), rows)


def of_maps(config: ConfigDict, x: jax.Array) -> dict[str, np.ndarray]:
    """Root mean square error `[draws, sizes]` of every map over all pairs of different rows; cosine and sine are kept.

    `theory` `[sizes]` is that of independent frequencies, `(1 - k^2) / sqrt(2 f)` for each pair.
    """
    kernel, sizes = gram.gaussian(bandwidth=1.0)(x, x), np.asarray(config.estimates.sizes)
    values = np.asarray(kernel, float)[~np.eye(len(x), dtype=bool)]
    found = {kind: _errors(config, x, kind, cos_sin, (kernel,))[0] for kind in MAPS}
    return found | {
        "sizes": sizes,
        "theory": np.sqrt(((1 - values**2) ** 2).mean() / (2 * sizes)),
        "mean kernel": values.mean(),
    }


def of_forms(config: ConfigDict, x: jax.Array) -> dict[str, np.ndarray]:
    """The same of the other forms, by Fastfood; of the sine for its own kernel and for the Gaussian."""
    kernel = gram.gaussian(bandwidth=1.0)(x, x)
    (phase,) = _errors(config, x, "fastfood", random_phase, (kernel,))
    own, other = _errors(config, x, "fastfood", sin, (sine_kernel(x, x), kernel))
    return {"random phase": phase, "sine, its own kernel": own, "sine, the Gaussian": other}


def growing(
    key: jax.Array, x: jax.Array, *, init: Callable[..., FeatureMap], form: Form, sizes: Sequence[int]
) -> jax.Array:
    """Estimates `[sizes, n, n]` of the kernel matrix of x `[n, d]` at bandwidth 1, by one draw of a map."""
    params = init(map_key(key), input_dim=x.shape[1], num_features=max(sizes), bandwidth=1.0, dtype=x.dtype)
    u = feature_matrix(params, x, form=forms.identity)
    return _grams(prng.stream(key, "form"), u, form=form, sizes=tuple(sizes))


def map_key(key: jax.Array) -> jax.Array:
    """The key with which `growing` draws its map."""
    return prng.stream(key, "map")


def _errors(config: ConfigDict, x: jax.Array, kind: str, form: Form, targets: Sequence[jax.Array]) -> list[np.ndarray]:
    """Errors `[draws, sizes]` of the same draws against each of the targets."""
    settings, key = config.estimates, jax.random.key(config.seed)
    off = ~np.eye(len(x), dtype=bool)
    rows = []
    for draw in progress(range(settings.num_draws), kind, total=settings.num_draws):
        drawn = prng.stream(jax.random.fold_in(key, draw), kind)
        found = np.asarray(growing(drawn, x, init=MAPS[kind], form=form, sizes=settings.sizes))
        squares = [(found - np.asarray(target)[None])[:, off] ** 2 for target in targets]
        rows.append([np.sqrt(square.mean(axis=1)) for square in squares])
    return [np.stack(each) for each in zip(*rows, strict=True)]


@partial(jax.jit, static_argnames=("form", "sizes"))
def _grams(key: jax.Array, u: jax.Array, *, form: Form, sizes: tuple[int, ...]) -> jax.Array:
    """Running means of the Gram matrices of the parts of u `[n, f]` between one size and the next."""
    parts = []
    for start, end in zip((0, *sizes), sizes, strict=False):
        z = form(jax.random.fold_in(key, start), u[:, start:end])
        parts.append((end - start) * (z @ z.T))
    return jnp.cumsum(jnp.stack(parts), axis=0) / jnp.asarray(sizes, u.dtype)[:, None, None]
