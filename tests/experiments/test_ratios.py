"""Scores as log-likelihood ratios, calibrated on other people, and who takes part in a study."""

import jax.numpy as jnp
import numpy as np
import pytest
from ml_collections import ConfigDict

from experiments.common import people, ratios
from experiments.common.inputs import Vectors
from experiments.common.ratios import Trials
from jaxface import metrics
from jaxface.losses import calibration


def made(rng, *, num_people=12, images=5, scale=1.0):
    """Pairs of images around a direction of each person, by cosine times `scale`."""
    ids = np.repeat(np.arange(num_people), images) + 3
    x = 2 * rng.normal(size=(num_people, 8))[ids - 3] + rng.normal(size=(len(ids), 8))
    x /= np.linalg.norm(x, axis=1, keepdims=True)
    return ratios.of_matrix(scale * x @ x.T, ids)


def test_a_pair_is_calibrated_by_pairs_of_other_people(rng):
    """Against a fit for each pair of folds on the scores themselves; the bins hold few scores here."""
    trials = made(rng)
    found = ratios.across_people(trials, seed=0)
    fold = np.random.default_rng((0, 4)).permutation(12) % ratios.NUM_FOLDS
    first, second = fold[trials.first - 3], fold[trials.second - 3]
    for i, j in ((0, 0), (1, 3)):
        own = ((first == i) & (second == j)) | ((first == j) & (second == i))
        used = ~np.isin(first, (i, j)) & ~np.isin(second, (i, j))
        affine, _ = calibration.fit(trials.scores, trials.is_same, sample_weights=used.astype(float))
        expected = np.asarray(calibration.calibrate(affine, trials.scores[own]))
        np.testing.assert_allclose(found[own], expected, atol=0.02)
    changed = trials._replace(scores=np.where(fold[trials.first - 3] == 1, 9.0, trials.scores))
    untouched = (first == 1) & (second == 1)
    moved = ratios.across_people(changed, seed=0)[untouched]
    slope = (found[untouched][1] - found[untouched][0]) / (trials.scores[untouched][1] - trials.scores[untouched][0])
    offset = found[untouched][0] - slope * trials.scores[untouched][0]
    np.testing.assert_allclose(moved, slope * 9.0 + offset, atol=0.05)  # the fit has not seen its own fold


def test_the_unit_of_a_score_does_not_matter_and_too_few_people_have_no_cllr(rng):
    state = rng.bit_generator.state
    plain = ratios.measured(made(rng), seed=0)
    rng.bit_generator.state = state
    large = ratios.measured(made(rng, scale=1000.0), seed=0)
    assert plain["Cllr"] == pytest.approx(large["Cllr"], abs=1e-6)
    assert plain["min Cllr"] == pytest.approx(large["min Cllr"])
    assert np.isnan(plain["raw Cllr"])
    assert plain["min Cllr"] <= plain["Cllr"] < 1
    trials = made(rng, num_people=3)
    few = ratios.measured(trials, seed=0, is_ratio=True)
    assert np.isnan(few["Cllr"])
    assert few["raw Cllr"] == metrics.cllr(trials.scores, trials.is_same)


def test_arrays_of_a_stage_become_cells_and_results(rng):
    scored = [{"cosine": made(rng), "ratio": made(rng, scale=8.0)} for _ in range(2)]
    found = ratios.together(scored, ratios=("ratio",), num_resamples=30, seed=0)
    assert {name: value.shape for name, value in found.items()} == {
        "raw Cllr": (2, 2), "Cllr": (2, 2), "min Cllr": (2, 2), "people": (2, 2, 3)
    }  # fmt: skip
    named = ratios.results(("cosine", "ratio"), found, "5 images")
    assert "raw Cllr, cosine, 5 images" not in named
    assert named["raw Cllr, ratio, 5 images"] == pytest.approx(found["raw Cllr"][1].mean())
    for estimate, low, high in found["people"].reshape(-1, 3):
        assert low < estimate < high
    table = ratios.table(("cosine", "ratio"), found, test_to_train=1.0, caption="")
    assert len(table.columns) == len(table.rows[0]) == 1 + len(ratios.COLUMNS)
    both = [np.concatenate(fields) for fields in zip(*(each["ratio"] for each in scored), strict=True)]
    assert not np.isnan(Trials(*both).scores).any()


def test_people_with_enough_images_take_part():
    config = ConfigDict({"people": {"min_images": 3, "max_images": 4}})
    ids = np.repeat(np.arange(4), [2, 3, 9, 1])
    files = tuple(map(str, range(15)))
    vectors = Vectors(x=np.arange(15.0)[:, None], ids=ids, names=tuple("abcd"), files=files)
    found = people.chosen(config, vectors)
    assert found.names == ("b", "c")
    np.testing.assert_array_equal(found.ids, [0, 0, 0, 1, 1, 1, 1])
    assert tuple(str(int(row)) for row in found.x[:, 0]) == found.files
    assert (
        people.in_words(config, vectors, found) == "2 of 4 people, all with 3 images or more, at most 4 images of each"
    )
    config.people.min_images = 5
    with pytest.raises(ValueError, match=r"config\.people\.min_images = 5 leaves 1 people; the largest .* is 9"):
        people.chosen(config, vectors)
    assert jnp.asarray(found.x).shape == (7, 1)
