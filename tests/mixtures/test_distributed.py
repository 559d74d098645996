"""Sharded samples, and two processes of two CPU devices each, must give the sums and the fit of one device."""

import os
import socket
import subprocess
import sys
import textwrap

import jax
import numpy as np
import pytest

from jaxface import mixtures
from tests.mixtures import draws
from tests.mixtures.draws import S

SETTINGS = {"num_iters": 5, "block_size": 16}

PROCESS = textwrap.dedent("""
    import functools
    import sys
    import jax
    import numpy as np
    address, place, folder = sys.argv[1], int(sys.argv[2]), sys.argv[3]
    jax.config.update("jax_enable_x64", True)
    jax.config.update("jax_num_cpu_devices", 2)
    jax.config.update("jax_cpu_collectives_implementation", "gloo")
    jax.distributed.initialize(address, num_processes=2, process_id=place)
    from jaxface import mixtures
    from jaxface.core import mesh

    data = mesh.create("data")
    assert data.size == 4 and jax.process_count() == 2
    share = np.load(f"{folder}/share{place}.npz")
    x, y, weights = (mesh.from_local_rows(share[name], data) for name in ("x", "y", "weights"))
    model = mixtures.PCCAMixture(**np.load(f"{folder}/model.npz"))
    moments, value = jax.jit(functools.partial(mixtures.e_step, block_size=16))(model, x, y, weights=weights)
    fit = jax.jit(functools.partial(mixtures.fit, SETTINGS))
    fitted, info = fit(x, y, model, weights=weights)
    found = {str(i): np.asarray(leaf) for i, leaf in enumerate(jax.tree.leaves((moments, value, fitted, info)))}
    np.savez(f"{folder}/result{place}.npz", **found)
    jax.distributed.shutdown()
""").replace("SETTINGS", ", ".join(f"{name}={value}" for name, value in SETTINGS.items()))


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def run_both(folder):
    address = f"127.0.0.1:{free_port()}"
    environment = os.environ | {"JAX_PLATFORMS": "cpu"}
    processes = [
        subprocess.Popen(
            [sys.executable, "-c", PROCESS, address, str(place), str(folder)],
            env=environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        for place in range(2)
    ]
    try:
        outputs = [process.communicate(timeout=120)[0] for process in processes]
    except subprocess.TimeoutExpired:
        pytest.fail("the two processes did not finish within 120 seconds")
    finally:
        for process in processes:
            process.kill()
            process.wait()
    assert all(process.returncode == 0 for process in processes), "\n".join(outputs)


def test_two_processes_equal_one_device(tmp_path, rng):
    model = draws.pcca(rng)
    x, y = draws.pairs(rng)
    weights = rng.integers(0, 3, S).astype(float)
    half = S // 2
    for place, rows in enumerate((slice(0, half), slice(half, S))):
        np.savez(tmp_path / f"share{place}.npz", x=x[rows], y=y[rows], weights=weights[rows])
    np.savez(tmp_path / "model.npz", **vars(model))
    run_both(tmp_path)

    moments, value = draws.e_step(model, x, y, weights=weights)
    fitted, info = mixtures.fit(x, y, model, weights=weights, num_iters=SETTINGS["num_iters"])
    for place in range(2):
        with np.load(tmp_path / f"result{place}.npz") as found:
            for i, expected in enumerate(jax.tree.leaves((moments, value, fitted, info))):
                scale = max(1.0, float(np.abs(expected).max()))
                np.testing.assert_allclose(found[str(i)], expected, rtol=0, atol=1e-12 * scale)
