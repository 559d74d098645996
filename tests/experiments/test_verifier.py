"""A verifier from one set: nobody is on two sides, and the saved file gives the numbers of the report."""

import dataclasses
import itertools
import json

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from configs import score as score_config
from configs import verifier as configs
from experiments.common import identification_norms
from experiments.common.inputs import Vectors
from experiments.score import study as score
from experiments.verifier import candidates, evidence, sides, strangers, tail
from experiments.verifier import streamed as streaming
from experiments.verifier.study import run
from jaxface import metrics, verifier
from jaxface.data import embeddings, pairs, stream, synthetic
from jaxface.faces import pipeline
from jaxface.runtime import launch, params_io
from tests.experiments import again
from tests.tolerances import assert_close


@pytest.fixture(scope="module")
def made():
    rng = np.random.default_rng(11)
    known = synthetic.gaussian_identities(rng, num_people=40, images_per_person=4, dim=6)
    stretch = np.linspace(0.3, 3.0, 6)  # noise that a cosine weighs wrongly
    features = known.features + stretch * rng.normal(size=known.features.shape) + 1.0
    alone = rng.normal(size=(5, 6)) + 1.0
    ids = np.concatenate([known.ids, 40 + np.arange(5)])
    return np.concatenate([features, alone]), ids


@pytest.fixture
def file(made, tmp_path):
    features, ids = made
    names = [f"p{k:02d}/{row}.jpg" for row, k in enumerate(ids)]
    embeddings.save(tmp_path / "set.npz", features, [f"p{k:02d}" for k in ids], files=names)
    return tmp_path / "set.npz"


def settings(file, **changes):
    config = configs.get_config("embeddings").unlock()
    config.runtime.x64 = True
    config.data.root = str(file)
    config.num_folds = 2
    config.num_resamples = 40
    config.num_choice_folds = 2
    config.num_iters = 5
    config.kinds = ("cosine", "Joint Bayes")
    for name, value in changes.items():
        config[name] = value
    return config.lock()


def test_one_command_from_vectors_to_decisions(file, made, tmp_path):
    features, _ = made
    (tmp_path / "pairs.csv").write_text("a,b\np00/0.jpg,p00/1.jpg\np00/0.jpg,p01/4.jpg\n")
    config = settings(file, pairs=str(tmp_path / "pairs.csv"))
    results = launch.execute(run, config, tmp_path / "run")
    model = params_io.load(tmp_path / "run" / "params" / "verifier.safetensors", verifier.Verifier)
    with np.load(tmp_path / "run" / "test" / "test.npz") as test:
        z = verifier.encode_vectors(model, test["features"])
        _, people = np.unique(test["labels"], return_inverse=True)
    trial = pairs.all_pairs(people)
    scores = np.asarray(verifier.score_pairs(model, z, trial.first, trial.second))
    with np.load(tmp_path / "run" / "stages" / "fold-0.npz") as stage:
        assert_close(np.asarray(scores), stage["scores"][int(stage["chosen"])])
    assert results["chosen: EER"] <= results["cosine: EER"]
    header, *decided = (tmp_path / "run" / "decisions.csv").read_text().splitlines()
    assert header == "a,b,llr,probability,same_person,truth"
    whole = verifier.encode_vectors(model, jnp.asarray(features))
    expected = verifier.score_pairs(model, whole, np.array([0, 0]), np.array([1, 4]))
    assert [float(line.split(",")[2]) for line in decided] == pytest.approx(expected.tolist(), abs=1e-5)
    page = (tmp_path / "run" / "report.html").read_text()
    assert "5 of them with one image" in page
    assert "Against the plain cosine" in page
    assert "--config.images.loader=embeddings" in page
    assert "Somebody enrolled, or a stranger" in page
    scored = score_config.get_config(None).unlock()
    scored.model = str(tmp_path / "run" / "params" / "verifier.safetensors")
    scored.images.loader, scored.images.root = "embeddings", str(tmp_path / "run" / "test" / "test.npz")
    with np.load(tmp_path / "run" / "test" / "test.npz") as test:
        first, second = test["files"][:2]
    (tmp_path / "two.csv").write_text(f"a,b\n{first},{second}\n")
    scored.pairs = str(tmp_path / "two.csv")
    assert launch.execute(score.run, scored.lock(), tmp_path / "scored")["pairs"] == 1
    again.check(run, config, tmp_path / "run", results, file, "set.npz")


def test_a_killed_run_goes_on_to_the_same_end(file, tmp_path, monkeypatch):
    config = settings(file)
    expected = launch.execute(run, config, tmp_path / "whole")
    plain, calls = candidates.measure, []

    def fatal(*arguments):
        calls.append(None)
        if len(calls) == 2:
            raise KeyboardInterrupt
        return plain(*arguments)

    monkeypatch.setattr(candidates, "measure", fatal)
    with pytest.raises(KeyboardInterrupt):
        launch.execute(run, config, tmp_path / "killed")
    monkeypatch.undo()
    assert launch.execute(run, config, tmp_path / "killed") == expected
    for name in ("results.json", "params/verifier.safetensors"):
        assert (tmp_path / "killed" / name).read_bytes() == (tmp_path / "whole" / name).read_bytes()


def test_nobody_is_on_two_sides_and_nobody_dominates(made):
    _, ids = made
    config = settings("unused", num_folds=5, max_images=2)
    vectors = Vectors(x=np.zeros((len(ids), 1)), ids=ids.astype(np.int32), names=tuple(range(45)))
    drawn = sides.deal(config, vectors)
    for split, rows, trial in drawn:
        parts = [set(ids[rows].tolist()) for rows in (split.train, split.held_out, split.test)]
        assert sum(map(len, parts)) == len(set().union(*parts)) == 45
        assert np.bincount(ids[rows]).max() == 2
        assert len(trial.first) == len(rows) * (len(rows) - 1) // 2
    tested = np.concatenate([side.split.test for side in drawn])
    np.testing.assert_array_equal(np.sort(tested), np.arange(len(ids)))


def test_test_people_have_no_part_in_the_choice(made):
    features, ids = made
    config = settings("unused")
    vectors = Vectors(x=features, ids=ids.astype(np.int32), names=tuple(range(45)))
    side = sides.deal(config, vectors)[0]
    noise = features.copy()
    noise[side.split.test] = np.random.default_rng(0).normal(size=noise[side.split.test].shape)
    found, changed = (
        candidates.measure(config, dataclasses.replace(vectors, x=x), pipeline.build(()), side, 0)
        for x in (features, noise)
    )
    np.testing.assert_array_equal(found["held out"], changed["held out"])
    np.testing.assert_array_equal(found["model"], changed["model"])
    assert not np.array_equal(found["scores"], changed["scores"])


def test_the_folds_together_say_what_each_pair_says(made):
    """Against the pairs of both folds in one list, and against people resampled by hand."""
    features, ids = made
    config = settings("unused", num_resamples=30)
    vectors = Vectors(x=features, ids=ids.astype(np.int32), names=tuple(range(45)))
    drawn = sides.deal(config, vectors)
    measured = [candidates.measure(config, vectors, pipeline.build(()), side, k) for k, side in enumerate(drawn)]
    pooled = evidence.pool(config, vectors, drawn, measured)
    found = evidence.measure(config, pooled)
    listed = [
        (arrays["scores"][:, p], ids[side.rows[i]], ids[side.rows[j]])
        for arrays, side in zip(measured, drawn, strict=True)
        for p, (i, j) in enumerate(itertools.combinations(range(len(side.rows)), 2))
    ]
    ratios, first, second = (np.array(each) for each in zip(*listed, strict=True))
    for k, kind in enumerate(config.kinds):
        curve = metrics.roc(ratios[:, k], first == second)
        assert found[kind].intervals.eer.estimate == pytest.approx(metrics.eer(curve))
        assert found[kind].cllr == metrics.cllr(ratios[:, k], first == second)
    less = found["Joint Bayes"].less(found["cosine"])
    assert less.eer.estimate == pytest.approx(
        found["Joint Bayes"].intervals.eer.estimate - found["cosine"].intervals.eer.estimate
    )
    assert less.eer.low < less.eer.estimate < less.eer.high
    assert np.isclose(pooled.largest_share, np.bincount(first[first == second]).max() / (first == second).sum())


def test_strangers_are_told_from_enrolled_people(made):
    """The gallery, its probes and the rates, counted one by one."""
    features, ids = made
    config = settings("unused", kinds=("Joint Bayes",))
    vectors = Vectors(x=features, ids=ids.astype(np.int32), names=tuple(range(45)))
    split = sides.deal(config, vectors)[0].split
    model = verifier.fit_kind(
        jax.random.key(0), verifier.KINDS["Joint Bayes"], features, ids.astype(np.int32), num_people=45, num_iters=5
    )[0]
    z = np.asarray(verifier.encode_vectors(model, features))
    drawn = strangers.draw(z, vectors.ids, split, np.random.default_rng(0))
    shown = [int(np.flatnonzero((z == row).all(axis=1))[0]) for row in np.asarray(drawn.gallery.sums)]
    probed = [int(np.flatnonzero((z == row).all(axis=1))[0]) for row in drawn.probes]
    assert set(shown) | set(probed) <= set(split.test.tolist())
    assert not set(shown) & set(probed)
    assert sorted(ids[probed]) == sorted(set(ids[split.test]))
    for row, mate in zip(probed, drawn.mate, strict=True):
        assert [k for k, other in enumerate(shown) if ids[other] == ids[row]] == ([] if mate < 0 else [mate])
    found = verifier.identify(model, drawn.gallery, drawn.probes, prior=0.3)
    named, unknown, other = 0, 0, 0
    for k, mate in enumerate(drawn.mate):
        named += mate < 0 and found.is_named[k]
        unknown += mate >= 0 and not found.is_named[k]
        other += mate >= 0 and found.is_named[k] and found.person[k] != mate
    num_known = (drawn.mate >= 0).sum()
    assert list(strangers.rates(drawn, found)) == pytest.approx(
        [named / (len(drawn.mate) - num_known), unknown / num_known, other / num_known]
    )
    at_rate = strangers.threshold(model, drawn, 0.2)
    assert at_rate.num_people == len(set(ids[split.held_out]))
    assert len(strangers.draws(config, model, vectors, split)) == strangers.NUM_DRAWS


def test_every_rule_of_identification_has_its_threshold_from_strangers(made):
    features, ids = made
    config = settings("unused", kinds=("Joint Bayes",), far=(0.2,))
    vectors = Vectors(x=features, ids=ids.astype(np.int32), names=tuple(range(45)))
    split = sides.deal(config, vectors)[0].split
    model = verifier.fit_kind(
        jax.random.key(0), verifier.KINDS["Joint Bayes"], features, ids.astype(np.int32), num_people=45, num_iters=5
    )[0]
    games = strangers.draws(config, model, vectors, split)[:2]
    found = tail.rates(config, model, games[0])
    assert list(found) == ["evidence", "ratio", "s-norm in closed form", "adaptive s-norm"]
    assert found["evidence"] == found["ratio"]  # without a presence the evidence is the ratio less log N
    others = games[0].held_out_ids % 2 == 1
    bests = [
        identification_norms.best(model, games[0].gallery, z, games[0].held_out[~others], num_best=tail.NUM_BEST)
        for z in (games[0].held_out[others], games[0].probes)
    ]
    for rule in found:
        least = metrics.stranger_threshold(bests[0][rule].score, games[0].held_out_ids[others], far=0.2).threshold
        is_named, is_known = bests[1][rule].score >= least, games[0].mate >= 0
        assert found[rule][0.2] == (is_named[~is_known].mean(), 1 - is_named[is_known].mean())
    section, results = tail.section(config, model, games)
    assert section.title == "Norms in the tail of identification"
    assert results["adaptive s-norm, FAR 0.2: strangers named"] == pytest.approx(
        np.mean([tail.rates(config, model, each)["adaptive s-norm"][0.2][0] for each in games])
    )


def test_a_kind_that_cannot_be_fitted_is_left_out(tmp_path):
    rng = np.random.default_rng(0)
    people = np.repeat(np.arange(12), 2)
    features = rng.normal(size=(12, 40))[people] + 0.3 * rng.normal(size=(24, 40))
    features[:, 5] = 0.0  # a constant dimension: the noise of Joint Bayes is singular there
    embeddings.save(tmp_path / "set.npz", features, people)
    results = launch.execute(run, settings(tmp_path / "set.npz", share_calibrate=0.4), tmp_path / "run")
    assert results["saved verifier"] == "cosine"
    assert "Joint Bayes: EER" not in json.loads((tmp_path / "run" / "results.json").read_text())
    page = (tmp_path / "run" / "report.html").read_text()
    assert "Without numbers: Joint Bayes, whose fit fails in some fold" in page


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"kinds": ("cosinus",)}, "config.kinds.* must be one of .*Did you mean 'cosine'"),
        ({"share_calibrate": 0.95}, "config.share_calibrate must lie in"),
        ({"num_folds": 1}, "config.num_folds must be at least 2"),
        ({"num_choice_folds": 1}, "config.num_choice_folds must be at least 2"),
        ({"prior": 0.0}, "config.prior must lie in"),
    ],
)
def test_fields_that_do_not_fit(changes, message):
    with pytest.raises(ValueError, match=message):
        candidates.check(settings("unused", **changes))


def test_a_set_of_too_few_people_is_refused(tmp_path):
    embeddings.save(tmp_path / "set.npz", np.random.default_rng(0).normal(size=(8, 3)), np.repeat(np.arange(4), 2))
    with pytest.raises(ValueError, match="the 4 people of this set cannot fit, calibrate and test with two people"):
        launch.execute(run, settings(tmp_path / "set.npz"), tmp_path / "run")


def test_people_with_one_image_can_be_too_many(tmp_path):
    people = np.concatenate([np.arange(30), [0, 1, 2]])
    embeddings.save(tmp_path / "set.npz", np.random.default_rng(0).normal(size=(33, 3)), people)
    with pytest.raises(ValueError, match="a part of the people that chooses or calibrates"):
        launch.execute(run, settings(tmp_path / "set.npz"), tmp_path / "run")


@pytest.fixture
def streamed(made, tmp_path):
    """The same vectors as a file that stays on the disk, with a row that nobody knows."""
    features, ids = made
    np.save(tmp_path / "x.npy", np.concatenate([features, np.zeros((1, 6))]))
    (tmp_path / "people.txt").write_text("\n".join([f"p{k:02d}" for k in ids] + ["p00"]) + "\n")
    config = configs.get_config("stream").unlock()
    config.runtime.x64 = True
    config.data.root, config.data.options.labels = str(tmp_path / "x.npy"), str(tmp_path / "people.txt")
    config.num_folds, config.num_resamples, config.num_iters, config.kinds = 3, 40, 5, ("cosine", "Joint Bayes")
    config.stream.batch_size, config.stream.num_groups, config.share_calibrate = 32, 5, 0.4
    return config


def test_a_stream_is_fitted_counted_and_resumed(streamed, tmp_path, monkeypatch):
    """The numbers of the page from the saved verifier and the test vectors; killed and repeated."""
    streamed.lock()
    whole = launch.execute(run, streamed, tmp_path / "whole")
    with (
        np.load(tmp_path / "whole" / "stages" / "chosen.npz") as counted,
        np.load(tmp_path / "whole" / "test" / "test.npz") as test,
    ):
        _, people = np.unique(test["labels"], return_inverse=True)
        trial = pairs.all_pairs(people)
        for kind in ("cosine", "joint-bayes"):
            model = params_io.load(tmp_path / "whole" / "params" / "kinds" / f"{kind}.safetensors", verifier.Verifier)
            z = verifier.encode_vectors(model, test["features"])
            exact = metrics.roc(verifier.score_pairs(model, z, trial.first, trial.second), trial.is_same)
            name = {"cosine": "cosine", "joint-bayes": "Joint Bayes"}[kind]
            fields = [counted[f"{name}: {field}"] for field in ("edges", "genuine", "impostor")]
            bounds = metrics.streaming.eer_bounds(metrics.streaming.roc(*fields))
            assert bounds.low - 1e-12 <= metrics.eer(exact) <= bounds.high + 1e-12
            assert fields[1].sum() == trial.is_same.sum()
    assert whole[f"{whole['saved verifier']}: min Cllr"] <= whole["cosine: min Cllr"] + 0.05
    assert "Somebody enrolled, or a stranger" in (tmp_path / "whole" / "report.html").read_text()
    plain, calls = verifier.fit_stream, []

    def fatal(*arguments, **options):
        calls.append(None)
        if len(calls) == 2:
            raise KeyboardInterrupt
        return plain(*arguments, **options)

    monkeypatch.setattr(verifier, "fit_stream", fatal)
    with pytest.raises(KeyboardInterrupt):
        launch.execute(run, streamed, tmp_path / "killed")
    monkeypatch.undo()
    assert launch.execute(run, streamed, tmp_path / "killed") == whole


def test_a_stream_that_does_not_fit_is_refused(streamed, tmp_path):
    source = stream.from_file(streamed.data.root, labels=streamed.data.options.labels)
    part = streaming.deal(streamed, source)
    kept = streaming.keep(streamed, source, part)
    assert {len(set(kept.vectors.ids[rows])) for rows in kept.groups} == {3}
    assert not {kept.vectors.names[k] for k in kept.vectors.ids[kept.split.test]} & {
        kept.vectors.names[k] for k in kept.vectors.ids[kept.split.held_out]
    }
    assert not {kept.vectors.names[k] for k in kept.vectors.ids} & {source.names[k] for k in np.flatnonzero(part == 0)}
    for changes, message in (
        ({"pairs": "pairs.csv"}, "a stream has no names of files"),
        ({"num_folds": 40}, "cannot fit, calibrate and test with two people"),
    ):
        config = streamed.copy_and_resolve_references().unlock()
        for name, value in changes.items():
            config[name] = value
        with pytest.raises(ValueError, match=message):
            launch.execute(run, config.lock(), tmp_path / "run")


def names_file(path, people):
    path.write_text("\n".join(f"p{k:02d}" for k in people) + "\n")
    return str(path)


def test_lists_of_people_and_of_trials_say_who_tests(file, made, tmp_path):
    """The listed people and pairs, and nobody else; the rest fits and calibrates."""
    _, ids = made
    loaded = embeddings.load(file)
    vectors = Vectors(x=loaded.features, ids=loaded.ids, names=loaded.names, files=loaded.files)
    config = settings(file, share_calibrate=0.4).unlock()
    config.people.test = names_file(tmp_path / "test.txt", range(10))
    (side,) = sides.deal(config, vectors)
    assert set(ids[side.split.test]) == set(range(10))
    assert len(set(ids[side.split.held_out])) == 14
    assert set(ids[side.split.train]) | set(ids[side.split.held_out]) == set(range(10, 45))
    config.people.fit = names_file(tmp_path / "fit.txt", range(20, 40))
    config.people.calibrate = names_file(tmp_path / "calibrate.txt", range(12, 18))
    (side,) = sides.deal(config, vectors)
    assert set(ids[side.split.train]) == set(range(20, 40))
    assert set(ids[side.split.held_out]) == set(range(12, 18))
    config.people.test = None
    listed = [(0, 1), (0, 9), (41, 5), (4, 5)]
    lines = [f"{vectors.files[a]} {vectors.files[b]} {int(ids[a] == ids[b])}" for a, b in listed]
    (tmp_path / "trials.txt").write_text("\n".join(lines) + "\n")
    config.trials = str(tmp_path / "trials.txt")
    (side,) = sides.deal(config, vectors)
    scored = side.rows[np.stack(side.trial[:2], axis=1)]
    assert scored.tolist() == [list(pair) for pair in listed]
    assert side.trial.is_same.tolist() == [bool(ids[a] == ids[b]) for a, b in listed]
    results = launch.execute(run, config.lock(), tmp_path / "run")
    assert "cosine: EER" in results
    page = (tmp_path / "run" / "report.html").read_text()
    assert "20 people fit, 6 calibrate, and 4 test with the pairs of the trials" in page


@pytest.mark.parametrize(
    ("fit", "test", "trial", "message"),
    [
        (range(5, 20), range(10), None, r"nobody may be on two sides: 'p05', .*'p09' are to fit and to test"),
        (None, [77], None, "names 1 people who are not in the data, the first 'p77'"),
        (None, [], None, "is empty; expected a name a line"),
        (range(5, 20), None, None, "people who test are missing"),
        (range(20), None, "p00/0.jpg p20/80.jpg 0", "'p00' is to fit and to test"),
        (None, None, "p00/0.jpg p01/4.jpg 1", "contradicts the people of the vectors in 1 of 1 pairs"),
        (None, None, "p00/0.jpg p01/5555.jpg 0", "names 1 files that the vectors do not have"),
        (None, None, "p00/0.jpg p00/1.jpg 1", "two people or more must fit, calibrate and test"),
    ],
)
def test_lists_that_do_not_fit(file, tmp_path, fit, test, trial, message):
    config = settings(file).unlock()
    config.people.fit = None if fit is None else names_file(tmp_path / "fit.txt", fit)
    config.people.test = None if test is None else names_file(tmp_path / "test.txt", test)
    if trial is not None:
        (tmp_path / "trials.txt").write_text(f"{trial}\n")
        config.trials = str(tmp_path / "trials.txt")
    with pytest.raises(ValueError, match=message):
        launch.execute(run, config.lock(), tmp_path / "run")
