"""Training through the ratio: every step sees some photos of some people, as pairs and as sets.

The loss is the cross-entropy of `losses.pairwise_logistic` over all pairs of the batch, and over every person's last
photo against the set of everybody's other photos. Encoder and Joint Bayes model move together.
"""

from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import optax
from ml_collections import ConfigDict

from experiments.encoder import network
from experiments.encoder.network import Encoder
from jaxface import joint_bayes, losses
from jaxface.core.blocks import each_row
from jaxface.joint_bayes.model import FreeJointBayes


class Parameters(NamedTuple):
    """Everything that is learned."""

    encoder: Encoder
    model: FreeJointBayes


def ratios(parameters: Parameters, images: jax.Array) -> jax.Array:
    """Log-likelihood ratios `[n, n]` of all pairs of photos `[n, h, w]`; differentiable in everything."""
    z = each_row(network.encode, parameters.encoder, images)
    model = joint_bayes.constrained(parameters.model)
    form = joint_bayes.quadratic_form(model)
    centered = z - model.mean[None, :]
    squares = ((centered @ form.a) * centered).sum(axis=1)
    return form.constant + (squares[:, None] + squares[None, :] + centered @ form.b @ centered.T) / 2


def set_ratios(parameters: Parameters, images: jax.Array) -> jax.Array:
    """Ratios `[people, people]` of photos `[people, k, h, w]`: the first k - 1 of each against the last of each."""
    z = jax.vmap(jax.vmap(network.encode, in_axes=(None, 0)), in_axes=(None, 0))(parameters.encoder, images)
    model = joint_bayes.constrained(parameters.model)

    def against(enrolled: jax.Array) -> jax.Array:
        return jax.vmap(lambda probe: joint_bayes.llr_of_sets(model, enrolled, probe[None, :]))(z[:, -1])

    return jax.vmap(against)(z[:, :-1])


def loss(parameters: Parameters, images: jax.Array, prior: float) -> jax.Array:
    """Mean of the losses of pairs and of sets, in nats, of photos `[people, k, h, w]`."""
    people, k = images.shape[:2]
    ids = np.repeat(np.arange(people), k)
    first, second = np.triu_indices(people * k, 1)
    of_pairs = ratios(parameters, images.reshape(people * k, *images.shape[2:]))[first, second]
    of_sets = set_ratios(parameters, images).reshape(-1)
    cost = partial(losses.pairwise_logistic, prior=prior)
    return (cost(of_pairs, ids[first] == ids[second]) + cost(of_sets, np.eye(people, dtype=bool).reshape(-1))) / 2


def train(
    config: ConfigDict, start: Parameters, images: np.ndarray, ids: np.ndarray, rng: np.random.Generator
) -> tuple[list[Parameters], np.ndarray]:
    """The parameters after every segment, those of the start first, and the loss of every step."""
    optimizer = optax.adam(config.learning_rate)
    parameters, state = start, optimizer.init(start)
    path, trace = [start], []
    for _ in range(config.num_segments):
        for _ in range(config.steps_a_segment):
            batch = jnp.asarray(_batch(config, images, ids, rng))
            parameters, state, value = _step(optimizer, config.prior, parameters, state, batch)
            trace.append(value)
        path.append(parameters)
    return path, np.asarray(jnp.stack(trace))


def _batch(config: ConfigDict, images: np.ndarray, ids: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Photos `[people, k, h, w]` at random, of people with k photos or more."""
    k = config.images_a_person
    people = np.flatnonzero(np.bincount(ids) >= k)
    chosen = rng.choice(people, config.people_a_batch, replace=False)
    return np.stack([images[rng.choice(np.flatnonzero(ids == person), k, replace=False)] for person in chosen])


@partial(jax.jit, static_argnums=(0, 1))
def _step(
    optimizer: optax.GradientTransformation, prior: float, parameters: Parameters, state: Any, images: jax.Array
) -> tuple[Parameters, Any, jax.Array]:
    value, gradient = jax.value_and_grad(loss)(parameters, images, prior)
    updates, state = optimizer.update(gradient, state, parameters)
    return optax.apply_updates(parameters, updates), state, value
