"""The parts of the study of weak labels, against loops and on data whose answer is known."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from configs import weak_labels
from experiments.weak_labels import clustering, draws, methods, report, tracks
from experiments.weak_labels.draws import Draws, Problem
from experiments.weak_labels.methods import METHODS
from jaxface.data import synthetic, take
from jaxface.data.splits import Split
from jaxface.subspace import transform
from tests.tolerances import assert_close


def study(**fields):
    config = weak_labels.get_config("smoke").unlock()
    config.update(fields)
    return config.lock()


def problem(rng, separation=2.0):
    """Four people with six images of 40 values; the first four of each are for training."""
    ids = np.repeat(np.arange(4, dtype=np.int32), 6)
    x = jnp.asarray(separation * rng.normal(size=(4, 40))[ids] + rng.normal(size=(24, 40)))
    is_train = np.arange(24) % 6 < 4
    return draws.problem_of(x, ids, Split(np.flatnonzero(is_train), np.flatnonzero(~is_train)))


def squared(a, b):
    return ((np.asarray(a)[:, None] - np.asarray(b)[None]) ** 2).sum(axis=-1)


def test_coordinates_change_no_order_of_training_images(rng):
    task = problem(rng)
    gap = squared(task.x, task.x[task.split.train]) - squared(task.coordinates, task.coordinates[task.split.train])
    assert task.coordinates.shape == (24, 16)
    assert_close(gap, np.broadcast_to(gap[:, :1], gap.shape), factor=10)  # what lies outside the span, once a row
    assert_close(gap[task.split.train], np.zeros((16, 16)), factor=1000)
    apart = squared(task.x[task.split.train], task.x[task.split.train])[np.triu_indices(16, 1)]
    assert_close(task.scale, np.sqrt(np.median(apart)))


def test_draws_group_images_of_one_person(rng):
    task = problem(rng)
    found = draws.random_draws(study(num_draws=5), task, 2)
    assert found.rows.shape == found.groups.shape == (5, 16)
    assert found.num_groups == 8
    assert np.isin(found.rows, task.split.train).all()
    for rows, groups in zip(found.rows, found.groups, strict=True):
        assert np.bincount(groups).tolist() == [2] * 8
        assert all(len(set(np.asarray(task.ids)[rows[groups == g]])) == 1 for g in range(8))
    assert not np.array_equal(found.rows[0][np.argsort(found.groups[0])], found.rows[1][np.argsort(found.groups[1])])


def test_the_gallery_is_the_grouped_images_or_all():
    z = jnp.array([[0.0], [10.0], [4.0], [6.0], [9.0], [5.0]])
    ids = jnp.array([0, 0, 1, 1, 0, 1], jnp.int32)
    task = Problem(z, z, ids, Split(np.arange(4), np.array([4, 5])), 1.0)
    grouped = Draws(np.array([[0, 2], [1, 2]]), np.array([[0, 1], [0, 1]], np.int32), 2)
    both = jnp.stack([z, z])
    assert_close(draws.errors(task, grouped, both, gallery="grouped"), np.array([0.5, 0.0]))
    assert_close(draws.errors(task, grouped, both, gallery="all"), np.zeros(2))


def test_fisherfaces_see_people_and_the_others_groups(rng):
    task = problem(rng)
    found = draws.random_draws(study(num_draws=1), task, 2)
    other = Draws(found.rows, found.groups[:, ::-1], found.num_groups)
    setting = {"ridge": jnp.asarray(0.1)}
    for name, same in (("fisherfaces", True), ("ridge_rca", False)):
        first, second = (draws.embed(task, each, METHODS[name], setting).z for each in (found, other))
        assert np.allclose(first, second) == same


def test_duplicates_are_refitted_on_the_host(rng):
    task = problem(rng)
    twin = task.x.at[6].set(task.x[0])
    task = draws.problem_of(twin, np.asarray(task.ids), task.split)
    found = draws.random_draws(study(num_draws=2), task, 2)
    result = draws.embed(task, found, METHODS["np_per"], {})
    assert result.refitted == 2
    assert np.isfinite(result.z).all()


def test_rca_by_width_equals_a_loop(rng):
    task = problem(rng, separation=0.3)
    grouped = draws.random_draws(study(num_draws=2), task, 2)
    found = draws.width_errors(task, grouped)
    place = int(np.flatnonzero(found["widths"] == 3)[0])
    z = np.asarray(draws.embed(task, grouped, METHODS["rca"], {"width": jnp.asarray(3.0)}).z)
    ids, probe, own = np.asarray(task.ids), [], []
    for coordinates, known in zip(z, grouped.rows, strict=True):
        to_known = squared(coordinates, coordinates[known])
        probe.append(np.mean(ids[known[to_known[task.split.test].argmin(axis=1)]] != ids[task.split.test]))
        among = to_known[known] + np.diag(np.full(len(known), np.inf))
        own.append(np.mean(ids[known[among.argmin(axis=1)]] != ids[known]))
    assert_close(found["probe error"][place], np.mean(probe))
    assert_close(found["training error"][place], np.mean(own))
    assert np.mean(own) > 0  # an image that finds itself would err never


def test_vectors_of_few_dimensions_have_no_linear_np_per(rng):
    """With 6 dimensions and 16 - 8 differences within groups some group varies in every direction."""
    whole = problem(rng)
    task = draws.problem_of(whole.x[:, :6], np.asarray(whole.ids), whole.split)
    config = study(group_sizes=(2,), num_draws=2)
    with pytest.raises(ValueError, match=r"np_per needs vectors with more dimensions than 8, .* these have 6\. Leave"):
        draws.check_dimensions(config, task)
    config = study(group_sizes=(2,), num_draws=2, methods=("rca", "kernel_np_per"))
    config.unlock().clustering.methods = ("kernel_np_per",)
    draws.check_dimensions(config, task)
    grouped = draws.random_draws(config, task, 2)
    found = draws.ridge_errors(task, grouped)
    assert np.isnan(found["gap"]).all()
    assert np.isfinite(found["ridge error"]).all()
    assert draws.width_errors(task, grouped)["widths"].max() == 6
    assert report._limit({2: found}) == [
        "These vectors have too few dimensions for linear NP-PER: in every direction some group varies."
    ]


def test_a_map_of_coordinates_becomes_one_of_vectors(rng):
    task = problem(rng)
    found = draws.random_draws(study(num_draws=2), task, 2)
    for name in ("np_per", "kernel_np_per"):
        setting = {} if name == "np_per" else {"bandwidth": jnp.asarray(task.scale)}
        embedded = draws.embed(task, found, METHODS[name], setting)
        fitted = draws.of_vectors(task, METHODS[name], embedded.first)
        z = jax.vmap(lambda row, fitted=fitted: transform(fitted, row))(task.x)
        assert_close(z, embedded.z[0], factor=1000)


def test_ridge_rca_tends_to_np_per(rng):
    task = problem(rng)
    found = draws.ridge_errors(task, draws.random_draws(study(num_draws=2), task, 2))
    assert found["gap"][0] < 1e-6 < found["gap"][-1]
    assert (np.diff(found["gap"]) > 0).all()


@pytest.mark.parametrize("start", clustering.STARTS)
def test_clusters_of_people_far_apart_are_pure(start, rng):
    task = problem(rng)
    grouped = draws.random_draws(study(num_draws=2), task, 2)
    apart = jnp.stack([1e3 * jnp.eye(4)[task.ids]] * 2)
    options = {"start": start, "num_draws": 1, "num_restarts": 20, "num_iters": 5}
    found = clustering.purity_and_accuracy(jax.random.key(0), apart, np.asarray(task.ids), grouped, **options)
    assert found.shape == (2, 1, 20)
    assert found.max() == 1.0
    if start == "k-means++":
        assert found.min() == 1.0


def test_purity_is_of_clusters_and_accuracy_of_people(rng):
    """Persons 0 and 1 are one point, person 3 is two."""
    task = problem(rng)
    grouped = draws.random_draws(study(num_draws=1), task, 4)
    place = np.where(task.ids == 3, 3 + np.arange(24) % 2, np.maximum(np.asarray(task.ids), 1))
    z = 1e3 * jnp.eye(5)[place][None]
    options = {"start": "k-means++", "num_draws": 1, "num_restarts": 1, "num_iters": 5}
    found = clustering.purity_and_accuracy(jax.random.key(0), z, np.asarray(task.ids), grouped, **options)
    assert found.ravel().tolist() == [12 / 16, 14 / 16]


def test_settings_are_in_their_units():
    config = study(widths=(0.01, 0.3, 0.31, 0.9), bandwidths=(0.5, 2.0), ridges=(0.1,))
    found = methods.grid(METHODS["kernel_rca"], 3.0, 10, config)
    assert found["bandwidth"].tolist() == [1.5, 1.5, 1.5, 6.0, 6.0, 6.0]
    assert found["width"].tolist() == [1, 3, 9, 1, 3, 9]
    assert methods.grid(METHODS["np_per"], 3.0, 10, config) == {}


def test_videos_train_and_test_on_different_tracks():
    config = study()
    task, grouped = tracks.video(config, 7, 0)
    people, frames = config.videos.num_people, config.videos.frames_per_run
    assert len(task.split.train) == people * 2 * frames
    assert len(task.split.test) == people * 3 * frames
    assert not set(task.split.train) & set(task.split.test)
    assert np.bincount(grouped.groups[0]).max() <= 7
    assert all(len(set(np.asarray(task.ids)[grouped.rows[0][grouped.groups[0] == g]])) == 1 for g in range(4))


def test_faces_are_warped_onto_the_mean_landmarks(rng):
    made = synthetic.face_tracks(rng, num_people=2, tracks_per_person=1, runs_per_track=2, frames_per_run=6)
    raw = np.asarray(tracks.inputs.encode(made.data.images, ()))
    warped = np.asarray(tracks.warped(made, 64))
    assert warped.shape == (24, 64, 64)
    one = made.data.ids == 0
    spread = [np.var(x[one], axis=0).mean() for x in (raw, warped.reshape(24, -1))]
    assert spread[1] < spread[0] / 2  # what is left of one person's drift is light and expression
    still = made._replace(data=take(made.data, [0, 0]), landmarks=made.landmarks[[0, 0]])
    assert_close(tracks.warped(still, 64), still.data.images, factor=100)
