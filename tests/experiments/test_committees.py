"""The parts of the study of committees: who is where in a split, and what every method sees."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from configs import committee as config_file
from experiments.committee import analysis, illustrations, methods, report, samples
from experiments.committee import study as committee
from experiments.committee.methods import COMMITTEES, METHODS, SINGLE
from jaxface.core import prng
from jaxface.ensembles import PAIR_SCORES, diagnose, growth, lda_member, log_posteriors, sampling
from tests.tolerances import assert_close

IDS = np.repeat(np.arange(6, dtype=np.int32), 8)


def study(**fields):
    config = config_file.get_config("smoke").unlock()
    config.update({"num_train": (3,), "num_splits": 1, "num_members": 4, **fields})
    return config.lock()


def faces(rng, *, spread=1.0):
    """Six people with eight images of 30 values."""
    return jnp.asarray(3 * rng.normal(size=(6, 30))[IDS] + spread * rng.normal(size=(48, 30)))


def split_of(config, x):
    (num_train,) = config.num_train
    return next(samples.random_samples(config, x, IDS, num_train))


def test_rows_of_a_split_differ_and_probes_are_shared(monkeypatch):
    monkeypatch.setattr(samples, "_principal_axes", lambda x, train, num_axes: None)
    monkeypatch.setattr(samples, "_coordinates", lambda axes, x: x[:, 0])
    config = study(num_train=(2, 3), num_splits=3)
    rows = np.arange(48)
    for small, large in zip(
        *(samples.random_samples(config, rows[:, None], IDS, size) for size in (2, 3)), strict=True
    ):
        np.testing.assert_array_equal(small.probes, large.probes)
        np.testing.assert_array_equal(small.held_out, large.held_out)
        assert set(small.train) < set(large.train)
        parts = ((large.train, large.train_ids, 3), (large.held_out, large.held_out_ids, 2))
        parts += ((large.probes, large.probe_ids, 3),)
        np.testing.assert_array_equal(np.sort(np.concatenate([part for part, _, _ in parts])), rows)
        for part, ids, images in parts:
            np.testing.assert_array_equal(ids, IDS[part])
            assert np.bincount(ids).tolist() == [images] * 6


def test_coordinates_are_principal_axes_of_the_training_images(rng):
    split = split_of(study(), faces(rng))
    y = np.asarray(split.train)
    assert y.shape == (18, 17)
    assert_close(y.mean(axis=0), np.zeros(17), factor=10)
    scatter = y.T @ y
    assert_close(scatter, np.diag(np.diag(scatter)), factor=10)
    assert (np.diff(np.diag(scatter)) < 0).all()
    assert samples.most_axes(split, 0.0) == 18 - 6
    variances = np.diag(scatter) / scatter[0, 0]
    assert samples.most_axes(split, float(variances[4])) == 4  # more than the floor


def test_members_have_the_axes_and_bags_that_they_are_named_for(rng):
    config = study(fixed_part=0.25, random_part=0.5)
    split = split_of(config, faces(rng))
    found = methods.committees(config, split, jax.random.key(0))
    assert tuple(found) == COMMITTEES
    for name, members in found.items():
        assert members.axes.shape == (4, 3 + 6)
        np.testing.assert_array_equal(members.axes[:, :3], np.broadcast_to(np.arange(3), (4, 3)))
        leading = np.broadcast_to(np.arange(9), (4, 9))
        assert np.array_equal(members.axes, leading) == name.startswith(("bags", "bootstrap"))
    # With 60 % of six people in a bag there are three directions between them.
    rank = (np.abs(found["bags of people"].basis).sum(axis=1) > 0).sum(axis=1)
    np.testing.assert_array_equal(rank, [3] * 4)
    both = found["random subspaces of bags of images"]
    np.testing.assert_array_equal(both.axes, found["random subspaces"].axes)
    assert not np.array_equal(both.basis, found["random subspaces"].basis)
    few = methods.committees(study(num_train=(2,)), split_of(study(num_train=(2,)), faces(rng)), jax.random.key(0))
    assert not any("images" in name for name in few)
    assert tuple(methods.committees(study(committees=()), split, jax.random.key(0))) == COMMITTEES[:1]


def test_people_far_apart_are_named_by_every_method(rng):
    config = study(size_parts=((0.25, 0.5),))
    x = faces(rng, spread=0.1)
    found = committee.of_size(config, x, IDS, 3)
    for name, size in (("errors", len(METHODS)), ("rules", 7), ("eer", 2)):
        np.testing.assert_array_equal(found[name], np.zeros((size, 1)))
    assert found["out of bag"][0] == 0  # a bootstrap of three images a person leaves people out
    assert found["test to train"] == 1.0  # 8 images of everybody less 3 for training and 2 held out
    split = split_of(config, x)
    swapped = split._replace(probe_ids=np.array([1, 0, 2, 3, 4, 5])[split.probe_ids])
    np.testing.assert_allclose(methods.errors(config, swapped, 0)["errors"], 1 / 3)


def test_single_members_are_the_widest_the_tuned_and_the_ridged(rng):
    config = study(pca_widths=(0.5, 1.0), ridges=(0.1,))
    split = split_of(config, faces(rng, spread=2.0))
    fisher, tuned, ridged = methods.single(config, split)
    assert len(SINGLE) == 3
    used = [int((np.asarray(each.axes) >= 0).sum()) for each in (fisher, tuned, ridged)]
    assert used == [18 - 6, 6, 17]
    errors = [methods.held_out_error(each, split, lda_member.gaussian) for each in (tuned, fisher)]
    assert errors[0] < errors[1]


def test_the_number_of_lda_axes_is_chosen_by_held_out_images(rng):
    config = study(lda_widths=(0.2, 0.6, 1.0))
    split = split_of(config, faces(rng, spread=4.0))
    assert methods.lda_widths(config, 5) == [1, 3, 5]
    chosen = methods.fewer_axes(config, split, methods.key_of(config, 0))
    axes = methods.committees(config, split, methods.key_of(config, 0))["random subspaces"].axes
    np.testing.assert_array_equal(chosen.axes, axes)
    errors = {}
    for width in (1, 3, 5):
        members, _ = lda_member.fit(split.train, split.train_ids, axes, num_classes=6, num_components=width)
        errors[width] = methods.held_out_error(members, split, lda_member.gaussian)
    width = int((np.abs(np.asarray(chosen.basis)).sum(axis=(0, 1)) > 0).sum())
    assert errors[width] == min(errors.values())
    assert methods.held_out_error(chosen, split, lda_member.gaussian) == errors[width]


def test_the_posterior_of_the_config_serves_every_method(rng):
    split = split_of(study(), faces(rng, spread=4.0))
    found = [methods.errors(study(posterior=name), split, 0) for name in ("gaussian", "cosine")]
    assert (found[0]["errors"][:3] != found[1]["errors"][:3]).any()


def test_illustrations_are_densities_and_decisions(rng):
    config = study()
    split = split_of(config, faces(rng, spread=2.0))
    members = methods.committees(study(committees=()), split, jax.random.key(0))["random subspaces"]
    found = illustrations.measure(config, members, split)
    step = found["y"][1] - found["y"][0]
    assert found["density"].shape == (4, len(found["y"]))
    inside = (found["density"] * step).sum(axis=1)
    assert ((inside > 0) & (inside < 1.01)).all()
    place = [int(np.abs(found[f"region {axis}"]).argmin()) for axis in "xy"]
    level = found["levels"][:, place[1], place[0]]
    assert np.isfinite(level).all()
    left, right = found["levels"][-1, place[1], 0], found["levels"][-1, place[1], -1]
    assert left > 0 > right  # the mean of the first is on the left
    assert len(illustrations.pictures(found, 3)) == 2


def test_members_that_may_choose_freely_choose_alike(rng):
    config = study(num_candidates=6, choices=(1, 6), candidate_part=0.3)
    found = analysis.strength_against_diversity(config, split_of(config, faces(rng, spread=3.0)))
    assert_close(found["rho correlation"][1], 1.0)
    assert_close(found["rho committee error"][1], found["rho average error"][1])
    assert found["rho correlation"][0] < 1
    assert found["rho committee error"][0] < found["rho average error"][0]


def test_sizes_are_parts_of_the_freedom(rng):
    config = study(size_parts=((0.0, 0.5), (0.25, 0.5)))
    found = analysis.sizes(config, split_of(config, faces(rng)))
    np.testing.assert_array_equal(found["fixed"], [0, 3])
    np.testing.assert_array_equal(found["drawn"], [6, 6])
    assert found["accuracy"].shape == (2, 4)
    assert (found["committee error"] <= found["average error"]).all()


def test_every_size_is_a_committee_of_its_own(rng):
    config = study(size_parts=((0.0, 0.5), (0.25, 0.5)))
    split = split_of(config, faces(rng, spread=2.0))
    found = analysis.sizes(config, split)
    key = prng.stream(jax.random.key(config.seed), "sizes")
    variances = (split.train**2).mean(axis=0)
    for place, (fixed, drawn) in enumerate(zip(found["fixed"], found["drawn"], strict=True)):
        axes = sampling.feature_subspaces(key, variances, num_members=4, num_fixed=int(fixed), num_random=int(drawn))
        members, _ = lda_member.fit(split.train, split.train_ids, axes, num_classes=6)
        log_p = log_posteriors(members, split.probes, posterior=lda_member.gaussian)
        assert_close(found["accuracy"][place], growth(log_p, split.probe_ids).accuracy)
        diagnosis = diagnose(log_p, split.probe_ids)
        alone = (diagnosis.average_error, diagnosis.committee_error, diagnosis.mean_correlation)
        together = tuple(found[name][place] for name in ("average error", "committee error", "correlation"))
        assert_close(together, jax.tree.map(np.asarray, alone), factor=1000)


@pytest.mark.parametrize("name", PAIR_SCORES)
def test_every_pair_score_tells_people_far_apart(name, rng):
    config = study(pair_score=name)
    np.testing.assert_array_equal(methods.errors(config, split_of(config, faces(rng, spread=0.1)), 0)["eer"], [0, 0])


def test_everybody_needs_images_of_all_three_kinds():
    with pytest.raises(ValueError, match=r"need 9 images of everybody; somebody has 8"):
        committee._enough_images(study(num_train=(3, 6)), IDS)


def test_a_committee_by_another_name_is_shown_once(rng):
    """Where the floor leaves out no axis, drawing from all axes is the same committee: two equal rows say nothing."""
    errors = rng.random((len(METHODS), 5))
    errors[4] = errors[3]
    arrays = {
        2: {"errors": errors, "test to train": np.array(1.0)},
        3: {"errors": errors, "test to train": np.array(1.0)},
    }
    config = study(num_splits=5)
    names = [row[0] for row in report.headline(config, arrays).rows]
    assert names == [name for name in METHODS if "all axes, sum" not in name]
    assert report.REPEATED in report.headline(config, arrays).caption
    arrays[3] = {
        **arrays[3],
        "errors": errors * np.where(np.arange(len(METHODS)) == 4, 0.9, 1.0)[:, None],
    }  # one size differs
    assert [row[0] for row in report.headline(config, arrays).rows] == list(METHODS)
    assert report.REPEATED not in report.headline(config, arrays).caption
