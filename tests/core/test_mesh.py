"""Placement is tested on four forced CPU devices in a process of its own, for JAX fixes their number at start."""

import os
import subprocess
import sys
import textwrap

import jax.numpy as jnp
import pytest

from jaxface.core import mesh

FOUR_DEVICES = textwrap.dedent("""
    import jax, numpy as np, jax.numpy as jnp
    jax.config.update("jax_num_cpu_devices", 4)
    jax.config.update("jax_enable_x64", True)
    from jaxface.core import mate_ranks, mesh, prng, search
    from jaxface.cluster import kmeans
    from jaxface.linalg import scatter
    from jaxface.subspace import pca
    rng = np.random.default_rng(0)

    data = mesh.create("data")
    assert data.size == 4
    x, labels = rng.normal(size=(32, 6)), np.repeat(np.arange(8, dtype=np.int32), 4)
    factor = jax.jit(scatter.between_factor, static_argnames="num_classes")
    alone = factor(x, labels, num_classes=8)
    placed = mesh.shard((jnp.asarray(x), jnp.asarray(labels)), data)
    spread = factor(*placed, num_classes=8)
    np.testing.assert_allclose(spread, alone, rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(placed[0].T @ placed[0], x.T @ x, rtol=1e-12, atol=1e-12)

    members = mesh.create("member", num_devices=2)
    draws = jnp.asarray(rng.normal(size=(8, 20, 5)))
    fit = jax.jit(jax.vmap(lambda a: pca.fit(a, num_components=3)[0].basis))
    np.testing.assert_allclose(fit(mesh.shard(draws, members)), fit(draws), rtol=1e-12, atol=1e-12)
    start = mesh.replicate(kmeans.KMeans(centers=draws[0, :4]), members)
    assert start.centers.sharding.is_fully_replicated

    rows = mesh.from_local_rows(x, data)
    np.testing.assert_array_equal(rows, x)

    gallery, ids = rng.integers(-3, 4, (400, 6)) * 1.0, np.arange(400) // 3  # a person may lie on two devices
    placed = mesh.shard(jnp.asarray(gallery), data)
    inner = lambda params, a, b: a @ b.T
    probes = gallery[:5] + 1
    for names in (ids, np.arange(400)):
        found = [mate_ranks.identify(inner, None, g, names, probes, names[:5], num_best=3) for g in (placed, gallery)]
        best = [search.top_k(inner, None, g, probes, num_best=3, gallery_ids=names) for g in (placed, gallery)]
        for one, other in zip(jax.tree.leaves((found[0], best[0])), jax.tree.leaves((found[1], best[1])), strict=True):
            np.testing.assert_array_equal(one, other)
    columns = jax.device_put(x[:, :4], jax.sharding.NamedSharding(data, jax.P(None, "data")))
    try:
        search.top_k(inner, None, columns, x[:2, :4], num_best=1)
    except ValueError as error:
        assert "gallery must be cut by rows" in str(error)
    else:
        raise AssertionError("a gallery cut by columns was taken")
    print("same")
""")


def test_sharded_results_equal_single_device_results():
    done = subprocess.run(
        [sys.executable, "-c", FOUR_DEVICES],
        capture_output=True,
        text=True,
        env=os.environ | {"JAX_PLATFORMS": "cpu"},
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip() == "same"


def test_errors():
    with pytest.raises(ValueError, match=r"num_devices must be at most \d+ \(the devices that JAX sees\); got 999"):
        mesh.create("data", num_devices=999)
    with pytest.raises(ValueError, match=r"leading axis that divides by the 1 devices of 'data'; got shape \(\)"):
        mesh.shard(jnp.asarray(1.0), mesh.create("data", num_devices=1))


def test_one_process_is_its_own_sum():
    """Two processes: `tests/joint_bayes/test_distributed.py`."""
    tree = {"x": jnp.arange(3.0)}
    assert mesh.sum_over_processes(tree) is tree
