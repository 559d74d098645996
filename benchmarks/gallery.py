"""Rows S4: the ten best people and the rank of the mate in a large gallery on disk, against the bare product.

python -m benchmarks.run --rows S4                               500,000 rows x 1,000 probes, timed warm
python -m benchmarks.gallery --rows 1000000 --probes 10000       the full size, once for each score: 1 GB of disk
"""

import argparse
import functools
import json
import pathlib
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import scipy.linalg  # noqa: F401 so that its BLAS is there to be limited
import threadpoolctl

from benchmarks.rows import Quantity, Row, cost
from jaxface import joint_bayes, metrics
from jaxface.core import mate_ranks
from jaxface.linalg import distances
from jaxface.runtime import resources

_DIM, _BEST, _BATCH = 512, 10, 20_000
_SAMPLE = 20  # probes whose scores are sorted
_SEED = 20260711
_ROOT = pathlib.Path(__file__).resolve().parents[1]


class Made(NamedTuple):
    """A gallery `[g, 512]` in float16 on disk, one row a person, and probes of some of its people."""

    path: pathlib.Path
    probes: np.ndarray  # float32 [q, d]
    probe_ids: np.ndarray
    params: Any  # of the score
    keep: Any = None  # a temporary folder lives as long as this

    @property
    def gallery(self) -> np.ndarray:
        """The rows on disk."""
        return np.load(self.path, mmap_mode="r")


def cosine(_: None, gallery: jax.Array, probes: jax.Array) -> jax.Array:
    """Cosines `[t, p]` with probes of length 1: the probes are scaled once, the gallery as it is read."""
    inverse = distances.safe_inverse_sqrt((gallery**2).sum(axis=1))
    return (gallery @ probes.T) * inverse[:, None]


def basis() -> joint_bayes.ScoringBasis:
    """Coordinates in which people vary by these amounts, and images of a person by 1."""
    fields = np.zeros(_DIM), np.eye(_DIM), np.linspace(2.0, 0.1, _DIM)
    return joint_bayes.ScoringBasis(**dict(zip(("mean", "vectors", "values"), map(_single, fields), strict=True)))


def _single(x: np.ndarray) -> jax.Array:
    return jnp.asarray(x, jnp.float32)


SCORES: dict[str, tuple[Callable[..., jax.Array], Callable[[], Any]]] = {
    "cosine": (cosine, lambda: None),
    "ratio": (joint_bayes.score_projections, basis),
}


def make(folder: pathlib.Path, num_rows: int, num_probes: int, score: str) -> Made:
    """People and images of the model; two images of a person are as alike as the model says."""
    rng = np.random.default_rng(_SEED)
    path = folder / "gallery.npy"
    spread = np.sqrt(np.linspace(2.0, 0.1, _DIM, dtype=np.float32))
    probe_ids = np.sort(rng.choice(num_rows, num_probes, replace=False))
    people = rng.standard_normal((num_probes, _DIM), np.float32) * spread
    if not path.exists():
        gallery = np.lib.format.open_memmap(path, "w+", np.float16, (num_rows, _DIM))
        for start in range(0, num_rows, _BATCH):
            x = rng.standard_normal((min(_BATCH, num_rows - start), _DIM), np.float32) * np.sqrt(1 + spread**2)
            inside = np.flatnonzero((probe_ids >= start) & (probe_ids < start + len(x)))
            noise = rng.standard_normal((len(inside), _DIM), np.float32)
            x[probe_ids[inside] - start] = people[inside] + noise
            gallery[start : start + len(x)] = x
        gallery.flush()
    probes = people + 2 * np.random.default_rng(_SEED + 1).standard_normal(people.shape, np.float32)
    if score == "cosine":
        probes /= np.linalg.norm(probes, axis=1, keepdims=True)
    return Made(path, probes, probe_ids, SCORES[score][1]())


def search(score: str, made: Made) -> mate_ranks.Identified:
    """Our side: the best people and the rank of the mate, in one pass over the disk."""
    gallery = made.gallery
    ids = np.arange(len(gallery))
    return mate_ranks.identify(SCORES[score][0], made.params, gallery, ids, made.probes, made.probe_ids, num_best=_BEST)


@jax.jit
def _product(x: jax.Array, probes: jax.Array) -> jax.Array:
    return x @ probes.T


def product(made: Made) -> jax.Array:
    """The bare product of all rows with all probes, from batches that are in memory; it is not kept."""
    x = jnp.asarray(made.gallery[:_BATCH], jnp.float32)
    probes = [jnp.asarray(made.probes[i : i + 1000]) for i in range(0, len(made.probes), 1000)]
    for _ in range(len(made.gallery) // _BATCH):
        for few in probes:
            result = _product(x, few).block_until_ready()
    return result


def _agrees(score: str, made: Made, ours: mate_ranks.Identified, _: Any) -> str:
    """Sorts all scores of some probes; rows may change places where their scores differ by rounding."""
    chosen = np.linspace(0, len(made.probes) - 1, _SAMPLE).astype(int)
    gallery, probes = made.gallery, jnp.asarray(made.probes[chosen])
    parts = range(0, len(gallery), _BATCH)
    scores = [
        np.asarray(SCORES[score][0](made.params, jnp.asarray(gallery[i : i + _BATCH], jnp.float32), probes))
        for i in parts
    ]
    dense = np.concatenate(scores)
    best = np.array([np.sort(column)[::-1][:_BEST] for column in dense.T])  # one at a time, for the memory is watched
    listed = np.take_along_axis(dense.T, ours.best.rows[chosen], axis=1)
    rounding = 1e-5 * np.abs(best).max()
    np.testing.assert_allclose(ours.best.scores[chosen], best, rtol=0, atol=rounding)
    np.testing.assert_allclose(listed, best, rtol=0, atol=rounding)
    mates = dense[made.probe_ids[chosen], np.arange(_SAMPLE)]
    low, high = ((dense > mates + sign * rounding).sum(axis=0) for sign in (1, -1))
    assert ((low <= ours.ranks.higher[chosen]) & (ours.ranks.higher[chosen] <= high)).all(), "a rank is wrong"
    hits = metrics.rank_hits(ours.ranks.higher, ours.ranks.tied).mean()
    return f"a sort of all scores of {_SAMPLE} probes; rank 1 for {hits:.1%} of the probes"


def _small(score: str) -> Made:
    keep = tempfile.TemporaryDirectory()
    return make(pathlib.Path(keep.name), 500_000, 1_000, score)._replace(keep=keep)


def _peak(score: str, made: Made) -> float:
    """Of a process that only searches, beside the pages of the gallery, in GB."""
    return _in_a_process(score, made)["gigabytes"]


def _in_a_process(score: str, made: Made) -> dict[str, float]:
    command = [sys.executable, "-m", "benchmarks.gallery", "--rows", str(len(made.gallery)), "--score", score]
    command += ["--probes", str(len(made.probes)), "--folder", str(made.path.parent)]
    measured = [sys.executable, str(_ROOT / "tools" / "measure.py"), *command]
    done = subprocess.run(measured, cwd=_ROOT, capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(done.stderr)
    peak = float(done.stderr.split("peak memory")[1].split()[0]) / 1024
    return json.loads(done.stdout.splitlines()[-1]) | {"gigabytes": peak - made.gallery.nbytes / 2**30}


def _as_process(made: Made, score: str) -> None:
    resources.keep_freed_memory()
    threadpoolctl.threadpool_limits(1, user_api="blas")
    search(score, made._replace(probes=made.probes[:1000], probe_ids=made.probe_ids[:1000]))  # compiles
    begin, begin_cpu = time.perf_counter(), time.process_time()
    ours = search(score, made)
    seconds, cpu = time.perf_counter() - begin, time.process_time() - begin_cpu
    print(json.dumps({"seconds": seconds, "cpu": cpu}), _agrees(score, made, ours, None), sep="\n", file=sys.stderr)
    print(json.dumps({"seconds": seconds, "cpu": cpu}))


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.gallery", description=__doc__)
    parser.add_argument("--rows", type=int, default=500_000)
    parser.add_argument("--probes", type=int, default=1_000)
    parser.add_argument("--score", choices=SCORES, help=argparse.SUPPRESS)
    parser.add_argument("--folder", type=pathlib.Path, help="where the gallery is, or is made; default: temporary")
    arguments = parser.parse_args()
    if arguments.score:
        made = make(arguments.folder, arguments.rows, arguments.probes, arguments.score)
        _as_process(made, arguments.score)
        return
    resources.keep_freed_memory()
    with tempfile.TemporaryDirectory() as temporary:
        for score in SCORES:
            made = make(arguments.folder or pathlib.Path(temporary), arguments.rows, arguments.probes, score)
            ours = _in_a_process(score, made)
            product(made._replace(probes=made.probes[:1000]))  # compiles
            begin, begin_cpu = time.perf_counter(), time.process_time()
            product(made)
            seconds, cpu = time.perf_counter() - begin, time.process_time() - begin_cpu
            print(f"{score:8s}  {ours['cpu']:6.1f} CPU-s, {ours['seconds']:6.1f} s, {ours['gigabytes']:.2f} GB beside")
            print(f"product   {cpu:6.1f} CPU-s, {seconds:6.1f} s; ratio {ours['cpu'] / cpu:.2f}", flush=True)


ROWS = tuple(
    Row(
        name="S4" if score == "cosine" else f"S4.{score}",
        work=f"the {_BEST} best of 500,000 people for 1,000 probes and the rank of the mate, d = {_DIM}, by {words}",
        peer="the bare product of all rows with all probes, in batches",
        dtype="float32, the gallery in float16 on disk",
        data=functools.partial(_small, score),
        ours=functools.partial(search, score),
        theirs=product,
        agree=functools.partial(_agrees, score),
        target=cost(at_most=1.5),
        floor=product,
        floor_work="the peer of this row",
        is_weighed=False,  # the limits have the memory of a process that only searches
        quantities=(Quantity("peak memory beside the gallery", "GB", functools.partial(_peak, score), 1.0),),
    )
    for score, words in (("cosine", "the cosine"), ("ratio", "the log-likelihood ratio"))
)


if __name__ == "__main__":
    main()
