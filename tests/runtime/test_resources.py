"""Threads and memory of a process, each in a process of its own."""

import importlib.metadata
import os
import platform
import subprocess
import sys

import pytest

from jaxface.runtime import resources


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="malloc of glibc only")
def test_freed_memory_is_used_again():
    """Pages fetched from the system while arrays of 64 MB are made and dropped, by NumPy and in a thread of XLA's."""
    code = (
        "import resource, numpy as np\n"
        "from jaxface.runtime import resources\n"
        "resources.keep_freed_memory()\n"
        "import jax, jax.numpy as jnp\n"
        "def faults(): return resource.getrusage(resource.RUSAGE_SELF).ru_minflt\n"
        "np.ones(2**23); before = faults()\n"
        "for _ in range(10): np.ones(2**23)\n"
        "print(faults() - before)\n"
        "add, x = jax.jit(lambda x: x + 1), jnp.zeros((16, 2**20), jnp.float32)\n"
        "for _ in range(20): jax.block_until_ready(add(x))\n"
        "def again():\n"
        "    before = faults()\n"
        "    for _ in range(10): jax.block_until_ready(add(x))\n"
        "    return faults() - before\n"
        "print(min(again() for _ in range(5)))"  # on a busy machine a result is dropped after the next one is made
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    numpy, xla = (int(count) for count in done.stdout.split())
    assert numpy < 100  # else ten times 32 pages at least, huge ones
    assert xla < 50_000  # else 160,000


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="malloc of glibc only")
def test_freed_memory_between_arrays_is_returned():
    """Every second of 80 arrays of 4 MB is dropped: half of 320 MB, of which no page lies at the end of the heap."""
    code = (
        "import pathlib, numpy as np\n"
        "from jaxface.runtime import resources\n"
        "resources.keep_freed_memory()\n"
        "def held(): return int(pathlib.Path('/proc/self/statm').read_text().split()[1]) * 4096 // 2**20\n"
        "arrays = [np.ones(2**19) for _ in range(80)]\n"
        "kept = arrays[1::2]; del arrays\n"
        "before = held(); resources.return_freed_memory(); print(before - held())"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert 120 < int(done.stdout) < 200


VMAPPED_FITS = """
from jaxface.runtime import environment
environment.configure(x64=True)
import jax, jax.numpy as jnp, numpy as np
from jaxface import joint_bayes
x, ids = np.random.default_rng(0).normal(size=(60, 100)), np.repeat(np.arange(20), 3).astype(np.int32)
model = joint_bayes.JointBayes(mean=jnp.zeros(100), identity_cov=jnp.eye(100), noise_cov=jnp.eye(100))
stats = joint_bayes.collect(x, ids, num_people=20, shift=np.zeros(100))
jax.block_until_ready(joint_bayes.fit_path(stats, model, model, jnp.linspace(0, 1, 11), num_iters=10))
print("finished")
"""


def test_vmapped_fits_of_many_dimensions_finish():
    """With the default pool of two threads this program waits for ever."""
    environ = {name: value for name, value in os.environ.items() if name != "NPROC"}
    done = subprocess.run(
        [sys.executable, "-c", VMAPPED_FITS], capture_output=True, text=True, check=True, timeout=120, env=environ
    )
    assert done.stdout.strip() == "finished"


def test_every_blas_has_one_thread():
    code = (
        "from jaxface.runtime import resources\n"
        "resources.limit_blas_threads()\n"
        "import jax, threadpoolctl\n"
        "jax.numpy.linalg.eigh(jax.numpy.eye(3))\n"
        "pools = [p for p in threadpoolctl.threadpool_info() if p['user_api'] == 'blas']\n"
        "print(len(pools), {p['num_threads'] for p in pools})"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    number, threads = done.stdout.strip().split(maxsplit=1)
    assert int(number) >= 1
    assert threads == "{1}"


def test_what_was_imported_is_not_collected_again():
    code = (
        "import gc, jax\n"
        "from jaxface.runtime import resources\n"
        "resources.freeze_imports()\n"
        "print(gc.get_freeze_count())"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert int(done.stdout) > 50_000


def test_quick_compilation_leaves_the_flags_of_the_user_and_of_other_versions(monkeypatch):
    monkeypatch.setenv("XLA_FLAGS", "--xla_dump_to=here")
    resources.compile_quickly()
    assert os.environ["XLA_FLAGS"] == "--xla_dump_to=here"
    monkeypatch.delenv("XLA_FLAGS")
    monkeypatch.setattr(resources.version, "__version__", "0.13.0")
    resources.compile_quickly()
    assert "XLA_FLAGS" not in os.environ
    monkeypatch.setattr(resources.version, "__version__", "0.10.9")
    monkeypatch.setattr(resources.importlib.metadata, "entry_points", lambda group: [f"plugin of {group}"])
    resources.compile_quickly()
    assert "XLA_FLAGS" not in os.environ
    monkeypatch.setattr(resources.importlib.metadata, "entry_points", lambda group: [])
    resources.compile_quickly()
    assert "--xla_backend_optimization_level=0" in os.environ["XLA_FLAGS"].split()


@pytest.mark.skipif(bool(importlib.metadata.entry_points(group="jax_plugins")), reason="no flags for an accelerator")
def test_quick_compilation_has_flags_for_this_version():
    """And this jaxlib compiles with them: a flag that it does not know would end the process."""
    code = (
        "from jaxface.runtime import resources\n"
        "resources.compile_quickly()\n"
        "import os, jax\n"
        "print(os.environ['XLA_FLAGS'], jax.jit(lambda x: x + 1)(1))"
    )
    plain = {name: value for name, value in os.environ.items() if name != "XLA_FLAGS"}
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, env=plain)
    assert done.stdout.startswith("--xla_backend_optimization_level=0")
    assert done.stdout.endswith(" 2\n")
