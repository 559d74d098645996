"""The LFW study on a small made copy of it: three folds of four people with four images."""

import shutil

import numpy as np
import pytest
from PIL import Image

from configs import verify_lfw as config_file
from experiments.verify_lfw import embedded, protocol
from experiments.verify_lfw import study as verify_lfw
from jaxface import data, joint_bayes, metrics
from jaxface.data import folders, lfw, synthetic
from jaxface.faces import pipeline
from jaxface.losses import calibration
from jaxface.runtime import launch
from tests.experiments import again
from tests.tolerances import assert_close

STEPS = (("lbp", {"radii": (1,), "cells": (3, 3), "root": True}),)


@pytest.fixture(scope="module")
def root(tmp_path_factory):
    root = tmp_path_factory.mktemp("lfw")
    faces = synthetic.rendered_faces(np.random.default_rng(0), num_people=12, images_per_person=4, size=(26, 26)).data
    names = [f"Person_{chr(65 + k)}" for k in range(12)]
    for row, (image, person) in enumerate(zip(faces.images, faces.ids, strict=True)):
        folder = root / "lfw" / names[person]
        folder.mkdir(parents=True, exist_ok=True)
        file = folder / f"{names[person]}_{row % 4 + 1:04d}.jpg"
        Image.fromarray((255 * image).astype(np.uint8)).save(file, quality=95)
    pairs, people = ["3\t4"], ["3"]
    for a, b, c, d in np.reshape(names, (3, 4)):
        pairs += [f"{name}\t1\t2" for name in (a, b, c, d)]
        pairs += [f"{a}\t1\t{b}\t1", f"{b}\t2\t{c}\t3", f"{c}\t1\t{d}\t1", f"{d}\t2\t{a}\t4"]
        people += ["4", *(f"{name}\t4" for name in (a, b, c, d))]
    (root / "pairs.txt").write_text("\n".join(pairs) + "\n")
    (root / "people.txt").write_text("\n".join(people) + "\n")
    return root


def study(root):
    config = config_file.get_config().unlock()
    config.data.root = None if root is None else str(root)
    config.update({"crop": (1, 1, 24, 24), "image_steps": STEPS, "num_components": 6, "lda_components": 3})
    config.fused_features = (
        ("small", (2, 2, 20, 20), STEPS),
        ("hog", (1, 1, 24, 24), (("hog", {"cell": 6, "num_bins": 4, "block": 2}),)),
    )
    config.num_iters, config.num_resamples, config.fitted_ranks = 3, 20, (2,)
    return config.lock()


def test_nobody_of_a_test_fold_is_trained_on(root):
    listing, folds = protocol.folds(study(root))
    assert len(folds) == 3
    for fold in folds:
        tested = {int(k) for rows in (fold.pairs.first, fold.pairs.second) for k in listing.ids[rows]}
        assert len(tested) == 4
        assert set(listing.ids[fold.train_rows]) == set(range(12)) - tested
        assert fold.pairs.is_same.tolist() == [True] * 4 + [False] * 4


def test_features_are_means_over_mirror_images_whatever_the_batch(root, monkeypatch):
    listing, _ = protocol.folds(study(root))
    images = folders.read(listing, crop=(2, 2, 20, 20)).images
    steps = pipeline.build(STEPS)
    plain, mirrored = (
        np.asarray(pipeline.encode_batch(steps, each, block_size=16)) for each in (images, images[:, :, ::-1])
    )
    monkeypatch.setattr(protocol, "_BATCH", 20)
    found = protocol.features(listing, (2, 2, 20, 20), STEPS, "test", mirrored=True)
    assert_close(found, (plain + mirrored) / 2)
    assert_close(protocol.features(listing, (2, 2, 20, 20), STEPS, "test", mirrored=False), plain)


def test_the_study_reports_what_the_scores_say(root, tmp_path, monkeypatch):
    own = shutil.copytree(root, tmp_path / "lfw")
    config, calibrated, plain = study(own), [], calibration.fit
    monkeypatch.setattr(calibration, "fit", lambda scores, same: calibrated.append(len(scores)) or plain(scores, same))
    results = launch.execute(verify_lfw.run, config, tmp_path / "run")
    names = protocol.methods(config)
    assert names[-1] == "length-normalised: full EM, sum of the 2 above"
    assert [f"accuracy, {name}" for name in names] == [name for name in results if name.startswith("accuracy")]
    listing, folds = protocol.folds(config)
    x = protocol.features(listing, config.crop, STEPS, "main", mirrored=False)
    raw = [1 - metrics.cosine_distance(x[fold.pairs.first], x[fold.pairs.second]) for fold in folds]
    same = np.concatenate([fold.pairs.is_same for fold in folds])
    accuracy = metrics.lfw_accuracy(np.concatenate(raw), same, np.repeat(np.arange(3), 8))
    assert results[f"accuracy, {names[0]}"] == pytest.approx(accuracy.mean)
    stages = tmp_path / "run" / "stages"
    of_kind = [[np.load(stages / f"{kind}-{k}.npz")["scores"] for k in range(3)] for kind in ("small", "hog")]
    fused = sum(np.concatenate(scores) for scores in of_kind)
    assert results[f"EER, {names[-1]}"] == pytest.approx(metrics.eer(metrics.roc(fused, same)))
    assert set(calibrated) == {16}  # the pairs of the other two folds
    assert (tmp_path / "run" / "report.html").read_text().count("<figure>") == 3
    with np.load(stages / "main-0.npz") as first:
        assert first["ranks"].tolist() == [1, 2, 5, 6]
        assert_close(first["of rank"][-1], first["scores"][names.index("Joint Bayes, full EM")], factor=1e5)
        assert first["few ranks"].tolist() == [2, 6]
        assert_close(first["of few"][-1], first["of rank"][-1], factor=1e5)
        assert first["likelihoods"].shape == (2, 2)
        # 50 steps of PX-EM with 2 of 6 directions are below what all of them reach.
        assert np.abs(first["of few"][0] - first["of few"][1]).max() > 1e-3
        assert first["bounds"][-1] == 0
        assert (np.diff(first["bounds"]) <= 0).all()
        assert (np.diff(first["trace"]) > -1e-4).all()
    again.check(verify_lfw.run, config, tmp_path / "run", results, own / "pairs.txt", "pairs.txt")


def embeddings(root, folder):
    """Six numbers of each photo in an `.npz`, and a copy of the lists of the protocol without images."""
    listing, _ = protocol.folds(study(root))
    rng = np.random.default_rng(0)
    encoded = protocol.features(listing, (1, 1, 24, 24), STEPS, "main", mirrored=False)
    x = np.asarray(encoded @ rng.normal(size=(encoded.shape[1], 6)), np.float32)
    order = rng.permutation(len(x))
    files = [f"elsewhere/{listing.files[row]}".replace(".jpg", ".png") for row in order]
    data.embeddings.save(folder / "vectors.npz", x[order], listing.ids[order], files=files)
    (folder / "lists").mkdir()
    for name in ("pairs.txt", "people.txt"):
        shutil.copy(root / name, folder / "lists")
    return x, listing.ids


def embedded_study(folder):
    config = config_file.get_config("embeddings").unlock()
    config.data.root, config.embeddings = str(folder / "lists"), str(folder / "vectors.npz")
    config.update({"lda_components": 3, "num_iters": 3, "num_resamples": 20, "fitted_ranks": (2,)})
    return config.lock()


def test_embeddings_need_the_lists_alone_and_train_on_other_folds(root, tmp_path, monkeypatch):
    x, ids = embeddings(root, tmp_path)
    config, seen, plain = embedded_study(tmp_path), [], joint_bayes.collect
    config.e_step = "expanded"
    names = embedded.methods_of(config)
    assert names[-2:] == ("Joint Bayes, PX-EM", "length-normalised: Joint Bayes, PX-EM")

    def collect(rows, labels, **settings):
        seen.append({tuple(row) for row in np.asarray(rows).tolist()})
        return plain(rows, labels, **settings)

    monkeypatch.setattr(joint_bayes, "collect", collect)
    results = launch.execute(verify_lfw.run, config, tmp_path / "run")
    _, folds = protocol.folds(study(root))  # with rows of the images
    for k, fold in enumerate(folds):
        assert seen[3 * k] == {tuple(row) for row in np.asarray(x[fold.train_rows], np.float32).tolist()}
        assert len(seen[3 * k] & {tuple(row) for row in x[np.isin(ids, ids[fold.pairs.first])].tolist()}) == 0
    cosines = [1 - metrics.cosine_distance(x[fold.pairs.first], x[fold.pairs.second]) for fold in folds]
    same = np.concatenate([fold.pairs.is_same for fold in folds])
    accuracy = metrics.lfw_accuracy(np.concatenate(cosines), same, np.repeat(np.arange(3), 8))
    assert results["accuracy, cosine"] == pytest.approx(accuracy.mean)
    assert results["standard error, cosine"] == pytest.approx(accuracy.standard_error)
    assert "raw Cllr, cosine" not in results
    for name in names:
        assert results[f"min Cllr, {name}"] <= results[f"calibrated Cllr, {name}"]
    with pytest.raises(ValueError, match=r"image .* is missing"):
        protocol.folds(config, lfw.listing_of(["A_0001.jpg", "B_0001.jpg"], source="two"))


def test_embeddings_say_which_photos_they_show_and_take_no_settings_of_images(root, tmp_path):
    x, ids = embeddings(root, tmp_path)
    config = embedded_study(tmp_path)
    data.embeddings.save(tmp_path / "vectors.npz", x, ids)
    with pytest.raises(ValueError, match=r"vectors\.npz does not say which photo a row shows: add an array `files`"):
        embedded.load(config)
    data.embeddings.save(tmp_path / "vectors.npz", x, ids, files=[f"{k}.jpg" for k in range(len(x))])
    with pytest.raises(ValueError, match=r"vectors\.npz: '0\.jpg' is no photo of LFW; expected names such as"):
        embedded.load(config)
    listing, _ = protocol.folds(study(root))
    x[5] = x[0]  # Person_B's second photo, and Person_A's first
    np.savez(tmp_path / "vectors.npz", features=x, files=np.asarray(listing.files))  # without labels
    with pytest.raises(ValueError, match=r"same image or vector under two names: 'Person_A' and 'Person_B'"):
        embedded.load(config)
    config.unlock().fused_features = (("small", (2, 2, 20, 20), STEPS),)
    with pytest.raises(ValueError, match=r"config\.fused_features are of images"):
        verify_lfw.run(config, None)


def test_a_person_of_two_folds_is_refused_by_name(root, tmp_path):
    own = shutil.copytree(root, tmp_path / "lfw")
    lines = (own / "people.txt").read_text().splitlines()
    (own / "people.txt").write_text("\n".join([*lines[:7], lines[2], *lines[8:]]) + "\n")
    with pytest.raises(ValueError, match=r"people\.txt, line 8: 'Person_A' is named twice"):
        protocol.folds(study(own))
    swapped = [*lines[:2], lines[7], *lines[3:7], lines[2], *lines[8:]]
    (own / "people.txt").write_text("\n".join(swapped) + "\n")
    with pytest.raises(ValueError, match=r"pairs must show people of their own fold; .*Person_A"):
        protocol.folds(study(own))


def test_a_missing_folder_is_asked_for():
    with pytest.raises(ValueError, match=r"--config\.data\.root is missing"):
        verify_lfw.run(study(None), None)


def test_an_unknown_e_step_is_named(root):
    config = study(root)
    config.e_step = "expandet"
    with pytest.raises(ValueError, match=r"config\.e_step must be one of .*'expanded'.*got 'expandet'"):
        verify_lfw.run(config, None)
