"""Quality in the verifier study: from where it comes, and that it helps where noise follows it."""

import numpy as np
import pytest

from configs import verifier as configs
from experiments.common.inputs import Vectors
from experiments.verifier import candidates, graded
from experiments.verifier.study import run
from jaxface.runtime import launch
from tests.experiments import again


def settings(file, **changes):
    config = configs.get_config("embeddings").unlock()
    config.data.root = str(file)
    config.update(
        {"num_folds": 2, "num_choice_folds": 2, "num_resamples": 60, "num_iters": 8, "kinds": ("cosine", "Joint Bayes")}
    )
    config.update({"quality": "sharpness", "num_quality_bins": 4, "quality_exponents": (0.0, 1.0), "far": (0.1,)})
    config.update(changes)
    return config.lock()


@pytest.fixture
def file(tmp_path):
    """Sixty people, six photos each, whose noise follows their sharpness; and a meaningless array."""
    rng = np.random.default_rng(4)
    ids, sharpness = np.repeat(np.arange(60), 6), rng.normal(size=360)
    noise = rng.normal(size=(360, 8)) * np.exp(-sharpness)[:, None]
    x = (2 * rng.normal(size=(60, 8))[ids] + noise).astype(np.float32)
    files = np.array([f"p{k}/{row}.jpg" for row, k in enumerate(ids)])
    arrays = {"features": x, "labels": np.array([f"p{k}" for k in ids]), "files": files}
    np.savez(tmp_path / "set.npz", **arrays, sharpness=2 * sharpness, broken=np.full(360, np.nan))
    return tmp_path / "set.npz"


def vectors_of(file):
    with np.load(file) as arrays:
        ids = np.array([int(label[1:]) for label in arrays["labels"]], np.int32)
        return Vectors(x=arrays["features"], ids=ids, names=tuple(range(60)), files=tuple(arrays["files"].tolist()))


def test_weights_by_quality_beside_none(file, tmp_path):
    config = settings(file)
    results = launch.execute(run, config, tmp_path / "run")
    assert results["Joint Bayes, by quality: EER"] < results["Joint Bayes: EER"]
    assert results["Joint Bayes, by quality: Cllr"] < results["Joint Bayes: Cllr"]
    assert results["Joint Bayes, by quality, less without, high"] < 0
    with np.load(tmp_path / "run" / "stages" / "fold-0.npz") as stage:
        assert stage["quality exponents"].tolist() == [1.0]
        assert stage["quality scores"].shape == (1, stage["scores"].shape[1])
    page = (tmp_path / "run" / "report.html").read_text()
    assert "With the quality of the photos" in page
    assert "Joint Bayes, by quality" in page
    again.check(run, config, tmp_path / "run", results, file, "set.npz")


def test_where_a_quality_comes_from(file):
    vectors = vectors_of(file)
    assert graded.read(settings(file, quality=None), vectors) is None
    found = graded.read(settings(file), vectors)
    with np.load(file) as arrays:
        np.testing.assert_array_equal(found, arrays["sharpness"])
    lengths = graded.read(settings(file, quality="length"), vectors)
    np.testing.assert_allclose(np.exp(lengths), np.linalg.norm(vectors.x, axis=1), rtol=1e-5)
    lines = [f"{name},{k / 7}" for k, name in reversed(list(enumerate(vectors.files)))]
    (file.parent / "faces.csv").write_text("\n".join(["file,score", *lines]) + "\n")
    source = f"{file.parent}/faces.csv:score"
    np.testing.assert_array_equal(graded.read(settings(file, quality=source), vectors), np.arange(360) / 7)
    assert graded.path_of(settings(file, quality=source)) == str(file.parent / "faces.csv")
    assert graded.path_of(settings(file)) is None


@pytest.mark.parametrize(
    ("quality", "message"),
    [
        ("sharpnes", r"'sharpnes' is no array of .*set\.npz\..*'sharpness'"),
        ("broken", r"config\.quality = 'broken' must give one finite number .* 360 of them not finite"),
        ("faces.csv:blur", r"faces\.csv has no column 'blur'; it has file, score"),
        ("faces.csv:score", r"faces\.csv has no 'score' of 359 files, the first 'p0/1\.jpg'"),
    ],
)
def test_qualities_that_cannot_be(file, quality, message, monkeypatch):
    monkeypatch.chdir(file.parent)
    (file.parent / "faces.csv").write_text("file,score\np0/0.jpg,0.9\n")
    with pytest.raises(ValueError, match=message):
        graded.read(settings(file, quality=quality), vectors_of(file))


def test_settings_without_a_place_for_a_quality(file):
    with pytest.raises(ValueError, match=r"config\.quality needs a kind by Joint Bayes among config\.kinds"):
        graded.read(settings(file, kinds=("cosine",)), vectors_of(file))
    config = settings(file).unlock()
    config.data.loader = "stream"
    with pytest.raises(ValueError, match=r"config\.quality needs vectors in memory"):
        candidates.check(config)
    config.data.loader, config.data.root = "orl", None
    with pytest.raises(ValueError, match=r"names an array of a \.npz of vectors, and the data are none"):
        graded.read(config, vectors_of(file))
