"""Fastfood DW-KSVD: dictionaries learnt in feature space, and two ways back to the image.

With `phi(y) = sin(V y) / sqrt f` (16), and one map for the face and another for its visible part, (17) is

    min |phi(Y) - D X|^2 + beta |phi_v(Y_v) - D_v X|^2,  at most s entries of each code other than zero

The two kinds of features are stacked: the weights `sqrt(1 + beta)` of image space hold for a single map only.

- `fit_fastfood_dw_ksvd` codes `phi_v` of the visible pixels on D_v, and inverts the features `D x` (20);
- `invert_atoms` then inverts every atom once, and the model codes pixels on the images of the atoms.

The way back exists where |V y| <= pi / 2, and the bandwidths are the least that put the share `quantile` of the data
there. The kernel is then nearly linear and `phi` nearly an isometry up to scale: codes are close to those of the image,
and beta counts as `beta (bandwidth / bandwidth of the visible part)^2`, the `effective_beta`.
"""

import math
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax.typing import ArrayLike

from jaxface.core import blocks, checks, machine, prng
from jaxface.core.fitinfo import FitInfo
from jaxface.core.pytree import params, static, whole
from jaxface.features import FORMS, INVERSES, Validity, bandwidth, dekernelize, fastfood, forms, maps, units
from jaxface.features.dekernelize import Method
from jaxface.features.fastfood import Fastfood
from jaxface.features.forms import Form
from jaxface.hallucination.dictionary import DictionaryHallucinator, check_visible
from jaxface.hallucination.reconstruction import BLOCK_SIZE, Reconstruction, checked
from jaxface.linalg import hadamard, scaling
from jaxface.sparse import ksvd, omp
from jaxface.sparse.atom_update import AtomUpdate, approximate, count_users
from jaxface.sparse.dictionary import Dictionary, SparseCode, decode, shrink

__all__ = ["draw_maps", "effective_beta", "fit_fastfood_dw_ksvd", "invert_atoms", "validity"]


@params
class FastfoodDictionaryHallucinator:
    """A mean face, two maps, and atoms of their stacked features."""

    mean: jax.Array  # [d]
    visible: jax.Array = whole()  # int32 [v]
    face_map: Fastfood
    visible_map: Fastfood
    atoms: jax.Array  # [f + g, k], D over sqrt(beta) D_v
    visible_weight: jax.Array  # [], sqrt(beta)
    sparsity: int = static()
    form: str = static(default="sin")  # of features.FORMS
    inverse: str = static(default="least_squares")  # of features.INVERSES

    @property
    def face_atoms(self) -> jax.Array:
        """D `[f, k]`."""
        return self.atoms[: self._width]

    @property
    def visible_atoms(self) -> jax.Array:
        """D_v `[g, k]`."""
        return self.atoms[self._width :] / self.visible_weight

    @property
    def _width(self) -> int:
        return forms.inverse(FORMS[self.form]).width * self.face_map.num_features

    def prepare(self) -> Reconstruction:
        """OMP on D_v, then the inverse of the features of the face."""
        features = feature_reconstruction(self)
        solve = dekernelize.solver(self.face_map, FORMS[self.form], INVERSES[self.inverse])
        return lambda pixels: self.mean + solve(features(pixels))


class Maps(NamedTuple):
    """Feature maps of the face and of its visible part, with keys of their own."""

    face: Fastfood
    visible: Fastfood


def feature_reconstruction(model: FastfoodDictionaryHallucinator) -> Reconstruction:
    """A function of the visible pixels `[v]` that returns the features `D x` `[f]` of the face."""
    encode = omp.batch_encoder(Dictionary(atoms=model.visible_atoms), sparsity=model.sparsity)
    face, form = Dictionary(atoms=model.face_atoms), FORMS[model.form]

    def features(pixels: jax.Array) -> jax.Array:
        seen = maps.transform(model.visible_map, pixels - model.mean[model.visible], form=form)
        return decode(face, encode(seen))

    return features


def validity(model: FastfoodDictionaryHallucinator, pixels: ArrayLike, *, block_size: int = BLOCK_SIZE) -> Validity:
    """How far the inverses of the features can be believed, for the visible pixels `[n, v]` of n images.

    NaN in a row of pixels gives NaN with status NON_FINITE. Gradients are stopped.
    """
    checks.shapes(visible=(model.visible, "v"), pixels=(pixels, "n v"))
    checks.floating(pixels=pixels)
    checks.at_least("block_size", block_size, 1)
    return _validity(model, jnp.asarray(pixels), block_size=block_size)


@partial(jax.jit, static_argnames="block_size")
def _validity(model: FastfoodDictionaryHallucinator, pixels: jax.Array, *, block_size: int) -> Validity:
    features = blocks.map_rows(feature_reconstruction(model), pixels, block_size=block_size)
    form, method = FORMS[model.form], INVERSES[model.inverse]
    _, report = dekernelize.invert_matrix(model.face_map, features, form=form, method=method, block_size=block_size)
    return jax.lax.stop_gradient(report)


def draw_maps(
    key: jax.Array, x: ArrayLike, mask: ArrayLike, *, expansion: int, quantile: float, form: Form = forms.sin
) -> Maps:
    """The maps that a fit with this key draws for faces x `[n, d]`: `expansion` times the padded dimensions each.

    Their bandwidths are the least that keep the share `quantile` of the data in the range of the form; on the host.
    """
    centered, mean, visible = checked(x, mask)
    checks.typed_key(key)
    return _draw_maps(key, centered, mean, visible, expansion, quantile, form)


def effective_beta(maps: Maps, beta: ArrayLike) -> jax.Array:
    """The beta of image space that counts the visible pixels as `beta` does in the feature space of these maps.

    `|phi(y)|^2` is about `|y|^2 / bandwidth^2`, and the mean square of the entries of V is `1 / bandwidth^2`.
    """
    (face, face_power), (visible, visible_power) = (units.in_own_unit(each) for each in maps)
    in_unit = beta * _mean_square(visible) / _mean_square(face)
    return scaling.shifted(jnp.asarray(in_unit), 2 * (face_power - visible_power))


def _mean_square(params: maps.FeatureMap) -> jax.Array:
    """The mean square of the entries of V."""
    return jnp.trace(maps.gram_matrix(params)) / (params.num_features * params.input_dim)


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
    form: Form = forms.sin,
    inverse: Method = dekernelize.least_squares,
) -> tuple[FastfoodDictionaryHallucinator, FitInfo]:
    """(17) for faces x `[n, d]`: K-SVD on stacked features; on the host. The objective is that of (17).

    beta: weight of the visible part, above 0
    expansion: frequencies of a map, in units of its padded dimension
    quantile: share of the data in the range where the form is one to one; it sets the bandwidths
    num_atoms, sparsity, num_iters, tol, atom_update: those of `sparse.ksvd`
    form: of `features.FORMS`; pairs of cosine and sine need half the bandwidth of the sine
    inverse: of `features.INVERSES`, the way back from the features of a face
    """
    names: dict[str, Any] = {"form": _name_of("form", form, FORMS), "inverse": _name_of("inverse", inverse, INVERSES)}
    centered, mean, visible = checked(x, mask)
    checks.typed_key(key)
    checks.positive("beta", beta)
    check_visible(visible.shape[0], sparsity)
    weight = jnp.sqrt(jnp.asarray(beta, centered.dtype))
    drawn = _draw_maps(key, centered, mean, visible, expansion, quantile, form)
    stacked = _stack(drawn, centered, visible, weight, form)
    start = ksvd.init(prng.stream(key, "atoms"), stacked, num_atoms=num_atoms)
    sizes = {"sparsity": sparsity, "num_iters": num_iters}
    dictionary, info = ksvd.fit(stacked, start, tol=tol, atom_update=atom_update, **sizes)
    face_maps: dict[str, Any] = {"face_map": drawn.face, "visible_map": drawn.visible}
    learnt: dict[str, Any] = {"mean": mean, "atoms": dictionary.atoms, "visible_weight": weight, "sparsity": sparsity}
    return FastfoodDictionaryHallucinator(visible=visible, **face_maps, **learnt, **names), info


def invert_atoms(model: FastfoodDictionaryHallucinator, x: ArrayLike) -> tuple[DictionaryHallucinator, Validity]:
    """The model with every atom taken back to the image, from the faces x `[n, d]` of its fit; needs no features.

    An atom is known up to its scale, and arcsin is not homogeneous: each atom is taken at the root mean square of its
    coefficients, shrunk into the range of the sine (21), and inverted. The validity `[k]` is that of the atoms.
    """
    if model.form != "sin":
        raise ValueError(
            f"the form of the model must be sin for its atoms to be inverted; got {model.form}. Features of pairs are "
            "not odd, so an atom with a negative coefficient has no image: reconstruct from the model itself."
        )
    checks.samples(mean=(model.mean, "d"), x=(x, "n d"))
    centered = jax.lax.stop_gradient(jnp.asarray(x)) - model.mean[None, :]
    drawn, dictionary = Maps(model.face_map, model.visible_map), Dictionary(atoms=model.atoms)
    stacked = _stack(drawn, centered, model.visible, model.visible_weight, FORMS[model.form])
    codes = omp.encode_batch(dictionary, stacked, sparsity=model.sparsity)
    atoms, report = _atom_images(model.face_map, dictionary, codes, INVERSES[model.inverse])
    return DictionaryHallucinator(mean=model.mean, visible=model.visible, atoms=atoms, sparsity=model.sparsity), report


def _name_of(name: str, function: Callable[..., object], table: Mapping[str, Callable[..., object]]) -> str:
    """The name of the function in the table: a model that is saved holds the name."""
    for word, known in table.items():
        if function is known:
            return word
    raise ValueError(f"{name} must be one of jaxface.features, {', '.join(table)}; got {function!r}.")


def _stack(drawn: Maps, centered: jax.Array, visible: jax.Array, weight: jax.Array, form: Form) -> jax.Array:
    """Features `[n, f + g]` of faces and of their visible parts, the second times `weight`."""
    faces = maps.feature_matrix(drawn.face, centered, form=form)
    seen = maps.feature_matrix(drawn.visible, centered[:, visible], form=form)
    return jnp.concatenate([faces, weight * seen], axis=1)


def _draw_maps(
    key: jax.Array,
    centered: jax.Array,
    mean: jax.Array,
    visible: jax.Array,
    expansion: int,
    quantile: float,
    form: Form,
) -> Maps:
    checks.at_least("expansion", expansion, 1)
    parts = {"face": centered, "visible": centered[:, visible]}
    for name, part in parts.items():
        _check_variation(name, part, mean)
    return Maps(**{n: _draw_map(prng.stream(key, n), part, expansion, quantile, form) for n, part in parts.items()})


def _check_variation(name: str, part: jax.Array, mean: jax.Array) -> None:
    """Differences between equal faces are rounding, which determines no bandwidth."""
    rounding = 32 * machine.eps(part.dtype) * float(jnp.abs(mean).max())
    if float(jnp.abs(part).max()) <= rounding:
        raise ValueError(
            f"x must hold faces that differ; the {name} part is the same in all of them, so its map has no bandwidth. "
            "Leave out duplicates, or use fit_dw_ksvd, which needs none."
        )


def _draw_map(key: jax.Array, x: jax.Array, expansion: int, quantile: float, form: Form) -> Fastfood:
    """A map for x `[n, d]` with the least bandwidth that keeps the share `quantile` in the range of the form."""
    num_features = expansion * hadamard.next_power_of_two(x.shape[1])
    width = bandwidth.choose_bandwidth(
        key, x, init=fastfood.init, num_features=num_features, quantile=quantile, form=form
    )
    return fastfood.init(key, input_dim=x.shape[1], num_features=num_features, bandwidth=width, dtype=x.dtype)


def _atom_images(
    face_map: Fastfood, dictionary: Dictionary, codes: SparseCode, inverse: Method
) -> tuple[jax.Array, Validity]:
    """Images `[d, k]` of the face part of the atoms, each at its usual size in the codes `[n, s]`."""
    k, f = dictionary.atoms.shape[1], face_map.num_features
    energy = jax.ops.segment_sum((codes.values**2).reshape(-1), codes.indices.reshape(-1), k)
    users = count_users(codes, num_atoms=k).astype(energy.dtype)
    size = jnp.where(users > 0, jnp.sqrt(energy / jnp.maximum(users, 1)), 1)
    usual = dictionary.atoms[:f].T * size[:, None]
    shrunk = jax.vmap(partial(shrink, bound=1 / math.sqrt(f)))(usual)
    images, report = dekernelize.invert_matrix(face_map, shrunk, form=forms.sin, method=inverse)
    return images.T, report
