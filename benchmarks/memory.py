"""The memory of one side of a row, in a process that does nothing else.

    python -m benchmarks.memory J1.f32 ours

The side is called once to compile, freed memory is given back, and the kernel's mark of the largest resident size is
set back: what a second call adds to it is what the work needs beside its data and programs. Needs Linux.
"""

import gc
import json
import pathlib
import subprocess
import sys

import jax
import threadpoolctl

from benchmarks import measure
from jaxface.runtime import resources

_ROOT = pathlib.Path(__file__).resolve().parents[1]
_SELF = pathlib.Path("/proc/self")
_LIMIT = 900  # seconds


def of_side(name: str, side: str) -> float | None:
    """Megabytes of a warm call of `ours` or `theirs`; None where it cannot be measured."""
    command = [sys.executable, "-m", "benchmarks.memory", name, side]
    try:
        done = subprocess.run(command, cwd=_ROOT, capture_output=True, text=True, check=True, timeout=_LIMIT)
    except (subprocess.CalledProcessError, subprocess.TimeoutExpired):
        return None
    return json.loads(done.stdout.splitlines()[-1])


def _kilobytes(field: str) -> int:
    lines = (_SELF / "status").read_text().splitlines()
    return int(next(line for line in lines if line.startswith(field)).split()[1])


def _weighed(name: str, side: str) -> float:
    from benchmarks import run  # which imports this module

    row = next(row for row in run.ROWS if row.name == name)
    call = row.ours if side == "ours" else row.theirs
    threads = 1 if side == "ours" else measure.num_cores()
    with threadpoolctl.threadpool_limits(threads, user_api="blas"), jax.enable_x64(row.x64):
        data = row.data()
        jax.block_until_ready(call(data))
        gc.collect()
        resources.return_freed_memory()
        (_SELF / "clear_refs").write_text("5")
        before = _kilobytes("VmRSS")
        jax.block_until_ready(call(data))
    return max(0, _kilobytes("VmHWM") - before) * 1024 / 1e6


if __name__ == "__main__":
    print(json.dumps(_weighed(sys.argv[1], sys.argv[2])))
