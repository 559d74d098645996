"""k-means against the textbook loop and scikit-learn; empty clusters, restarts, units, NaN."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from sklearn.cluster import KMeans as SkKMeans

from jaxface.cluster import kmeans
from jaxface.cluster.kmeans import KMeans
from jaxface.core import prng
from jaxface.core.fitinfo import Status
from tests.tolerances import assert_close


def blobs(rng, k=4, per=10):
    centers = 20 * rng.normal(size=(k, 3))
    labels = np.repeat(np.arange(k), per)
    return centers[labels] + rng.normal(size=(k * per, 3)), labels


def lloyd(x, centers, num_iters):
    """The textbook loop, for data that leave no cluster empty."""
    trace = []
    for _ in range(num_iters):
        squared = ((x[:, None, :] - centers[None]) ** 2).sum(-1)
        labels = squared.argmin(1)
        trace.append(squared.min(1).sum())
        centers = np.stack([x[labels == k].mean(0) for k in range(len(centers))])
    return centers, np.array(trace)


def test_iteration_equals_the_textbook_loop(rng):
    x, _ = blobs(rng)
    start = x[[0, 10, 20, 30]]
    fitted, info = kmeans.fit(x, KMeans(centers=jnp.asarray(start)), num_iters=6)
    centers, trace = lloyd(x, start, 6)
    assert_close(fitted.centers, centers)
    assert_close(info.objective, trace)
    assert np.all(np.diff(info.objective) <= 1e-9)


def test_restarts_reach_scikit_learn(rng):
    x = rng.normal(size=(80, 3))
    fitted, info = kmeans.fit_restarts(jax.random.key(0), x, num_clusters=5, num_restarts=20, num_iters=100, tol=1e-9)
    reference = SkKMeans(5, n_init=20, random_state=0).fit(x).inertia_
    assert float(kmeans.assign(fitted, x).squared.sum()) <= 1.005 * reference
    assert int(info.status) == Status.OK
    done = int(info.num_iters)
    assert np.isfinite(info.objective[:done]).all()
    assert np.isnan(info.objective[done:]).all()


def test_tolerance_that_is_not_reached_is_a_status(rng):
    _, info = kmeans.fit(x := rng.normal(size=(50, 3)), KMeans(centers=jnp.asarray(x[:5])), num_iters=2, tol=1e-12)
    assert int(info.status) == Status.MAX_ITERS


def test_empty_clusters_move_to_the_farthest_samples(rng):
    x = np.concatenate([rng.normal(size=(10, 2)), [[50.0, 0.0], [0.0, 70.0]]])
    start = KMeans(centers=jnp.array([[0.0, 0.0], [1e6, 1e6], [2e6, 2e6]]))
    moved, _inertia, replaced = kmeans.update(start, jnp.asarray(x))
    assert int(replaced) == 2
    assert_close(moved.centers[1], x[11])
    assert_close(moved.centers[2], x[10])
    fitted, info = kmeans.fit(jnp.asarray(x), start, num_iters=5)
    assert int(info.num_replaced) == 2
    assert len(np.unique(kmeans.assign(fitted, x).labels)) == 3


def test_plus_plus_spreads_and_survives_duplicates(rng):
    x, labels = blobs(rng)
    keys = jax.random.split(jax.random.key(1), 50)
    starts = jax.vmap(lambda k: kmeans.init_plus_plus(k, x, num_clusters=4).centers)(keys)
    hits = [len(np.unique(labels[np.argmin(((x[:, None] - s) ** 2).sum(-1), 0)])) == 4 for s in np.asarray(starts)]
    assert np.mean(hits) > 0.9  # random starts hit all four in about 12 % of draws
    same = np.ones((6, 2))
    assert_close(kmeans.init_plus_plus(jax.random.key(0), same, num_clusters=3).centers, np.ones((3, 2)))


def test_random_start_takes_different_samples(rng):
    x = rng.normal(size=(5, 2))
    start = kmeans.init_random(jax.random.key(0), x, num_clusters=5)
    assert_close(np.sort(start.centers, axis=0), np.sort(x, axis=0))


def test_restart_i_does_not_depend_on_their_number(rng):
    x = rng.normal(size=(30, 3))
    one = kmeans.fit_restarts(jax.random.key(3), x, num_clusters=3, num_restarts=1, num_iters=9)[0]
    many = kmeans.fit_restarts(jax.random.key(3), x, num_clusters=3, num_restarts=30, num_iters=9)[0]
    assert float(kmeans.assign(many, x).squared.sum()) <= float(kmeans.assign(one, x).squared.sum())


@pytest.mark.parametrize("offset", [0, 1e4, 1e5])
def test_float32_far_from_the_origin(offset, rng):
    x = (rng.normal(size=(3000, 4)) + offset).astype(np.float32)
    start = KMeans(centers=jnp.asarray(x[:5]))
    fitted, info = kmeans.fit(x, start, num_iters=20)
    exact, _ = lloyd(x.astype(float), x[:5].astype(float), 20)
    inertia = [((x[:, None] - np.asarray(c, float)[None]) ** 2).sum(-1).min(1).sum() for c in (fitted.centers, exact)]
    assert inertia[0] < inertia[1] * (1 + 1e-3)
    assert np.diff(info.objective).max() < 1e-5 * info.objective[0]


def test_a_cluster_that_nothing_can_fill_is_a_status():
    x = np.repeat(np.eye(3), 10, axis=0)
    fitted, info = kmeans.fit_restarts(jax.random.key(0), x, num_clusters=5, num_restarts=3, num_iters=10)
    assert int(info.status) == Status.EMPTY_COMPONENT
    assert int(info.num_replaced) == 20
    _, info = kmeans.fit(x, KMeans(centers=fitted.centers[:3] * 0 + x[[0, 10, 20]]), num_iters=3)
    assert int(info.status) == Status.OK


def test_the_best_restart_wins_however_many_samples(rng):
    """What counts as equal is rounding, which does not grow with n."""
    x = rng.normal(size=(30_000, 2)).astype(np.float32)
    settings = {"num_clusters": 6, "num_iters": 15, "init": kmeans.init_random}
    lost = []
    for seed in range(4):
        keys = prng.member_keys(jax.random.key(seed), 5)
        each = [kmeans.fit_restarts(jax.random.key(seed), x, num_restarts=5, **settings)[0]]
        each += [kmeans.fit(x, kmeans.init_random(key, x, num_clusters=6), num_iters=15)[0] for key in keys]
        best, *others = (float(kmeans.assign(clusters, x).squared.sum()) for clusters in each)
        lost.append(best / min(others) - 1)
    assert max(lost) < 1e-5


def test_whole_numbers_are_centres_too(rng):
    fitted, _ = kmeans.fit(rng.normal(size=(9, 2)), KMeans(centers=np.array([[0, 0], [1, 1]])), num_iters=3)
    assert fitted.centers.dtype == jnp.float64


@pytest.mark.parametrize("scale", [2.0**-100, 2.0**-66, 2.0**40, 2.0**100])
def test_any_unit_gives_the_same_clusters(scale, rng):
    x = blobs(rng)[0].astype(np.float32)
    settings = {"num_clusters": 4, "num_restarts": 3, "num_iters": 9}
    expected, report = kmeans.fit_restarts(jax.random.key(0), x, **settings)
    found, info = kmeans.fit_restarts(jax.random.key(0), np.float32(scale) * x, **settings)
    np.testing.assert_array_equal(found.centers, np.float32(scale) * np.asarray(expected.centers))
    np.testing.assert_array_equal(kmeans.assign(found, np.float32(scale) * x).labels, kmeans.assign(expected, x).labels)
    # Squares of 2^100 have no number in float32: the inertia is infinite, and the report says so.
    assert int(info.status) == (Status.NON_FINITE if scale > 2.0**60 else report.status)


def test_nan_has_no_cluster(rng):
    x = jnp.asarray(rng.normal(size=(6, 2)))
    clusters = KMeans(centers=x[:3])
    lost = x.at[4, 1].set(jnp.nan)
    with pytest.raises(ValueError, match="x must be finite"):
        kmeans.assign(clusters, lost)
    found = jax.jit(kmeans.assign)(clusters, lost)
    assert int(found.labels[4]) == -1
    assert np.isnan(found.squared[4])
    others = np.array([0, 1, 2, 3, 5])
    assert_close(jax.tree.map(lambda leaf: leaf[others], found), kmeans.assign(clusters, x[others]))
    _, info = jax.jit(lambda x: kmeans.fit(x, clusters, num_iters=2))(lost)
    assert int(info.status) == Status.NON_FINITE


def test_narrow_types_are_refused(rng):
    x = rng.normal(size=(6, 2)).astype(np.float16)
    with pytest.raises(ValueError, match=r"x must be .* got dtype float16"):
        kmeans.fit_restarts(jax.random.key(0), x, num_clusters=2, num_restarts=1, num_iters=1)
    with pytest.raises(ValueError, match=r"x must be .* got dtype float16"):
        jax.jit(kmeans.assign)(KMeans(centers=jnp.zeros((2, 2))), x)


def test_errors(rng):
    with pytest.raises(ValueError, match="num_restarts must be at least 1; got 0"):
        kmeans.fit_restarts(jax.random.key(0), rng.normal(size=(4, 2)), num_clusters=2, num_restarts=0, num_iters=1)
    with pytest.raises(ValueError, match=r"num_clusters must be at most 4 \(the number of samples\); got 5"):
        kmeans.init_random(jax.random.key(0), rng.normal(size=(4, 2)), num_clusters=5)
    with pytest.raises(ValueError, match="key must be a typed PRNG key"):
        kmeans.fit_restarts(
            jnp.zeros(2, jnp.uint32), rng.normal(size=(4, 2)), num_clusters=2, num_restarts=1, num_iters=1
        )
