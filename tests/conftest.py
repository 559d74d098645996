"""The environment of every test: float64 available, no silent rank promotion, one BLAS thread, bounded memory."""

import ctypes
import functools
import gc
import os
import pathlib
from collections.abc import Iterator

os.environ.setdefault("JAX_PLATFORMS", "cpu")
os.environ.setdefault("MPLBACKEND", "Agg")
os.environ.setdefault("NPROC", "16")  # see jaxface.runtime.resources.widen_thread_pool

import hypothesis
import jax
import numpy as np
import pytest
import scipy.linalg  # noqa: F401 - loads the BLAS that JAX uses, so that the limit reaches it
import threadpoolctl

from jaxface.runtime import resources
from tests import by_numpy

# Compiling takes more of the suite than computing. `XLA_FLAGS= make test` takes the usual programs.
resources.compile_quickly()
jax.config.update("jax_enable_x64", True)
jax.config.update("jax_numpy_rank_promotion", "raise")
# Half of the suite's time is compilation: a second run finds the programs of the first.
jax.config.update("jax_compilation_cache_dir", str(pathlib.Path(__file__).parents[1] / ".pytest_cache" / "xla"))
jax.config.update("jax_persistent_cache_min_compile_time_secs", 0.0)
jax.config.update("jax_traceback_in_locations_limit", 0)  # lines of source within programs, which nobody reads here
gc.disable()  # tracing makes many objects and next to no cycles; these are collected when programs are forgotten
threadpoolctl.threadpool_limits(1, user_api="blas")
hypothesis.settings.register_profile("repeatable", derandomize=True, database=None, deadline=None)
hypothesis.settings.load_profile("repeatable")


def keep_to_one_core() -> None:
    """Where there are as many cores as workers: threads that wander between the cores cost time."""
    worker, count = os.environ.get("PYTEST_XDIST_WORKER", ""), os.environ.get("PYTEST_XDIST_WORKER_COUNT", "0")
    cores = sorted(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else []
    if worker and len(cores) == int(count):
        number = int(worker.removeprefix("gw"))  # gw2 and more stand in for workers that crashed
        os.sched_setaffinity(0, {cores[number % len(cores)]})


keep_to_one_core()  # JAX makes its threads with the first array

KNOWN_JAX = jax.__version__.startswith("0.10.")
if KNOWN_JAX:
    # JAX makes an MLIR context for every program and keeps it with the program: 1 MB and a fifth of the time to compile
    # a small one. It also keeps, for each operation of a program, the stack of the test that traced the operation.
    # Sharing one context and keeping no stacks changes no program. There is no public way to do either.
    from jax._src import source_info_util
    from jax._src.interpreters import mlir

    mlir.make_ir_context = functools.lru_cache(maxsize=1)(mlir.make_ir_context)
    source_info_util.current = lambda: source_info_util._source_info_context.context

SLOW = ("docs", "experiments", "test_transformations.py")  # and what runs on several devices


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Marks what `make quick` leaves out."""
    for item in items:
        place = item.path.relative_to(pathlib.Path(__file__).parent)
        if place.parts[0] in SLOW or place.name == "test_distributed.py":
            item.add_marker(pytest.mark.slow)


BY_NUMPY = (
    *("core", "linalg", "faces", "subspace", "cluster", "joint_bayes", "losses", "ensembles", "features", "mixtures"),
    *("sparse", "hallucination", "verifier", "experiments", "docs", "faults", "test_fit_reports"),
)
BY_XLA = (
    # As everybody has them, the pages that a reader begins with; test_launch.py starts a study from the shell.
    "docs/test_pages.py::test_page_runs[quickstart.md]",
    "docs/test_pages.py::test_page_runs[library.md]",
)


@pytest.fixture(autouse=True)
def eager_by_numpy(request: pytest.FixtureRequest) -> Iterator[None]:
    """In these rooms, NumPy does what JAX and `linalg` have small functions for outside of a program.

    What else is jitted, as every fit and matrix is, is XLA's. So is all of `linalg` in its own tests, and the table of
    transformations compares the two for every public function. `EAGER=xla make test` leaves all of it to XLA.
    """
    place = f"{request.path.relative_to(pathlib.Path(__file__).parent).as_posix()}::{request.node.name}"
    is_by_numpy = place.startswith(BY_NUMPY) and not place.startswith(BY_XLA)
    if os.environ.get("EAGER") == "xla" or not is_by_numpy:
        yield
        return
    of_linalg = () if place.startswith("linalg") else (by_numpy.LINALG,)
    with by_numpy.simple_operations(folders=(by_numpy.JAX, *of_linalg)):
        yield


@pytest.fixture
def rng() -> np.random.Generator:
    return np.random.default_rng(20260711)


ROOM_FOR_PROGRAMS = 850 * 2**20  # bytes; the suite compiles 7,000 programs, and a process may hold 65,530 memory maps
memory_without_programs: int | None = None


def resident_memory() -> int:
    """Bytes that this process holds; 0 where the system does not say."""
    status = pathlib.Path("/proc/self/statm")
    return int(status.read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE") if status.exists() else 0


def forget_programs() -> None:
    """Drops every compiled program and returns the memory: glibc keeps freed pages that lie between used ones."""
    jax.clear_caches()
    by_numpy.is_simple.cache_clear()
    if KNOWN_JAX:
        mlir.make_ir_context.cache_clear()
    gc.collect()
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None)
    if trim is not None:
        trim(0)


def pytest_collection_finish() -> None:
    """Takes what is imported by now out of every later collection of garbage."""
    gc.collect()
    gc.freeze()


def bound_memory() -> None:
    """Forgets the programs when they fill the room for them."""
    global memory_without_programs
    if memory_without_programs is None:
        memory_without_programs = resident_memory()
    elif resident_memory() > memory_without_programs + ROOM_FOR_PROGRAMS:
        forget_programs()
        memory_without_programs = resident_memory()


def pytest_runtest_teardown() -> None:
    """After every test, for a single module compiles a thousand programs."""
    bound_memory()
