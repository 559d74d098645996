"""Dictionaries of a kernel: the burden of n x n kernel values, and the classifier that they are in the paper's [29].

The burden is measured: kernel K-SVD and Fastfood DW-KSVD learn as many atoms from the same faces, of which there are
more and more. As a classifier every person has a dictionary of some photos, and a photo is of the person whose
dictionary leaves the least of it.
"""

import time
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from ml_collections import ConfigDict

from experiments.common import fields
from experiments.hallucinate import methods
from experiments.hallucinate.faces import Faces, FoldFaces
from jaxface import features, hallucination, sparse
from jaxface.core import checks, prng
from jaxface.linalg import gram
from jaxface.metrics import intervals
from jaxface.reports.html import Section
from jaxface.reports.tables import Cell, Estimate, Table, intervals_over, percent_interval
from jaxface.sparse import kernel_ksvd, ksvd
from jaxface.sparse.dictionary import Dictionary, KernelDictionary

FEATURES = "fastfood_5x"  # of the settings: the features that are compared with a kernel
KERNELS: dict[str, Callable[[jax.Array], gram.Kernel]] = {  # of the median distance
    "gaussian, half": lambda median: gram.gaussian(bandwidth=0.5 * median),
    "gaussian": lambda median: gram.gaussian(bandwidth=median),
    "polynomial": lambda _: gram.polynomial(degree=3),
}
_TITLES = {
    "gaussian, half": "Gaussian kernel, half the median distance",
    "gaussian": "Gaussian kernel, the median distance",
    "polynomial": "polynomial kernel of degree 3",
}
NEAREST, ORDINARY = "nearest neighbour", "dictionaries"


def check(config: ConfigDict) -> None:
    """Refuses values that no fit can use."""
    names = ("sizes", "num_atoms", "sparsity", "num_iters", "num_people", "num_train", "class_atoms", "class_sparsity")
    fields.counts(config, *names, "num_splits", section="kernels")
    fields.words(config, "kernels", KERNELS, section="kernels")
    checks.at_most("config.kernels.num_atoms", config.kernels.num_atoms, min(config.kernels.sizes), "the least size")
    checks.at_most("config.kernels.class_atoms", config.kernels.class_atoms, config.kernels.num_train, "num_train")
    checks.at_most(
        "config.kernels.class_sparsity", config.kernels.class_sparsity, config.kernels.class_atoms, "class_atoms"
    )


def burden(config: ConfigDict, fold: FoldFaces, mask: np.ndarray) -> dict[str, np.ndarray]:
    """Seconds of CPU time of both fits by number of faces, the bytes of their largest matrices."""
    key = prng.stream(jax.random.key(config.seed), "burden")
    found: dict[str, list[float]] = {
        name: [] for name in ("size", "kernel seconds", "feature seconds", "feature bytes")
    }
    for size in config.kernels.sizes:
        if size > len(fold.train):
            break
        x = jnp.asarray(fold.train[np.random.default_rng((config.seed, 11)).permutation(len(fold.train))[:size]])
        by_features, num_bytes = _feature_fit(config, key, x, mask)
        found["size"].append(size)
        found["kernel seconds"].append(_seconds(_kernel_fit(config, key, x)))
        found["feature seconds"].append(_seconds(by_features))
        found["feature bytes"].append(num_bytes)
    return {name: np.asarray(values) for name, values in found.items()}


def _seconds(fit: Callable[[], Any]) -> float:
    """CPU time of the second fit: the first one compiles."""
    jax.block_until_ready(fit())
    begin = time.process_time()
    jax.block_until_ready(fit())
    return time.process_time() - begin


def _kernel_fit(config: ConfigDict, key: jax.Array, x: jax.Array) -> Callable[[], Any]:
    kernel = gram.gaussian(bandwidth=features.median_distance(key, x))
    start = kernel_ksvd.init(key, kernel, x, num_atoms=config.kernels.num_atoms)
    sizes = {"sparsity": config.kernels.sparsity, "num_iters": config.kernels.num_iters}
    return partial(kernel_ksvd.fit, start, **sizes)


def _feature_fit(config: ConfigDict, key: jax.Array, x: jax.Array, mask: np.ndarray) -> tuple[Callable[[], Any], int]:
    settings = methods.with_functions(methods.arguments(config.settings[FEATURES]))
    maps = {name: settings[name] for name in ("beta", "expansion", "quantile", "form")}
    signals = hallucination.feature_signals(key, x, mask, **maps)

    def fit() -> Any:
        rows = signals.transform(x)
        start = ksvd.init(key, rows, num_atoms=config.kernels.num_atoms)
        return ksvd.fit(rows, start, sparsity=config.kernels.sparsity, num_iters=config.kernels.num_iters)

    return fit, signals.transform(x).nbytes


def classified(config: ConfigDict, data: Faces) -> dict[str, np.ndarray]:
    """Errors of naming people `[splits]` by method, on random splits of the photos of people with enough of them."""
    settings = config.kernels
    people, counts = np.unique(data.ids, return_counts=True)
    chosen = people[counts > settings.num_train][: settings.num_people]
    checks.at_least("people with more photos than config.kernels.num_train", chosen.size, 2)
    rng = np.random.default_rng((config.seed, 12))
    unit = data.x / np.linalg.norm(data.x, axis=1, keepdims=True)
    errors: dict[str, list[float]] = {}
    for split in range(settings.num_splits):
        drawn = [rng.permutation(np.flatnonzero(data.ids == person)) for person in chosen]
        train = jnp.asarray(np.stack([unit[rows[: settings.num_train]] for rows in drawn]))
        test = jnp.asarray(np.concatenate([unit[rows[settings.num_train :]] for rows in drawn]))
        labels = np.repeat(np.arange(chosen.size), [len(rows) - settings.num_train for rows in drawn])
        key = prng.stream(jax.random.key(config.seed), f"split {split}")
        for name, left in residuals(settings, key, train, test).items():
            errors.setdefault(name, []).append(float((np.asarray(left).argmin(axis=1) != labels).mean()))
    share = (np.mean([len(rows) for rows in drawn]) - settings.num_train) / settings.num_train
    numbers = {"num_people": np.asarray(chosen.size), "test_to_train": np.asarray(share)}
    return {f"errors/{name}": np.asarray(values) for name, values in errors.items()} | numbers


def residuals(config: ConfigDict, key: jax.Array, train: jax.Array, test: jax.Array) -> dict[str, jax.Array]:
    """What is left of test images `[q, d]` by every person `[q, c]`, of training images `[c, n, d]`, by method."""
    keys = jax.random.split(key, len(train))
    sizes = {"num_atoms": config.class_atoms, "sparsity": config.class_sparsity, "num_iters": config.num_iters}
    median = features.median_distance(key, train.reshape(-1, train.shape[-1]))
    distances = ((test[:, None, None, :] - train[None]) ** 2).sum(axis=-1)
    found = {NEAREST: distances.min(axis=2), ORDINARY: _ordinary(keys, train, test, **sizes)}
    for name in config.kernels:
        found[f"{ORDINARY}, {_TITLES[name]}"] = _by_kernel(keys, KERNELS[name](median), train, test, **sizes)
    return found


@partial(jax.jit, static_argnames=("num_atoms", "sparsity", "num_iters"))
def _ordinary(
    keys: jax.Array, train: jax.Array, test: jax.Array, *, num_atoms: int, sparsity: int, num_iters: int
) -> jax.Array:
    def fit(key: jax.Array, rows: jax.Array) -> Dictionary:
        return ksvd.fit(rows, ksvd.init(key, rows, num_atoms=num_atoms), sparsity=sparsity, num_iters=num_iters)[0]

    dictionaries = jax.vmap(fit)(keys, train)
    of_one = jax.vmap(partial(sparse.residual, sparsity=sparsity), in_axes=(0, None))
    return jax.lax.map(partial(of_one, dictionaries), test)


@partial(jax.jit, static_argnames=("num_atoms", "sparsity", "num_iters"))
def _by_kernel(
    keys: jax.Array,
    kernel: gram.Kernel,
    train: jax.Array,
    test: jax.Array,
    *,
    num_atoms: int,
    sparsity: int,
    num_iters: int,
) -> jax.Array:
    def fit(key: jax.Array, rows: jax.Array) -> KernelDictionary:
        start = kernel_ksvd.init(key, kernel, rows, num_atoms=num_atoms)
        return kernel_ksvd.fit(start, sparsity=sparsity, num_iters=num_iters)[0]

    dictionaries = jax.vmap(fit)(keys, train)
    of_one = jax.vmap(partial(sparse.kernel_residual, sparsity=sparsity), in_axes=(0, None))
    return jax.lax.map(partial(of_one, dictionaries), test)


def section(config: ConfigDict, measured: Mapping[str, np.ndarray], named: Mapping[str, np.ndarray]) -> Section:
    """The section of the report."""
    return Section(
        "Dictionaries of a kernel",
        (
            "Kernel K-SVD needs all kernel values of the training images, and a fit holds three such matrices. The "
            "features of Fastfood grow with the number of images, their maps do not; from a stream features are not "
            "kept either. CPU time of a fit, without compilation; beyond the measured sizes only the bytes are known.",
            _burden_table(config, measured),
            "The paper's reference [29] names people by such dictionaries: every person has one, learnt from "
            f"{config.kernels.num_train} photos, with {config.kernels.class_atoms} atoms and "
            f"{config.kernels.class_sparsity} a code, and a photo is of the person whose dictionary leaves the least.",
            _class_table(named),
        ),
    )


def _burden_table(config: ConfigDict, measured: Mapping[str, np.ndarray]) -> Table:
    nothing = Estimate(float("nan"))
    rows: list[tuple[Cell, ...]] = []
    columns = ("size", "kernel seconds", "feature seconds", "feature bytes")
    for size, by_kernel, by_features, num_bytes in zip(*(measured[name] for name in columns), strict=True):
        matrices = 3 * kernel_ksvd.gram_bytes(int(size), dtype=np.float32)
        rows.append(
            (int(size), Estimate(by_kernel, digits=2), matrices / 1e6, Estimate(by_features, digits=2), num_bytes / 1e6)
        )
    each = measured["feature bytes"][-1] / measured["size"][-1] if len(measured["size"]) else float("nan")
    for size in (100_000, 1_000_000):
        matrices = 3 * kernel_ksvd.gram_bytes(size, dtype=np.float32)
        rows.append((size, nothing, matrices / 1e6, nothing, size * each / 1e6))
    return Table(
        ("training images", "kernel K-SVD, s", "its matrices, MB", "on features, s", "the features, MB"),
        rows,
        f"{config.kernels.num_atoms} atoms, {config.kernels.sparsity} a code, {config.kernels.num_iters} sweeps",
    )


def _class_table(named: Mapping[str, np.ndarray]) -> Table:
    rows: list[tuple[Cell, ...]] = []
    for name, values in _errors(named).items():
        interval = intervals.split_interval(values, test_to_train=float(named["test_to_train"]), within=intervals.RATE)
        rows.append((name, percent_interval(interval)))
    caption = f"{int(named['num_people'])} people; {intervals_over(len(values), 'random splits')}"
    return Table(("method", "error %"), rows, caption)


def _errors(named: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
    return {name.removeprefix("errors/"): values for name, values in named.items() if name.startswith("errors/")}


def headline(measured: Mapping[str, np.ndarray], named: Mapping[str, np.ndarray]) -> dict[str, Any]:
    """Mean errors by method, and the CPU time of the largest fits."""
    errors = {name: float(values.mean()) for name, values in _errors(named).items()}
    if not len(measured["size"]):
        return {"errors": errors}
    seconds = {name: float(measured[name][-1]) for name in ("kernel seconds", "feature seconds")}
    return {"errors": errors, "faces": int(measured["size"][-1]), **seconds}
