"""One table of all methods: how each is fitted, and what it needs beside faces, a mask and settings."""

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
from jax.typing import ArrayLike

from jaxface.core import fitinfo
from jaxface.core.fitinfo import FitInfo
from jaxface.features import Validity
from jaxface.hallucination import fastfood
from jaxface.hallucination.dictionary import fit_dw_ksvd, fit_ksvd
from jaxface.hallucination.kernel import fit_fastfood_ridge, fit_kernel_ridge
from jaxface.hallucination.linear import fit_pca, fit_pca_prior, fit_ridge
from jaxface.hallucination.network import fit_network
from jaxface.hallucination.reconstruction import Hallucinator
from jaxface.linalg.gram import Kernel

__all__ = ["METHODS", "Fitted", "Method", "fit"]


class Method(NamedTuple):
    """A way to fit a model.

    `needs` names what the settings of a user do not hold as a number: a "key" or a "kernel" comes first in the fit, a
    "bandwidth" is a length in the unit of the visible pixels, an "optimizer" is one of optax.
    """

    title: str  # `{name}` stands for the value of a setting
    fit: Callable[..., tuple[Any, FitInfo]]
    needs: tuple[str, ...] = ()
    invert: Callable[[Any, ArrayLike], tuple[Any, Validity]] | None = None  # the model and x to the model that is kept
    validity: Callable[..., Validity] | None = None  # of the images of pixels [n, v], for models that invert features
    is_in_paper: bool = False


class Fitted(NamedTuple):
    """A model, the report of its fit, and the validity of its atoms if the fit inverted them."""

    model: Hallucinator
    info: FitInfo
    validity: Validity | None


_FASTFOOD = Method("Fastfood DW-KSVD {expansion}x", fastfood.fit_fastfood_dw_ksvd, needs=("key",), is_in_paper=True)
# All methods, by the names that configs use.
METHODS = {
    "pca": Method("PCA, least squares", fit_pca, is_in_paper=True),
    "ksvd": Method("K-SVD", fit_ksvd, needs=("key",), is_in_paper=True),
    "dw_ksvd": Method("DW-KSVD", fit_dw_ksvd, needs=("key",), is_in_paper=True),
    "fastfood_dw_ksvd_dekernelized": _FASTFOOD._replace(
        title="Fastfood DW-KSVD {expansion}x, de-kernelised", invert=fastfood.invert_atoms
    ),
    "fastfood_dw_ksvd": _FASTFOOD._replace(validity=fastfood.validity),
    "pca_prior": Method("PCA with a Gaussian prior", fit_pca_prior),
    "ridge": Method("ridge regression", fit_ridge),
    "fastfood_ridge": Method("Fastfood ridge", fit_fastfood_ridge, needs=("key", "bandwidth")),
    "kernel_ridge": Method("Gaussian kernel ridge, exact", fit_kernel_ridge, needs=("kernel",)),
    "network": Method("network on ridge", fit_network, needs=("key", "optimizer")),
}


def fit(
    method: Method,
    x: ArrayLike,
    mask: ArrayLike,
    *,
    key: jax.Array | None = None,
    kernel: Kernel | None = None,
    **settings: Any,
) -> Fitted:
    """Fits a method of the table to faces x `[n, d]`; the key and the kernel reach the methods that need them."""
    first_arguments = {"key": key, "kernel": kernel}
    for name in first_arguments:
        if name in method.needs and first_arguments[name] is None:
            raise ValueError(f"{name} must be given for {method.title}; got None.")
    first = [value for name, value in first_arguments.items() if name in method.needs]
    model, info = method.fit(*first, x, mask, **settings)
    if method.invert is None:
        return Fitted(model, info, None)
    model, validity = method.invert(model, x)
    return Fitted(model, info._replace(status=fitinfo.worst(info.status, validity.status.max())), validity)
