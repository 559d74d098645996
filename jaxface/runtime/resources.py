"""Threads and memory of a process: call these before its first array."""

import ctypes
import gc
import importlib.metadata
import os

from jaxlib import version

__all__ = [
    "compile_quickly",
    "freeze_imports",
    "keep_freed_memory",
    "limit_blas_threads",
    "return_freed_memory",
    "widen_thread_pool",
]

# Without LLVM's optimiser; in jaxlib 0.10 also with the older emitter of fused loops, which is gone from later ones. A
# flag that a jaxlib does not know ends the process. Fast math is off with and without them.
_OF_ALL = "--xla_backend_optimization_level=0 --xla_cpu_parallel_codegen_split_count=1"
_OF_0_10 = (
    "--xla_cpu_use_fusion_emitters=false --xla_cpu_opt_preset=FAST_COMPILE "
    "--xla_cpu_enable_concurrency_optimized_scheduler=false"
)
_QUICK = {"0.10": f"{_OF_ALL} {_OF_0_10}", "0.11": _OF_ALL, "0.12": _OF_ALL}
_M_TRIM_THRESHOLD, _M_MMAP_MAX, _M_ARENA_MAX = -1, -4, -8  # glibc's malloc.h


def widen_thread_pool() -> None:
    """Gives XLA's CPU pool 16 threads; call it before the first array, when the pool is made.

    A batched LAPACK call (a vmapped Cholesky) waits inside the pool for parts of its own work that are queued in the
    same pool. Several independent calls deadlock a pool of two threads; seen with jaxlib 0.10.2 on two cores.
    """
    os.environ.setdefault("NPROC", "16")


def compile_quickly() -> None:
    """Lets XLA compile in half the time, to programs that run slower; call it before the first array.

    For runs that wait for compilation more than for arithmetic, such as the tour. Results differ by rounding. Nothing
    changes where the environment has `XLA_FLAGS`, where JAX has a plugin for an accelerator, or with a jaxlib whose
    flags are not known here.
    """
    has_accelerator = bool(importlib.metadata.entry_points(group="jax_plugins"))
    flags = _QUICK.get(".".join(version.__version__.split(".")[:2]))
    if flags and not has_accelerator:
        os.environ.setdefault("XLA_FLAGS", flags)


def limit_blas_threads() -> None:
    """Limits every BLAS of the process to one thread for its life.

    XLA brings its own threads; OpenBLAS's threads fight with them and make batched LAPACK calls up to a thousand times
    slower. JAX's LAPACK calls run in the OpenBLAS that SciPy brings, and the limit reaches only libraries that are
    loaded: SciPy is imported first.
    """
    import scipy.linalg  # noqa: F401
    import threadpoolctl

    threadpoolctl.threadpool_limits(1, user_api="blas")


def freeze_imports() -> None:
    """Exempts what the imports made from garbage collection; call it after them.

    JAX and its modules are some hundred thousand objects that live as long as the process. A full collection over them
    takes 50 ms, and several run when the process ends: together a quarter of the CPU time of a process that computes
    one score.
    """
    gc.freeze()


def keep_freed_memory() -> None:
    """Lets the C library reuse freed memory, up to 1 GB; call it before the first array. Only glibc needs it.

    glibc gives arrays of more than 32 MB back to the system when they are freed, and fetching the pages again takes ten
    times as long as filling them: a 160 MB result takes 41 ms instead of 4. XLA allocates in threads of its own, whose
    arenas hold at most 64 MB whatever the limits say, so all threads share the first arena.
    """
    try:
        mallopt = ctypes.CDLL(None).mallopt
    except (AttributeError, OSError, TypeError):  # another C library
        return
    mallopt(_M_ARENA_MAX, 1)
    mallopt(_M_MMAP_MAX, 0)
    mallopt(_M_TRIM_THRESHOLD, 2**30)


def return_freed_memory() -> None:
    """Gives freed memory back to the system, also pages between arrays that are in use; only glibc can.

    After `keep_freed_memory`, arrays of many sizes leave gaps that no other array fits: a pass over a million faces
    grew to 3.4 GB. Call it now and then, such as after a checkpoint: the pages are fetched again when needed.
    """
    try:
        ctypes.CDLL(None).malloc_trim(0)
    except (AttributeError, OSError, TypeError):  # another C library
        return
