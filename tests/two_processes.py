"""Two processes of two CPU devices each, as on two hosts: what must equal one device."""

import os
import pathlib
import socket
import subprocess
import sys
import textwrap
from collections.abc import Mapping, Sequence

import numpy as np
import pytest

START = """
import sys
import jax
import numpy as np
address, place, folder = sys.argv[1], int(sys.argv[2]), sys.argv[3]
jax.config.update("jax_enable_x64", True)
jax.config.update("jax_num_cpu_devices", 2)
jax.config.update("jax_cpu_collectives_implementation", "gloo")
jax.distributed.initialize(address, num_processes=2, process_id=place)
from jaxface.core import mesh

data = mesh.create("data")
assert data.size == 4 and jax.process_count() == 2
share = {name: mesh.from_local_rows(rows, data) for name, rows in np.load(f"{folder}/share{place}.npz").items()}
"""

END = """
np.savez(f"{folder}/result{place}.npz", **found)
jax.distributed.shutdown()
"""


def run(folder: pathlib.Path, program: str, shares: Sequence[Mapping[str, np.ndarray]]) -> list[dict[str, np.ndarray]]:
    """Runs `program` in both: it finds its own of the two shares as global arrays in `share`, leaves arrays in `found`.

    It may read other files from `folder`. Returns what each process found.
    """
    address = f"127.0.0.1:{free_port()}"
    processes = []
    for place, share in enumerate(shares):
        np.savez(folder / f"share{place}.npz", **share)
        command = [sys.executable, "-c", START + textwrap.dedent(program) + END, address, str(place), str(folder)]
        processes.append(
            subprocess.Popen(
                command,
                env=os.environ | {"JAX_PLATFORMS": "cpu"},
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                text=True,
            )
        )
    try:
        outputs = [process.communicate(timeout=120)[0] for process in processes]
    except subprocess.TimeoutExpired:
        pytest.fail("the two processes did not finish within 120 seconds")
    finally:
        for process in processes:
            process.kill()
            process.wait()
    assert all(process.returncode == 0 for process in processes), "\n".join(outputs)
    return [dict(np.load(folder / f"result{place}.npz")) for place in range(2)]


def free_port() -> int:
    """A port of this machine that nobody listens to."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port
