"""Another camera's people as the source of a verifier: every method against its own model and a dense ratio."""

import dataclasses
import html

import numpy as np
import pytest

from experiments.common import inputs
from experiments.verifier import elsewhere, sides
from experiments.verifier.study import run
from jaxface import verifier
from jaxface.data import embeddings, synthetic
from jaxface.faces import pipeline
from jaxface.runtime import launch
from tests.experiments.test_verifier import settings
from tests.reference import joint_bayes_reference as reference


@pytest.fixture
def files(tmp_path):
    """Many people by one camera, and others by a second one, with another mean and more noise in two directions."""
    rng = np.random.default_rng(5)
    paths = []
    for name, people, noise, shift in (("a", 60, [0.1] * 6, 0.0), ("b", 30, [2.0, 2.0, 0.1, 0.1, 0.1, 0.1], 1.5)):
        known = synthetic.gaussian_identities(rng, num_people=people, images_per_person=4, dim=6)
        x = known.features + np.sqrt(noise) * rng.normal(size=known.features.shape) + shift
        paths.append(tmp_path / f"{name}.npz")
        embeddings.save(paths[-1], x, [f"{name}{k:02d}" for k in known.ids])
    return paths


def of(files, **changes):
    source, own = files
    config = settings(own, kinds=("Joint Bayes",), **changes).unlock()
    config.source.root = str(source)
    return config.lock()


def test_every_method_is_on_the_page_and_the_source_alone_is_worst(files, tmp_path):
    results = launch.execute(run, of(files), tmp_path / "run")
    errors = {method: results[f"{method}: Cllr"] for method in elsewhere.METHODS}
    assert errors["transfer with names"] < errors["source model, mean of these photos"]
    page = (tmp_path / "run" / "report.html").read_text()
    assert "From another camera" in page
    assert all(html.escape(method) in page for method in elsewhere.METHODS)
    assert launch.execute(run, of(files), tmp_path / "run") == results


def test_the_moved_source_scores_pairs_by_its_own_densities(files, monkeypatch):
    """Ratios before calibration are those of dense Gaussians: covariances of the source, mean of the fitting photos."""
    config, seen = of(files), []
    vectors = inputs.load_vectors(config.data, pipeline.build(()))
    source = elsewhere.read(config, vectors, pipeline.build(()))()
    side = sides.deal(config, vectors)[0]
    monkeypatch.setattr(elsewhere.evidence, "calibrated", lambda _, __, scores: seen.append(scores) or scores)
    found = elsewhere.measure(config, source, vectors, side)
    np.testing.assert_array_equal(found["source scores"], seen)
    z = np.asarray(verifier.reduce(source.reduction, vectors.x, length_normalize=False))
    model = dataclasses.replace(source.model, mean=z[side.split.train].mean(axis=0))
    tested = z[side.rows]
    pairs = list(zip(side.trial.first[:40], side.trial.second[:40], strict=True))
    expected = [reference.llr(model, tested[i], tested[j]) for i, j in pairs]
    np.testing.assert_allclose(found["source scores"][0][:40], expected, rtol=1e-6, atol=1e-6)
    assert found["source weight"] in config.source.weights


def test_people_on_both_sides_and_other_vectors_are_refused(files, tmp_path):
    _, own = files
    with pytest.raises(ValueError, match="b00"):
        launch.execute(run, of((own, own)), tmp_path / "same")
    wide = tmp_path / "wide.npz"
    embeddings.save(wide, np.random.default_rng(0).normal(size=(8, 7)), [f"w{k // 2}" for k in range(8)])
    with pytest.raises(ValueError, match="source and target must have the same features; got 7 and 6"):
        launch.execute(run, of((wide, own)), tmp_path / "wide")
    config = of(files).unlock()
    config.data.loader = "stream"
    with pytest.raises(ValueError, match=r"config.source needs vectors in memory"):
        launch.execute(run, config.lock(), tmp_path / "stream")
