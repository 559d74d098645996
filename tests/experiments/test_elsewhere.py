"""Another camera's people as the source of a verifier: every method against its own model and a dense ratio."""

import html

import numpy as np
import pytest

from experiments.verifier import elsewhere
from experiments.verifier.study import run
from jaxface.data import embeddings, synthetic
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
    config = settings(own, num_folds=3, **changes).unlock()
    config.source.root = str(source)
    return config.lock()


def test_every_method_is_on_the_page_and_the_source_alone_is_worst(files, tmp_path):
    results = launch.execute(run, of(files), tmp_path / "run")
    errors = {method: results[f"{method}: Cllr"] for method in elsewhere.METHODS}
    assert errors["transfer with names"] < errors["source model, mean of these photos"] < 1
    page = (tmp_path / "run" / "report.html").read_text()
    assert "From another camera" in page
    assert all(html.escape(method) in page for method in elsewhere.METHODS)
    assert launch.execute(run, of(files), tmp_path / "run") == results


def test_the_moved_source_scores_pairs_by_its_own_densities(files, tmp_path, monkeypatch):
    """Ratios before calibration are those of dense Gaussians: covariances of the source, mean of the fitting photos."""
    seen = []

    def kept(held_out, is_same, scores):
        seen.append(scores)
        return scores

    moved = elsewhere.transfer.moved

    def spied(config, problem):
        fitted = moved(config, problem)
        seen.append((problem, fitted.models[0]))
        return fitted

    monkeypatch.setattr(elsewhere.evidence, "calibrated", kept)
    monkeypatch.setattr(elsewhere.transfer, "moved", spied)
    launch.execute(run, of(files), tmp_path / "run")
    (problem, model), scores = seen[:2]
    np.testing.assert_allclose(model.mean, np.asarray(problem.features["train"]).mean(axis=0), rtol=1e-9)
    np.testing.assert_array_equal(model.noise_cov, problem.source.model.noise_cov)
    z = np.asarray(problem.features["test"])
    first, second = np.triu_indices(len(z), 1)
    expected = [reference.llr(model, z[i], z[j]) for i, j in zip(first[:40], second[:40], strict=True)]
    np.testing.assert_allclose(np.asarray(scores)[:40], expected, rtol=1e-6, atol=1e-6)


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
