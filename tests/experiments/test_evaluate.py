"""Scores of other systems: numbers as by scikit-learn and the definitions, whatever form the files have."""

import json

import numpy as np
import pytest
from sklearn.metrics import roc_auc_score, roc_curve

from configs import evaluate as configs
from experiments.evaluate import measures, systems
from experiments.evaluate.study import run
from jaxface import metrics
from jaxface.losses.calibration import Affine
from jaxface.losses.fusion import Fusion
from jaxface.runtime import launch, params_io
from tests.experiments import again


def settings(**changes):
    config = configs.get_config()
    config.unlock()
    config.num_resamples = 40
    for name, value in changes.items():
        section, _, field = name.rpartition("__")
        (config[section] if section else config)[field] = value
    return config.lock()


@pytest.fixture
def trials(rng):
    """All pairs of 24 people with 3 images each by two systems, the second better."""
    people = np.repeat(np.arange(24), 3)
    first, second = np.triu_indices(len(people), 1)
    keep = (people[first] == people[second]) | (rng.random(len(first)) < 0.3)
    first, second = first[keep], second[keep]
    same = people[first] == people[second]
    noise = rng.normal(size=len(same))
    names = [f"p{person:02d}/{k}.jpg" for k, person in enumerate(people)]
    return {
        "a": [names[i] for i in first],
        "b": [names[j] for j in second],
        "same": same,
        "weak": 1.5 * same + noise,
        "good": 3.0 * same + noise + 0.3 * rng.normal(size=len(same)),
    }


@pytest.fixture
def table(trials, tmp_path):
    rows = zip(*trials.values(), strict=True)
    text = "a,b,same,weak,good\n" + "".join(f"{a},{b},{int(s)},{w:.17g},{g:.17g}\n" for a, b, s, w, g in rows)
    (tmp_path / "scores.csv").write_text(text)
    return tmp_path / "scores.csv"


def test_the_report_and_the_numbers_of_two_systems(table, trials, tmp_path):
    config = settings(trials=str(table))
    results = launch.execute(run, config, tmp_path / "run")
    for name in ("weak", "good"):
        scores, same = trials[name], trials["same"]
        far, vr, _ = roc_curve(same, scores, drop_intermediate=False)
        assert results[f"{name}: AUC"] == pytest.approx(roc_auc_score(same, scores), abs=1e-12)
        assert results[f"{name}: VR at FAR 0.01"] == pytest.approx(vr[far <= 0.01].max(), abs=1e-12)
        crossing = np.argmax(far >= 1 - vr)
        low, high = 1 - vr[crossing], far[crossing]
        assert low - 1e-12 <= results[f"{name}: EER"] <= max(high, 1 - vr[crossing - 1])
        saved = params_io.load(tmp_path / "run" / "params" / f"calibration-{name}.safetensors", Affine)
        threshold = results[f"{name}: threshold of the costs"]
        assert float(saved.slope) * threshold + float(saved.offset) == pytest.approx(0.0, abs=1e-9)
        assert results[f"{name}: Cllr, calibrated"] < results[f"{name}: min Cllr"] + 0.1
    page = (tmp_path / "run" / "report.html").read_text()
    assert "Compared with weak" in page
    assert "24 people" in page
    with np.load(tmp_path / "run" / "scores" / "calibrated.npz") as written:
        assert metrics.cllr(written["llr of good"], trials["same"]) == results["good: Cllr, calibrated"]
    again.check(run, config, tmp_path / "run", results, table, "scores.csv")


def test_every_form_gives_the_same_numbers(table, trials, tmp_path):
    expected = systems.load(settings(trials=str(table)))
    (tmp_path / "list.txt").write_text(
        "".join(f"{int(s)} {a} {b}\n" for a, b, s in zip(trials["a"], trials["b"], trials["same"], strict=True))
    )
    for name in ("weak", "good"):
        rows = list(zip(trials["b"], trials["a"], trials[name], strict=True))[::-1]
        (tmp_path / f"{name}.txt").write_text("".join(f"{b} {a} {s:.17g}\n" for b, a, s in rows))
    files = tuple(f"{name}={tmp_path}/{name}.txt" for name in ("weak", "good"))
    found = systems.load(settings(trials=str(tmp_path / "list.txt"), systems=files))
    assert list(found.scores) == ["weak", "good"]
    for name in ("weak", "good"):
        np.testing.assert_array_equal(found.scores[name], expected.scores[name])
    for side, other in zip(found.people, expected.people, strict=True):
        np.testing.assert_array_equal(side, other)


def test_two_files_of_scores_have_no_intervals(trials, tmp_path):
    for kind, chosen in (("genuine", trials["same"]), ("impostor", ~trials["same"])):
        (tmp_path / kind).write_text("\n".join(map(str, trials["good"][chosen])))
    config = settings(genuine=str(tmp_path / "genuine"), impostor=str(tmp_path / "impostor"))
    results = launch.execute(run, config, tmp_path / "run")
    assert results["score: EER"] == metrics.eer(metrics.roc(trials["good"], trials["same"]))
    assert "so there are no intervals" in (tmp_path / "run" / "report.html").read_text()


def test_the_calibration_of_a_trial_has_not_seen_its_people(table, trials):
    config = settings(trials=str(table), num_folds=3)
    known = systems.load(config)
    scores = known.scores["good"]
    found, _ = measures.calibrated(config, known, scores)
    person = 12  # on both sides of trials
    touched = (known.people[0] == person) | (known.people[1] == person)
    changed = np.where(touched, 100.0 - 5 * scores, scores)
    moved, _ = measures.calibrated(config, known, changed)
    folds = np.stack(measures._folds(config, known), axis=1)[touched]
    number = np.sort(folds, axis=1) @ [config.num_folds, 1]
    for pair in np.unique(number):  # one calibration for each pair of folds: it must be the same before and after
        rows = np.flatnonzero(touched)[number == pair]
        slope, offset = np.polyfit(scores[rows], found[rows], 1)
        np.testing.assert_allclose(moved[rows], slope * changed[rows] + offset, rtol=1e-6)
    assert np.abs(moved - found)[~touched].max() > 1e-3  # where those trials may be used, they are


def test_distances_are_turned_round(table, trials, tmp_path):
    text = table.read_text().splitlines()
    rows = [line.split(",") for line in text[1:]]
    table.write_text("a,b,same,d\n" + "".join(f"{a},{b},{s},{-float(w):.17g}\n" for a, b, s, w, _ in rows))
    found = systems.load(settings(trials=str(table), distances=("d",)))
    np.testing.assert_array_equal(found.scores["d"], trials["weak"])


def test_a_full_matrix_also_identifies(rng, tmp_path):
    people = [f"p{k}" for k in range(8)]
    lines = ["a,b,same,s"]
    for probe in [*people[:6], "x1", "x2"]:
        for person in people:
            score = rng.normal() + 4 * (probe == person)
            lines.append(f"{person}/1.jpg,{probe}/2.jpg,{int(probe == person)},{score:.6f}")
    (tmp_path / "scores.csv").write_text("\n".join(lines))
    launch.execute(run, settings(trials=str(tmp_path / "scores.csv"), num_folds=3), tmp_path / "run")
    assert {"cmc.svg", "open_set.svg"} <= {path.name for path in (tmp_path / "run" / "figures").iterdir()}
    assert "DIR % at FAR 1 %" in (tmp_path / "run" / "report.html").read_text()


def test_all_pairs_of_a_set_identify_and_a_gap_does_not(rng, tmp_path):
    people = np.repeat(np.arange(5), [3, 2, 2, 1, 2])
    files = [f"p{person}/{k}.jpg" for k, person in enumerate(people)]
    scores = rng.normal(size=(10, 10)) + 3 * (people[:, None] == people[None, :])
    pairs = [(i, j) for i in range(10) for j in range(10)]  # each file with itself too
    lines = [f"{files[i]},{files[j]},{int(people[i] == people[j])},{scores[i, j]:.17g}" for i, j in pairs]
    (tmp_path / "all.csv").write_text("\n".join(["a,b,same,s", *lines]))
    found = measures.ranked(systems.load(settings(trials=str(tmp_path / "all.csv"))), "s")
    np.fill_diagonal(scores, -np.inf)
    known = people != 3  # the only photo of a person has no mate
    shares = metrics.cmc(scores[:, known], people, people[known])
    counts = found.counts
    assert found.num_people == 5
    np.testing.assert_array_equal(counts.higher >= 0, known)
    ours = metrics.cmc_from_counts(counts.higher[known], counts.tied[known], num_people=5)
    np.testing.assert_array_equal(ours, shares)
    (tmp_path / "gap.csv").write_text("\n".join(["a,b,same,s", *(x for x in lines if "p3/7.jpg,p0/0.jpg" not in x)]))
    assert measures.ranked(systems.load(settings(trials=str(tmp_path / "gap.csv"))), "s") is None


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({}, "name what to evaluate: --config.trials=FILE, or both"),
        ({"trials": "x", "genuine": "y", "impostor": "z"}, "name what to evaluate"),
        ({"trials": "x", "systems": ("mine.txt",)}, "config.systems must hold NAME=FILE entries; got 'mine.txt'"),
        ({"trials": "x", "prior": 1.0}, r"config.prior must lie in \(0, 1\)"),
        ({"trials": "x", "far": (0.0,)}, r"config.far\[0\] must lie in \(0, 1\]"),
        ({"trials": "x", "num_folds": 2}, "config.num_folds must be at least 3"),
    ],
)
def test_fields_that_do_not_fit(changes, message):
    with pytest.raises(ValueError, match=message):
        systems.check(settings(**changes))


@pytest.mark.parametrize(
    ("text", "changes", "message"),
    [
        ("a,b,s\nx,y,1.5\n", {}, "no column says which pairs show one person: name it with --config.columns.same"),
        ("a,b,same\nx,y,1\n", {}, "the trials have no scores: name a file with --config.systems"),
        ("a,b,same,s\nx,y,1,2.5\n", {"reference": "t"}, "config.reference must be one of 's'; got 't'"),
        (
            "same,s,person_a,person_b\n1,2.5,ann,bob\n0,1.5,ann,cyd\n",
            {},
            "the truth contradicts the people of 1 trials; the first is row 1, with 'ann' and 'bob' as one person",
        ),
    ],
)
def test_trials_that_do_not_fit(text, changes, message, tmp_path):
    (tmp_path / "t.csv").write_text(text)
    with pytest.raises(ValueError, match=message):
        systems.load(settings(trials=str(tmp_path / "t.csv"), **changes))


def test_results_are_plain_numbers(table, tmp_path):
    launch.execute(run, settings(trials=str(table)), tmp_path / "run")
    found = json.loads((tmp_path / "run" / "results.json").read_text())
    assert found["trials"] > found["genuine"] == 72


def write_cohort(path, trials, scale, rng):
    """Scores of every file against 25 strangers, in the units that `scale` gives a file."""
    files = sorted({*trials["a"], *trials["b"]})
    rows = [f"{file} z{k:02d}/0.jpg {scale[file] * rng.normal():.9g}" for file in files for k in range(25)]
    path.write_text("\n".join(rows) + "\n")
    return path


def test_a_cohort_and_a_fusion_are_shown_beside_the_raw_scores(trials, tmp_path, rng):
    """Files in units of their own: the s-norm takes them out, and the fusion is no worse than its best part."""
    files = sorted({*trials["a"], *trials["b"]})
    scale = dict(zip(files, np.exp(rng.normal(size=len(files))), strict=True))
    skewed = [
        w * np.sqrt(scale[a] * scale[b]) for a, b, w in zip(trials["a"], trials["b"], trials["good"], strict=True)
    ]
    rows = zip(trials["a"], trials["b"], trials["same"], skewed, trials["weak"], strict=True)
    text = "a,b,same,skewed,weak\n" + "".join(f"{a},{b},{int(s)},{x:.17g},{y:.17g}\n" for a, b, s, x, y in rows)
    (tmp_path / "scores.csv").write_text(text)
    cohort = write_cohort(tmp_path / "cohort.txt", trials, scale, rng)
    config = settings(trials=str(tmp_path / "scores.csv"), cohorts=(f"skewed={cohort}",), fuse=True)
    results = launch.execute(run, config, tmp_path / "run")
    names = ("skewed", "weak", "skewed, s-norm", "all systems, fused")
    eer = [results[f"{name}: EER"] for name in names]
    assert eer[2] != eer[0]
    assert eer[3] <= min(eer) + 0.02
    assert (
        results["all systems, fused: Cllr, calibrated"] == results["all systems, fused: Cllr of the scores as they are"]
    )
    assert results["weak: least ratio supported"] < 0 < results["weak: largest ratio supported"] < 10
    known = systems.load(config)
    first = {file: k for k, file in enumerate(files)}
    of_files = np.loadtxt(cohort, usecols=2).reshape(len(files), 25)
    mean, spread = of_files.mean(axis=1), of_files.std(axis=1)
    i, j = ([first[each] for each in trials[side]] for side in ("a", "b"))
    raw = known.scores["skewed"]
    expected = ((raw - mean[i]) / spread[i] + (raw - mean[j]) / spread[j]) / 2
    np.testing.assert_allclose(known.scores["skewed, s-norm"], expected, rtol=1e-9)
    model = params_io.load(tmp_path / "run" / "params" / "fusion.safetensors", Fusion)
    assert model.weights.shape == (3,)
    assert "all systems, fused" in (tmp_path / "run" / "report.html").read_text()


def test_the_people_of_a_trial_have_no_part_in_its_fusion(table):
    config = settings(trials=str(table), fuse=True)
    known = systems.load(config)
    first, second = measures._folds(config, known)
    place, weights = measures._left_out(config, known, np.ones(len(first), bool))
    for trial in range(0, len(first), 7):
        used = weights[place[trial]]
        assert not (np.isin(first[used], [first[trial], second[trial]])).any()
        assert not (np.isin(second[used], [first[trial], second[trial]])).any()


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda lines: lines[:-1], "lacks 1 of .* scores of a file of the trials against the cohort"),
        (lambda lines: [*lines, "p00/0.jpg p01/3.jpg 0.5"], "holds files of the trials in the cohort"),
        (lambda lines: [*lines[:1], "x y 1"], "lacks .* of .* scores"),
    ],
)
def test_cohorts_that_do_not_fit(table, trials, tmp_path, rng, change, message):
    cohort = write_cohort(tmp_path / "cohort.txt", trials, dict.fromkeys({*trials["a"], *trials["b"]}, 1.0), rng)
    cohort.write_text("\n".join(change(cohort.read_text().splitlines())) + "\n")
    with pytest.raises(ValueError, match=message):
        systems.load(settings(trials=str(table), cohorts=(f"weak={cohort}",)))
    with pytest.raises(ValueError, match=r"a system of config\.cohorts must be one of .*Did you mean 'weak'"):
        systems.load(settings(trials=str(table), cohorts=(f"week={cohort}",)))
    with pytest.raises(ValueError, match=r"config\.cohorts must hold NAME=FILE entries"):
        systems.check(settings(trials=str(table), cohorts=("weak",)))
