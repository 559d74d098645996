import numpy as np
import pytest

from jaxface.data import rendering, synthetic
from tests.tolerances import assert_close


def sampling_error(truth, count):
    """Five standard errors of the largest entry of a sample covariance."""
    return 5 * np.diag(truth).max() * np.sqrt(2 / count)


def test_gaussian_identities_have_the_covariances_they_return(rng):
    data = synthetic.gaussian_identities(rng, num_people=6000, images_per_person=3, dim=4)
    assert data.features.shape == (18000, 4)
    between = np.cov(data.identities.T, bias=True)
    np.testing.assert_allclose(between, data.identity_cov, atol=sampling_error(data.identity_cov, 6000))
    residual = data.features - data.mean - data.identities[data.ids]
    np.testing.assert_allclose(
        residual.T @ residual / 18000, data.noise_cov, atol=sampling_error(data.noise_cov, 18000)
    )
    np.testing.assert_allclose(residual.T @ data.identities[data.ids] / 18000, 0, atol=0.05)


def test_gaussian_identities_with_given_parameters(rng):
    mean, rank_one = np.arange(3.0), np.outer([1, 2, 0], [1, 2, 0])
    data = synthetic.gaussian_identities(
        rng,
        num_people=2,
        images_per_person=[1, 4],
        dim=3,
        mean=mean,
        identity_cov=rank_one,
        noise_cov=np.zeros((3, 3)),
    )
    assert data.ids.tolist() == [0, 1, 1, 1, 1]
    assert_close(data.features[2], data.features[1])
    direction = data.features - mean
    np.testing.assert_allclose(direction[:, 1], 2 * direction[:, 0], atol=1e-12)
    np.testing.assert_allclose(direction[:, 2], 0, atol=1e-12)


def test_random_covariance(rng):
    covariance = synthetic._random_covariance(rng, 5, decay=2.0)
    assert_close(covariance, covariance.T)
    assert_close(np.linalg.eigvalsh(covariance)[::-1], np.exp(-2.0 * np.arange(5) / 5))


def test_errors_of_gaussian_identities(rng):
    def draw(**changes):
        return synthetic.gaussian_identities(rng, **({"num_people": 2, "images_per_person": 2, "dim": 2} | changes))

    with pytest.raises(ValueError, match="one count, or one for each of the 2 people"):
        draw(images_per_person=[1, 2, 3])
    with pytest.raises(ValueError, match="all at least 1"):
        draw(images_per_person=[1, 0])
    with pytest.raises(ValueError, match="noise_cov must be symmetric and positive semi-definite"):
        draw(noise_cov=[[1, 2], [2, 1]])
    with pytest.raises(ValueError, match="identity_cov must be symmetric"):
        draw(identity_cov=[[1, 0.5], [0, 1]])
    with pytest.raises(ValueError, match=r"mean must have shape \[2\]"):
        draw(mean=[0, 0, 0])


def test_generators_are_deterministic():
    def draws(seed):
        rng = np.random.default_rng(seed)
        faces = synthetic.rendered_faces(rng, num_people=2, images_per_person=2, size=(16, 16))
        people = synthetic.gaussian_identities(rng, num_people=2, images_per_person=2, dim=3)
        return faces.data.images, people.features

    assert_close(draws(1), draws(1), factor=0)
    assert not np.array_equal(draws(1)[0], draws(2)[0])


def test_rendered_faces(rng):
    faces = synthetic.rendered_faces(rng, num_people=3, images_per_person=[2, 1, 4], size=(24, 20))
    assert faces.data.images.shape == (7, 24, 20)
    assert faces.data.images.dtype == np.float32
    assert faces.data.images.min() >= 0
    assert faces.data.images.max() <= 1
    assert faces.data.ids.tolist() == [0, 0, 1, 2, 2, 2, 2]
    assert faces.data.names == ("person0", "person1", "person2")
    assert (len(faces.identities), len(faces.captures), faces.landmarks.shape) == (3, 7, (7, 13, 2))


def test_images_are_what_their_numbers_draw(rng):
    faces = synthetic.rendered_faces(rng, num_people=2, images_per_person=2, size=(20, 20), noise=0.0)
    for row, person in enumerate(faces.data.ids):
        drawn = rendering.render(faces.identities[person], faces.captures[row], size=(20, 20))
        assert_close(faces.data.images[row], drawn.astype(np.float32))
        assert_close(
            faces.landmarks[row],
            rendering.landmarks(faces.identities[person], faces.captures[row], size=(20, 20)),
        )


def test_without_changes_all_images_of_a_person_are_one(rng):
    faces = synthetic.rendered_faces(
        rng,
        num_people=2,
        images_per_person=2,
        pose=0.0,
        lighting=0.0,
        expression=0.0,
        noise=0.0,
        size=(16, 16),
    )
    assert_close(faces.data.images[0], faces.data.images[1])
    assert np.abs(faces.data.images[0] - faces.data.images[2]).max() > 0.05


def test_faces_lie_near_a_low_dimensional_surface_and_tell_people_apart(rng):
    faces = synthetic.rendered_faces(rng, num_people=12, images_per_person=10, size=(24, 24))
    x = faces.data.images.reshape(120, -1).astype(np.float64)
    energy = np.linalg.svd(x - x.mean(0), compute_uv=False) ** 2
    assert energy[:30].sum() > 0.85 * energy.sum()
    distance = ((x[:, None] - x[None]) ** 2).sum(-1)
    np.fill_diagonal(distance, np.inf)
    error = (faces.data.ids[distance.argmin(1)] != faces.data.ids).mean()
    assert 0 < error < 0.4  # neither trivial nor hopeless; chance is 0.92


def test_face_tracks_jump_only_between_runs(rng):
    tracks = synthetic.face_tracks(
        rng, num_people=2, tracks_per_person=3, runs_per_track=4, frames_per_run=5, size=(40, 40), step=0.5
    )
    assert tracks.data.images.shape == (120, 40, 40)
    assert tracks.frames.tolist() == list(range(20)) * 6
    assert np.bincount(tracks.groups).tolist() == [5] * 24
    assert tracks.data.ids.tolist() == np.repeat([0, 1], 60).tolist()
    moved = np.linalg.norm(np.diff(tracks.landmarks, axis=0), axis=-1).mean(-1)
    same_track = np.diff(tracks.tracks) == 0
    same_run = np.diff(tracks.groups) == 0
    assert moved[same_run].max() < 1.0
    assert moved[same_track & ~same_run].min() > 0.1 * 40 - 1.0
    assert moved[same_run].mean() > 0.05


def test_errors_of_drawn_faces(rng):
    with pytest.raises(ValueError, match="runs_per_track must be at least 1; got 0"):
        synthetic.face_tracks(rng, num_people=1, tracks_per_person=1, runs_per_track=0, frames_per_run=2)
    with pytest.raises(ValueError, match="num_people must be at least 1; got 0"):
        synthetic.rendered_faces(rng, num_people=0, images_per_person=1)
