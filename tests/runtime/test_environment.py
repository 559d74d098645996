import json
import os
import platform
import subprocess
import sys

import jax
import pytest

from jaxface.runtime import environment


def test_provenance_is_json_and_says_where_it_ran():
    record = json.loads(json.dumps(environment.provenance()))
    assert record["packages"]["jax"] == jax.__version__
    assert record["devices"]
    assert record["x64"] is True


def test_importing_the_library_leaves_the_edges_alone():
    """`import jaxface` and its algorithm rooms must not pull in what belongs to the edges."""
    code = (
        "import sys, jaxface, jaxface.core.pair_counts, jaxface.linalg.gram, jaxface.subspace, jaxface.faces.pipeline\n"
        "import jaxface.cluster, jaxface.metrics, jaxface.data, jaxface.reports.html, jaxface.ensembles\n"
        "import jaxface.joint_bayes, jaxface.mixtures, jaxface.features, jaxface.sparse\n"
        "heavy = ['matplotlib', 'orbax', 'PIL', 'tqdm', 'safetensors', 'grain', 'sklearn', 'optax']\n"
        "print([name for name in heavy if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_every_blas_has_one_thread():
    code = (
        "from jaxface.runtime import environment\n"
        "environment.limit_blas_threads()\n"
        "import jax, threadpoolctl\n"
        "jax.numpy.linalg.eigh(jax.numpy.eye(3))\n"
        "pools = [p for p in threadpoolctl.threadpool_info() if p['user_api'] == 'blas']\n"
        "print(len(pools), {p['num_threads'] for p in pools})"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    number, threads = done.stdout.strip().split(maxsplit=1)
    assert int(number) >= 1
    assert threads == "{1}"


def test_the_log_is_ours_and_of_orbax_its_warnings():
    code = (
        "import sys, tempfile, jax.numpy as jnp\n"
        "from absl import app, logging\n"
        "from jaxface.runtime import checkpoint, environment\n"
        "def main(_):\n"
        "    logging.set_verbosity(logging.INFO)\n"
        "    if sys.argv[1] == 'quiet': environment.quiet_libraries()\n"
        "    checkpoint.Checkpoints(tempfile.mkdtemp()).save(1, jnp.ones(3))\n"
        "    logging.info('ours')\n"
        "    exec(compile('logging.info(1); logging.warning(\\'theirs\\')', '/orbax/x.py', 'exec'))\n"
        "app.run(main)"
    )

    def lines(how):
        done = subprocess.run([sys.executable, "-c", code, how], capture_output=True, text=True, check=True)
        return [line.rpartition("] ")[2] for line in done.stderr.splitlines()]

    assert len(lines("loud")) > 10  # else there is nothing to keep out
    assert lines("quiet") == ["ours", "theirs"]


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="malloc of glibc only")
def test_freed_memory_is_used_again():
    """Pages fetched from the system while arrays of 64 MB are made and dropped, by NumPy and in a thread of XLA's."""
    code = (
        "import resource, numpy as np\n"
        "from jaxface.runtime import environment\n"
        "environment.keep_freed_memory()\n"
        "import jax, jax.numpy as jnp\n"
        "def faults(): return resource.getrusage(resource.RUSAGE_SELF).ru_minflt\n"
        "np.ones(2**23); before = faults()\n"
        "for _ in range(10): np.ones(2**23)\n"
        "print(faults() - before)\n"
        "add, x = jax.jit(lambda x: x + 1), jnp.zeros((16, 2**20), jnp.float32)\n"
        "for _ in range(20): jax.block_until_ready(add(x))\n"
        "before = faults()\n"
        "for _ in range(10): jax.block_until_ready(add(x))\n"
        "print(faults() - before)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    numpy, xla = (int(count) for count in done.stdout.split())
    assert numpy < 100  # else ten times 32 pages at least, huge ones
    assert xla < 50_000  # else 160,000


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


def test_compilation_cache_survives_a_folder_that_cannot_be_made(tmp_path):
    (tmp_path / "file").write_text("")
    before = jax.config.jax_compilation_cache_dir
    environment.use_compilation_cache(tmp_path / "file" / "cache")
    assert jax.config.jax_compilation_cache_dir == before


def test_the_log_shows_no_control_characters():
    code = (
        "from absl import logging\n"
        "from jaxface.runtime import environment\n"
        "logging.use_absl_handler()\n"
        "environment.protect_terminal()\n"
        "environment.protect_terminal()\n"
        "logging.warning('%s is damaged', 'a\\x1b[2J\\nb')\n"
        "print('\\u6771')"
    )
    environ = os.environ | {"PYTHONIOENCODING": "ascii"}
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, env=environ)
    assert "\na\\x1b[2J\nb is damaged" in done.stderr
    assert "\x1b" not in done.stderr
    assert done.stdout == "\\u6771\n"
