"""Scoring with a saved model: pairs, enrolled people and probes."""

import csv
import json

import numpy as np
import pytest

from configs import verify as verify_config
from experiments.score import study as score
from experiments.verify import study as verify
from jaxface import data
from jaxface.runtime import launch
from tests.experiments import again
from tests.experiments.problems import embeddings, scoring


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
    page = (tmp_path / "scored" / "report.html").read_text()
    assert f'<td>EER, %</td><td class="number">{100 * again["EER"]:.2f}</td>' in page
    assert "experiments.score" in (folder / "report.html").read_text()


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
    known = data.embeddings.load(folder / "test" / "test.npz")
    np.savez(tmp_path / "plain.npz", vectors=known.features, files=known.files)
    np.savetxt(tmp_path / "probes.csv", known.features, delimiter=",")
    with again.unlocked():
        again.images.root = str(tmp_path / "plain.npz")
    plain = launch.execute(score.run, again, tmp_path / "plain")  # nobody says whom the rows show
    assert plain == found | {"largest share of a person in the same pairs": None}
    who = scoring(
        "identify", model=str(folder / "params" / "verifier.safetensors"), gallery__loader="embeddings",
        gallery__root=str(folder / "test" / "test.npz"), probes__loader="embeddings",
        probes__root=str(tmp_path / "probes.csv"),
    )  # fmt: skip
    named = launch.execute(score.run, who, tmp_path / "who")
    assert named["probes"] == len(known.files)
    assert (named["identification rate of these"], named["strangers given a name"]) == (None, 0)
    with pytest.raises(ValueError, match=r"plain\.npz has no labels: it holds files"):
        launch.execute(score.run, scoring(
            "identify", model=str(folder / "params" / "verifier.safetensors"), gallery__loader="embeddings",
            gallery__root=str(tmp_path / "plain.npz"), probes__loader="embeddings",
            probes__root=str(tmp_path / "probes.csv"),
        ), tmp_path / "none")  # fmt: skip
