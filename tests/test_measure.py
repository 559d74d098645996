"""What bounds and measures the memory of the suite."""

import re
import subprocess
import sys

import jax
import numpy as np
import pytest

from tests import conftest, test_readme

MEASURE = [sys.executable, str(test_readme.ROOT / "tools" / "measure.py")]
PARENT_OF_TWO = """
import subprocess, sys
hold = [sys.executable, "-c", "import time; held = bytearray(100 * 2**20); time.sleep(1.2)"]
children = [subprocess.Popen(hold) for _ in range(2)]
sys.exit(sum(child.wait() for child in children) + 7)
"""


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="reads /proc")
def test_the_peak_is_of_all_processes_and_the_exit_code_is_the_commands():
    done = subprocess.run([*MEASURE, sys.executable, "-c", PARENT_OF_TWO], capture_output=True, text=True, check=False)
    assert done.returncode == 7, done.stderr
    megabytes, processes = re.search(r"peak memory +(\d+) MB in (\d+) processes", done.stderr).groups()
    assert int(processes) == 3
    assert 200 < int(megabytes) < 300


def test_forgotten_programs_are_compiled_again():
    double = jax.jit(lambda x: 2 * x)
    double(np.ones(3))
    assert double._cache_size() == 1
    conftest.forget_programs()
    assert double._cache_size() == 0
    np.testing.assert_array_equal(double(np.ones(3)), 2 * np.ones(3))
    assert double._cache_size() == 1


@pytest.mark.skipif(not conftest.KNOWN_JAX, reason="the way to share it is known for one version of JAX")
def test_programs_share_one_context():
    first, second = (jax.jit(lambda x, n=n: x + n).lower(1.0).compiler_ir().context for n in (1, 2))
    assert first is second
