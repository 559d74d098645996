"""Hallucination by a network on top of ridge regression, fitted for the mean PSNR itself.

    h_1 = gelu(W_1 v + b_1)    h_l = h_(l-1) + gelu(W_l h_(l-1) + b_l)    image = mean + M'v + U'h_L + c

with v the visible pixels about their mean and M the ridge regression. U starts at zero, so the network starts as ridge
regression and learns its residual; its features of the eyes are learnt, where Fastfood draws them at random. It
minimises `mean log(e_i + floor)`, e_i the mean squared error of a face, with dropout, by an optimizer of the caller.

Faces are nearly symmetric. With `mirror`, the places of the pixels in the mirrored image, the network also trains on
mirrored faces, and a reconstruction is the mean over the pixels and their mirror image.
"""

import math
from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple, Protocol

import jax
import jax.numpy as jnp
import numpy as np
from jax.typing import ArrayLike

from jaxface.core import checks, fitinfo, machine, prng
from jaxface.core.fitinfo import FitInfo, Status
from jaxface.core.pytree import params, whole
from jaxface.hallucination.linear import fit_ridge
from jaxface.hallucination.reconstruction import Reconstruction, checked
from jaxface.linalg import scaling

__all__ = ["NetworkHallucinator", "fit_network"]


class Optimizer(Protocol):
    """Steps of gradient descent: any `optax.GradientTransformation`."""

    @property
    def init(self) -> Callable[[Any], Any]:
        """The first state, from the layers."""

    @property
    def update(self) -> Callable[[Any, Any, Any], tuple[Any, Any]]:
        """The change of the layers and the next state, from the gradient, the state and the layers."""


class Layers(NamedTuple):
    """The weights and biases of all layers."""

    linear: jax.Array  # [v, d], M
    first: jax.Array  # [v, f], W_1
    others: jax.Array  # [l - 1, f, f]
    biases: jax.Array  # [l, f]
    last: jax.Array  # [f, d], U
    offset: jax.Array  # [d], c


@params
class NetworkHallucinator:
    """A mean face, the network, and the mirror image."""

    mean: jax.Array  # [d]
    visible: jax.Array = whole()  # int32 [v]
    layers: Layers
    mirror: jax.Array = whole()  # int32 [d], the place of each pixel in the mirrored image; 0 to d - 1 without
    mirror_visible: jax.Array = whole()  # int32 [v], the same among the visible pixels

    def prepare(self) -> Reconstruction:
        """Two passes through the network."""

        def image(pixels: jax.Array) -> jax.Array:
            seen = (pixels - self.mean[self.visible])[None, :]
            plain, mirrored = network(self.layers, seen), network(self.layers, seen[:, self.mirror_visible])
            return self.mean + (plain + mirrored[:, self.mirror])[0] / 2

        return image


def network(layers: Layers, seen: jax.Array, masks: jax.Array | None = None) -> jax.Array:
    """Images `[n, d]` about the mean from visible pixels `[n, v]`; masks `[l, n, f]` multiply the layers."""
    kept = jnp.ones((layers.biases.shape[0], 1, 1), seen.dtype) if masks is None else masks
    hidden = jax.nn.gelu(seen @ layers.first + layers.biases[0][None, :]) * kept[0]
    for matrix, bias, mask in zip(layers.others, layers.biases[1:], kept[1:], strict=True):
        hidden = hidden + jax.nn.gelu(hidden @ matrix + bias[None, :]) * mask
    return seen @ layers.linear + hidden @ layers.last + layers.offset[None, :]


def fit_network(
    key: jax.Array,
    x: ArrayLike,
    mask: ArrayLike,
    *,
    ridge: float,
    width: int,
    num_layers: int,
    num_epochs: int,
    batch_size: int,
    dropout: float,
    optimizer: Optimizer,
    floor: float = 0.1,
    mirror: ArrayLike | None = None,
) -> tuple[NetworkHallucinator, FitInfo]:
    """A network on ridge regression for faces x `[n, d]`; on the host.

    ridge: that of `fit_ridge`, where the fit starts; the jitter in the report is the one of that regression
    width, num_layers: units of a layer, and layers
    num_epochs, batch_size: an epoch has `n // batch_size` steps over random batches
    dropout, optimizer: share of the units of a layer that a step leaves out; of optax, known to `jit` by its identity
    floor: the constant in the logarithm, in units of the median error of the ridge regression
    mirror: `[d]`, the place of each pixel in the mirrored image; a visible pixel needs a visible mirror image

    The objective of an epoch is the mean loss of its steps, each at the layers that the step starts from.
    """
    checks.typed_key(key)
    centered, mean, visible = checked(x, mask)
    _check_sizes(centered.shape[0], width, num_layers, num_epochs, batch_size, dropout, floor)
    places, among = _mirrored(mirror, visible, centered.shape[1])
    mean = (mean + mean[places]) / 2
    regression, report = fit_ridge(x, mask, ridge=ridge)
    faces = jnp.asarray(x, mean.dtype) - mean[None, :]
    power = scaling.exponent(faces)  # the steps of an optimizer have an absolute size: work in a unit near 1
    faces = scaling.shifted(faces, -power)
    seen = faces[:, visible]
    layers = _drawn(prng.stream(key, "weights"), regression.matrix, seen, width, num_layers)
    data = faces, visible, places, _least_error(faces, seen, regression.matrix, floor)
    steps: dict[str, Any] = {"num_epochs": num_epochs, "batch_size": batch_size, "optimizer": optimizer}
    layers, losses = _descend(prng.stream(key, "epochs"), layers, *data, dropout=dropout, **steps)
    status = fitinfo.worst(report.status, fitinfo.or_non_finite(Status.OK, (losses, layers)))
    objective = losses + 2 * math.log(2) * power.astype(losses.dtype)
    layers, mirrors = _in_unit_of_faces(layers, power), {"mirror": places, "mirror_visible": among}
    model = NetworkHallucinator(mean=mean, visible=visible, layers=layers, **mirrors)
    return model, fitinfo.iterative(status=status, num_iters=num_epochs, objective=objective, jitter=report.jitter)


def _check_sizes(
    n: int, width: int, num_layers: int, num_epochs: int, batch_size: int, dropout: float, floor: float
) -> None:
    counts = {"width": width, "num_layers": num_layers, "num_epochs": num_epochs, "batch_size": batch_size}
    for name, size in counts.items():
        checks.at_least(name, size, 1)
    checks.at_most("batch_size", batch_size, n, "the number of faces")
    checks.positive("floor", floor)
    checks.between("dropout", dropout, 0.0, 1.0, closed_high=False)


def _least_error(faces: jax.Array, seen: jax.Array, matrix: jax.Array, floor: float) -> jax.Array:
    """`floor` times the median error of the regression, but not below the rounding of the faces."""
    median = jnp.median(((seen @ matrix - faces) ** 2).mean(axis=1))
    energy = (faces**2).mean()
    rounding = machine.eps(faces.dtype) * jnp.where(energy > 0, energy, 1)
    return jnp.maximum(floor * median, rounding)


def _in_unit_of_faces(layers: Layers, power: jax.Array) -> Layers:
    """The layers for pixels themselves, from those for pixels in units of `2^power`; hidden values do not change."""
    return layers._replace(
        first=scaling.shifted(layers.first, -power),
        last=scaling.shifted(layers.last, power),
        offset=scaling.shifted(layers.offset, power),
    )


def _mirrored(mirror: ArrayLike | None, visible: jax.Array, d: int) -> tuple[jax.Array, jax.Array]:
    """The places of the pixels in the mirror image: of all pixels `[d]`, and among the visible ones `[v]`."""
    places = np.arange(d) if mirror is None else np.asarray(mirror)
    checks.shapes(mirror=(places, str(d)))
    places = np.asarray(checks.dense_labels("mirror", places, d))
    if (places[places] != np.arange(d)).any():
        raise ValueError("mirror must be its own inverse: the mirror image of the mirror image is the image.")
    seen = np.asarray(visible)
    if not np.array_equal(np.sort(places[seen]), seen):
        raise ValueError("mask must show a pixel where it shows its mirror image; leave mirror out for this mask.")
    return jnp.asarray(places, jnp.int32), jnp.asarray(np.searchsorted(seen, places[seen]), jnp.int32)


def _drawn(key: jax.Array, linear: jax.Array, seen: jax.Array, width: int, num_layers: int) -> Layers:
    """Random layers that keep the size of their input."""
    v, d = linear.shape
    first, others = jax.random.split(key)
    spread = jnp.sqrt((seen**2).mean())
    scale = 1 / (math.sqrt(v) * jnp.where(spread > 0, spread, 1))
    return Layers(
        linear=linear,
        first=scale * jax.random.normal(first, (v, width), linear.dtype),
        others=math.sqrt(2 / width) * jax.random.normal(others, (num_layers - 1, width, width), linear.dtype),
        biases=jnp.zeros((num_layers, width), linear.dtype),
        last=jnp.zeros((width, d), linear.dtype),
        offset=jnp.zeros(d, linear.dtype),
    )


@partial(jax.jit, static_argnames=("num_epochs", "batch_size", "dropout", "optimizer"))
def _descend(
    key: jax.Array,
    layers: Layers,
    faces: jax.Array,
    visible: jax.Array,
    mirror: jax.Array,
    floor: jax.Array,
    *,
    num_epochs: int,
    batch_size: int,
    dropout: float,
    optimizer: Optimizer,
) -> tuple[Layers, jax.Array]:
    """Steps over random batches; an epoch leaves out the faces that do not fill a batch."""
    n = faces.shape[0]
    num_batches = n // batch_size
    hidden = layers.biases.shape  # [l, f]

    def loss(layers: Layers, batch: jax.Array, kept: jax.Array) -> jax.Array:
        errors = ((network(layers, batch[:, visible], kept) - batch) ** 2).mean(axis=1)
        return jnp.log(errors + floor).mean()

    def step(state: Any, batch: Any) -> tuple[Any, jax.Array]:
        layers, memory = state
        rows, key = batch
        drop, flip = jax.random.split(key)
        chosen = faces[rows]
        is_mirrored = jax.random.bernoulli(flip, shape=(batch_size, 1))
        chosen = jnp.where(is_mirrored, chosen[:, mirror], chosen)
        kept = jax.random.bernoulli(drop, 1 - dropout, (hidden[0], batch_size, hidden[1])) / (1 - dropout)
        value, gradient = jax.value_and_grad(loss)(layers, chosen, kept.astype(faces.dtype))
        moves, memory = optimizer.update(gradient, memory, layers)
        return (jax.tree.map(jnp.add, layers, moves), memory), value

    def epoch(state: Any, key: jax.Array) -> tuple[Any, jax.Array]:
        shuffle, steps = jax.random.split(key)
        rows = jax.random.permutation(shuffle, n)[: num_batches * batch_size].reshape(num_batches, batch_size)
        state, values = jax.lax.scan(step, state, (rows, jax.random.split(steps, num_batches)))
        return state, values.mean()

    start: Any = (layers, optimizer.init(layers))
    (layers, _), losses = jax.lax.scan(epoch, start, jax.random.split(key, num_epochs))
    return layers, losses
