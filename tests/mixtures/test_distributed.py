"""Sharded samples, and two processes of two CPU devices each, must give the sums and the fit of one device."""

import jax
import numpy as np

from jaxface import mixtures
from tests import two_processes
from tests.mixtures import draws
from tests.mixtures.draws import S

SETTINGS = {"num_iters": 5, "block_size": 16}

PROGRAM = """
import functools
from jaxface import mixtures

model = mixtures.PCCAMixture(**np.load(f"{folder}/model.npz"))
x, y, weights = share["x"], share["y"], share["weights"]
moments, value = jax.jit(functools.partial(mixtures.e_step, block_size=16))(model, x, y, sample_weights=weights)
fitted, info = jax.jit(functools.partial(mixtures.fit, SETTINGS))(x, y, model, sample_weights=weights)
found = {str(i): np.asarray(leaf) for i, leaf in enumerate(jax.tree.leaves((moments, value, fitted, info)))}
""".replace("SETTINGS", ", ".join(f"{name}={value}" for name, value in SETTINGS.items()))


def test_two_processes_equal_one_device(tmp_path, rng):
    model = draws.pcca(rng)
    x, y = draws.pairs(rng)
    weights = rng.integers(0, 3, S).astype(float)
    half = S // 2
    shares = [{"x": x[rows], "y": y[rows], "weights": weights[rows]} for rows in (slice(0, half), slice(half, S))]
    np.savez(tmp_path / "model.npz", **vars(model))

    moments, value = draws.e_step(model, x, y, sample_weights=weights)
    fitted, info = mixtures.fit(x, y, model, sample_weights=weights, num_iters=SETTINGS["num_iters"])
    for found in two_processes.run(tmp_path, PROGRAM, shares):
        for i, expected in enumerate(jax.tree.leaves((moments, value, fitted, info))):
            scale = max(1.0, float(np.abs(expected).max()))
            np.testing.assert_allclose(found[str(i)], expected, rtol=0, atol=1e-12 * scale)
