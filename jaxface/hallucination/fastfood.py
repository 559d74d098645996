"""Fastfood DW-KSVD: dictionaries learnt in feature space, and two ways back to the image.

With `phi(y) = sin(V y) / sqrt f` (16), and maps of their own for the face and for its visible part, (17) is

    min |phi(Y) - D X|^2 + beta |phi_v(Y_v) - D_v X|^2,  at most s entries of each code other than zero

Features here must be stacked: the weights `sqrt(1 + beta)` of image space hold for one map only.

- `fit_fastfood_dw_ksvd` codes `phi_v` of the visible pixels on D_v, and inverts the features `D x` (20);
- `fit_fastfood_dw_ksvd_dekernelized` inverts every atom once, and codes pixels on the images of the atoms.

The way back exists where |V y| <= pi / 2, and the bandwidths are the least that put the share `quantile` of the data
there. The kernel is then nearly linear and `phi` nearly an isometry up to scale: codes are close to those of the image,
and beta counts as `beta (bandwidth / bandwidth of the visible part)^2`, which `effective_beta` tells.
"""

import math
from functools import partial
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax.typing import ArrayLike

from jaxface.core import checks, fitinfo, machine, prng
from jaxface.core.fitinfo import FitInfo
from jaxface.core.pytree import params, static, whole
from jaxface.features import (
    choose_bandwidth,
    dekernelize,
    fastfood,
    feature_matrix,
    forms,
    gram_matrix,
    transform,
    units,
)
from jaxface.features.fastfood import Fastfood
from jaxface.hallucination.dictionary import DictionaryHallucinator, check_visible
from jaxface.hallucination.reconstruction import Reconstruction, checked
from jaxface.linalg import hadamard, scaling
from jaxface.sparse import ksvd, omp
from jaxface.sparse.atom_update import AtomUpdate, approximate, count_users
from jaxface.sparse.dictionary import Dictionary, SparseCode, decode, shrink

__all__ = ["draw_maps", "effective_beta", "fit_fastfood_dw_ksvd", "fit_fastfood_dw_ksvd_dekernelized", "share_clipped"]


@params
class FastfoodDictionaryHallucinator:
    """A mean face, the two maps, and the two parts of the atoms."""

    mean: jax.Array  # [d]
    visible: jax.Array = whole()  # int32 [v]
    face_map: Fastfood
    visible_map: Fastfood
    face_atoms: jax.Array  # [f, k], D
    visible_atoms: jax.Array  # [g, k], D_v
    sparsity: int = static()

    def prepare(self) -> Reconstruction:
        """OMP on D_v, then least squares for the image of the features."""
        features = feature_reconstruction(self)
        solve = dekernelize.solver(self.face_map, forms.sin)
        return lambda pixels: self.mean + solve(features(pixels))


class Maps(NamedTuple):
    """Feature maps of the face and of its visible part, drawn on their own."""

    face: Fastfood
    visible: Fastfood


class _Learnt(NamedTuple):
    """What both fits make of the faces."""

    mean: jax.Array  # [d]
    visible: jax.Array  # int32 [v]
    maps: Maps
    stacked: jax.Array  # [n, f + g], features of the faces, the second part times sqrt(beta)
    dictionary: Dictionary  # [f + g, k]
    info: FitInfo


def feature_reconstruction(model: FastfoodDictionaryHallucinator) -> Reconstruction:
    """A function of the visible pixels `[v]` that returns the features `D x` `[f]` of the face."""
    encode = omp.batch_encoder(Dictionary(atoms=model.visible_atoms), sparsity=model.sparsity)

    def features(pixels: jax.Array) -> jax.Array:
        seen = transform(model.visible_map, pixels - model.mean[model.visible], form=forms.sin)
        return decode(Dictionary(atoms=model.face_atoms), encode(seen))

    return features


def share_clipped(model: FastfoodDictionaryHallucinator, pixels: ArrayLike) -> jax.Array:
    """The share of the features of a reconstruction beyond the range of the sine, where no image has them.

    NaN for pixels with NaN.
    """
    checks.shapes(visible=(model.visible, "v"), pixels=(pixels, "v"))
    checks.floating(pixels=pixels)
    features = feature_reconstruction(model)(jnp.asarray(pixels))
    share = (jnp.abs(features) > 1 / math.sqrt(features.shape[0])).mean(dtype=features.dtype)
    return jnp.where(jnp.isnan(features).any(), jnp.nan, share)


def draw_maps(key: jax.Array, x: ArrayLike, mask: ArrayLike, *, expansion: int, quantile: float) -> Maps:
    """The maps that a fit with this key draws for faces x `[n, d]`: `expansion` times the padded dimensions each.

    Their bandwidths are the least that keep the share `quantile` of the data in the range of the sine; on the host.
    """
    centered, mean, visible = checked(x, mask)
    checks.typed_key(key)
    return _draw_maps(key, centered, mean, visible, expansion, quantile)


def effective_beta(maps: Maps, beta: ArrayLike) -> jax.Array:
    """The beta of image space that counts the visible pixels as `beta` does in the feature space of these maps.

    `|phi(y)|^2` is about `|y|^2 / bandwidth^2`, and the mean square of the entries of V is `1 / bandwidth^2`.
    """
    own = {name: units.in_own_unit(m) for name, m in maps._asdict().items()}
    squares = {name: jnp.trace(gram_matrix(m)) / (m.num_features * m.input_dim) for name, (m, _) in own.items()}
    power = own["face"][1] - own["visible"][1]
    return scaling.shifted(jnp.asarray(beta * squares["visible"] / squares["face"]), 2 * power)


def fit_fastfood_dw_ksvd(
    key: jax.Array,
    x: ArrayLike,
    mask: ArrayLike,
    *,
    beta: ArrayLike,
    expansion: int,
    quantile: float,
    num_atoms: int,
    sparsity: int,
    num_iters: int,
    tol: float = 0.0,
    atom_update: AtomUpdate = approximate,
) -> tuple[FastfoodDictionaryHallucinator, FitInfo]:
    """(17) for faces x `[n, d]`: K-SVD on stacked features, `expansion` times the padded dimensions; on the host.

    At most `1 - quantile` of the data are beyond the range of the sine. The objective is that of (17).
    """
    sizes = {"num_atoms": num_atoms, "sparsity": sparsity, "num_iters": num_iters}
    learnt = _learn(key, x, mask, beta, expansion, quantile, **sizes, tol=tol, atom_update=atom_update)
    f = learnt.maps.face.num_features
    model = FastfoodDictionaryHallucinator(
        mean=learnt.mean,
        visible=learnt.visible,
        face_map=learnt.maps.face,
        visible_map=learnt.maps.visible,
        face_atoms=learnt.dictionary.atoms[:f],
        visible_atoms=learnt.dictionary.atoms[f:] / jnp.sqrt(jnp.asarray(beta, learnt.mean.dtype)),
        sparsity=sparsity,
    )
    return model, learnt.info


def fit_fastfood_dw_ksvd_dekernelized(
    key: jax.Array,
    x: ArrayLike,
    mask: ArrayLike,
    *,
    beta: ArrayLike,
    expansion: int,
    quantile: float,
    num_atoms: int,
    sparsity: int,
    num_iters: int,
    tol: float = 0.0,
    atom_update: AtomUpdate = approximate,
) -> tuple[DictionaryHallucinator, FitInfo]:
    """`fit_fastfood_dw_ksvd` with every atom taken back to the image: no features are needed any more.

    An atom is known up to its scale, and arcsin is not homogeneous: each is taken at the root mean square of its
    coefficients, shrunk into the range of the sine (21), and inverted. The status is the worst of the dictionary and of
    the inverses.
    """
    sizes = {"num_atoms": num_atoms, "sparsity": sparsity, "num_iters": num_iters}
    learnt = _learn(key, x, mask, beta, expansion, quantile, **sizes, tol=tol, atom_update=atom_update)
    codes = omp.encode_batch(learnt.dictionary, learnt.stacked, sparsity=sparsity)
    atoms, status = _atom_images(learnt.maps.face, learnt.dictionary, codes)
    model = DictionaryHallucinator(mean=learnt.mean, visible=learnt.visible, atoms=atoms, sparsity=sparsity)
    return model, learnt.info._replace(status=fitinfo.worst(learnt.info.status, status))


def _learn(
    key: jax.Array,
    x: ArrayLike,
    mask: ArrayLike,
    beta: ArrayLike,
    expansion: int,
    quantile: float,
    *,
    num_atoms: int,
    sparsity: int,
    num_iters: int,
    tol: float,
    atom_update: AtomUpdate,
) -> _Learnt:
    centered, mean, visible = checked(x, mask)
    checks.typed_key(key)
    checks.positive("beta", beta)
    check_visible(visible.shape[0], sparsity)
    weight = jnp.sqrt(jnp.asarray(beta, centered.dtype))
    maps = _draw_maps(key, centered, mean, visible, expansion, quantile)
    faces = feature_matrix(maps.face, centered, form=forms.sin)
    seen = feature_matrix(maps.visible, centered[:, visible], form=forms.sin)
    stacked = jnp.concatenate([faces, weight * seen], axis=1)
    start = ksvd.init(prng.stream(key, "atoms"), stacked, num_atoms=num_atoms)
    found, info = ksvd.fit(stacked, start, sparsity=sparsity, num_iters=num_iters, tol=tol, atom_update=atom_update)
    return _Learnt(mean, visible, maps, stacked, found, info)


def _draw_maps(
    key: jax.Array, centered: jax.Array, mean: jax.Array, visible: jax.Array, expansion: int, quantile: float
) -> Maps:
    checks.at_least("expansion", expansion, 1)
    parts = {"face": centered, "visible": centered[:, visible]}
    for name, part in parts.items():
        _check_variation(name, part, mean)
    return Maps(**{name: _drawn(prng.stream(key, name), part, expansion, quantile) for name, part in parts.items()})


def _check_variation(name: str, part: jax.Array, mean: jax.Array) -> None:
    """Faces that are all the same leave rounding, from which no bandwidth can be had."""
    rounding = 32 * machine.eps(part.dtype) * float(jnp.abs(mean).max())
    if float(jnp.abs(part).max()) <= rounding:
        raise ValueError(
            f"x must hold faces that differ; the {name} part is the same in all of them, so its map has no bandwidth. "
            "Leave out duplicates, or use fit_dw_ksvd, which needs none."
        )


def _drawn(key: jax.Array, x: jax.Array, expansion: int, quantile: float) -> Fastfood:
    """A map for x `[n, d]` with the least bandwidth that keeps the share `quantile` in the range of the sine."""
    num_features = expansion * hadamard.next_power_of_two(x.shape[1])
    bandwidth = choose_bandwidth(
        key, x, init=fastfood.init, num_features=num_features, quantile=quantile, form=forms.sin
    )
    return fastfood.init(key, input_dim=x.shape[1], num_features=num_features, bandwidth=bandwidth, dtype=x.dtype)


def _atom_images(face_map: Fastfood, dictionary: Dictionary, codes: SparseCode) -> tuple[jax.Array, jax.Array]:
    """Images `[d, k]` of the face part of the atoms, each at its usual size in the codes `[n, s]`, and a status."""
    k, f = dictionary.atoms.shape[1], face_map.num_features
    energy = jax.ops.segment_sum((codes.values**2).reshape(-1), codes.indices.reshape(-1), k)
    users = count_users(codes, num_atoms=k).astype(energy.dtype)
    size = jnp.where(users > 0, jnp.sqrt(energy / jnp.maximum(users, 1)), 1)
    usual = dictionary.atoms[:f].T * size[:, None]
    shrunk = jax.vmap(partial(shrink, bound=1 / math.sqrt(f)))(usual)
    images, validity = dekernelize.invert_matrix(face_map, shrunk, form=forms.sin)
    return images.T, validity.status.max()
