"""Members over four forced CPU devices, in a process of its own, for JAX fixes their number at start."""

import os
import subprocess
import sys
import textwrap

FOUR_DEVICES = textwrap.dedent("""
    import jax, numpy as np, jax.numpy as jnp
    jax.config.update("jax_num_cpu_devices", 4)
    jax.config.update("jax_enable_x64", True)
    from jaxface.core import mesh
    from jaxface.ensembles import fit_members, fusion, lda_member, log_posteriors, sampling
    from tests.ensembles import draws
    y, labels, variances = draws.coordinates(np.random.default_rng(0))
    axes = sampling.feature_subspaces(jax.random.key(0), variances, num_members=8, num_fixed=2, num_random=3)
    probes = np.random.default_rng(1).normal(size=(6, y.shape[1]))
    member = mesh.create("member")
    assert member.size == 4
    shared = mesh.replicate((jnp.asarray(y), jnp.asarray(labels)), member)

    def same(left, right):
        jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, rtol=1e-12, atol=1e-12), left, right)

    def on_four(leaf):
        return len(leaf.sharding.device_set) == 4 and not leaf.sharding.is_fully_replicated

    def committee(y, labels, axes, weights, **settings):
        members, info = lda_member.fit(y, labels, axes, num_classes=6, num_components=3, **settings)
        bags, _ = lda_member.fit_bags(y, labels, axes, weights, num_classes=6, **settings)
        found = log_posteriors(members, probes, posterior=lda_member.gaussian, block_size=None)
        return members, bags, found, fusion.sum(found)

    weights = sampling.class_weights(
        sampling.class_bags(jax.random.key(1), num_members=8, num_classes=6, bag_size=5), labels
    )
    alone = committee(y, labels, axes, weights)
    spread = committee(*shared, *mesh.shard((axes, weights), member))
    assert on_four(spread[0].basis) and on_four(spread[1].basis) and on_four(spread[2])
    same(spread, alone)
    same(committee(*shared, *mesh.shard((axes, weights), member), block_size=4), alone)
    same(committee(*shared, *mesh.shard((axes, weights), member), block_size=3), alone)

    def mean(rows, y):
        return y[rows].mean(axis=0)

    rows = jnp.arange(16).reshape(8, 2)
    means = fit_members(mean, mesh.shard(rows, member), shared[0])
    assert on_four(means)
    same(means, fit_members(mean, rows, y))
    print("same")
""")


def test_sharded_members_equal_members_on_one_device():
    done = subprocess.run(
        [sys.executable, "-c", FOUR_DEVICES], capture_output=True, text=True, env=os.environ | {"JAX_PLATFORMS": "cpu"}
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip() == "same"
