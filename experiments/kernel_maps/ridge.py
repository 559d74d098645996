"""Identification by kernel ridge regression: with the exact kernel, and with its estimates by maps of growing size.

With one-hot targets U of the training images the scores of x are `k(x, X) (K + ridge I)^-1 U`; the largest score names
x. On features this is plain ridge regression; the form with inner products is smaller for few images.
"""

from collections.abc import Iterator
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from ml_collections import ConfigDict

from experiments.kernel_maps import estimates
from experiments.kernel_maps.estimates import Form
from jaxface.core import prng
from jaxface.data import splits
from jaxface.data.splits import Split
from jaxface.features import MAPS, choose_bandwidth, fastfood, median_distance
from jaxface.linalg import gram, psd
from jaxface.runtime.log import progress

PIXELS, GAUSSIAN, SINE = "ridge on pixels", "exact Gaussian kernel", "exact kernel of the sine"
SINE_MAP = "sine of fastfood, invertible"


class Problem(NamedTuple):
    """Faces centred on the training images of a split, and the one-hot targets of these."""

    x: jax.Array  # [n, d]
    ids: np.ndarray  # int32 [n]
    targets: jax.Array  # [train, c]
    split: Split


class Fit(NamedTuple):
    """The settings that held-out images prefer, and the answers on probes with them."""

    kernel: int
    ridge: float
    answers: np.ndarray  # int32 [q]


def identification(config: ConfigDict, x: jax.Array, ids: np.ndarray) -> dict[str, np.ndarray]:
    """Errors `[splits]` of the exact kernels; errors of the maps and their agreement with them `[splits, sizes]`.

    Bandwidth and ridge are chosen with the exact kernel on held-out images, and every split draws its own maps. The
    sine has the bandwidth at which its map can be inverted.
    """
    found: dict[str, list[Any]] = {}
    drawn = random_problems(config, x, ids)
    for number, problem in enumerate(progress(drawn, "splits", total=config.ridge.num_splits)):
        key = jax.random.fold_in(jax.random.key(config.seed), number)
        for name, value in _of_problem(config.ridge, problem, key).items():
            found.setdefault(name, []).append(value)
    return {name: np.stack(values) for name, values in found.items()}


def random_problems(config: ConfigDict, x: jax.Array, ids: np.ndarray) -> Iterator[Problem]:
    """`num_train` training and `num_held_out` held-out images of everybody; the rest are probes."""
    settings, rng = config.ridge, np.random.default_rng(config.seed)
    most = settings.num_train + settings.num_held_out
    for part in splits.k_shot(ids, num_train=most, rng=rng, num_splits=settings.num_splits):
        seen = np.flatnonzero(part == 0)
        is_held_out = splits.k_shot(ids[seen], num_train=settings.num_train, rng=rng)[0] == 1
        train = seen[~is_held_out]
        centered = x - x[train].mean(axis=0)[None, :]
        targets = jax.nn.one_hot(ids[train], int(ids.max()) + 1, dtype=x.dtype)
        yield Problem(centered, ids, targets, Split(train, np.flatnonzero(part == 1), seen[is_held_out]))


def _of_problem(settings: ConfigDict, problem: Problem, key: jax.Array) -> dict[str, Any]:
    (x, _, _, split), draw = problem, prng.stream(key, "invertible")
    scales = np.asarray(settings.bandwidths) * float(median_distance(prng.stream(key, "median"), x[split.train]))
    invertible = choose_bandwidth(
        estimates.map_key(draw), x[split.train], init=fastfood.init, num_features=max(settings.sizes),
        quantile=settings.quantile,
    )  # fmt: skip
    gaussians = jnp.stack([gram.gaussian(bandwidth=scale)(x, x) for scale in scales])
    exact = {
        PIXELS: _best(settings, problem, (x @ x.T)[None]),
        GAUSSIAN: _best(settings, problem, gaussians),
        SINE: _best(settings, problem, estimates.sine_kernel(x / invertible, x / invertible)[None]),
    }
    found: dict[str, Any] = {name: _error(fit.answers, problem) for name, fit in exact.items()}
    found["sine and pixels agree"] = (exact[SINE].answers == exact[PIXELS].answers).mean()
    found["test to train"] = split.test_to_train
    found["bandwidth"] = settings.bandwidths[exact[GAUSSIAN].kernel]
    scale = scales[exact[GAUSSIAN].kernel]
    for kind in MAPS:
        found |= _estimated(settings, problem, prng.stream(key, kind), kind, estimates.cos_sin, scale, exact[GAUSSIAN])
    sine = _estimated(settings, problem, draw, "fastfood", estimates.sin, invertible, exact[SINE])
    return found | {name.replace("fastfood", SINE_MAP): value for name, value in sine.items()}


def _estimated(
    settings: ConfigDict, problem: Problem, key: jax.Array, kind: str, form: Form, bandwidth: np.floating, exact: Fit
) -> dict[str, np.ndarray]:
    """Error and agreement with the exact kernel `[sizes]` of one draw of a map."""
    grams = estimates.growing(key, problem.x / bandwidth, init=MAPS[kind], form=form, sizes=tuple(settings.sizes))
    answers = np.asarray(_answers(grams, problem.targets, problem.split.train, problem.split.test, exact.ridge))
    return {
        f"error/{kind}": _error(answers, problem),
        f"agreement/{kind}": (answers == exact.answers[None, :]).mean(axis=1),
    }


def _best(settings: ConfigDict, problem: Problem, kernels: jax.Array) -> Fit:
    """The kernel `[k, n, n]` and the ridge with the least error on held-out images; the first of several."""
    _, ids, targets, (train, test, held_out) = problem
    truth = ids[held_out]
    rates = [
        (np.asarray(_answers(kernels, targets, train, held_out, ridge)) != truth).mean(axis=1)
        for ridge in settings.ridges
    ]
    place, kernel = np.unravel_index(np.argmin(rates), np.shape(rates))
    ridge = settings.ridges[place]
    answers = _answers(kernels[kernel][None], targets, train, test, ridge)
    return Fit(int(kernel), ridge, np.asarray(answers)[0])


def _error(answers: np.ndarray, problem: Problem) -> np.ndarray:
    return (answers != problem.ids[problem.split.test]).mean(axis=-1)


@jax.jit
def _answers(
    grams: jax.Array, targets: jax.Array, train: jax.Array, queries: jax.Array, ridge: jax.Array | float
) -> jax.Array:
    """Who is on the rows `queries`, `[k, q]`, by each of the kernel matrices `[k, n, n]`; ridge in mean eigenvalues."""

    def answers(k: jax.Array) -> jax.Array:
        return (k[queries][:, train] @ psd.solve(k[train][:, train], targets, ridge=ridge)).argmax(axis=1)

    return jax.lax.map(answers, grams)
