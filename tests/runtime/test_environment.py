import json
import os
import subprocess
import sys

import jax

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
