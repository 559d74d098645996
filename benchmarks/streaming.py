"""Rows S1: Joint Bayes from embeddings on disk that do not fit into memory, with known truth.

    python -m benchmarks.run --rows S1                                       a fifteenth of the images, timed warm
    python -m benchmarks.streaming --images 5800000 --people 85000           the size of MS1M, once: 6 GB of disk
    python -m benchmarks.streaming --images 5800000 --people 85000 --processes 2

The second form makes the embeddings in a temporary folder, fits them in processes of their own, whose memory it
watches, and then does the bare products: X'X of all batches, and three products with the rows of the E-step in each
iteration. It prints CPU seconds of both (of one process without compilation, of several with it), the peak memory and
the errors of the fit.
"""

import argparse
import functools
import json
import pathlib
import socket
import subprocess
import sys
import tempfile
import time
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import scipy.linalg  # noqa: F401 so that its BLAS is there to be limited
import threadpoolctl

from benchmarks.rows import Quantity, Row, cost
from jaxface import joint_bayes
from jaxface.data import stream
from jaxface.runtime import resources

_ITERATIONS, _BATCH, _DIM = 20, 65_536, 512
_NOISE = 0.49  # variance of an image about its person in every direction
_SEED = 20260711
_ROOT = pathlib.Path(__file__).resolve().parents[1]


class Made(NamedTuple):
    """Embeddings on disk and their truth."""

    folder: pathlib.Path
    images: int
    people: int
    keep: Any = None  # a temporary folder lives as long as this


class Fitted(NamedTuple):
    """A model and the number of rows that an E-step read."""

    model: joint_bayes.JointBayes
    num_rows: int


def make(folder: pathlib.Path, images: int, people: int) -> Made:
    """Embeddings `[images, 512]` in float16 with people in random order; an ordinary spread of images a person."""
    rng = np.random.default_rng(_SEED)
    counts = 1 + rng.multinomial(images - people, rng.dirichlet(np.full(people, 4.0)))
    ids = rng.permutation(np.repeat(np.arange(people, dtype=np.int32), counts))
    means = 0.3 + rng.standard_normal((people, _DIM), np.float32) * np.sqrt(_identity())
    np.save(folder / "labels.npy", ids)
    shape = (images, _DIM)
    with (folder / "features.npy").open("wb") as file:
        np.lib.format.write_array_header_1_0(file, {"descr": "<f2", "fortran_order": False, "shape": shape})
        for start in range(0, images, _BATCH):
            of_batch = ids[start : start + _BATCH]
            x = rng.standard_normal((len(of_batch), _DIM), np.float32) * np.float32(np.sqrt(_NOISE)) + means[of_batch]
            x.astype(np.float16).tofile(file)
    return Made(folder, images, people)


def _identity() -> np.ndarray:
    """Variances of people `[512]`."""
    return np.linspace(0.2, 0.8, _DIM, dtype=np.float32)


def fit(made: Made) -> Fitted:
    """The pass over the disk, the start from moments, the grouping, and all iterations."""
    source = stream.from_npy(made.folder / "features.npy", np.load(made.folder / "labels.npy"))
    stats = joint_bayes.collect_stream(source, num_people=made.people, batch_size=_BATCH)
    model, info = joint_bayes.fit(stats, joint_bayes.init(stats), num_iters=_ITERATIONS)
    assert np.isfinite(info.objective).all(), "the fit is not finite"
    return Fitted(model, num_rows(np.asarray(stats.count)))


def compile_programs(made: Made) -> None:
    """A fit with the sums of one batch and the numbers of images of all: the same programs and few reads."""
    ids = np.load(made.folder / "labels.npy")
    source = stream.from_npy(made.folder / "features.npy", ids)
    first = source._replace(num_rows=_BATCH, ids=source.ids[:_BATCH])
    stats = joint_bayes.collect_stream(first, num_people=made.people, batch_size=_BATCH)
    stats = stats._replace(count=jnp.asarray(np.bincount(ids), stats.count.dtype))
    jax.block_until_ready(joint_bayes.fit(stats, joint_bayes.init(stats), num_iters=_ITERATIONS))


def num_rows(count: np.ndarray) -> int:
    """The rows of the E-step: at most d + 1 for each different number of images."""
    return int(np.minimum(np.unique(count[count > 0], return_counts=True)[1], _DIM + 1).sum())


@jax.jit
def _with_product(total: jax.Array, x: jax.Array) -> jax.Array:
    return total + x.T @ x


@jax.jit
def _products(basis: jax.Array, rows: jax.Array) -> tuple[jax.Array, jax.Array]:
    z = basis @ rows
    return z @ z.T, z @ rows.T


def products(made: Made) -> jax.Array:
    """X'X over as many batches as the disk holds, and the products of all iterations."""
    rng = np.random.default_rng(_SEED)
    x = jnp.asarray(rng.standard_normal((_BATCH, _DIM), np.float32))
    total = jnp.zeros((_DIM, _DIM), jnp.float32)
    left = made.images
    while left > 0:
        total = _with_product(total, x[:left] if left < _BATCH else x).block_until_ready()
        left -= _BATCH
    counts = np.bincount(np.load(made.folder / "labels.npy"))
    rows = jnp.asarray(rng.standard_normal((_DIM, num_rows(counts)), np.float32))
    for _ in range(_ITERATIONS):
        jax.block_until_ready(_products(total, rows))
    return total


def errors(model: joint_bayes.JointBayes) -> dict[str, float]:
    """Relative errors of the noise on average, and of the variances of people as a root mean square."""
    noise, identity = (np.diagonal(np.asarray(cov, np.float64)) for cov in (model.noise_cov, model.identity_cov))
    return {
        "noise": abs(noise.mean() / _NOISE - 1),
        "identity": float(np.sqrt(((identity / _identity() - 1) ** 2).mean())),
    }


def _recovered(made: Made, ours: Fitted, _: Any) -> str:
    """The truth within what so many people and images determine: sqrt(2 / number), and a half more."""
    found = errors(ours.model)
    expected = np.sqrt(2 / made.people) * (1 + _NOISE * made.people / made.images / _identity().min())
    assert found["noise"] < 1e-3, f"the noise is {found['noise']:.2%} off"
    assert found["identity"] < 1.5 * expected, f"the variances of people are {found['identity']:.2%} off"
    return f"the truth: noise to {found['noise']:.3%}, variances of people to {found['identity']:.2%}"


def _small() -> Made:
    keep = tempfile.TemporaryDirectory()
    return make(pathlib.Path(keep.name), 400_000, 6_000)._replace(keep=keep)


def _peak(made: Made) -> float:
    """Of a process that only fits, in GB."""
    return json.loads(_in_processes(made, 1))["gigabytes"]


def _in_processes(made: Made, number: int) -> str:
    """Runs the fit in processes of their own; what the first prints, with the peak memory of all of them."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{probe.getsockname()[1]}"
    command = [sys.executable, "-m", "benchmarks.streaming", "--images", str(made.images), "--people", str(made.people)]
    command += ["--folder", str(made.folder), "--processes", str(number), "--address", address, "--process"]
    measured = [sys.executable, str(_ROOT / "tools" / "measure.py"), *command]
    running = [
        subprocess.Popen([*measured, str(i)], cwd=_ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        for i in range(number)
    ]
    outputs = [process.communicate() for process in running]
    failed = [error for process, (_, error) in zip(running, outputs, strict=True) if process.returncode]
    if failed:
        raise RuntimeError(failed[0])
    found = json.loads(outputs[0][0].splitlines()[-1])
    peaks = [float(error.split("peak memory")[1].split()[0]) / 1024 for _, error in outputs]
    return json.dumps(found | {"gigabytes": max(peaks)})


def _as_process(made: Made, arguments: argparse.Namespace) -> None:
    resources.keep_freed_memory()
    threadpoolctl.threadpool_limits(1, user_api="blas")
    if arguments.processes > 1:
        jax.config.update("jax_cpu_collectives_implementation", "gloo")
        jax.distributed.initialize(arguments.address, num_processes=arguments.processes, process_id=arguments.process)
    if arguments.processes == 1:
        compile_programs(made)
    fitted, seconds, cpu = _timed(functools.partial(fit, made))
    print(json.dumps({"seconds": seconds, "cpu": cpu, "rows": fitted.num_rows, **errors(fitted.model)}))


def _timed(call: Any) -> tuple[Any, float, float]:
    begin, begin_cpu = time.perf_counter(), time.process_time()
    result = jax.block_until_ready(call())
    return result, time.perf_counter() - begin, time.process_time() - begin_cpu


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.streaming", description=__doc__)
    parser.add_argument("--images", type=int, default=400_000)
    parser.add_argument("--people", type=int, default=6_000)
    parser.add_argument("--processes", type=int, default=1)
    parser.add_argument("--folder", type=pathlib.Path, help="where the embeddings are, or are made; default: temporary")
    parser.add_argument("--address", help=argparse.SUPPRESS)
    parser.add_argument("--process", type=int, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.process is not None:
        _as_process(Made(arguments.folder, arguments.images, arguments.people), arguments)
        return
    with tempfile.TemporaryDirectory() as temporary:
        folder = arguments.folder or pathlib.Path(temporary)
        made = Made(folder, arguments.images, arguments.people)
        if not (folder / "features.npy").exists():
            make(folder, arguments.images, arguments.people)
        ours = json.loads(_in_processes(made, arguments.processes))
        _, seconds, cpu = _timed(functools.partial(products, made))
    each = "" if arguments.processes == 1 else f" in each of {arguments.processes} processes"
    print(f"fit       {ours['cpu']:6.1f} CPU-s, {ours['seconds']:6.1f} s, {ours['gigabytes']:.2f} GB{each}")
    print(f"products  {cpu:6.1f} CPU-s, {seconds:6.1f} s, {ours['rows']} rows of the E-step")
    print(f"ratio     {arguments.processes * ours['cpu'] / cpu:6.2f}")
    print(f"errors    noise {ours['noise']:.4%}, variances of people {ours['identity']:.3%}")


ROWS = (
    Row(
        name="S1",
        work=f"Joint Bayes from 400,000 x 512 float16 embeddings of 6,000 people on disk, {_ITERATIONS} iterations",
        peer="the bare products: X'X of all batches, three with the rows of the E-step in each iteration",
        dtype="float32",
        data=_small,
        ours=fit,
        theirs=products,
        agree=_recovered,
        target=cost(at_most=1.5),
        floor=products,
        floor_work="the peer of this row",
        is_weighed=False,  # the limits have the memory of a process that only fits
        quantities=(Quantity("peak memory", "GB", _peak, 2.0),),
    ),
)


if __name__ == "__main__":
    main()
