"""Correlated frames against dense Gaussians whose noise is correlated within a track."""

import jax
import numpy as np
import pytest

from jaxface.joint_bayes import (
    collect_tracks,
    diagonalize,
    log_likelihood,
    posterior,
    set_llr,
    set_sums,
    track_weights,
)
from jaxface.joint_bayes.stats import by_person
from tests.joint_bayes import draws
from tests.reference import quality_reference as reference
from tests.tolerances import assert_close

# Two people: tracks of three and of two frames and one frame alone; a track of four.
TRACKS = np.array([0, 0, 0, 1, 1, -1, 2, 2, 2, 2], np.int32)
IDS = np.array([0, 0, 0, 0, 0, 0, 1, 1, 1, 1], np.int32)
RHO = 0.6


def noise_of(person):
    alone = np.where(TRACKS < 0, 100 + np.arange(10), TRACKS)
    return reference.track_noise(alone[person == IDS], RHO)


def test_scores_and_posteriors_of_correlated_frames(rng):
    model, x = draws.joint_bayes(rng), rng.normal(size=(10, 3))
    weights = track_weights(TRACKS, num_tracks=3, correlation=RHO)
    assert_close(weights[6], 1 / (1 + 3 * RHO))
    assert float(weights[5]) == 1
    basis = diagonalize(model)
    sums = set_sums(basis, x, IDS, num_sets=2, weights=weights)
    found = set_llr(basis, sums.sum[0], sums.weight[0], sums.sum[1], sums.weight[1])
    assert_close(found, reference.llr(model, x[:6], noise_of(0), x[6:], noise_of(1)), factor=10)
    mean, cov = posterior.identity(model, weights[:6] @ x[:6], weights[:6].sum())
    expected = reference.posterior(model, x[:6], noise_of(0))
    assert_close((mean, cov), expected, factor=10)


def test_the_likelihood_of_correlated_frames(rng):
    model, x = draws.joint_bayes(rng), rng.normal(size=(10, 3))
    settings = {"num_people": 2, "num_tracks": 3, "shift": rng.normal(size=3)}
    stats = collect_tracks(x, IDS, TRACKS, correlation=RHO, **settings)
    expected = sum(reference.log_density(model, x[person == IDS], noise_of(person)) for person in (0, 1))
    assert_close(posterior.full(model, by_person(stats))[1], expected, factor=10)
    assert_close(log_likelihood(model, stats), expected, factor=10)
    np.testing.assert_array_equal(stats.num_images, [6, 4])
    without_two = collect_tracks(x, np.where(np.arange(10) == 2, -1, IDS), TRACKS, correlation=RHO, **settings)
    kept = np.array([0, 1, 3, 4, 5])
    expected = reference.log_density(model, x[kept], noise_of(0)[np.ix_(kept, kept)])
    expected += reference.log_density(model, x[6:], noise_of(1))
    assert_close(log_likelihood(model, without_two), expected, factor=10)


def test_the_extremes(rng):
    np.testing.assert_array_equal(track_weights(TRACKS, num_tracks=3, correlation=0.0), np.ones(10))
    one = track_weights(TRACKS, num_tracks=3, correlation=1.0)
    assert_close(jax.ops.segment_sum(one[6:], TRACKS[6:] - 2, 1), np.ones(1))
    assert track_weights(TRACKS, num_tracks=3, correlation=np.float32(0.5)).dtype == np.float32


def test_errors(rng):
    x = rng.normal(size=(10, 3))
    settings = {"num_people": 2, "num_tracks": 3, "shift": np.zeros(3)}
    with pytest.raises(ValueError, match=r"correlation must lie in \[0, 1\); got 1.0"):
        collect_tracks(x, IDS, TRACKS, correlation=1.0, **settings)
    with pytest.raises(ValueError, match=r"correlation must lie in \[0, 1\]; got -0.1"):
        track_weights(TRACKS, num_tracks=3, correlation=-0.1)
    with pytest.raises(ValueError, match=r"tracks must be in \[0, 2\) or -1 for padding; got values from -1 to 2"):
        track_weights(TRACKS, num_tracks=2, correlation=0.1)
    with pytest.raises(
        ValueError, match="tracks must be of one person each; 1 of 3 are not, the first is track 2 with"
    ):
        collect_tracks(x, np.where(np.arange(10) == 9, 0, IDS), TRACKS, correlation=0.1, **settings)


def test_held_out_tracks_choose_the_correlation(rng):
    """Two tracks of four frames a person; the likelihood of the frames is largest at the true correlation."""
    model, zero = draws.joint_bayes(rng), np.zeros(3)
    mean, identity, noise = (np.asarray(a) for a in (model.mean, model.identity_cov, model.noise_cov))
    ids, tracks = np.repeat(np.arange(150), 8), np.repeat(np.arange(300), 4)
    x = mean + rng.multivariate_normal(zero, identity, 150)[ids]
    x += np.sqrt(RHO) * rng.multivariate_normal(zero, noise, 300)[tracks]
    x += np.sqrt(1 - RHO) * rng.multivariate_normal(zero, noise, 1200)
    settings = {"num_people": 150, "num_tracks": 300, "shift": mean}
    values = [
        float(log_likelihood(model, collect_tracks(x, ids, tracks, correlation=r, **settings)))
        for r in (0.0, 0.3, RHO, 0.9)
    ]
    assert np.argmax(values) == 2
    assert_close(track_weights(np.zeros(5, int), num_tracks=1, correlation=RHO).sum(), 5 / 3.4)
