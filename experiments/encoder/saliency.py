"""What the ratio of a pair sees: its derivative by every pixel of both photos."""

import jax
import numpy as np

from experiments.encoder import training
from experiments.encoder.training import Parameters

NUM_SHOWN = 4  # pairs of each kind


def of_pair(parameters: Parameters, pair: jax.Array) -> tuple[jax.Array, jax.Array]:
    """The ratio of two photos `[2, h, w]` in nats, and its derivative by every pixel `[2, h, w]`."""
    return jax.value_and_grad(lambda images: training.ratios(parameters, images)[0, 1])(pair)


def shown(parameters: Parameters, images: np.ndarray, ids: np.ndarray) -> dict[str, np.ndarray]:
    """Pairs with their derivatives: of one person with the least ratios, and of two with the largest.

    `pairs` `[2 NUM_SHOWN, 4, h, w]` holds both photos, each followed by its derivative.
    """
    scores = np.asarray(jax.jit(training.ratios)(parameters, images))
    first, second = np.triu_indices(len(ids), 1)
    values, same = scores[first, second], ids[first] == ids[second]
    hard = [np.flatnonzero(same)[np.argsort(values[same])], np.flatnonzero(~same)[np.argsort(-values[~same])]]
    chosen = np.concatenate([each[:NUM_SHOWN] for each in hard])
    pairs = images[np.stack([first[chosen], second[chosen]], axis=1)]
    ratio, slopes = jax.jit(jax.vmap(of_pair, in_axes=(None, 0)))(parameters, pairs)
    slopes = np.asarray(slopes) / np.abs(slopes).max(axis=(1, 2, 3), keepdims=True)
    columns = np.stack([pairs[:, 0], slopes[:, 0], pairs[:, 1], slopes[:, 1]], axis=1)
    return {"pairs": columns, "pair ratios": np.asarray(ratio), "pair is same": same[chosen]}
