"""Scoring with a saved model: pairs, enrolled people and probes."""

import csv
import json

import jax
import numpy as np
import pytest

from configs import verify as verify_config
from experiments.common import identification_norms
from experiments.score import study as score
from experiments.verify import study as verify
from jaxface import data, metrics, verifier
from jaxface.data import synthetic
from jaxface.runtime import launch, params_io
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
    assert found["threshold"] == 0.0  # a prior of one half
    assert found["strangers given a name"] == 0
    with (tmp_path / "who" / "scores.csv").open() as file:
        rows = list(csv.DictReader(file))
    named = np.array([float(row["evidence"]) >= 0.0 for row in rows])
    assert [row["decision"] == "unknown" for row in rows] == (~named).tolist()
    assert found["called unknown"] == found["enrolled people called unknown"] == (~named).sum()
    # More probable than anybody else and than a stranger, or not more probable than not.
    assert all(float(row["probability"]) < 0.5 for row, is_named in zip(rows, named, strict=True) if not is_named)
    assert json.loads((tmp_path / "who" / "results.json").read_text()) == found


@pytest.fixture(scope="module")
def known(tmp_path_factory):
    """A verifier of made people as a file, and 30 others as vectors."""
    folder = tmp_path_factory.mktemp("known")
    made = synthetic.gaussian_identities(np.random.default_rng(2), num_people=50, images_per_person=4, dim=6)
    x, ids = made.features, made.ids
    model, _ = verifier.fit(
        jax.random.key(0), x[:80], ids[:80], num_people=20, num_components=6, num_iters=5, length_normalize=False
    )
    (folder / "model.safetensors").write_bytes(params_io.to_bytes(model))
    return folder, model, x[80:], ids[80:] - 20


def vectors_file(file, x, ids):
    names = [f"p{k:02d}/{row}.jpg" for row, k in enumerate(ids)]
    data.embeddings.save(file, x, [f"p{k:02d}" for k in ids], files=names)
    return names


def test_a_rate_of_strangers_sets_the_threshold_of_names(known, tmp_path):
    folder, model, x, ids = known
    first = np.arange(len(ids)) % 4 == 0
    enrolled, probes, strangers = (ids < 10) & first, (ids < 16) & ~first, ids >= 16
    for name, rows in (("gallery", enrolled), ("probes", probes), ("strangers", strangers)):
        vectors_file(tmp_path / f"{name}.npz", x[rows], ids[rows])
    settings = {f"{name}__root": str(tmp_path / f"{name}.npz") for name in ("gallery", "probes", "strangers")}
    loaders = {f"{name}__loader": "embeddings" for name in ("gallery", "probes", "strangers")}
    config = scoring("identify", model=str(folder / "model.safetensors"), far=0.2, num_best=3, **settings, **loaders)
    found = launch.execute(score.run, config, tmp_path / "who")
    gallery = verifier.enroll(verifier.encode_vectors(model, x[enrolled]), ids[enrolled], num_people=10)
    best = verifier.identify(model, gallery, verifier.encode_vectors(model, x[strangers]), prior=0.5).evidence
    per_person = np.array([(best[ids[strangers] == k] >= found["threshold"]).mean() for k in range(16, 30)])
    assert per_person.mean() == pytest.approx(found["stated rate of strangers given a name"])
    assert per_person.mean() <= 0.2
    answer = verifier.identify(model, gallery, verifier.encode_vectors(model, x[probes]), prior=0.5, num_best=3)
    lines = (tmp_path / "who" / "candidates.csv").read_text().splitlines()
    assert lines[0] == "probe,place,person,evidence"
    listed = [f"p{row:02d},{evidence:.6f}" for row, evidence in zip(*map(np.ravel, answer.candidates), strict=True)]
    assert [line.split(",", 2)[2] for line in lines[1:]] == listed
    named = answer.evidence >= found["threshold"]
    is_stranger = ids[probes] >= 10
    assert found["rate of strangers given a name"] == pytest.approx(named[is_stranger].mean())
    assert found["rate of enrolled people called unknown"] == pytest.approx((~named)[~is_stranger].mean())
    page = (tmp_path / "who" / "report.html").read_text()
    assert "The threshold is that of a rate of false accepts, from 14 strangers" in page
    config.unlock().probes.root = settings["strangers__root"]
    with pytest.raises(ValueError, match="strangers and probes must show different people; 'p16'"):
        launch.execute(score.run, config.lock(), tmp_path / "both")


def test_identification_by_norms_beside_the_evidence(known, tmp_path):
    folder, model, x, ids = known
    first = np.arange(len(ids)) % 4 == 0
    sides = {
        "gallery": (ids < 8) & first,
        "probes": (ids < 14) & ~first,
        "strangers": (ids >= 14) & (ids < 22),
        "cohort": ids >= 22,
    }
    for name, rows in sides.items():
        vectors_file(tmp_path / f"{name}.npz", x[rows], ids[rows])
    settings = {f"{name}__root": str(tmp_path / f"{name}.npz") for name in sides}
    loaders = {f"{name}__loader": "embeddings" for name in sides}
    config = scoring("identify", model=str(folder / "model.safetensors"), far=0.2, **settings, **loaders)
    found = launch.execute(score.run, config, tmp_path / "who")
    for name in ("strangers given a name", "enrolled people called unknown"):
        assert found[f"rate of {name}, evidence"] == found[f"rate of {name}"]
        assert 0 <= found[f"rate of {name}, adaptive s-norm"] <= 1
    with (tmp_path / "who" / "norms.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert len(rows) == sides["probes"].sum()
    z = {name: np.asarray(verifier.encode_vectors(model, x[rows])) for name, rows in sides.items()}
    gallery = verifier.enroll(z["gallery"], ids[sides["gallery"]], num_people=8)
    best = identification_norms.best(model, gallery, z["probes"], z["cohort"], num_best=None)["adaptive s-norm"]
    assert [float(row["adaptive s-norm: score"]) for row in rows] == pytest.approx(best.score.tolist(), abs=1e-5)
    assert [row["adaptive s-norm: person"] for row in rows] == [f"p{k:02d}" for k in best.person]
    vectors_file(tmp_path / "cohort.npz", x[ids >= 13], ids[ids >= 13])
    with pytest.raises(ValueError, match=r"cohort.*probes|probes.*cohort"):
        launch.execute(score.run, config, tmp_path / "again")


def test_a_rate_of_impostors_sets_the_threshold_of_pairs(known, tmp_path):
    folder, model, x, ids = known
    mine, strangers = ids < 16, ids >= 16
    names = vectors_file(tmp_path / "mine.npz", x[mine], ids[mine])
    vectors_file(tmp_path / "strangers.npz", x[strangers], ids[strangers])
    rows = [f"{names[a]},{names[b]},{int(a // 4 == b // 4)}" for a in range(0, 64, 5) for b in range(a + 1, 64, 7)]
    (tmp_path / "pairs.csv").write_text("\n".join(["a,b,same", *rows]) + "\n")
    config = scoring(
        None, model=str(folder / "model.safetensors"), images__loader="embeddings", pairs=str(tmp_path / "pairs.csv"),
        images__root=str(tmp_path / "mine.npz"), strangers__loader="embeddings", far=0.05, num_resamples=60,
        strangers__root=str(tmp_path / "strangers.npz"),
    )  # fmt: skip
    found = launch.execute(score.run, config, tmp_path / "scored")
    z = verifier.encode_vectors(model, x[strangers])
    trial = data.pairs.all_pairs(ids[strangers])
    scores = np.asarray(verifier.score_pairs(model, z, trial.first, trial.second))
    far = (scores[~trial.is_same] >= found["threshold"]).mean()
    assert far <= 0.05 < (scores[~trial.is_same] >= np.nextafter(found["threshold"], -np.inf) - 0.05).mean() + 0.01
    assert 0 <= found["FAR at the threshold"] <= 1
    page = (tmp_path / "scored" / "report.html").read_text()
    assert f"from 14 strangers: {100 * far:.2g} % of them pass, for other people between" in page


def test_scores_are_normalised_by_a_cohort(known, tmp_path):
    folder, model, x, ids = known
    mine, strangers = ids < 16, ids >= 16
    names = vectors_file(tmp_path / "mine.npz", x[mine], ids[mine])
    vectors_file(tmp_path / "strangers.npz", x[strangers], ids[strangers])
    first, second = np.arange(0, 60, 3), np.arange(0, 60, 3) + 1 + np.arange(20) % 3
    same = ids[first] == ids[second]
    rows = [f"{names[a]},{names[b]},{int(s)}" for a, b, s in zip(first, second, same, strict=True)]
    (tmp_path / "pairs.csv").write_text("\n".join(["a,b,same", *rows]) + "\n")
    settings = {
        "model": str(folder / "model.safetensors"), "images__loader": "embeddings", "cohort__loader": "embeddings",
        "images__root": str(tmp_path / "mine.npz"), "pairs": str(tmp_path / "pairs.csv"),
    }  # fmt: skip
    config = scoring(None, **settings, cohort__root=str(tmp_path / "strangers.npz"), cohort_best=20)
    found = launch.execute(score.run, config, tmp_path / "scored")
    z = np.asarray(verifier.encode_vectors(model, x))
    against = np.sort(np.asarray(verifier.score_matrix(model, z[mine], z[strangers])), axis=1)[:, -20:]
    mean, spread = against.mean(axis=1), against.std(axis=1)
    llr = np.asarray(verifier.score_pairs(model, z, first, second))
    expected = ((llr - mean[first]) / spread[first] + (llr - mean[second]) / spread[second]) / 2
    with (tmp_path / "scored" / "s_norm.csv").open() as file:
        written = [float(row["s_norm"]) for row in csv.DictReader(file)]
    np.testing.assert_allclose(written, expected, atol=2e-6)
    assert found["EER, s-norm"] == pytest.approx(metrics.eer(metrics.roc(expected, same)))
    with pytest.raises(ValueError, match="cohort and images must show different people"):
        launch.execute(score.run, scoring(None, **settings, cohort__root=settings["images__root"]), tmp_path / "b")


def test_a_rate_needs_strangers_and_strangers_a_rate(known, tmp_path):
    model = str(known[0] / "model.safetensors")
    for settings in ({"far": 0.01}, {"strangers__root": "some.npz"}):
        with pytest.raises(ValueError, match=r"needs both --config.far=0.01 and --config.strangers.root"):
            launch.execute(score.run, scoring(None, model=model, **settings), tmp_path / "a")
    beyond = scoring(None, model=model, far=1.5, strangers__root="some.npz")
    with pytest.raises(ValueError, match=r"config\.far must lie in"):
        launch.execute(score.run, beyond, tmp_path / "b")


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
