"""People out of a heap of photos: measured on known people, and applied to photos that nobody named."""

import csv

import numpy as np
import pytest

from configs import people as people_config
from experiments.common.inputs import Vectors
from experiments.embed import faces, photos
from experiments.people import heap, methods, report, splits, study
from jaxface import data, metrics
from jaxface.cluster import partition_priors
from jaxface.runtime import launch, params_io
from jaxface.verifier import Verifier
from tests.experiments import again


def config_of(**fields):
    config = people_config.get_config("smoke").unlock()
    config.data.loader = "embeddings"
    config.data.options = people_config.get_config(None).data.options
    config.update({"kind": "centered cosine", "num_splits": 1, "num_restarts": 1} | fields)
    return config.lock()


def embeddings(path, rng, number, labels=True):
    """Vectors of people far apart, three or four of each."""
    ids = np.repeat(np.arange(number), 3 + np.arange(number) % 2)
    x = (4 * rng.normal(size=(number, 6))[ids] + rng.normal(size=(len(ids), 6))).astype(np.float32)
    files = [f"{k // 2:03d}.jpg#{k % 2 + 1}" for k in rng.permutation(len(ids))]
    if labels:
        data.embeddings.save(path, x, [f"p{k}" for k in ids], files=files)
    else:
        np.savez(path, features=x, files=np.array(files))
    return ids


@pytest.fixture(scope="module")
def measured(tmp_path_factory):
    folder = tmp_path_factory.mktemp("people")
    embeddings(folder / "known.npz", np.random.default_rng(0), 16)
    config = config_of(share_fit=0.5, share_choose=0.25).unlock()
    config.data.root = str(folder / "known.npz")
    return config.lock(), folder, launch.execute(study.run, config.lock(), folder / "run")


def rows_of(path):
    with path.open() as file:
        return list(csv.DictReader(file))


def test_methods_are_measured_on_people_never_seen(measured):
    _, folder, results = measured
    assert results["people in truth"] == 4
    for method in splits.METHODS:
        assert 0 < results[f"B-cubed F, {method}"] <= 1
        assert results[f"seconds, {method}"] > 0
    rows = rows_of(folder / "run" / "groups.csv")
    found = metrics.bcubed([row["person"] for row in rows], [row["group"] for row in rows])
    assert found.f == pytest.approx(results[f"B-cubed F, {splits.METHODS[0]}"])
    assert "--config.noise_scale=" in (folder / "run" / "report.html").read_text()


def test_a_saved_verifier_groups_photos_without_names(measured, tmp_path):
    _, folder, _ = measured
    ids = embeddings(tmp_path / "heap.npz", np.random.default_rng(0), 12, labels=False)
    model = str(folder / "run" / study.SAVED)
    config = config_of(model=model, num_people=12, noise_scale=1.0).unlock()
    config.data.root = str(tmp_path / "heap.npz")
    results = launch.execute(study.run, config.lock(), tmp_path / "run")
    assert results["photos"] == len(ids)
    rows = rows_of(tmp_path / "run" / "groups.csv")
    group_of = {row["file"]: row["group"] for row in rows}
    assert {row["person"] for row in rows} == {""}
    assert all(group_of[f"{k:03d}.jpg#1"] != group_of[f"{k:03d}.jpg#2"] for k in range(len(ids) // 2))
    assert results["people"] == len(set(group_of.values()))
    sizes = np.bincount([int(row["group"]) for row in rows])[1:]
    assert (np.diff(sizes) <= 0).all()
    again.check(study.run, config, tmp_path / "run", results, tmp_path / "heap.npz", "heap.npz")


def test_a_threshold_in_the_place_of_a_number_and_a_known_truth(measured, tmp_path):
    config, folder, _ = measured
    model = str(folder / "run" / study.SAVED)
    numbers = []
    for threshold in (-1e6, 1e6):
        changed = config_of(model=model, threshold=threshold).unlock()
        changed.data.root = config.data.root
        results = launch.execute(study.run, changed.lock(), tmp_path / f"run{threshold}")
        numbers.append(results["people"])
        assert results["people in truth"] == 16
        assert results["B-cubed recall" if threshold < 0 else "B-cubed precision"] > 0.5
    assert numbers[1] == results["photos"]
    assert numbers[0] < numbers[1]


def test_lists_of_neighbours_in_the_place_of_all_pairs(measured, monkeypatch):
    config, folder, _ = measured
    model = params_io.load(folder / "run" / study.SAVED, Verifier)
    x = np.load(config.data.root)["features"]
    settings = {"slope": 0.5, "prior": partition_priors.ewens(5.0), "apart": np.array([[0, 1]])}
    whole, *rest = (methods.by_ratios(model, x, **settings, num_neighbors=k) for k in (None, len(x), 12))
    monkeypatch.setattr(methods.agglomerative, "MOST", 3)
    for found in (*rest, methods.by_ratios(model, x, **settings, num_neighbors=None)):
        np.testing.assert_array_equal(found.labels, whole.labels)
    assert 1 < whole.num_clusters < len(x)


class FaceOfTwo:
    """Stands in for both networks: two faces in a bright photo, the left and the right half."""

    def detect(self, photo):
        return np.array([[0, 0, 20, 40, *[0] * 10, 1], [20, 0, 20, 40, *[0] * 10, 1]], np.float32)

    def alignCrop(self, photo, box):
        return np.broadcast_to(photo[:, int(box[0]) : int(box[0]) + 20].mean(), (112, 112, 3)).astype(np.uint8)

    def feature(self, face):
        return np.concatenate([np.full((1, 64), float(face[0, 0, 0])), np.ones((1, 64))], axis=1).astype(np.float32)


def test_faces_of_a_folder_of_photos(tmp_path, monkeypatch):
    from PIL import Image

    monkeypatch.setattr(faces, "load_networks", lambda score: faces.Networks(FaceOfTwo(), FaceOfTwo()))
    monkeypatch.setattr(faces, "_detected", lambda networks, photo, side: networks.detector.detect(photo))
    root = tmp_path / "photos"
    root.mkdir()
    for k in range(3):
        photo = np.full((40, 40, 3), 60 + k, np.uint8)
        photo[:, 20:] = 200 + k
        Image.fromarray(photo).save(root / f"{k}.png")
    config = people_config.get_config("photos").unlock()
    config.data.root = str(root)

    class Folder:
        def stage(self, name, work):
            return work()

        def write_text(self, name, text):
            (tmp_path / name).write_text(text)

    found = heap.load(config, Folder(), ())
    assert not found.is_known
    assert found.vectors.files == ("0.png#1", "0.png#2", "1.png#1", "1.png#2", "2.png#1", "2.png#2")
    assert found.apart.tolist() == [[0, 1], [2, 3], [4, 5]]
    light = [float(found.picture(row).mean()) * 255 for row in range(6)]
    np.testing.assert_allclose(light, [60, 200, 61, 201, 62, 202], atol=0.5)
    sheet = report._faces(found, np.array([0, 1] * 3), np.array([1, 0]))
    assert len(sheet.rows) == 2


def test_a_face_at_the_edge_of_a_photo():
    pixels = np.arange(20.0).reshape(4, 5)[..., None].repeat(3, axis=2)
    face = heap.cropped(photos.Photos((), (), lambda row: pixels), 0, np.array([-1.0, -1.0, 3.0, 9.0]))
    assert face.shape == (96, 96, 3)
    assert face[0, 0, 0] == 0
    assert face[-1, -1, 0] == 16


def test_people_with_too_few_and_too_many_photos_are_left_out():
    ids = np.array([0, 1, 1, 2, 2, 2, 3, 3, 3, 3], np.int32)
    vectors = Vectors(x=np.arange(10.0)[:, None], ids=ids, names=("a", "b", "c", "d"), files=tuple("0123456789"))
    kept = study.taking_part(config_of(min_images=2, max_images=3), vectors)
    assert kept.names == ("b", "c")
    np.testing.assert_array_equal(kept.ids, [0, 0, 1, 1, 1])
    assert "".join(kept.files) == "12345"
    assert (kept.x[:, 0] == np.arange(1, 6)).all()


def test_average_linkage_is_that_of_the_cosines(rng):
    x = rng.normal(size=(6, 3)) * np.arange(1, 7)[:, None]
    units = x / np.linalg.norm(x, axis=1, keepdims=True)
    cosines = units @ units.T
    tree = methods.linkage(x)
    first, second = np.unravel_index(np.argmax(cosines - 2 * np.eye(6)), (6, 6))
    assert tree[0, 2] == pytest.approx(1 - cosines[first, second])
    labels = methods.cut(tree, tree[0, 2] + 1e-9)
    assert labels.max() == 4
    assert labels[first] == labels[second]
    assert methods.cut(tree, 2.0).max() == 0


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"num_people": 5}, "belong to --config.model"),
        ({"noise_scale": 2.0}, "belong to --config.model"),
        ({"model": "m.safetensors"}, "give either --config.num_people"),
        ({"model": "m.safetensors", "num_people": 5, "threshold": 0.0}, "give either --config.num_people"),
        ({"kind": "joint bayes"}, "Did you mean 'Joint Bayes'"),
        ({"max_images": 1}, "config.max_images must be at least 2"),
        ({"noise_scales": (1.0, 0.0)}, "noise_scales"),
    ],
)
def test_fields_that_no_run_can_have(fields, message):
    with pytest.raises(ValueError, match=message):
        study.check(config_of(**fields))


def test_people_that_cannot_be_split():
    with pytest.raises(ValueError, match=r"4 people cannot be split: 2 would train, 1 choose and 1 be grouped"):
        splits.drawn(config_of(), np.repeat(np.arange(4), 3))
