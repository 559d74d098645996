"""Hallucination by a network on top of ridge regression, fitted for the mean PSNR itself.

    h_1 = gelu(W_1 v + b_1)    h_l = h_(l-1) + gelu(W_l h_(l-1) + b_l)    image = mean + M'v + U'h_L + c

with v the visible pixels about their mean and M the ridge regression; U starts at zero, so the network starts as ridge
regression and learns what is left. What it learns are features of the eyes, where Fastfood draws them at random. It
minimises `mean log(e_i + floor)`, e_i the mean squared error of a face, with dropout, by an optimizer of the caller's.

Faces are nearly symmetric. With `mirror`, the places of the pixels in the mirrored image, every face is also trained
on as its mirror image, and a reconstruction is the mean of that of the pixels and of that of their mirror image.
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

__all__ = ["Weights", "fit_network"]


class Optimizer(Protocol):
    """Steps of gradient descent: any `optax.GradientTransformation`."""

    @property
    def init(self) -> Callable[[Any], Any]:
        """The first state, from the weights."""

    @property
    def update(self) -> Callable[[Any, Any, Any], tuple[Any, Any]]:
        """What to add to the weights and the next state, from the gradient, the state and the weights."""


class Weights(NamedTuple):
    """All that is learnt."""

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
    weights: Weights
    mirror: jax.Array = whole()  # int32 [d], the place of each pixel in the mirrored image; 0 to d - 1 without
    mirror_visible: jax.Array = whole()  # int32 [v], the same among the visible pixels

    def prepare(self) -> Reconstruction:
        """Two passes through the network."""

        def image(pixels: jax.Array) -> jax.Array:
            seen = (pixels - self.mean[self.visible])[None, :]
            plain, mirrored = network(self.weights, seen), network(self.weights, seen[:, self.mirror_visible])
            return self.mean + (plain + mirrored[:, self.mirror])[0] / 2

        return image


def network(weights: Weights, seen: jax.Array, masks: jax.Array | None = None) -> jax.Array:
    """Images `[n, d]` about the mean from visible pixels `[n, v]`; masks `[l, n, f]` multiply the layers."""
    kept = jnp.ones((weights.biases.shape[0], 1, 1), seen.dtype) if masks is None else masks
    hidden = jax.nn.gelu(seen @ weights.first + weights.biases[0][None, :]) * kept[0]
    for matrix, bias, mask in zip(weights.others, weights.biases[1:], kept[1:], strict=True):
        hidden = hidden + jax.nn.gelu(hidden @ matrix + bias[None, :]) * mask
    return seen @ weights.linear + hidden @ weights.last + weights.offset[None, :]


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
    """A network of `num_layers` layers of `width` for faces x `[n, d]`.

    The objective of an epoch is the mean loss of its steps, each at the weights that it starts from. `floor` is in
    units of the median error of the ridge regression that the fit starts from; the jitter is of that regression. A
    mask must show a pixel where it shows its mirror image. An epoch has `n // batch_size` steps, and an optimizer is
    known to `jit` by its identity. On the host.
    """
    checks.typed_key(key)
    centered, mean, visible = checked(x, mask)
    n = centered.shape[0]
    for name, size in (("width", width), ("num_layers", num_layers), ("num_epochs", num_epochs)):
        checks.at_least(name, size, 1)
    checks.at_least("batch_size", batch_size, 1)
    checks.at_most("batch_size", batch_size, n, "the number of faces")
    checks.positive("floor", floor)
    checks.between("dropout", dropout, 0.0, 1.0, closed_high=False)
    places, among = _mirrored(mirror, visible, centered.shape[1])
    mean = (mean + mean[places]) / 2
    start, begun = fit_ridge(x, mask, ridge=ridge)
    faces = jnp.asarray(x, mean.dtype) - mean[None, :]
    power = scaling.exponent(faces)  # steps of an optimizer have a size of their own: they are made in a unit near 1
    faces = scaling.shifted(faces, -power)
    seen = faces[:, visible]
    median = jnp.median(((seen @ start.matrix - faces) ** 2).mean(axis=1))
    energy = (faces**2).mean()
    tiny = machine.eps(mean.dtype) * jnp.where(energy > 0, energy, 1)
    weights = _drawn(prng.stream(key, "weights"), start.matrix, seen, width, num_layers)
    learnt, losses = _descend(
        prng.stream(key, "epochs"),
        weights,
        faces,
        visible,
        places,
        jnp.maximum(floor * median, tiny),
        num_epochs=num_epochs,
        batch_size=batch_size,
        dropout=dropout,
        optimizer=optimizer,
    )
    info = fitinfo.iterative(
        status=fitinfo.worst(begun.status, fitinfo.or_non_finite(Status.OK, (losses, learnt))),
        num_iters=num_epochs,
        objective=losses + 2 * math.log(2) * power.astype(losses.dtype),
        jitter=begun.jitter,
    )
    learnt = _in_unit_of_faces(learnt, power)
    model = NetworkHallucinator(mean=mean, visible=visible, weights=learnt, mirror=places, mirror_visible=among)
    return model, info


def _in_unit_of_faces(weights: Weights, power: jax.Array) -> Weights:
    """The weights for pixels themselves, of those for pixels in units of `2^power`: the hidden layers are the same."""
    return weights._replace(
        first=scaling.shifted(weights.first, -power),
        last=scaling.shifted(weights.last, power),
        offset=scaling.shifted(weights.offset, power),
    )


def _mirrored(mirror: ArrayLike | None, visible: jax.Array, d: int) -> tuple[jax.Array, jax.Array]:
    """The mirror image as places of pixels, of all `[d]` and among the visible ones `[v]`."""
    places = np.arange(d) if mirror is None else np.asarray(mirror)
    checks.shapes(mirror=(places, str(d)))
    places = np.asarray(checks.dense_labels("mirror", places, d))
    if (places[places] != np.arange(d)).any():
        raise ValueError("mirror must be its own inverse: the mirror image of the mirror image is the image.")
    seen = np.asarray(visible)
    if not np.array_equal(np.sort(places[seen]), seen):
        raise ValueError("mask must show a pixel where it shows its mirror image; leave mirror out for this mask.")
    return jnp.asarray(places, jnp.int32), jnp.asarray(np.searchsorted(seen, places[seen]), jnp.int32)


def _drawn(key: jax.Array, linear: jax.Array, seen: jax.Array, width: int, num_layers: int) -> Weights:
    """Random layers that keep the size of what goes through them."""
    v, d = linear.shape
    first, others = jax.random.split(key)
    spread = jnp.sqrt((seen**2).mean())
    scale = 1 / (math.sqrt(v) * jnp.where(spread > 0, spread, 1))
    return Weights(
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
    weights: Weights,
    faces: jax.Array,
    visible: jax.Array,
    mirror: jax.Array,
    floor: jax.Array,
    *,
    num_epochs: int,
    batch_size: int,
    dropout: float,
    optimizer: Optimizer,
) -> tuple[Weights, jax.Array]:
    """Steps over random batches, the rest of an epoch left out."""
    n = faces.shape[0]
    num_batches = n // batch_size
    layers = weights.biases.shape

    def loss(weights: Weights, batch: jax.Array, kept: jax.Array) -> jax.Array:
        errors = ((network(weights, batch[:, visible], kept) - batch) ** 2).mean(axis=1)
        return jnp.log(errors + floor).mean()

    def step(state: Any, batch: Any) -> tuple[Any, jax.Array]:
        weights, memory = state
        rows, key = batch
        drop, flip = jax.random.split(key)
        chosen = faces[rows]
        is_mirrored = jax.random.bernoulli(flip, shape=(batch_size, 1))
        chosen = jnp.where(is_mirrored, chosen[:, mirror], chosen)
        kept = jax.random.bernoulli(drop, 1 - dropout, (layers[0], batch_size, layers[1])) / (1 - dropout)
        value, gradient = jax.value_and_grad(loss)(weights, chosen, kept.astype(faces.dtype))
        moves, memory = optimizer.update(gradient, memory, weights)
        return (jax.tree.map(jnp.add, weights, moves), memory), value

    def epoch(state: Any, key: jax.Array) -> tuple[Any, jax.Array]:
        shuffle, steps = jax.random.split(key)
        rows = jax.random.permutation(shuffle, n)[: num_batches * batch_size].reshape(num_batches, batch_size)
        state, values = jax.lax.scan(step, state, (rows, jax.random.split(steps, num_batches)))
        return state, values.mean()

    start: Any = (weights, optimizer.init(weights))
    (weights, _), losses = jax.lax.scan(epoch, start, jax.random.split(key, num_epochs))
    return weights, losses
