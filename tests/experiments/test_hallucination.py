import jax
import numpy as np
import pytest

from configs import hallucinate
from experiments.hallucinate import claims, faces, matching, methods, report, streaming
from jaxface.data import synthetic
from jaxface.metrics import streaming as counting
from jaxface.metrics import verification
from jaxface.metrics.intervals import Interval
from jaxface.runtime import sections


@pytest.fixture
def config():
    return hallucinate.get_config("smoke")


@pytest.fixture
def data(rng, config):
    drawn = synthetic.rendered_faces(rng, num_people=16, images_per_person=12, size=(8, 8)).data
    return faces.select(config, drawn)


def test_a_method_called_by_its_expansion_takes_no_other(config):
    config.unlock()
    for name in ("fastfood_5x", "fastfood_10x", "fastfood_5x_dekernelized", "matched_dw_ksvd"):
        assert "expansion" not in config.settings[name]
        config.settings[name] = {**config.settings[name].to_dict(), "expansion": 20}
        with pytest.raises(ValueError, match="'expansion' is not an argument of"):
            methods.chosen(config, name, None, None, None)


def test_nobody_is_in_two_parts(data, config):
    config.unlock().num_tests = 4
    assert np.bincount(data.ids).tolist() == [10] * 16  # of twelve images
    folds = list(faces.folds(config, data))
    assert sorted(np.concatenate([np.unique(fold.test_ids) for fold in folds])) == list(range(16))
    for fold in folds:
        tuning = set(fold.train_ids[fold.is_tuning])
        assert len(tuning) == 2
        assert not tuning & set(fold.train_ids[~fold.is_tuning])
        assert not set(fold.train_ids) & set(fold.test_ids)
        assert len(fold.train) + len(fold.test) == 160


def test_a_rectangle_outside_the_image_is_refused():
    assert faces.rectangle((4, 3), (1, 3, 0, 2)).tolist() == [0, 0, 0, 1, 1, 0, 1, 1, 0, 0, 0, 0]
    for box in ((0, 5, 0, 3), (2, 2, 0, 3), (0, 4, -1, 3)):
        with pytest.raises(ValueError, match=r"config\.visible must be .* inside images of 4 x 3"):
            faces.rectangle((4, 3), box)


def test_all_pairs_but_those_of_an_image_with_itself(rng):
    ids = np.array([0, 0, 1, 1, 1, 2])
    left, right = (rng.normal(size=(6, 4)).astype(np.float32) for _ in range(2))
    left, right = (x / np.linalg.norm(x, axis=1, keepdims=True) for x in (left, right))
    found = matching.all_pairs(left, right, ids, num_bins=4096)
    others = ~np.eye(6, dtype=bool)
    scores, same = (left @ right.T)[others], (ids[:, None] == ids[None, :])[others]
    assert found.genuine.sum() == same.sum() == 8
    assert found.impostor.sum() == (~same).sum()
    np.testing.assert_allclose(found.scores[others], scores, atol=1e-6)
    curve = counting.roc(np.linspace(*matching.SPAN, 4097), found.genuine, found.impostor)
    bounds = counting.eer_bounds(curve)
    assert bounds.low - 1e-9 <= verification.eer(verification.roc(scores, same)) <= bounds.high + 1e-9


def test_settings_are_those_that_held_out_people_prefer(data, config):
    fold = next(faces.folds(config, data))
    mask = faces.rectangle(data.shape, (0, 4, 0, 8))
    tried = {}

    def fit(x, mask, settings):
        model, info = methods.fitted("ridge", None, x, mask, settings, shape=data.shape)
        assert len(x) == (~fold.is_tuning).sum()
        tried[settings["ridge"]] = methods.psnr(methods.rebuilt(model, fold.train[fold.is_tuning], mask),
                                                fold.train[fold.is_tuning]).mean()  # fmt: skip
        return model, info

    config.unlock().settings.ridge.ridge = (1e-4, 0.03, 100.0)
    best = methods.chosen(config, "ridge", fold, mask, fit)
    assert tried.keys() == {1e-4, 0.03, 100.0}
    assert tried[best["ridge"]] == max(tried.values()) > min(tried.values()) + 0.1


def test_a_killed_stream_goes_on_to_the_same_end(data, config, tmp_path, monkeypatch):
    settings = config.streaming.unlock()
    settings.batch_size = 25
    whole = streaming.of_faces(settings, data, tmp_path / "whole")
    plain, calls = streaming.online.fit_stream, []

    def killed(*args, **kwargs):
        calls.append(1)
        if len(calls) == 2:
            raise KeyboardInterrupt
        return plain(*args, **kwargs)

    monkeypatch.setattr(streaming.online, "fit_stream", killed)
    with pytest.raises(KeyboardInterrupt):
        streaming.of_faces(settings, data, tmp_path / "killed")
    again = streaming.of_faces(settings, data, tmp_path / "killed")
    assert len(calls) == 2 + 2  # three segments, of which one was done
    assert {name: float(value) for name, value in again.items()} == {name: float(v) for name, v in whole.items()}


def test_verdicts():
    assert claims.verdict(Interval(0.2, 0.1, 0.3)) == "holds"
    assert claims.verdict(Interval(-0.2, -0.3, -0.1)) == "the other way round"
    assert claims.verdict(Interval(0.1, -0.1, 0.3)) == "not decided"


def test_the_network_of_the_study_learns(data, config):
    """The smoke run leaves it out: here its settings reach the fit, and the faces are symmetric to it."""
    fold = next(faces.folds(config, data))
    mask = faces.rectangle(data.shape, (0, 4, 0, 8))
    settings = sections.arguments(config.settings.network, methods.network)
    settings |= {"width": 8, "num_epochs": 3, "batch_size": 40}
    model, info = methods.fitted("network", jax.random.key(0), fold.train, mask, settings, shape=data.shape)
    assert info.objective.shape == (3,)
    assert info.objective[2] < info.objective[0]
    np.testing.assert_array_equal(model.mirror, np.arange(64).reshape(8, 8)[:, ::-1].ravel())


def test_a_study_without_the_methods_of_the_paper_says_nothing_of_their_order():
    assert report.in_words({"ridge": np.full(3, 20.0)}, {}) == []
