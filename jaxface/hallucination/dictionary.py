"""Hallucination by a dictionary of faces: the visible pixels are coded on the visible rows of the atoms, and the same
code reconstructs the whole face.

- `fit_ksvd` learns atoms for whole faces;
- `fit_dw_ksvd` counts the visible pixels `1 + beta` times, (14), so that codes of them alone fit better.

(14), with rows of weights 1 and sqrt(beta) stacked in (15), is K-SVD on `Y` with its visible rows times
`sqrt(1 + beta)`: squares add. It is not `1 + sqrt(beta)`, as printed, and the stacked matrix is never needed.
"""

import jax
from jax.typing import ArrayLike

from jaxface.core import checks
from jaxface.core.fitinfo import FitInfo
from jaxface.core.pytree import params, static, whole
from jaxface.hallucination.reconstruction import Reconstruction
from jaxface.hallucination.signals import PixelSignals, pixel_signals
from jaxface.sparse import ksvd, omp
from jaxface.sparse.atom_update import AtomUpdate, approximate
from jaxface.sparse.dictionary import Dictionary, decode

__all__ = ["DictionaryHallucinator", "fit_dw_ksvd", "fit_ksvd", "pixel_hallucinator"]


@params
class DictionaryHallucinator:
    """A mean face and atoms; the code of the visible pixels about their mean reconstructs the face."""

    mean: jax.Array  # [d]
    visible: jax.Array = whole()  # int32 [v]
    atoms: jax.Array  # [d, k]
    sparsity: int = static()

    def prepare(self) -> Reconstruction:
        """OMP on the visible rows of the atoms."""
        encode = omp.batch_encoder(Dictionary(atoms=self.atoms[self.visible]), sparsity=self.sparsity)

        def image(pixels: jax.Array) -> jax.Array:
            code = encode(pixels - self.mean[self.visible])
            return self.mean + decode(Dictionary(atoms=self.atoms), code)

        return image


def fit_ksvd(
    key: jax.Array,
    x: ArrayLike,
    mask: ArrayLike,
    *,
    num_atoms: int,
    sparsity: int,
    num_iters: int,
    tol: float = 0.0,
    atom_update: AtomUpdate = approximate,
) -> tuple[DictionaryHallucinator, FitInfo]:
    """Atoms for whole faces x `[n, d]`, by K-SVD from random faces; the key draws them."""
    return fit_dw_ksvd(
        key,
        x,
        mask,
        beta=0.0,
        num_atoms=num_atoms,
        sparsity=sparsity,
        num_iters=num_iters,
        tol=tol,
        atom_update=atom_update,
    )


def fit_dw_ksvd(
    key: jax.Array,
    x: ArrayLike,
    mask: ArrayLike,
    *,
    beta: ArrayLike,
    num_atoms: int,
    sparsity: int,
    num_iters: int,
    tol: float = 0.0,
    atom_update: AtomUpdate = approximate,
) -> tuple[DictionaryHallucinator, FitInfo]:
    """Atoms for faces x `[n, d]` with the visible pixels counted `1 + beta` times, also in the objective.

    beta: weight of the visible pixels, 0 or above
    num_atoms, sparsity, num_iters, tol, atom_update: those of `sparse.ksvd`
    """
    signals = pixel_signals(x, mask, beta=beta)
    check_visible(signals.visible.shape[0], sparsity)
    weighted = signals.transform(x)
    start = ksvd.init(key, weighted, num_atoms=num_atoms)
    sizes = {"sparsity": sparsity, "num_iters": num_iters}
    learnt, info = ksvd.fit(weighted, start, tol=tol, atom_update=atom_update, **sizes)
    return pixel_hallucinator(signals, learnt, sparsity=sparsity), info


def pixel_hallucinator(signals: PixelSignals, dictionary: Dictionary, *, sparsity: int) -> DictionaryHallucinator:
    """The model of a dictionary of these signals, such as one learnt from a stream of them."""
    checks.shapes(mean=(signals.mean, "d"), atoms=(dictionary.atoms, "d k"))
    check_visible(signals.visible.shape[0], sparsity)
    atoms = dictionary.atoms / signals.weights[:, None]
    return DictionaryHallucinator(mean=signals.mean, visible=signals.visible, atoms=atoms, sparsity=sparsity)


def check_visible(num_visible: int, sparsity: int) -> None:
    """Refuses codes with more atoms than visible pixels."""
    checks.at_least("sparsity", sparsity, 1)
    checks.at_most("sparsity", sparsity, num_visible, "the number of visible pixels")
