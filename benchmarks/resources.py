"""What the threads of BLAS and the pages of freed memory cost: the figures of docs/scaling.md.

python -m benchmarks.resources        each line in a process of its own; two minutes
"""

import argparse
import json
import subprocess
import sys
import time
from collections.abc import Callable

import jax
import jax.numpy as jnp
import jax.scipy.linalg
import numpy as np
import scipy.linalg
import threadpoolctl

from jaxface.runtime import resources

_REPEATS = 41


def _solves() -> Callable[[], jax.Array]:
    """64 triangular systems of 32 x 32."""
    rng = np.random.default_rng(0)
    lower = jnp.asarray(np.tril(rng.normal(size=(64, 32, 32))) + 32 * np.eye(32), jnp.float32)
    right = jnp.asarray(rng.normal(size=(64, 32, 32)), jnp.float32)
    solve = jax.jit(jax.vmap(lambda a, b: jax.scipy.linalg.solve_triangular(a, b, lower=True)))
    return lambda: solve(lower, right)


def _eigenvalues() -> Callable[[], jax.Array]:
    """Those of a 400 x 400 matrix."""
    x = np.random.default_rng(0).normal(size=(400, 400))
    matrix, values = jnp.asarray(x + x.T, jnp.float32), jax.jit(jnp.linalg.eigvalsh)
    return lambda: values(matrix)


def _array() -> Callable[[], jax.Array]:
    """A result of 160 MB."""
    x, twice = jnp.zeros(40_000_000, jnp.float32), jax.jit(lambda x: x + 1)
    return lambda: twice(x)


WORK = {"64 solves of 32 x 32": _solves, "eigenvalues of 400 x 400": _eigenvalues, "a result of 160 MB": _array}
LINES = [
    *((work, f"--threads={count}") for work in list(WORK)[:2] for count in (1, 2)),
    *(("a result of 160 MB", flag) for flag in ("--keep", "--threads=1")),
]


def milliseconds(work: Callable[[], jax.Array]) -> list[float]:
    """The times of repeated calls."""
    jax.block_until_ready(work())
    found = []
    for _ in range(_REPEATS):
        begin = time.perf_counter()
        jax.block_until_ready(work())
        found.append(1000 * (time.perf_counter() - begin))
    return found


def main() -> None:
    """Prints the fastest time, the median and the slowest of each line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--alone", choices=WORK, help="this work in this process")
    parser.add_argument("--threads", type=int, default=1, help="of BLAS")
    parser.add_argument("--keep", action="store_true", help="keep freed memory")
    given = parser.parse_args()
    if given.alone is None:
        for work, flag in LINES:
            command = [sys.executable, "-m", "benchmarks.resources", f"--alone={work}", flag]
            found = json.loads(subprocess.run(command, capture_output=True, text=True, check=True).stdout)
            least, middle, most = np.quantile(found, (0, 0.5, 1))
            print(f"{work}, {flag}: {middle:.2f} ms ({least:.2f} to {most:.2f})", flush=True)
        return
    if given.keep:
        resources.keep_freed_memory()
    assert scipy.linalg  # its BLAS is the one of JAX, and must be there to be limited
    threadpoolctl.threadpool_limits(given.threads, user_api="blas")
    print(json.dumps(milliseconds(WORK[given.alone]())))


if __name__ == "__main__":
    main()
