"""The parts of the study of weak labels, against loops and on data whose answer is known."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from configs import weak_labels
from experiments.weak_labels import clustering, curves, draws, joint, many, methods, report, tracks
from experiments.weak_labels import study as weak_study
from experiments.weak_labels.draws import Draws, Embedded, Problem
from experiments.weak_labels.methods import METHODS
from jaxface import joint_bayes
from jaxface.core.fitinfo import Status
from jaxface.data import synthetic, take
from jaxface.data.splits import Split
from jaxface.runtime import launch
from jaxface.subspace import np_per
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


def test_groups_of_all_images_are_drawn_once(rng):
    task = problem(rng)
    found = draws.random_draws(study(num_draws=5), task, 4)
    assert found.rows.shape == (1, 16)
    np.testing.assert_array_equal(np.asarray(task.ids)[found.rows[0]], found.groups[0])


def test_the_gallery_is_the_grouped_images_or_all():
    z = jnp.array([[0.0], [10.0], [4.0], [6.0], [9.0], [5.0]])
    ids = jnp.array([0, 0, 1, 1, 0, 1], jnp.int32)
    task = Problem(z, z, ids, Split(np.arange(4), np.array([4, 5])), 1.0)
    grouped = Draws(np.array([[0, 2], [1, 2]]), np.array([[0, 1], [0, 1]], np.int32), 2)
    both = Embedded(jnp.stack([z, z]))
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
    found = curves.width_errors(task, grouped)
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
    found = curves.ridge_errors(task, grouped)
    assert np.isnan(found["gap"]).all()
    assert np.isfinite(found["ridge error"]).all()
    assert curves.width_errors(task, grouped)["widths"].max() == 6
    assert report._limit({2: found}) == [
        "These vectors have too few dimensions for linear NP-PER: in every direction some group varies."
    ]


def test_a_map_of_coordinates_becomes_one_of_vectors(rng):
    task = problem(rng)
    found = draws.random_draws(study(num_draws=2), task, 2)
    settings = {"np_per": {}, "kernel_np_per": {"bandwidth": jnp.asarray(task.scale)}}
    settings["joint_bayes"] = {"weight": jnp.asarray(0.3)}
    for name, setting in settings.items():
        method = METHODS[name]
        embedded = draws.embed(task, found, method, setting)
        fitted = draws.of_vectors(task, method, embedded.first)
        z = jax.vmap(lambda row, fitted=fitted, method=method: method.transform(fitted, row))(task.x)
        assert_close(z, embedded.z[0], factor=1000)


def test_ridge_rca_tends_to_np_per(rng):
    task = problem(rng)
    found = curves.ridge_errors(task, draws.random_draws(study(num_draws=2), task, 2))
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


def test_joint_bayes_compares_by_its_ratio(rng):
    """Every draw against a model of its own, fitted alone, and a loop over probes."""
    task = problem(rng, separation=0.5)
    found = draws.random_draws(study(num_draws=2), task, 2)
    setting = {"weight": jnp.asarray(0.3)}
    embedded = draws.embed(task, found, METHODS["joint_bayes"], setting)
    ids, wrong = np.asarray(task.ids), []
    for rows, group_ids in zip(found.rows, found.groups, strict=True):
        basis, info = joint.fit(task.coordinates[rows], group_ids, 0.3, num_groups=found.num_groups)
        assert info.status == Status.OK
        scores = joint_bayes.llr_matrix(basis, task.coordinates[rows], task.coordinates[task.split.test])
        wrong.append(np.mean(ids[rows[np.argmax(scores, axis=0)]] != ids[task.split.test]))
    assert_close(draws.errors(task, found, embedded, gallery="grouped"), np.array(wrong))
    assert 0 < np.mean(wrong) < 1
    by_distance = Embedded(embedded.z)
    assert draws.errors(task, found, by_distance, gallery="grouped").shape == (2,)


def test_np_per_and_joint_bayes_take_other_groups(rng):
    """The first half of the groups are points for NP-PER, the noise is that of the second half."""
    x = rng.normal(size=(16, 40)) + 2 * rng.normal(size=(8, 40))[np.arange(16) // 2]
    groups = np.arange(16, dtype=np.int32) // 2
    shuffled = rng.permutation(16)
    basis, info = joint.fit_after(np_per.fit_dual, jnp.asarray(x[shuffled]), groups[shuffled], 0.3, num_groups=8)
    assert info.status == Status.OK
    assert basis.vectors.shape == (40, 3)  # NP-PER of 4 groups
    z = (x - np.asarray(basis.mean)) @ np.asarray(basis.vectors)
    within = z[::2] - z[1::2]
    assert_close(within[:4], np.zeros((4, 3)), factor=100)
    assert (np.linalg.norm(within[4:], axis=1) > 0.1).all()
    with pytest.raises(ValueError, match="groups must be of one size and at least 4 to be halved; got 15 images in 8"):
        joint.fit_after(np_per.fit_dual, x[1:], groups[1:], 0.3, num_groups=8)


def test_joint_bayes_of_duplicates_is_refitted(rng):
    task = problem(rng)
    twin = task.x.at[6].set(task.x[0])
    task = draws.problem_of(twin, np.asarray(task.ids), task.split)
    found = draws.random_draws(study(num_draws=2), task, 2)
    result = draws.embed(task, found, METHODS["np_per_joint_bayes"], {"weight": jnp.asarray(0.3)})
    errors = draws.errors(task, found, result, gallery="grouped")
    assert np.isfinite(result.z).all()
    assert ((errors >= 0) & (errors < 1)).all()


def test_a_weight_of_joint_bayes_is_chosen_by_scores(rng, monkeypatch):
    """Not by distances of its coordinates; with the largest weight every pair of groups scores alike."""
    task = problem(rng, separation=0.5)
    config, seen = study(num_draws=1, weights=(0.05, 1.0)), []
    plain = draws.held_out.errors
    monkeypatch.setattr(draws.held_out, "errors", lambda *rest, **named: seen.append(plain(*rest, **named)) or seen[-1])
    found = draws.random_draws(config, task, 2)
    setting = draws.choose_setting(config, task, found, METHODS["joint_bayes"])
    assert float(setting["weight"]) == config.weights[int(np.argmin(seen[0]))]
    by_distance = plain(
        METHODS["joint_bayes"].fit,
        {"weight": jnp.array(config.weights)},
        task.coordinates[found.rows[0]],
        found.groups[0],
        num_folds=config.num_folds,
        rng=np.random.default_rng(config.seed),
        transform=METHODS["joint_bayes"].transform,
    )
    assert not np.array_equal(seen[0], by_distance)


def test_the_cosine_kernel_has_no_bandwidth(rng):
    """Lengths of images change nothing."""
    task = problem(rng)
    longer = draws.problem_of(task.x * (1 + np.arange(24))[:, None], np.asarray(task.ids), task.split)
    found = draws.random_draws(study(num_draws=2), task, 2)
    assert draws.choose_setting(study(), task, found, METHODS["cosine_np_per"]) == {}
    setting = {"width": jnp.asarray(4.0)}
    for name, chosen in (("cosine_rca", setting), ("cosine_np_per", {}), ("cosine_np_per_rkhs", {})):
        first, second = (draws.embed(each, found, METHODS[name], chosen).z for each in (task, longer))
        assert_close(first, second, factor=1000)


def test_scatter_of_random_groups_misses_what_is_expected(rng):
    task = problem(rng)
    config = study()
    config.unlock().scatter.num_draws = 40
    config.scatter.num_simulated = 6
    found = curves.scatter_errors(config.lock(), task)
    assert found["sizes"].tolist() == found["simulated sizes"].tolist() == [1, 2, 4, 6]
    for key in ("", "simulated "):
        missed = found[f"{key}missed"]
        assert missed.shape == (4, 40)
        assert_close(missed[0], np.ones(40))  # groups of one image have no scatter
        assert_close(missed[-1], np.zeros(40))  # groups of all images of a person
        deviation = missed.std(axis=1, ddof=1) / np.sqrt(40)
        assert (np.abs(missed.mean(axis=1) - found[f"{key}expected"]) < 4 * deviation + 1e-9).all()
        assert np.isnan(found[f"{key}shape"][0]).all()
        assert (np.diff(found[f"{key}shape"][1:].mean(axis=1)) < 0).all()


def test_the_report_shows_training_errors_and_the_choice_of_a_width():
    found = {
        "widths": np.array([2, 5, 9]),
        "training error": np.array([0.3, 0.1, 0.2]),
        "probe error": np.array([0.2, 0.5, 0.4]),
        "ridges": np.array([0.1, 1.0]),
        "ridge error": np.array([0.1, 0.2]),
        "gap": np.array([0.1, 0.2]),
        "width/rca": np.asarray(7.0),
        "error/rca": np.array([0.4, 0.5]),
    }
    section = report.rca(study(methods=("rca",)), {3: found})
    names = [block.name for block in section.blocks if hasattr(block, "data")]
    assert names == ["rca_training.svg", "rca_width.svg", "rca_ridge.svg", "rca_limit.svg"]
    table = next(block for block in section.blocks if hasattr(block, "rows"))
    assert [row[2:] for row in table.rows] == [(5, 50.0), (7, 45.0), (2, 20.0)]


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
    warped = np.asarray(tracks.warped(tracks.drawn(made, 64), 64))
    assert warped.shape == (24, 64, 64)
    one = made.data.ids == 0
    spread = [np.var(x[one], axis=0).mean() for x in (raw, warped.reshape(24, -1))]
    assert spread[1] < spread[0] / 2  # what is left of one person's drift is light and expression
    still = made._replace(data=take(made.data, [0, 0]), landmarks=made.landmarks[[0, 0]])
    assert_close(tracks.warped(tracks.drawn(still, 64), 64), still.data.images, factor=100)


def test_many_groups_by_random_features(tmp_path, monkeypatch):
    """The features take all images, the kernels those that a matrix of all with all may have; batches are one sum."""
    config = study(group_sizes=())
    config.unlock().videos.sizes = ()
    sizes = {"sizes": (24, 48), "kernel_most": 24, "num_features": (24,), "num_people": 12, "num_images": 3}
    config.many.update(sizes)
    results = launch.execute(weak_study.run, config.lock(), tmp_path / "run")
    errors = {name: value for name, value in results.items() if "/error" in name}
    assert {name.split(", ")[1] for name in errors} == {f"{name}/error" for name in many.titles(config)}
    assert len(errors) == 1 + 1 + 4 * 2
    assert all(0 <= value <= 1 for value in errors.values())
    page = (tmp_path / "run" / "report.html").read_text()
    assert "it stops at 24" in page
    assert "12 new people" in page
    monkeypatch.setattr(many, "_BATCH", 5)
    again = many.errors(config)
    for name in ("features 24", "pixels"):
        for size, error in zip((24, 48), again[f"{name}/error"], strict=True):
            assert error == results[f"many groups, {name}/error, {size} images"]
