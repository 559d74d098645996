"""The framework on rows that are nothing but a clock: what is measured, kept, compared and rendered."""

import dataclasses
import json
import time

import numpy as np
import pytest

from benchmarks import measure, report, rows, run
from benchmarks.rows import Quantity, Row, Timed

SLOW, QUICK = 0.004, 0.001


@pytest.fixture(autouse=True)
def no_quiet_between_timings(monkeypatch):
    monkeypatch.setattr(measure, "_PAUSE", 0.0)
    monkeypatch.setattr(measure.gc, "collect", lambda: 0)


def sleeper(duration, result):
    def side(_):
        time.sleep(duration)
        return result

    return side


def equal(_, ours, theirs):
    assert ours == theirs, f"{ours} is not {theirs}"
    return f"both give {ours}"


def row(name, **changes):
    plain = Row(
        name=name,
        work=f"work of {name}",
        peer=f"peer of {name}",
        dtype="f32",
        data=lambda: 0,
        ours=sleeper(QUICK, 7),
        theirs=sleeper(SLOW, 7),
        agree=equal,
        target=rows.speedup(2.0),
    )
    return dataclasses.replace(plain, **changes)


def missing(_):
    raise ModuleNotFoundError("No module named 'a_peer'")


def result(kind="speedup", target=2.0, ours=(1.0, 2.0, 4.0), theirs=(4.0, 6.0, 8.0), **fields):
    setting = measure.Setting(
        date="2026-01-02",
        cpu="A CPU",
        cores=2,
        our_blas_threads=1,
        their_blas_threads=2,
        load=0.1,
        versions={"jax": "1"},
    )
    plain = {"name": "A1", "work": "w", "peer": "p", "dtype": "f32", "kind": kind, "target": target}
    return measure.Result(**plain, setting=setting, ours=list(ours), theirs=list(theirs), **fields)


def lines(folder):
    table = (folder / "RESULTS.md").read_text().splitlines()
    cells = [[cell.strip() for cell in line.strip("|").split("|")] for line in table if line.startswith("| ")]
    return {line[0]: dict(zip(cells[0], line, strict=True)) for line in cells[2:]}


def test_a_row_is_measured_kept_and_rendered(tmp_path):
    limit = Quantity("memory", "MB", lambda data: data + 12.0, 20.0)
    assert run.main(["--folder", str(tmp_path)], all_rows=(row("A1", quantities=(limit,)), row("B1"))) == 0
    kept = report.load(tmp_path / "results.json")
    assert list(kept) == ["A1", "B1"]
    assert len(kept["A1"].ours) == len(kept["A1"].theirs) == run.FEWEST_REPEATS
    assert min(kept["A1"].ours) >= QUICK
    assert min(kept["A1"].theirs) >= SLOW
    assert (kept["A1"].setting.our_blas_threads, kept["A1"].setting.cores) == (1, measure.num_cores())
    shown = lines(tmp_path)["A1"]
    assert shown["target"] == "≥ 2x"
    assert shown["reached"] in ("yes", "**no**")  # a busy machine may sleep longer than asked
    assert shown["compile"].endswith("s")
    text = (tmp_path / "RESULTS.md").read_text()
    assert "- A1: memory 12 MB, at most 20 MB\n" in text
    assert "- A1: both give 7\n" in text
    assert "Peers that did not run" not in text
    assert (tmp_path / "results.svg").read_bytes().startswith(b"<?xml")


def test_rows_that_do_not_run_keep_their_last_results(tmp_path):
    both = (row("A1"), row("A1.part"), row("B1"))
    run.main(["--folder", str(tmp_path)], all_rows=both)
    before = report.load(tmp_path / "results.json")
    run.main(["--folder", str(tmp_path), "--rows", "A1"], all_rows=both)
    after = report.load(tmp_path / "results.json")
    assert after["B1"] == before["B1"]
    assert after["A1"].ours != before["A1"].ours
    assert after["A1.part"].ours != before["A1.part"].ours
    run.main(["--folder", str(tmp_path), "--rows", "B1"], all_rows=both[2:])
    assert list(report.load(tmp_path / "results.json")) == ["B1"]  # a row that no longer exists is dropped


def test_sides_that_disagree_give_no_figure(tmp_path, capsys):
    assert run.main(["--folder", str(tmp_path)], all_rows=(row("A1", theirs=sleeper(SLOW, 8)), row("B1"))) == 1
    assert "A1: AssertionError: 7 is not 8" in capsys.readouterr().out
    assert lines(tmp_path)["A1"]["ratio"] == "–"
    assert lines(tmp_path)["B1"]["ratio"] != "–"
    assert "## Rows without a figure\n\n- A1: AssertionError: 7 is not 8\n" in (tmp_path / "RESULTS.md").read_text()


def test_a_peer_that_does_not_import_is_listed_with_its_error(tmp_path):
    chosen = (row("A1", theirs=missing, packages=("a_peer",)),)
    assert run.main(["--folder", str(tmp_path)], all_rows=chosen) == 0
    shown = lines(tmp_path)["A1"]
    assert (shown["peer's"], shown["ratio"], shown["reached"]) == ("–", "–", "–")
    assert shown["ours"].endswith("ms")
    text = (tmp_path / "RESULTS.md").read_text()
    assert "- A1, peer of A1: ModuleNotFoundError: No module named 'a_peer'\n" in text
    assert "a_peer not installed" in text


def test_a_side_may_take_its_own_time():
    timed = row("A1", ours=lambda _: Timed(7, 0.5), theirs=lambda _: Timed(7, 3.0), target=rows.seconds(1.0))
    measured = measure.run(timed, repeats=7)
    assert (set(measured.ours), set(measured.theirs), measured.compile) == ({0.5}, {3.0}, None)
    assert (measured.our_cpu, measured.their_cpu) == ([], [])
    assert report.reached(measured) is True


def test_sides_take_turns_and_the_first_one_alternates():
    order = []

    def noted(side):
        def call(_):
            order.append(side)
            return 7

        return call

    measure.run(row("A1", ours=noted("o"), theirs=noted("t")), repeats=3)
    assert "".join(order) == "ot" + "ot" + "to" + "ot"


def test_x64_is_on_only_where_a_row_asks_for_it():
    import jax.numpy as jnp

    seen = [measure.run(row("A1", x64=x64, data=lambda: str(jnp.ones(()).dtype), agree=lambda d, *_: d), repeats=1)
            for x64 in (False, True)]  # fmt: skip
    assert [one.agreement for one in seen] == ["float32", "float64"]


def test_check_compares_and_writes_nothing(tmp_path, capsys):
    chosen = (row("A1"), row("B1", theirs=sleeper(0.0, 8)), row("C1", theirs=missing))
    assert run.main(["--folder", str(tmp_path), "--check"], all_rows=chosen) == 1
    printed = capsys.readouterr()
    assert printed.out == "A1: both give 7\nC1: the peer did not run: ModuleNotFoundError: No module named 'a_peer'\n"
    assert printed.err == "B1: AssertionError: 7 is not 8\n"
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("arguments", "words"),
    [(["--rows", "Z9"], "no row 'Z9'; the rows are A1, B1"), (["--repeats", "3"], "must be at least 7; got 3")],
)
def test_a_wrong_command_is_explained(arguments, words, capsys):
    with pytest.raises(SystemExit) as stopped:
        run.main(arguments, all_rows=(row("A1"), row("B1")))
    assert stopped.value.code == 2
    assert words in capsys.readouterr().err


@pytest.mark.parametrize(
    ("kind", "target", "spread", "met"),
    [
        ("speedup", 3.0, (2.5, 3.0, 3.5), True),
        ("speedup", 3.1, (2.5, 3.0, 3.5), False),
        ("cost", 0.34, (7 / 24, 1 / 3, 5 / 12), True),
        ("cost", 0.33, (7 / 24, 1 / 3, 5 / 12), False),
        ("seconds", 2.0, (1.5, 2.0, 3.0), True),
        ("seconds", None, (1.5, 2.0, 3.0), None),
    ],
)
def test_ratio_pairs_the_repeats_and_the_verdict_follows_the_kind(kind, target, spread, met):
    measured = result(kind, target)
    np.testing.assert_allclose(report.ratio(measured), spread)
    assert report.reached(measured) is met


def test_cpu_time_has_its_own_ratio():
    measured = result(our_cpu=[1.0, 1.0, 2.0], their_cpu=[5.0, 6.0, 8.0])
    np.testing.assert_allclose(report.cpu_ratio(measured), (4.5, 5.0, 5.5))
    assert "| 3.00x [2.50x, 3.50x] | 5.00x | ≥ 2x | yes |" in report.markdown([measured])
    assert report.cpu_ratio(result()) is None
    assert report.cpu_ratio(result("seconds", our_cpu=[1.0], their_cpu=[1.0])) is None


def test_sleep_takes_no_cpu_time_and_work_does():
    def worker(_):
        end = time.process_time() + SLOW
        while time.process_time() < end:
            pass
        return 7

    measured = measure.run(row("A1", theirs=worker), repeats=3)
    assert min(measured.our_cpu) < QUICK
    assert min(measured.their_cpu) >= SLOW


def test_a_limit_beside_time_can_miss_the_target():
    over = result(quantities=[measure.Measured("memory", "MB", 30.0, 20.0)])
    assert report.reached(over) is False
    assert "- A1: memory 30 MB, at most 20 MB (**not reached**)" in report.markdown([over])


def test_results_survive_the_file(tmp_path):
    measured = result(quantities=[measure.Measured("memory", "MB", 30.0, 20.0)], compile=0.5, agreement="≈")
    report.save([measured], tmp_path)
    assert report.load(tmp_path / "results.json") == {"A1": measured}
    assert json.loads((tmp_path / "results.json").read_text())[0]["quantities"][0]["at_most"] == 20.0


def test_rows_that_ran_alike_share_a_line_of_versions():
    other = result()
    other = dataclasses.replace(other, name="B1", setting=dataclasses.replace(other.setting, load=3.0))
    newer = dataclasses.replace(other, name="C1", setting=dataclasses.replace(other.setting, versions={"jax": "2"}))
    settings = report.markdown([result(), other, newer]).partition("## Machines and versions\n\n")[2].splitlines()
    assert len(settings) == 2
    assert settings[0].startswith("- 2026-01-02, A CPU, 2 cores; BLAS threads: ours 1, peer 2; XLA threads: 2; jax 1.")
    assert settings[0].endswith("A1 (0.1), B1 (3)")


def test_the_figure_shows_rows_with_a_target_around_one():
    drawn = report.figure(
        [result(), result("cost", 1.0), result("seconds", 3.0), result(target=None), result(theirs=())]
    )
    (axes,) = drawn.axes
    assert [tick.get_text() for tick in axes.get_yticklabels()] == ["A1   3.00x  (≥ 2x)", "A1   0.333x  (≤ 1x)"]
    points = next(line for line in axes.lines if line.get_marker() == "o")
    np.testing.assert_allclose(points.get_xdata(), [1.5, 3.0])
    assert [tick.get_text() for tick in axes.get_xticklabels()] == ["0.25x", "0.5x", "1x", "2x", "4x"]


def test_a_figure_without_any_target_is_drawn():
    assert report.figure([result(target=None)]).axes


@pytest.mark.parametrize(
    ("seconds", "words"),
    [
        (0.0, "0 µs"),
        (4.56e-5, "45.6 µs"),
        (0.0123, "12.3 ms"),
        (0.99999, "1.00 s"),
        (83.4, "83.4 s"),
        (1234.0, "1234 s"),
    ],
)
def test_durations_have_three_digits(seconds, words):
    assert report.duration(seconds) == words


def test_error_messages_lose_their_folders():
    assert measure.in_words(OSError("cannot read /home/someone/data/a.npz\nmore")) == "OSError: cannot read .../a.npz"


def test_a_floor_is_timed_with_both_sides(tmp_path):
    nap, own, same = row("A1", floor=sleeper(0, None), floor_work="a nap"), row("B1"), row("C1")
    own = dataclasses.replace(own, floor=sleeper(SLOW, 7))
    same = dataclasses.replace(same, floor=same.theirs)
    assert run.main(["--folder", str(tmp_path)], all_rows=(nap, own, same)) == 0
    kept = report.load(tmp_path / "results.json")
    assert kept["C1"].floor == kept["C1"].theirs  # one and the same work is timed once
    assert kept["B1"].floor != kept["B1"].theirs
    assert len(kept["A1"].floor) == len(kept["A1"].floor_cpu) == run.FEWEST_REPEATS
    assert kept["A1"].floor_work == "a nap"


def test_a_row_far_above_its_floor_says_why(tmp_path):
    floor = {"floor": [0.5, 1.0, 2.0], "our_cpu": [2.0, 4.0, 8.0], "floor_work": "a product", "reason": "a copy"}
    far = result(**floor, floor_cpu=[1.0, 2.0, 4.0])
    near_by_cpu = dataclasses.replace(far, name="B1", floor_cpu=[2.0, 4.0, 8.0], kind="floor", target=1.5)
    unknown = dataclasses.replace(far, name="C1", reason="")
    report.save([far, near_by_cpu, unknown], tmp_path)
    shown, text = lines(tmp_path), (tmp_path / "RESULTS.md").read_text()
    assert "- A1: a product. Above 1.5x of it: a copy\n" in text
    assert "- B1: a product\n" in text
    assert "- C1: a product. Above 1.5x of it: not explained yet\n" in text
    assert (shown["A1"]["floor"], shown["A1"]["× floor"]) == ("1.00 s", "2.00x (2.00x)")
    assert (shown["B1"]["ratio"], shown["B1"]["reached"]) == ("2.00x [2.00x, 2.00x]", "**no**")


def test_memory_of_both_sides_is_a_column(tmp_path):
    report.save([result(our_memory=12.4, their_memory=None)], tmp_path)
    assert lines(tmp_path)["A1"]["memory"] == "12 MB / –"
