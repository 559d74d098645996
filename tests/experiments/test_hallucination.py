import contextlib
import functools

import jax
import numpy as np
import pytest

from configs import hallucinate
from experiments.hallucinate import claims, faces, matching, methods, pairs_report, report, stream_report, streaming
from experiments.hallucinate.found import Found
from jaxface.core import fitinfo
from jaxface.data import synthetic
from jaxface.features import dekernelize, forms
from jaxface.metrics import streaming as counting
from jaxface.metrics import verification
from jaxface.metrics.intervals import Interval
from jaxface.runtime.workdir import Workdir
from jaxface.sparse import ksvd, omp
from jaxface.sparse.dictionary import Dictionary
from tests.tolerances import assert_close


@pytest.fixture
def config():
    return hallucinate.get_config("smoke")


@pytest.fixture
def data(rng, config):
    drawn = synthetic.rendered_faces(rng, num_people=16, images_per_person=12, size=(8, 8)).data
    return faces.select(config, drawn)


def test_labels_follow_the_expansion_and_keys_stay(config):
    config.unlock()
    config.methods = hallucinate.get_config().methods
    names = methods.names(config)
    assert names.labels["fastfood_5x"] == "Fastfood DW-KSVD 5x"
    assert names.labels["matched_dw_ksvd"] == "DW-KSVD, beta of Fastfood 5x"
    assert names.paper == ("pca", "ksvd", "dw_ksvd", "fastfood_5x_dekernelized", "fastfood_5x", "fastfood_10x")
    assert names.changed == ()
    config.settings.fastfood_5x.expansion = 7
    names = methods.names(config)
    assert names.labels["fastfood_5x"] == "Fastfood DW-KSVD 7x"
    assert names.changed == ("fastfood_5x",)


def test_no_number_of_the_paper_beside_another_expansion(config, rng):
    config.unlock().methods = ("dw_ksvd", "fastfood_5x")
    psnr = {name: rng.normal(size=20) for name in config.methods}
    printed = []
    for expansion in (5, 7):
        config.settings.fastfood_5x.expansion = expansion
        (row,) = claims.table(psnr, np.repeat(range(10), 2), methods.names(config), num_resamples=20, seed=0).rows
        printed.append(row[:2])
    assert [(statement, str(value)) for statement, value in printed] == [
        ("Fastfood DW-KSVD 5x above DW-KSVD", "1.28"),
        ("Fastfood DW-KSVD 7x above DW-KSVD", "–"),
    ]


def test_words_of_settings_are_functions_of_the_library(config):
    settings = methods.arguments(config.settings.fastfood_5x)
    functions = methods.with_functions(settings)
    assert functions["form"] is forms.sin
    assert functions["inverse"] is dekernelize.least_squares
    assert functions["beta"] == 10.0
    for field, word in (("form", "cosine"), ("inverse", "newton"), ("atom_update", "exakt"), ("method", "fastfood")):
        wrong = hallucinate.get_config("smoke").unlock()
        wrong.settings.fastfood_5x[field] = word
        with pytest.raises(ValueError, match=rf"config\.settings\.fastfood_5x\.{field} must be one of"):
            methods.check(wrong)
    wrong = hallucinate.get_config("smoke").unlock()
    wrong.settings.ridge = {**wrong.settings.ridge.to_dict(), "expansion": 5}
    with pytest.raises(ValueError, match="'expansion' is not an argument of"):
        methods.check(wrong)


@pytest.mark.parametrize("name", ["fastfood_5x", "fastfood_5x_dekernelized", "ridge"])
def test_the_validity_of_inverses_is_kept(name, data, config):
    fold = next(faces.folds(config, data))
    mask = faces.rectangle(data.shape, (0, 4, 0, 8))
    config.unlock().settings.ridge.ridge = (0.03,)
    arrays = methods.of_fold(config, name, fold, mask)
    inverses = {"fastfood_5x": len(fold.test), "fastfood_5x_dekernelized": 30}
    if name in inverses:
        assert arrays["validity/residual"].shape == (inverses[name],)
        assert np.isfinite(arrays["validity/residual"]).all()
    else:
        assert not [field for field in arrays if field.startswith("validity")]


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
    found = matching.all_pairs(left, right, ids, np.arange(6), num_bins=4096)
    others = ~np.eye(6, dtype=bool)
    scores, same = (left @ right.T)[others], (ids[:, None] == ids[None, :])[others]
    assert found.genuine.sum() == same.sum() == 8
    assert found.impostor.sum() == (~same).sum()
    np.testing.assert_allclose(found.scores[others], scores, atol=1e-6)
    curve = counting.roc(np.linspace(*matching.SPAN, 4097), found.genuine, found.impostor)
    bounds = counting.eer_bounds(curve)
    assert bounds.low - 1e-9 <= verification.eer(verification.roc(scores, same)) <= bounds.high + 1e-9


@pytest.fixture
def responses(rng):
    """Unit codes of 120 images of 40 people, the same ones blurred, and who is shown."""
    ids = np.repeat(np.arange(40), 3)
    left = rng.normal(size=(40, 8))[ids] + 0.8 * rng.normal(size=(120, 8))
    sides = left, left + 0.5 * rng.normal(size=left.shape)
    return *((x / np.linalg.norm(x, axis=1, keepdims=True)).astype(np.float32) for x in sides), ids


def counted(responses, most):
    """The fields of all folds that the verification needs, of two folds of 20 people."""
    left, right, ids = responses
    fold = (ids >= 20).astype(int)
    kept, parts = [], []
    for number in range(2):
        rows = np.flatnonzero(fold == number)
        kept.append(matching.images_kept(ids[rows], most=most, seed=number))
        parts.append(matching.all_pairs(left[rows], right[rows], ids[rows], kept[-1], num_bins=4096))
    fields = dict.fromkeys(Found._fields) | {"ids": ids, "fold": fold, "kept": kept}
    counts = np.stack([sum(part[kind] for part in parts) for kind in range(2)])
    return Found(**fields | {"counts": {"blurred": counts}, "scores": {"blurred": [part.scores for part in parts]}})


def test_the_verification_from_counts_is_that_of_all_scores(responses, config):
    found = pairs_report.matched(config, counted(responses, most=60))["blurred"]
    left, right, ids = responses
    pairs = (ids[:, None] // 20 == ids[None, :] // 20) & ~np.eye(len(ids), dtype=bool)
    scores, same = (left @ right.T)[pairs], (ids[:, None] == ids[None, :])[pairs]
    exact = verification.roc(scores, same)
    bounds = counting.eer_bounds(found.curve), counting.verification_rate_bounds(found.curve, 0.01)
    for (low, high), value in zip(bounds, (verification.eer(exact), verification.verification_rate(exact, 0.01)),
                                  strict=True):  # fmt: skip
        assert low - 1e-9 <= value <= high + 1e-9
        assert high - low < 0.01
    for interval in (found.rate, found.eer, found.cllr):
        assert interval.low < interval.estimate < interval.high


def test_intervals_of_more_people_than_are_kept(responses, config):
    """All pairs are counted; the intervals are those of the people kept, narrowed, about the estimate of all."""
    whole, part = (counted(responses, most=most) for most in (60, 31))
    assert [len(rows) for rows in part.kept] == [30, 30]  # whole people alone
    assert all(np.bincount(part.ids[part.fold == k][part.kept[k]]).max() == 3 for k in range(2))
    assert [scores.shape for scores in part.scores["blurred"]] == [(30, 30)] * 2
    np.testing.assert_array_equal(part.counts["blurred"], whole.counts["blurred"])
    (of_part,), (of_whole,) = (pairs_report.matched(config, found).values() for found in (part, whole))
    assert of_part.eer.estimate == of_whole.eer.estimate
    assert of_part.min_cllr == of_whole.min_cllr
    assert of_part.eer.low < of_part.eer.estimate < of_part.eer.high
    assert pairs_report.num_people(part) == (20, 40)
    assert pairs_report.of_all(Interval(0.2, 0.1, 0.4), 0.3, 0.5) == pytest.approx((0.3, 0.25, 0.4))
    assert pairs_report.of_all(Interval(0.2, 0.1, 0.4), 0.3, 1.0) == (0.3, 0.1, 0.4)
    assert pairs_report.of_all(Interval(0.2, 0.1, 0.4), 0.01, 0.5).low == 0.0


def test_two_people_are_kept_whatever_the_room():
    ids = np.array([4, 4, 4, 7, 9, 9, 9])
    assert matching.images_kept(ids, most=7, seed=0).tolist() == list(range(7))
    for seed in range(4):
        assert np.unique(ids[matching.images_kept(ids, most=2, seed=seed)]).size >= 2
    assert pairs_report.largest_share(ids) == 0.5
    assert np.isnan(pairs_report.largest_share(np.arange(3)))


def test_settings_are_those_that_held_out_people_prefer(data, config):
    fold = next(faces.folds(config, data))
    mask = faces.rectangle(data.shape, (0, 4, 0, 8))
    tried = {}

    def fit(x, mask, settings):
        found = methods.fitted(methods.METHODS["ridge"], None, x, mask, settings, shape=data.shape)
        assert len(x) == (~fold.is_tuning).sum()
        tried[settings["ridge"]] = methods.psnr(methods.rebuilt(found.model, fold.train[fold.is_tuning], mask),
                                                fold.train[fold.is_tuning]).mean()  # fmt: skip
        return found

    config.unlock().settings.ridge.ridge = (1e-4, 0.03, 100.0)
    best = methods.chosen(config.settings.ridge, fold, mask, fit)
    assert tried.keys() == {1e-4, 0.03, 100.0}
    assert tried[best["ridge"]] == max(tried.values()) > min(tried.values()) + 0.1


@pytest.fixture
def fold(data, config):
    return next(faces.folds(config, data))


@pytest.fixture
def passes(config, fold, tmp_path):
    """The settings of a pass over 130 variations of 120 faces, and the arrays that it ends with in a folder."""
    settings = config.streaming.unlock()
    settings.update(num_faces=130, batch_size=40, num_seen_twice=60, shift=0.5)

    def run(folder):
        with contextlib.closing(Workdir(tmp_path / folder, {})) as workdir:
            return streaming.of_fold(settings, fold, faces.rectangle(fold.shape, (0, 4, 0, 8)), workdir)

    return settings, run


@pytest.mark.parametrize("method", ["dw_ksvd", "fastfood_dw_ksvd"])
def test_a_killed_stream_goes_on_to_the_same_end(method, passes, tmp_path, monkeypatch):
    settings, run = passes
    settings.method = method
    whole = run("whole")
    plain, calls = streaming.online.fit_stream, []

    def killed(*args, **kwargs):
        calls.append(1)
        if len(calls) == 2:
            raise KeyboardInterrupt
        return plain(*args, **kwargs)

    monkeypatch.setattr(streaming.online, "fit_stream", killed)
    with pytest.raises(KeyboardInterrupt):
        run("killed")
    again = run("killed")
    assert len(calls) == 2 + 2  # three segments, of which one was done; the last one has a single batch
    for name, value in whole.items():
        np.testing.assert_array_equal(again[name], value, err_msg=name)
    models = [(tmp_path / name / "params/stream.safetensors").read_bytes() for name in ("whole", "killed")]
    assert models[0] == models[1]
    assert (int(whole["num_faces"]), int(whole["num_seen_twice"])) == (130, 70)
    assert streaming.headline(whole)["psnr"] == whole["psnr"][-1] > 10
    assert ("K-SVD in memory, 1 sweeps" in whole["names"]) == (settings.num_iters == 1)
    text = [str(cell) for row in stream_report.table(settings, whole).rows for cell in row]
    assert "one pass over a stream" in text
    assert "130 variations" in str(stream_report.section(settings, whole).blocks[0])
    assert "the first 70 again at the end" in str(stream_report.section(settings, whole).blocks[0])


def test_the_order_of_a_pass(config):
    """Whole batches: the faces of the first dictionary come late, and then those before them once more."""
    settings = config.streaming.unlock()
    settings.update(num_first=3, batch_size=4)
    once = [3, 4, 5, 6, 7, 8, 9, 0, 1, 2]
    for twice, size, again in ((0, 5, 0), (2, 4, 2), (1, 5, 5), (3, 5, 5), (10, 5, 10), (9, 7, 11)):
        settings.num_seen_twice = twice
        assert streaming.rows_of_pass(settings, 10, size).tolist() == (once * 3)[: 10 + again]
    for field in ("batch_size", "num_first", "num_seen_twice"):
        settings.update(batch_size=4, num_first=3, num_seen_twice=2)
        settings[field] = 11
        with pytest.raises(ValueError, match=rf"config.streaming.{field} must be at most 10 \(the faces of the pass\)"):
            streaming.rows_of_pass(settings, 10, settings.batch_size)


def test_errors_of_a_dictionary_are_those_of_its_codes(rng):
    """Two blocks, the last one padded."""
    x = rng.normal(size=(300, 6)).astype(np.float32)
    dictionary = Dictionary(atoms=rng.normal(size=(6, 9)).astype(np.float32))
    codes = jax.tree.map(np.asarray, omp.encode_batch(dictionary, x, sparsity=2))
    rebuilt = np.einsum("dns,ns->nd", dictionary.atoms[:, codes.indices], codes.values)
    expected = ((x - rebuilt) ** 2).sum() / (x**2).sum()
    assert_close(streaming.relative_error(dictionary, x, sparsity=2), expected, factor=10)


def test_any_face_of_a_pass_can_be_made_again(config, fold):
    settings = config.streaming.unlock()
    plain = streaming.source(settings, fold.train, fold.shape)
    order = np.random.default_rng(settings.seed).permutation(len(fold.train))
    np.testing.assert_array_equal(plain.read(np.arange(5)), fold.train[order[:5]])
    settings.num_faces = 300
    varied = streaming.source(settings, fold.train, fold.shape)
    assert varied.num_rows == 300
    rows = varied.read(np.arange(100, 140))
    np.testing.assert_array_equal(varied.read(np.arange(120, 160))[:20], rows[20:])
    assert np.abs(varied.read(np.arange(40)) - varied.read(np.arange(len(order), len(order) + 40))).max() > 0.01
    settings.update(flip=False, shift=0.0, scale=0.0, brightness=0.0)
    same = streaming.source(settings, fold.train, fold.shape).read(np.arange(len(order), len(order) + 40))
    np.testing.assert_allclose(same, fold.train[order[:40]], atol=1e-6)


def test_a_method_learns_from_a_stream(config, fold, tmp_path):
    """More atoms than pixels, from variations alone; the same method again takes the dictionary of its checkpoint."""
    mask = faces.rectangle(fold.shape, (0, 4, 0, 8))
    settings = config.unlock().settings.streamed_matched_few
    settings.update(num_atoms=80, num_faces=150)
    learn = functools.partial(streaming.learn, config.streaming, fold.shape, tmp_path)
    found = methods.of_fold(config, "streamed_matched_few", fold, mask, learn=learn)
    mean = np.broadcast_to(fold.train.mean(axis=0), fold.test.shape)
    assert methods.psnr(found["images"], fold.test).mean() > methods.psnr(mean, fold.test).mean()
    assert 10 < found["setting/effective beta"] < 40
    again = methods.of_fold(config, "streamed_matched_few", fold, mask, learn=learn)
    np.testing.assert_array_equal(again["images"], found["images"])


@pytest.mark.parametrize("name", ["streamed_dw_ksvd", "streamed_5x", "streamed_5x_dekernelized"])
def test_what_a_stream_learns_becomes_a_model(name, config, fold):
    """By a pass that returns faces as they are: their features are the atoms."""
    mask, asked = faces.rectangle(fold.shape, (0, 4, 0, 8)), {}

    def learn(key, x, features, **sizes):
        asked.update(sizes)
        rows = features(x[: sizes["num_atoms"]])
        return ksvd.init(key, rows, num_atoms=len(rows)), fitinfo.closed_form(dtype=rows.dtype)

    found = methods.of_fold(config, name, fold, mask, is_kept=True, learn=learn)
    num_faces = 100 if name == "streamed_5x_dekernelized" else 120
    assert asked == {"num_atoms": 40, "sparsity": 3, "num_faces": num_faces}
    assert found["images"].shape == fold.test.shape
    assert found["atoms/face"].shape == (12, 64)
    assert found["atoms/seen"].shape == (12, 32)
    num_inverses = {"streamed_dw_ksvd": 0, "streamed_5x": len(fold.test), "streamed_5x_dekernelized": 40}
    assert len(found.get("validity/residual", ())) == num_inverses[name]
    labels = {
        "streamed_dw_ksvd": "DW-KSVD, ",
        "streamed_5x": "Fastfood DW-KSVD 5x, ",
        "streamed_5x_dekernelized": "Fastfood DW-KSVD 5x, de-kernelised, ",
    }
    title = methods.METHODS[config.settings[name].method].title.format(**config.settings[name])
    assert title == f"{labels[name]}40 atoms, {num_faces} faces"


def test_verdicts():
    assert claims.verdict(Interval(0.2, 0.1, 0.3)) == "holds"
    assert claims.verdict(Interval(-0.2, -0.3, -0.1)) == "the other way round"
    assert claims.verdict(Interval(0.1, -0.1, 0.3)) == "not decided"


def test_the_network_of_the_study_learns(data, config):
    """The smoke run leaves it out: here its settings reach the fit, and the faces are symmetric to it."""
    fold = next(faces.folds(config, data))
    mask = faces.rectangle(data.shape, (0, 4, 0, 8))
    settings = methods.arguments(config.settings.network)
    settings |= {"width": 8, "num_epochs": 3, "batch_size": 40}
    network = methods.METHODS["network"]
    model, info, _ = methods.fitted(network, jax.random.key(0), fold.train, mask, settings, shape=data.shape)
    assert info.objective.shape == (3,)
    assert info.objective[2] < info.objective[0]
    np.testing.assert_array_equal(model.mirror, np.arange(64).reshape(8, 8)[:, ::-1].ravel())


def test_a_study_without_the_methods_of_the_paper_says_nothing_of_their_order(config):
    config.unlock().methods = ("ridge",)
    names = methods.names(config)
    assert report.in_words(names, {"ridge": np.full(3, 20.0)}, {}) == []
