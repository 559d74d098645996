"""The environment of every test: float64 available, silent rank promotion forbidden, one BLAS thread."""

import gc
import os
import pathlib
from collections.abc import Iterator

import jaxlib.version

os.environ.setdefault("JAX_PLATFORMS", "cpu")
os.environ.setdefault("MPLBACKEND", "Agg")
os.environ.setdefault("NPROC", "16")  # see jaxface.runtime.environment.widen_thread_pool
# Compiling takes more of the suite than computing: without LLVM's optimiser and with the older emitter of fused loops
# it takes half as long. Fast math is off in both, so programs mean the same; `XLA_FLAGS= make test` takes the usual.
if jaxlib.version.__version__.startswith("0.10."):  # another version may not know a flag, and would end the process
    os.environ.setdefault("XLA_FLAGS", "--xla_backend_optimization_level=0 --xla_cpu_use_fusion_emitters=false")

import hypothesis
import jax
import numpy as np
import pytest
import scipy.linalg  # noqa: F401 - loads the BLAS that JAX uses, so that the limit reaches it
import threadpoolctl

jax.config.update("jax_enable_x64", True)
jax.config.update("jax_numpy_rank_promotion", "raise")
# Half of the suite's time is compilation: a second run finds the programs of the first.
jax.config.update("jax_compilation_cache_dir", str(pathlib.Path(__file__).parents[1] / ".pytest_cache" / "xla"))
jax.config.update("jax_persistent_cache_min_compile_time_secs", 0.0)
gc.set_threshold(200_000, 50, 100)  # tracing makes many objects and no cycles
threadpoolctl.threadpool_limits(1, user_api="blas")
hypothesis.settings.register_profile("repeatable", derandomize=True, database=None, deadline=None)
hypothesis.settings.load_profile("repeatable")


SLOW = ("docs", "experiments", "test_transformations.py")  # and what runs on several devices


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Marks what `make quick` leaves out."""
    for item in items:
        place = item.path.relative_to(pathlib.Path(__file__).parent)
        if place.parts[0] in SLOW or place.name == "test_distributed.py":
            item.add_marker(pytest.mark.slow)


@pytest.fixture
def rng() -> np.random.Generator:
    return np.random.default_rng(20260711)


@pytest.fixture(autouse=True, scope="module")
def _few_programs_in_memory() -> Iterator[None]:
    """Forgets compiled programs after a module once they are many.

    Every program holds memory maps. The kernel allows a process 65,530 of them, and a whole suite compiles more.
    """
    yield
    maps = pathlib.Path("/proc/self/maps")
    if maps.exists() and maps.read_bytes().count(b"\n") > 10_000:
        jax.clear_caches()
        gc.collect()
