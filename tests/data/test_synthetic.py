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
    covariance = synthetic.random_covariance(rng, 5, decay=2.0)
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


@pytest.mark.parametrize("private_dim", [0, 3])
def test_paired_views_have_the_moments_of_their_model(rng, private_dim):
    data = synthetic.paired_views(
        rng, num_samples=30000, dim_x=4, dim_y=3, shared_dim=2, private_dim=private_dim, num_components=2
    )
    for k in range(2):
        rows = data.components == k
        assert abs(rows.mean() - data.weights[k]) < 5 * np.sqrt(0.25 / 30000)
        joint = np.concatenate([data.x, data.y], 1)[rows]
        loadings = np.concatenate([data.loadings_x[k], data.loadings_y[k]])
        expected = loadings @ loadings.T
        expected[:4, :4] += data.noise_cov_x[k]
        expected[4:, 4:] += data.noise_cov_y[k]
        error = sampling_error(expected, rows.sum())
        np.testing.assert_allclose(np.cov(joint.T), expected, atol=error)
        mean = np.concatenate([data.mean_x[k], data.mean_y[k]])
        np.testing.assert_allclose(joint.mean(0), mean, atol=5 * np.sqrt(np.diag(expected).max() / rows.sum()))
        residual = joint - mean - data.latents[rows] @ loadings.T
        np.testing.assert_allclose(residual[:, :4].T @ residual[:, 4:] / rows.sum(), 0, atol=error)


def test_generators_are_deterministic():
    def draws(seed):
        rng = np.random.default_rng(seed)
        faces = synthetic.rendered_faces(rng, num_people=2, images_per_person=2, size=(16, 16))
        return faces.data.images, synthetic.paired_views(rng, num_samples=3, dim_x=2, dim_y=2, shared_dim=1).x

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


def test_a_neutral_face_is_symmetric_and_lighting_is_not():
    frontal = rendering.render(rendering.MEAN_FACE, rendering.NEUTRAL, size=(32, 32))
    assert_close(frontal, frontal[:, ::-1])
    right = rendering.render(rendering.MEAN_FACE, rendering.NEUTRAL._replace(light_x=0.8), size=(32, 32))
    left = rendering.render(rendering.MEAN_FACE, rendering.NEUTRAL._replace(light_x=-0.8), size=(32, 32))
    assert_close(right, left[:, ::-1])
    assert right[:, 16:].mean() > right[:, :16].mean() + 0.05


def test_a_shift_moves_image_and_landmarks_by_whole_pixels():
    moved = rendering.NEUTRAL._replace(shift_x=3.0, shift_y=-2.0)
    still = rendering.render(rendering.MEAN_FACE, rendering.NEUTRAL, size=(40, 40))
    image = rendering.render(rendering.MEAN_FACE, moved, size=(40, 40))
    assert_close(image[4:34, 6:36], still[6:36, 3:33])
    points = [
        rendering.landmarks(rendering.MEAN_FACE, capture, size=(40, 40)) for capture in (rendering.NEUTRAL, moved)
    ]
    assert_close(points[1] - points[0], np.tile([3.0, -2.0], (13, 1)))


@pytest.mark.parametrize("roll", [0.0, 0.4])
def test_landmarks_lie_on_what_they_name(roll):
    capture = rendering.NEUTRAL._replace(roll=roll, log_scale=-0.1)
    size = (96, 96)
    image = rendering.render(rendering.MEAN_FACE, capture, size=size)
    at = dict(zip(rendering.LANDMARKS, rendering.landmarks(rendering.MEAN_FACE, capture, size=size), strict=True))

    def tone(x, y):
        return image[round(y), round(x)]

    cheek = tone(*(0.5 * at["mouth left"] + 0.5 * at["left eye outer"]))
    assert tone(*at["left brow"]) < 0.6 * cheek
    assert tone(*(0.5 * at["left eye inner"] + 0.5 * at["left eye outer"])) < 0.6 * cheek  # the iris
    assert tone(*(0.5 * at["upper lip"] + 0.5 * at["lower lip"])) < 0.6 * cheek
    assert at["left eye outer"][0] < at["left eye inner"][0] < at["right eye inner"][0]


def test_a_smile_lifts_the_corners_of_the_drawn_mouth_and_of_its_landmarks():
    rows = []
    for smile in (0.0, 1.0):
        capture = rendering.NEUTRAL._replace(smile=smile)
        image = rendering.render(rendering.MEAN_FACE, capture, size=(96, 96))
        x, y = rendering.landmarks(rendering.MEAN_FACE, capture, size=(96, 96))[rendering.LANDMARKS.index("mouth left")]
        rows.append((y, 60 + np.argmin(image[60:84, round(x) + 2])))
    lift = np.subtract(*rows)
    assert lift[0] == pytest.approx(0.07 * 48)
    assert 1 <= lift[1] <= 4


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
    with pytest.raises(ValueError, match="shared_dim must be at least 1"):
        synthetic.paired_views(rng, num_samples=2, dim_x=2, dim_y=2, shared_dim=0)
