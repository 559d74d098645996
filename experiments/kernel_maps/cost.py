"""Time and memory against the dimension, beside a dense product, measured while the study runs."""

import statistics
import time
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from ml_collections import ConfigDict

from jaxface.features import fastfood, feature_matrix, forms, kitchen_sinks, sorf
from jaxface.features.forms import Form
from jaxface.runtime.log import progress

DENSE = "dense product"
STRUCTURED: dict[str, Any] = {"fastfood": fastfood.init, "sorf": sorf.init}
_LONG_ENOUGH = 0.02  # seconds that a repeat takes at least
WORK = {"projection": forms.identity, "features": forms.sin}


def against_dimension(config: ConfigDict) -> dict[str, np.ndarray]:
    """Seconds `[dims, num_repeats]` of every map for the projection V x and for the sine features, and bytes `[dims]`.

    All maps take turns, so that other work of the machine affects them alike. The dense product is one GEMM of all
    vectors, the fastest way to that product on a CPU.
    """
    settings = config.cost
    seconds: dict[str, list[list[float]]] = {}
    sizes: dict[str, list[int]] = {}
    for d in progress(settings.dims, "dimensions", total=len(settings.dims)):
        key = jax.random.key(config.seed)
        x = jax.random.normal(key, (settings.num_vectors, d), jnp.float32) / d**0.5
        drawing = {"input_dim": d, "num_features": settings.expansion * d, "bandwidth": 1.0, "dtype": jnp.float32}
        dense = kitchen_sinks.init(key, **drawing)
        maps = {name: init(key, **drawing) for name, init in STRUCTURED.items()}
        runs: dict[str, Callable[[], jax.Array]] = {}
        for work, form in WORK.items():
            runs[f"{DENSE}/{work}"] = partial(_dense, dense.frequencies, x, form=form)
            runs |= {f"{name}/{work}": partial(feature_matrix, maps[name], x, form=form) for name in maps}
        for name, values in _in_turns(runs, settings.num_repeats).items():
            seconds.setdefault(name, []).append(values)
        for name, params in ({DENSE: dense} | maps).items():
            sizes.setdefault(f"bytes/{name}", []).append(sum(leaf.nbytes for leaf in jax.tree.leaves(params)))
    return {name: np.array(values) for name, values in (seconds | sizes).items()}


def crossover(dims: np.ndarray, ratio: np.ndarray) -> int | None:
    """The least dimension from which on the dense product takes longer, of those tried; None when there is none."""
    slower = np.flatnonzero(ratio < 1)
    first = slower.max() + 1 if len(slower) else 0
    return int(dims[first]) if first < len(dims) else None


def ratios(arrays: Mapping[str, np.ndarray], name: str, work: str) -> np.ndarray:
    """Time of the dense product over that of a map, `[dims, num_repeats]`."""
    return arrays[f"{DENSE}/{work}"] / arrays[f"{name}/{work}"]


def _in_turns(runs: dict[str, Callable[[], jax.Array]], num_repeats: int) -> dict[str, list[float]]:
    """Seconds of each run, warm, all in turn."""
    for run in runs.values():
        _seconds(run)  # compiles
    calls = {name: max(1, round(_LONG_ENOUGH / _seconds(run))) for name, run in runs.items()}
    seconds: dict[str, list[float]] = {name: [] for name in runs}
    for _ in range(num_repeats):
        for name, run in runs.items():
            seconds[name].append(statistics.median(_seconds(run) for _ in range(calls[name])))
    return seconds


def _seconds(run: Callable[[], jax.Array]) -> float:
    begin = time.perf_counter()
    jax.block_until_ready(run())
    return time.perf_counter() - begin


@partial(jax.jit, static_argnames="form")
def _dense(frequencies: jax.Array, x: jax.Array, *, form: Form) -> jax.Array:
    return form(x @ frequencies.T)
