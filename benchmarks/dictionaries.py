"""Row S3: a dictionary of Fastfood features from a stream of a million faces.

    python -m benchmarks.run --rows S3                        one batch of 4,000 faces, timed warm
    python -m benchmarks.dictionaries --faces 20000           a pass, in a process whose memory is watched
    python -m benchmarks.dictionaries --faces 8000 --atoms 15000 --batch 8000

A pass makes variations of 2,000 smooth random images, takes their features, codes them and moves the atoms. The second
form prints CPU seconds (with compilation, and of the batches after the first) and the peak memory.
"""

import argparse
import functools
import itertools
import json
import pathlib
import subprocess
import sys
import time
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from benchmarks import floors
from benchmarks.rows import Quantity, Row, seconds
from jaxface import hallucination
from jaxface.faces import variation
from jaxface.runtime import resources
from jaxface.sparse import ksvd, omp, online
from jaxface.sparse.dictionary import Dictionary

_SEED = 20260711
_SIDE, _VISIBLE_ROWS = 32, 13
_ATOMS, _BATCH, _SPARSITY = 4096, 4000, 6
_MILLION = 1_000_000
_ROOT = pathlib.Path(__file__).resolve().parents[1]


class Problem(NamedTuple):
    """Images, what is learnt from them, and the dictionary at the start."""

    images: np.ndarray  # [n, 32, 32]
    signals: Any  # of `feature_signals`
    state: online.State
    batch_size: int


def problem(atoms: int = _ATOMS, batch_size: int = _BATCH) -> Problem:
    """Smooth images: cosines whose sizes fall with their frequency."""
    rng = np.random.default_rng(_SEED)
    frequency = np.arange(_SIDE)
    waves = np.cos(np.pi * np.outer(frequency + 0.5, frequency) / _SIDE)
    size = 0.3 / (1 + frequency[:, None] + frequency[None, :]) ** 1.3
    drawn = rng.normal(size=(2000, _SIDE, _SIDE)) * size
    images = np.clip(0.5 + waves @ drawn @ waves.T, 0, 1).astype(np.float32)
    mask = np.arange(_SIDE * _SIDE) < _VISIBLE_ROWS * _SIDE
    key = jax.random.key(_SEED)
    rows = jnp.asarray(images.reshape(len(images), -1))
    learnt = hallucination.feature_signals(key, rows, mask, beta=10.0, expansion=5, quantile=0.999)
    start = ksvd.init(key, learnt.transform(_varied(images, _MILLION, atoms)), num_atoms=atoms)
    return Problem(images, learnt, online.init(start), batch_size)


@jax.jit
def _vary(images: jax.Array, numbers: jax.Array) -> jax.Array:
    def one(image: jax.Array, number: jax.Array) -> jax.Array:
        key = jax.random.fold_in(jax.random.key(_SEED), number)
        return variation.vary(key, image, flip=True, shift=1.0, scale=0.05, brightness=0.1)

    return jax.vmap(one)(images, numbers)


def _varied(images: np.ndarray, start: int, count: int) -> np.ndarray:
    """The faces `start` to `start + count` of the stream, as rows."""
    numbers = np.arange(start, start + count)
    return np.asarray(_vary(images[numbers % len(images)], numbers.astype(np.uint32))).reshape(count, -1)


def learn(data: Problem, num_batches: int = 1) -> online.State:
    """The state after some batches."""
    made = (_varied(data.images, i * data.batch_size, data.batch_size) for i in range(num_batches))
    return online.fit_stream(data.state, made, sparsity=_SPARSITY, features=data.signals.transform)[0]


def by_dense_products(data: Problem) -> np.ndarray:
    """The atoms after a batch, from the same features and codes by dense products in NumPy."""
    x = np.asarray(data.signals.transform(_varied(data.images, 0, data.batch_size)))
    atoms = np.asarray(data.state.atoms)
    found = omp.encode_batch(Dictionary(atoms=jnp.asarray(atoms.T)), x, sparsity=_SPARSITY)
    codes = np.zeros((len(x), len(atoms)), np.float32)
    np.put_along_axis(codes, np.asarray(found.indices), np.asarray(found.values), axis=1)
    weight = (codes**2).sum(axis=0)
    gap = codes.T @ (x - codes @ atoms)
    moved = atoms + np.where(weight > 0, gap.T / np.where(weight > 0, weight, 1), 0).T
    return np.asarray(moved / np.linalg.norm(moved, axis=1, keepdims=True))


def _same_atoms(_: Problem, ours: online.State, theirs: np.ndarray) -> str:
    """Atoms that were used; others became signals."""
    kept = np.asarray(ours.weight) > 0
    worst = float(np.abs(np.asarray(ours.atoms) - theirs)[kept].max())
    assert int(ours.num_cut) == 0, "the guard cut the step, which the peer does not know"
    assert worst < 1e-3, f"atoms differ by {worst:.1e}"
    return f"{kept.sum()} atoms that were used, to {worst:.0e}"


class Measured(NamedTuple):
    """A pass in a process of its own."""

    cpu: float  # seconds
    cpu_after_first: float  # of the batches after the first
    wall: float
    gigabytes: float


def measured(faces: int, atoms: int, batch_size: int) -> Measured:
    """A pass under `tools/measure.py`."""
    command = [sys.executable, "-m", "benchmarks.dictionaries", "--alone", "--faces", str(faces)]
    command += ["--atoms", str(atoms), "--batch", str(batch_size)]
    ended = subprocess.run(
        [sys.executable, str(_ROOT / "tools" / "measure.py"), *command],
        cwd=_ROOT, capture_output=True, text=True, check=False,
    )  # fmt: skip
    if ended.returncode:
        raise RuntimeError(ended.stderr)
    times = json.loads(ended.stdout.splitlines()[-1])
    return Measured(**times, gigabytes=float(ended.stderr.split("peak memory")[1].split()[0]) / 1024)


def _peak(_: Problem) -> float:
    return measured(3 * _BATCH, _ATOMS, _BATCH).gigabytes


def _alone(faces: int, atoms: int, batch_size: int) -> None:
    """The pass itself; the first batch is timed apart, because it compiles."""
    resources.keep_freed_memory()
    images, learnt, state, _ = problem(atoms, batch_size)
    made = (_varied(images, start, batch_size) for start in range(0, faces, batch_size))
    learn_from = functools.partial(online.fit_stream, sparsity=_SPARSITY, features=learnt.transform)
    begin, begin_cpu = time.perf_counter(), time.process_time()
    state = jax.block_until_ready(learn_from(state, itertools.islice(made, 1))[0])
    first = time.process_time() - begin_cpu
    if faces > batch_size:
        state = jax.block_until_ready(learn_from(state, made)[0])
    cpu = time.process_time() - begin_cpu
    print(json.dumps({"cpu": cpu, "cpu_after_first": cpu - first, "wall": time.perf_counter() - begin}))


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.dictionaries", description=__doc__)
    parser.add_argument("--faces", type=int, default=20_000)
    parser.add_argument("--atoms", type=int, default=_ATOMS)
    parser.add_argument("--batch", type=int, default=_BATCH)
    parser.add_argument("--alone", action="store_true", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.alone:
        _alone(arguments.faces, arguments.atoms, arguments.batch)
        return
    found = measured(arguments.faces, arguments.atoms, arguments.batch)
    print(f"pass      {found.cpu:6.1f} CPU-s, {found.wall:6.1f} s, {found.gigabytes:.2f} GB")
    if arguments.faces > arguments.batch:
        rate = found.cpu_after_first / (arguments.faces - arguments.batch)
        print(f"a million {rate * _MILLION:6.0f} CPU-s, as after the first batch")


ROWS = (
    Row(
        name="S3",
        work=f"a batch of a stream: variations of {_BATCH:,} faces, Fastfood 5x (7,680 dims), codes, {_ATOMS:,} atoms",
        peer="the same features and codes, then the step by dense products in NumPy",
        dtype="float32",
        data=problem,
        ours=functools.partial(learn, num_batches=1),
        theirs=by_dense_products,
        agree=_same_atoms,
        target=seconds(at_most=30 * 60 * _BATCH / _MILLION),
        floor=lambda data: floors.dense_codes(jnp.ones((data.batch_size, data.state.atoms.shape[1])), data.state.atoms),
        floor_work="correlations of a batch with all atoms, and the Gram matrix of the atoms",
        is_weighed=False,  # the limits have the memory of a pass
        quantities=(Quantity("peak memory of a pass", "GB", _peak, 2.0),),
    ),
)


if __name__ == "__main__":
    main()
