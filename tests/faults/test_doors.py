"""Doors that a fault once came through."""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxface.cluster import kmeans, neighbors
from jaxface.core import checks
from jaxface.ensembles import sampling
from jaxface.faces import pipeline, pixels, tps
from jaxface.features import dekernelize, fastfood, forms, kitchen_sinks
from jaxface.features.bandwidth import median_distance
from jaxface.joint_bayes import fit_path, low_rank
from jaxface.linalg import gram
from jaxface.mixtures import pcca
from jaxface.sparse import dictionary
from jaxface.subspace import KernelMap, LinearMap, reconstruct, transform
from tests.features import cases as features
from tests.joint_bayes import cases as joint_bayes
from tests.mixtures import cases as mixtures

LINEAR = LinearMap(mean=jnp.zeros(4), basis=jnp.eye(4)[:, :2])
KERNEL = KernelMap(
    kernel=gram.Gaussian(bandwidth=1.0), train=jnp.ones((5, 4)), coefficients=jnp.ones((5, 2)), offset=jnp.zeros(2)
)
CLUSTERS = kmeans.KMeans(centers=jnp.zeros((3, 3)))
STEPS = pipeline.build([("block_dct", {"grid": (2, 2)})])
WEIGHTLESS = dataclasses.replace(mixtures.model(np.random.default_rng(0)), log_weights=jnp.full(2, jnp.nan))
IMAGE, FACE = np.ones((8, 8)), np.array([[1.0, 1.0], [6.0, 1.0], [3.0, 6.0]])


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda r: checks.floating(x={"x": 1.0}), "x must be an array of numbers; got a dict"),
        (lambda r: kitchen_sinks.init(jax.random.key(0), input_dim=3, num_features=4, bandwidth="x"), "bandwidth must"),
        (lambda r: fastfood.init(jax.random.key(0), input_dim=3, num_features=4, bandwidth=None), "bandwidth must"),
        (lambda r: sampling.row_weights(np.zeros((2, 3), int), num_rows=None), "num_rows must be an integer; got None"),
        (lambda r: transform(LINEAR, np.ones(3)), r"x must have shape \[d\] with d = 4; got shape \(3,\)"),
        (lambda r: reconstruct(LINEAR, np.ones(0)), r"z must have shape \[r\] with r = 2; got shape \(0,\)"),
        (lambda r: transform(KERNEL, np.ones(1)), r"x must have shape \[d\] with d = 4"),
        (lambda r: dekernelize.invert(features.fast(r), np.full(10, b"x"), form=forms.sin), "features must be"),
        (lambda r: low_rank(joint_bayes.a_model(r), rank=None), "rank must be an integer; got None"),
        (lambda r: tps.warp(IMAGE, FACE * np.nan, FACE, height=4, width=4, ridge=0.0), "landmarks must be finite"),
        (lambda r: tps.warp(IMAGE, FACE, FACE[:, :1], height=4, width=4, ridge=0.0), r"reference must have shape"),
        (lambda r: fit_path(joint_bayes.sums(r), joint_bayes.a_model(r), joint_bayes.a_model(r),
                            np.ones(2, np.float16), num_iters=1), "weights must be a floating point array of 32 or 64"),
        (lambda r: pixels.require([[0.5]]), r"image must be an array; got \[\[0.5\]\] of type list"),
        (lambda r: pipeline.encode_batch(STEPS, "faces", block_size=2), "images must have shape"),
        (lambda r: pipeline.encode_batch(STEPS, np.full((2, 4, 4), b"x"), block_size=2), "images must be float32"),
        (lambda r: kmeans.assign(CLUSTERS, np.ones((1, 3), ">f4")), "x must have the byte order of this machine"),
        (lambda r: kmeans.update(CLUSTERS, np.ones((2, 3))), "num_clusters must be at most 2"),
        (lambda r: neighbors.classify(np.ones((4, 3)), np.arange(4), np.ones((0, 3))), "number of probes must be at"),
        (lambda r: tps.warp(IMAGE, FACE, FACE * 0, height=4, width=4, ridge=0.0), "reference must not lie on one line"),
        (lambda r: median_distance(jax.random.key(0), np.ones((4, 2))), "distance of the rows of x must lie in"),
        (lambda r: pcca.sample(jax.random.key(0), WEIGHTLESS, num_samples=2), "log_weights must lie in"),
    ],
)  # fmt: skip
def test_the_argument_is_named(call, message, rng):
    with pytest.raises(ValueError, match=message):
        call(rng)


def test_nan_in_an_atom_is_nan_in_all_of_it(rng):
    atoms = jnp.asarray(rng.normal(size=(4, 3))).at[1, 2].set(jnp.nan).at[:, 0].set(0)
    unit, length = dictionary.unit_atoms(atoms)
    np.testing.assert_array_equal(jnp.isnan(unit), [[False, False, True]] * 4)
    np.testing.assert_array_equal(unit[:, 0], np.zeros(4))
    assert float(length[0]) == 1


def test_centres_drawn_among_samples_with_nan_are_nan(rng):
    x = jnp.asarray(rng.normal(size=(8, 3))).at[5, 1].set(jnp.nan)
    found = jax.jit(kmeans.init_plus_plus, static_argnames="num_clusters")(jax.random.key(0), x, num_clusters=3)
    assert bool(jnp.isnan(found.centers).all())


def test_samples_of_a_mixture_with_nan_for_a_weight_are_nan():
    drawn = jax.jit(pcca.sample, static_argnames="num_samples")(jax.random.key(0), WEIGHTLESS, num_samples=3)
    assert bool(jnp.isnan(drawn.x).all())
    np.testing.assert_array_equal(drawn.component, [-1, -1, -1])
