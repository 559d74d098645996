"""The study of super vectors: its splits, its classifiers, and retrieval across views of made-up people."""

import itertools
from functools import partial

import jax.numpy as jnp
import numpy as np
import pytest
import scipy.io

from configs import super_vector as config_file
from experiments.super_vector import ablations, codes, cross_view, missing, recognize, sets, spectra
from experiments.super_vector import study as super_vector
from jaxface.data.splits import Split
from jaxface.runtime import launch
from tests import by_numpy
from tests.experiments import again


def changed(variant=None, **fields):
    config = config_file.get_config(variant).unlock()
    for name, value in fields.items():
        section, _, field = name.rpartition("__")
        setattr(config[section] if section else config, field, value)
    return config.lock()


def test_splits_share_probes_and_smaller_ones_lie_in_larger_ones():
    config = changed(num_train=(2, 5), num_splits=3)
    ids = np.repeat(np.arange(4), 8).astype(np.int32)
    for small, large in zip(*(sets.random_splits(config, ids, size) for size in (2, 5)), strict=True):
        np.testing.assert_array_equal(small.test, large.test)
        assert set(small.train) < set(large.train)
        assert not set(large.train) & set(large.test)
        np.testing.assert_array_equal(ids[small.train], np.repeat(np.arange(4), 2))
        assert len(large.train) + len(large.test) == len(ids)
    with pytest.raises(ValueError, match=r"config\.num_train must be at most 7 \(somebody has 8 images"):
        sets.random_splits(changed(num_train=(8,)), ids, 8)


def test_every_size_once_and_the_default_first():
    config = changed(num_components=16, latent_dim=8, components=(4, 16), latent_dims=(2, 8))
    assert codes.settings(config) == [(16, 8), (4, 8), (16, 2)]


def test_classifiers_agree_on_people_who_are_far_apart(rng):
    """Unit vectors around a direction of each person; with the names of two swapped, their probes are errors."""
    ids = np.repeat(np.arange(6), 5).astype(np.int32)
    x = np.eye(6, 20)[ids] + 0.05 * rng.normal(size=(30, 20))
    x /= np.linalg.norm(x, axis=1, keepdims=True)
    split = Split(np.flatnonzero(np.arange(30) % 5 < 3), np.flatnonzero(np.arange(30) % 5 >= 3))
    config = changed()
    found = recognize.evaluate(config, jnp.asarray(x), ids, split, longest=20)
    np.testing.assert_array_equal(found.errors, 0)
    np.testing.assert_array_equal(found.eer, 0)
    names = ids.copy()
    names[split.train] = np.array([1, 0, 2, 3, 4, 5])[ids[split.train]]
    swapped = recognize.evaluate(config, jnp.asarray(x), names, split, longest=20)
    np.testing.assert_allclose(swapped.errors, 1 / 3)


def two_views(folder, rng, *, is_shared=False):
    """Ten people, four captures: x and y of a capture share a latent of the person and one of their own.

    With `is_shared` one view of person 1 is one of person 3 too.
    """
    person = np.repeat(rng.normal(size=(10, 3)), 4, axis=0)
    capture = rng.normal(size=(40, 3))
    x, y = ((capture + 3 * person) @ rng.normal(size=(3, dim)) + 0.3 * rng.normal(size=(40, dim)) for dim in (7, 6))
    if is_shared:
        y[9] = y[1]
    cells = np.empty((1, 2), object)
    cells[0, 0], cells[0, 1] = x.T, y.T
    file = folder / "views.mat"
    scipy.io.savemat(file, {"data": cells, "truth": np.repeat(np.arange(10), 4)[:, None] + 1})
    return file


SMALL = {
    "num_train": (2,), "num_splits": 2, "num_axes": 5, "num_components": 1, "latent_dim": 2, "components": (1,),
    "latent_dims": (2,), "num_iters": 3, "num_resamples": 20,
    "views__components": (1,), "views__latent_dim": 3, "views__latent_dims": (3,),
    "reconstruction__num_atoms": 8, "reconstruction__sparsities": (3,), "reconstruction__num_iters": 1,
    "reconstruction__ridges": (0.01, 100.0),
}  # fmt: skip


def test_two_views_from_a_file(tmp_path, rng):
    config = changed("two_view", views__root=str(two_views(tmp_path, rng)), **SMALL)
    results = launch.execute(super_vector.run, config, tmp_path / "run")
    assert all(0 <= value <= 100 for name, value in results.items() if "%" in name)
    for training in cross_view.TRAINING:
        for score in cross_view.SCORES[1:]:
            of_score = {name.partition(",")[0] for name in results if f"{score}, across views, {training}" in name}
            assert of_score == {"EER", "Cllr", "min Cllr"} | ({"raw Cllr"} if score == "likelihood ratio" else set())
            lowest, calibrated = (
                results[f"{name}, {score}, across views, {training}"] for name in ("min Cllr", "Cllr")
            )
            assert 0 < lowest <= calibrated
    assert "raw Cllr, super vector, cosine, 2 images" not in results
    assert (
        results["raw Cllr, super vector, Joint Bayes, 2 images"]
        >= results["min Cllr, super vector, Joint Bayes, 2 images"]
    )
    assert results["rank 1 %, likelihood ratio, 1 components, people, another capture"] > 50  # by chance 15: 3 of 19
    page = (tmp_path / "run" / "report.html").read_text()
    assert "Search with one view" in page
    left = {name: results[f"variance left %, {name}"] for name in spectra.METHODS}
    assert left["the mean view"] == pytest.approx(100, abs=0.1)
    assert max(left[name] for name in spectra.METHODS[1:]) < 10  # both views have three latent numbers
    assert page.count("<figure>") >= 1
    with pytest.raises(ValueError, match=r"config\.views\.y must be at most 1 \(the file has 2 views\); got 2"):
        sets.load(changed("two_view", views__root=config.views.root, views__y=2))
    again.check(super_vector.run, config, tmp_path / "run", results, tmp_path / "views.mat", "views.mat")


@pytest.mark.parametrize(("num_axes", "widths"), [(None, (9, 9)), (9, (9, 9)), (4, (4, 4))])
def test_views_of_many_dimensions_are_reduced_on_people_who_train(num_axes, widths, rng):
    views = tuple(jnp.asarray(rng.normal(size=(24, 9))) for _ in "xy")
    faces = sets.Sets(views, np.repeat(np.arange(6), 4).astype(np.int32), tuple("abcdef"), "", ())
    config = changed("two_view", num_splits=1, views__num_axes=num_axes)
    (people,) = cross_view.random_people(config, faces)
    assert tuple(view.shape for view in people.train) == tuple((12, width) for width in widths)
    assert (people.probes.shape, people.gallery.shape) == tuple((12, width) for width in widths)
    # Principal coordinates of different views have nothing in common.
    assert people.is_one_space == (widths == (9, 9))
    if num_axes == 4:
        spread = people.train[0].T @ people.train[0]
        np.testing.assert_allclose(spread, np.diag(np.diag(spread)), atol=1e-10)
        np.testing.assert_allclose(people.train[0].mean(axis=0), 0, atol=1e-12)


def test_training_pairs_of_a_person_are_limited(rng):
    ids = np.repeat([0, 1, 2], [2, 9, 3])
    x, y = np.arange(14.0)[:, None], 100 + np.arange(14.0)[:, None]
    people = cross_view.People((x, y), ids, None, None, None, False)
    assert [len(each) for each in cross_view.training_pairs(people, "captures", max_images=4)] == [14, 14]
    left, right = cross_view.training_pairs(people, "people", max_images=4)
    np.testing.assert_array_equal(np.bincount(ids[left[:, 0].astype(int)]), [4, 16, 9])
    np.testing.assert_array_equal(ids[left[:, 0].astype(int)], ids[right[:, 0].astype(int) - 100])


def test_one_view_under_two_names_is_refused(tmp_path, rng):
    file = two_views(tmp_path, rng, is_shared=True)
    with pytest.raises(ValueError, match=r"view 1 of .*views\.mat holds the same image or vector under two names"):
        sets.load(changed("two_view", views__root=str(file)))


def test_rank_one_of_both_tasks():
    """Query 0 finds its own capture first and another person's second, query 1 the person only."""
    scores = np.array([[9.0, 8, 0, 0], [1, 7, 0, 0], [5, 0, 9, 8], [0, 0, 8, 9]])
    same, other = cross_view.rates_of(scores, np.array([0, 0, 1, 1]))
    assert (same, other) == (0.75, 0.75)


def test_views_are_removed_as_asked(rng):
    """A larger share takes more of the same views, and an image keeps one."""
    drawn = rng.random((200, 3))
    masks = [missing.presence(drawn, np.full(200, share)) for share in (0.0, 0.25, 0.5, 1.0)]
    assert masks[0].all()
    assert 0.7 < masks[1].mean() < 0.8
    assert all((small >= large).all() for small, large in itertools.pairwise(masks))
    np.testing.assert_array_equal(masks[3].sum(axis=1), 1)
    half = missing.presence(drawn, np.where(np.arange(200) < 100, 0.0, 0.5))
    assert half[:100].all()
    np.testing.assert_array_equal(half[100:], masks[2][100:])


def test_coordinates_come_from_training_images_that_have_the_view(rng):
    views = (rng.normal(size=(20, 6)), rng.normal(size=(20, 2)))
    present, train = rng.random((20, 2)) > 0.3, np.arange(12)
    config = changed("missing", num_axes=3)
    found = missing.coordinates(config, views, present, train)
    spoiled = tuple(np.where(present[:, [v]], view, 1e9) for v, view in enumerate(views))
    for view, again_, mask in zip(found, missing.coordinates(config, spoiled, present, train), present.T, strict=True):
        np.testing.assert_array_equal(view, again_)
        assert view.shape == (20, 3)
        assert (view[~mask] == 0).all()
        own = view[:12][mask[:12]]
        np.testing.assert_allclose(own.mean(axis=0), 0, atol=1e-9)
        np.testing.assert_allclose((own**2).sum(axis=1).mean(), 1, rtol=1e-9)


def test_missing_views_from_a_file(tmp_path, rng, monkeypatch):
    """People who are far apart are found with half of the views; one run, without a program for every pattern."""
    traced = missing.codes_of.__wrapped__
    monkeypatch.setattr(missing, "codes_of", lambda *args, **sizes: by_numpy.evaluate(partial(traced, **sizes), *args))
    fields = {
        "num_train": (2,),
        "num_splits": 2,
        "num_axes": 4,
        "latent_dim": 3,
        "num_iters": 3,
        "missing__shares": (0.5,),
    }
    config = changed("missing", views__root=str(two_views(tmp_path, rng)), **fields)
    results = launch.execute(super_vector.run, config, tmp_path / "run")
    assert len(results) == 4 * len(missing.METHODS)
    for method in missing.METHODS:
        whole, gaps = (results[f"error %, {method}, {words}, 2 images"] for words in ("nothing missing", "50 %, both"))
        assert whole < 80  # by chance 90
        assert whole < gaps < 90
    page = (tmp_path / "run" / "report.html").read_text()
    assert "Loss by missing views" in page
    assert (tmp_path / "run" / "params" / "mixture.safetensors").is_file()
    with pytest.raises(ValueError, match=r"--config\.views\.root is missing"):
        missing.load(changed("missing"))


def test_the_steps_of_the_normalisation_are_left_out_one_by_one(rng):
    parts = rng.normal(size=(3, 4)), rng.normal(size=(3, 2))
    for name, normalize in ablations.NORMALIZATIONS.items():
        changed_parts = parts
        if name in ("root and unit rows", "without unit rows"):
            changed_parts = [np.sign(part) * np.abs(part) ** 0.5 for part in changed_parts]
        if name in ("root and unit rows", "without the root"):
            changed_parts = [part / np.linalg.norm(part, axis=1, keepdims=True) for part in changed_parts]
        vector = np.concatenate([part.ravel() for part in changed_parts])
        found = normalize(tuple(map(jnp.asarray, parts)))
        np.testing.assert_allclose(found, vector / np.linalg.norm(vector), rtol=1e-6)


def test_joint_bayes_without_a_prior_knows_people_who_are_far_apart(rng):
    ids = np.repeat(np.arange(6), 5).astype(np.int32)
    x = np.eye(6, 20)[ids] + 0.05 * rng.normal(size=(30, 20))
    split = Split(np.flatnonzero(np.arange(30) % 5 < 3), np.flatnonzero(np.arange(30) % 5 >= 3))
    config = changed("ablations", leading_axes=4)
    faces = sets.Sets((), ids, tuple("abcdef"), "", ())
    assert ablations.without_prior(config, jnp.asarray(x), faces, split) == 0.0
    swapped = ids.copy()
    swapped[split.test] = np.array([1, 0, 2, 3, 4, 5])[ids[split.test]]
    faces = faces._replace(ids=swapped)
    assert ablations.without_prior(config, jnp.asarray(x), faces, split) == pytest.approx(1 / 3)


def test_what_is_missing_is_named():
    with pytest.raises(ValueError, match=r"--config\.views\.root is missing"):
        sets.load(changed("two_view"))
    with pytest.raises(ValueError, match=r"config\.source must be one of 'images', 'views'; got 'veiws'"):
        sets.load(changed(source="veiws"))
