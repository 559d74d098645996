"""Fastfood DW-KSVD: dictionaries learnt in feature space, and two ways back to the image.

With `phi(y) = sin(V y) / sqrt f` (16), and one map for the face and another for its visible part, (17) is

    min |phi(Y) - D X|^2 + beta |phi_v(Y_v) - D_v X|^2,  at most s entries of each code other than zero

The two kinds of features are stacked: the weights `sqrt(1 + beta)` of image space hold for a single map only.

- `fit_fastfood_dw_ksvd` codes `phi_v` of the visible pixels on D_v, and inverts the features `D x` (20);
- `invert_atoms` then inverts every atom once, and the model codes pixels on the images of the atoms; `atom_images`
  shows these, and those of the visible part.

The way back exists where |V y| <= pi / 2, and the bandwidths are the least that put the share `quantile` of the data
there. The kernel is then nearly linear and `phi` nearly an isometry up to scale: codes are close to those of the image,
and beta counts as `beta (bandwidth / bandwidth of the visible part)^2`, the `effective_beta`.
"""

import math
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
from jax.typing import ArrayLike

from jaxface.core import blocks, checks, prng
from jaxface.core.fitinfo import FitInfo
from jaxface.core.pytree import params, static
from jaxface.features import FORMS, INVERSES, Validity, dekernelize, forms, maps, units
from jaxface.features.dekernelize import Method
from jaxface.features.fastfood import Fastfood
from jaxface.features.forms import Form
from jaxface.hallucination.dictionary import DictionaryHallucinator, check_visible
from jaxface.hallucination.reconstruction import BLOCK_SIZE, Reconstruction
from jaxface.hallucination.signals import FeatureSignals, Maps, feature_signals, name_of
from jaxface.linalg import scaling
from jaxface.sparse import ksvd, omp
from jaxface.sparse.atom_update import AtomUpdate, approximate, count_users
from jaxface.sparse.dictionary import Dictionary, SparseCode, decode, shrink

__all__ = [
    "FastfoodDictionaryHallucinator",
    "atom_images",
    "effective_beta",
    "feature_hallucinator",
    "fit_fastfood_dw_ksvd",
    "invert_atoms",
    "validity",
]


@params
class FastfoodDictionaryHallucinator:
    """Atoms of the stacked features of a face and of its visible part."""

    signals: FeatureSignals  # mean, maps and weight
    atoms: jax.Array  # [f + g, k], D over sqrt(beta) D_v
    sparsity: int = static()
    inverse: str = static(default="least_squares")  # of features.INVERSES

    @property
    def mean(self) -> jax.Array:
        """The mean face `[d]`."""
        return self.signals.mean

    @property
    def visible(self) -> jax.Array:
        """Indices of the visible pixels `[v]`."""
        return self.signals.visible

    @property
    def face_atoms(self) -> jax.Array:
        """D `[f, k]`."""
        return self.atoms[: self._width]

    @property
    def visible_atoms(self) -> jax.Array:
        """D_v `[g, k]`."""
        return self.atoms[self._width :] / self.signals.visible_weight

    @property
    def _width(self) -> int:
        return forms.inverse(FORMS[self.signals.form]).width * self.signals.face_map.num_features

    def prepare(self) -> Reconstruction:
        """OMP on D_v, then the inverse of the features of the face."""
        features = feature_reconstruction(self)
        solve = dekernelize.solver(self.signals.face_map, FORMS[self.signals.form], INVERSES[self.inverse])
        return lambda pixels: self.mean + solve(features(pixels))


def feature_reconstruction(model: FastfoodDictionaryHallucinator) -> Reconstruction:
    """A function of the visible pixels `[v]` that returns the features `D x` `[f]` of the face."""
    encode = omp.batch_encoder(Dictionary(atoms=model.visible_atoms), sparsity=model.sparsity)
    face, form = Dictionary(atoms=model.face_atoms), FORMS[model.signals.form]

    def features(pixels: jax.Array) -> jax.Array:
        seen = maps.transform(model.signals.visible_map, pixels - model.mean[model.visible], form=form)
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
    form, method = FORMS[model.signals.form], INVERSES[model.inverse]
    _, report = dekernelize.invert_matrix(
        model.signals.face_map, features, form=form, method=method, block_size=block_size
    )
    return jax.lax.stop_gradient(report)


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
    name_of("inverse", inverse, INVERSES)
    maps_and_beta: dict[str, Any] = {"beta": beta, "expansion": expansion, "quantile": quantile, "form": form}
    signals = feature_signals(key, x, mask, **maps_and_beta)
    check_visible(signals.visible.shape[0], sparsity)
    stacked = signals.transform(x)
    start = ksvd.init(prng.stream(key, "atoms"), stacked, num_atoms=num_atoms)
    sizes = {"sparsity": sparsity, "num_iters": num_iters}
    dictionary, info = ksvd.fit(stacked, start, tol=tol, atom_update=atom_update, **sizes)
    return feature_hallucinator(signals, dictionary, sparsity=sparsity, inverse=inverse), info


def feature_hallucinator(
    signals: FeatureSignals, dictionary: Dictionary, *, sparsity: int, inverse: Method = dekernelize.least_squares
) -> FastfoodDictionaryHallucinator:
    """The model of a dictionary of these signals, such as one learnt from a stream of them.

    sparsity: entries of a code, at most
    inverse: of `features.INVERSES`, the way back from the features of a face
    """
    width = forms.inverse(FORMS[signals.form]).width * (
        signals.face_map.num_features + signals.visible_map.num_features
    )
    checks.shapes(atoms=(dictionary.atoms, f"{width} k"))
    check_visible(signals.visible.shape[0], sparsity)
    word = name_of("inverse", inverse, INVERSES)
    return FastfoodDictionaryHallucinator(signals=signals, atoms=dictionary.atoms, sparsity=sparsity, inverse=word)


def invert_atoms(model: FastfoodDictionaryHallucinator, x: ArrayLike) -> tuple[DictionaryHallucinator, Validity]:
    """The model with every atom taken back to the image, from the faces x `[n, d]` of its fit; needs no features.

    An atom is known up to its scale, and arcsin is not homogeneous: each atom is taken at the root mean square of its
    coefficients, shrunk into the range of the sine (21), and inverted. The validity `[k]` is that of the atoms.
    """
    dictionary, codes = _coded(model, x)
    atoms, report = _atom_images(model.signals.face_map, dictionary, codes, INVERSES[model.inverse])
    return DictionaryHallucinator(mean=model.mean, visible=model.visible, atoms=atoms, sparsity=model.sparsity), report


def atom_images(model: FastfoodDictionaryHallucinator, x: ArrayLike) -> tuple[jax.Array, jax.Array]:
    """Images of both parts of the atoms, of whole faces `[d, k]` and of the visible pixels `[v, k]`, about the mean.

    Each part is taken back by the inverse of its own map, at the size that `invert_atoms` uses for faces x `[n, d]`.
    """
    dictionary, codes = _coded(model, x)
    method = INVERSES[model.inverse]
    faces, _ = _atom_images(model.signals.face_map, dictionary, codes, method)
    parts, _ = _atom_images(model.signals.visible_map, Dictionary(atoms=model.visible_atoms), codes, method)
    return faces, parts


def _coded(model: FastfoodDictionaryHallucinator, x: ArrayLike) -> tuple[Dictionary, SparseCode]:
    """The dictionary of the stacked features, and the codes of faces x `[n, d]` on it."""
    if model.signals.form != "sin":
        raise ValueError(
            f"the form of the model must be sin for its atoms to be inverted; got {model.signals.form}. Features of "
            "pairs are not odd, so an atom with a negative coefficient has no image: reconstruct from the model itself."
        )
    checks.samples(mean=(model.mean, "d"), x=(x, "n d"))
    dictionary = Dictionary(atoms=model.atoms)
    return dictionary, omp.encode_batch(dictionary, model.signals.transform(x), sparsity=model.sparsity)


def _atom_images(
    face_map: Fastfood, dictionary: Dictionary, codes: SparseCode, inverse: Method
) -> tuple[jax.Array, Validity]:
    """Images `[d, k]` of the first rows of the atoms, as many as the map has, each at its usual size in the codes."""
    k, f = dictionary.atoms.shape[1], face_map.num_features
    energy = jax.ops.segment_sum((codes.values**2).reshape(-1), codes.indices.reshape(-1), k)
    users = count_users(codes, num_atoms=k).astype(energy.dtype)
    size = jnp.where(users > 0, jnp.sqrt(energy / jnp.maximum(users, 1)), 1)
    usual = dictionary.atoms[:f].T * size[:, None]
    shrunk = jax.vmap(partial(shrink, bound=1 / math.sqrt(f)))(usual)
    images, report = dekernelize.invert_matrix(face_map, shrunk, form=forms.sin, method=inverse)
    return images.T, report
