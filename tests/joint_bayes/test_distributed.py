"""Two processes of two CPU devices each must give the statistics and the fit of one device."""

import os
import socket
import subprocess
import sys
import textwrap

import numpy as np
import pytest

from jaxface.joint_bayes import collect, fit, init
from tests.joint_bayes import draws

PEOPLE = 13

PROCESS = textwrap.dedent("""
    import sys
    import jax
    import numpy as np
    address, place, folder = sys.argv[1], int(sys.argv[2]), sys.argv[3]
    jax.config.update("jax_enable_x64", True)
    jax.config.update("jax_num_cpu_devices", 2)
    jax.config.update("jax_cpu_collectives_implementation", "gloo")
    jax.distributed.initialize(address, num_processes=2, process_id=place)
    from jaxface import joint_bayes
    from jaxface.core import mesh

    data = mesh.create("data")
    assert data.size == 4 and jax.process_count() == 2
    share = np.load(f"{folder}/share{place}.npz")
    x, ids = (mesh.from_local_rows(share[name], data) for name in ("x", "ids"))
    collect = jax.jit(joint_bayes.collect, static_argnames="num_identities")
    stats = collect(x, ids, num_identities=PEOPLE, shift=np.zeros(3))
    model, info = joint_bayes.fit(stats, joint_bayes.init(stats), num_iters=5)
    np.savez(f"{folder}/result{place}.npz", objective=info.objective, **stats._asdict(), **vars(model))
    jax.distributed.shutdown()
""").replace("PEOPLE", str(PEOPLE))


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
    groups = draws.people(rng, draws.joint_bayes(rng))
    x, ids = draws.stacked(groups)
    x, ids = np.concatenate([x, np.zeros((3, 3))]), np.concatenate([ids, np.full(3, -1, np.int32)])
    order = rng.permutation(28)  # people are torn between the processes, and padding lies anywhere
    x, ids = x[order], ids[order]
    assert set(ids[:14]) & set(ids[14:]) - {-1}
    for place, rows in enumerate((slice(0, 14), slice(14, 28))):
        np.savez(tmp_path / f"share{place}.npz", x=x[rows], ids=ids[rows])
    run_both(tmp_path)

    stats = collect(x, ids, num_identities=PEOPLE, shift=np.zeros(3))
    model, info = fit(stats, init(stats), num_iters=5)
    expected = stats._asdict() | vars(model) | {"objective": info.objective}
    for place in range(2):
        with np.load(tmp_path / f"result{place}.npz") as found:
            for name, value in expected.items():
                np.testing.assert_allclose(found[name], value, rtol=1e-12, atol=1e-12, err_msg=name)
