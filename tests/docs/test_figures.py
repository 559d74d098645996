"""Every measured number of README and docs has a source and agrees with it, and the checker can fail."""

import importlib
import json
import pathlib
import sys

import pytest

ROOT = pathlib.Path(__file__).parents[2]
sys.path.insert(0, str(ROOT / "tools"))
figures, results, sources = map(importlib.import_module, ("figures", "results", "sources"))
sys.path.pop(0)


@pytest.fixture(scope="module")
def held():
    return sources.known()


@pytest.mark.parametrize("page", figures.pages(), ids=lambda page: page.stem)
def test_numbers_of_a_page_agree_with_their_source(page, held):
    wrong = [
        f"{page.name}:{block.line}: {message}"
        for block in figures.blocks(page.read_text())
        for message in figures.wrong(block, held)
    ]
    assert wrong == []


@pytest.fixture(scope="module")
def on_pages():
    return figures.stated(figures.pages()[1:])


def test_the_table_of_claims_repeats_what_the_pages_say(on_pages):
    claims = [block for block in figures.blocks(figures.pages()[0].read_text()) if "study" in block.head]
    assert len(claims) > 20
    assert [message for block in claims for message in figures.not_repeated(block, on_pages)] == []
    seen = [bool(figures.not_repeated(other, on_pages)) for block in claims for other in changed(block)]
    assert sum(seen) > 0.7 * len(seen), f"{sum(seen)} of {len(seen)}"


def test_every_run_is_finished(held):
    missing = [name for name, numbers in held.runs.items() if numbers is None]
    if missing:
        pytest.skip(f"docs/results.json has no {', '.join(missing)}: their numbers are not compared")


def changed(block):
    """The block with the last digit of one measured number moved by five, once for each number."""
    for match in sources.NUMBER.finditer(block.text):
        end = match.end(1)
        digit = (int(block.text[end - 1]) + 5) % 10
        other = block._replace(text=f"{block.text[: end - 1]}{digit}{block.text[end:]}")
        if figures.measured(other) != figures.measured(block):
            yield other


def test_a_changed_digit_of_a_page_is_found(held, on_pages):
    """How many changes of a digit the check sees, of those in blocks that it compares."""
    found = [
        bool(figures.wrong(other, held) or figures.not_repeated(other, on_pages))
        for page in figures.pages()
        for block in figures.blocks(page.read_text())
        if figures.is_compared(block, held)
        for other in changed(block)
    ]
    if not found:
        pytest.skip("docs/results.json has no finished run")
    assert sum(found) > 0.7 * len(found), f"{sum(found)} of {len(found)}"


@pytest.fixture
def one_run(tmp_path):
    """Sources with one finished run."""
    record = {
        "command": "python -m experiments.tour",
        "results": {"error, LDA": 0.0351, "interval": [0.0163, 0.0744], "name": "LDA"},
        "tables": {"headline": ["method,EER %,EER % low", '"LDA, ridge",12.04,7.7', "PCA,12.8,"]},
        "words": ["Fewer errors by 3.4 [−0.5, 7.3] points."],
    }
    (tmp_path / "results.json").write_text(json.dumps({"tour": record}))
    return sources.known(tmp_path / "results.json")


def wrong(text, held):
    return [message for block in figures.blocks(text) for message in figures.wrong(block, held)]


PROSE = "<!-- from tour -->\nThe error is 3.5 % (1.6 to 7.4), the EER 12.0 %, a gain of 3.4 points (-0.5 to 7.3)."
TABLE = "<!-- from tour -->\n| method | EER % |\n| --- | --- |\n| LDA, ridge 0.1 | 12.0 [7.7, –] |\n| PCA | 13 |"


@pytest.mark.parametrize("text", [PROSE, TABLE, PROSE.replace("-->\n", "-->\n\n"), f"- an item,\n  {PROSE}"])
def test_numbers_that_agree(text, one_run):
    assert wrong(text, one_run) == []


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (PROSE.replace("3.5", "3.6"), "3.6 not in the source"),
        (PROSE.replace("12.0", "12.1"), "12.1 not in the source"),
        (PROSE.replace("7.3", "7.2"), "7.2 not in the source"),
        (TABLE.replace("7.7", "7.8"), "7.8 not in the source"),
        (TABLE.replace("| 13 |", "| 14 |"), "14 not in the source"),
        (PROSE.partition("\n")[2], "no source of 3.5, 1.6, 7.4, 12.0, 3.4, 0.5, 7.3"),
        (PROSE.replace("tour", "toor"), "there is no run 'toor'"),
        ("<!-- from tour -->\nA gain of 3.4 points [-0.5, 7.3].", None),
        ("<!-- from tour -->\nA gain of 3.4 [-0.5, 7.7].", "no estimate 3.4 has the interval (0.5 to 7.7)"),
        ("<!-- from tour -->\nAn error of 12.0 % (0.5 to 7.3).", "no estimate 12.0 has the interval (0.5 to 7.3)"),
        (TABLE.replace("12.0 [7.7, –]", "12.0 and 1.6"), "12.0, 1.6 in the source, but not together"),
        ("<!-- from tour (ridge) -->\nThe EER is 12.8 %.", "12.8 not in the source"),
        ("<!-- from tour (rich) -->\nThe EER is 12.8 %.", "tour has no number whose name holds 'rich'"),
        ("<!-- from tour; 0.9 = 12.8 - 12.0 -->\nA gain of 0.9 points.", None),
        ("<!-- from tour; 1.1 = 12.8 - 12.0 -->\nA gain of 1.1 points.", "1.1 is not 12.8 - 12.0"),
        ("<!-- from tour; 0.9 = 12.9 - 12.0 -->\nA gain of 0.9 points.", "12.9 of 0.9 = 12.9 - 12.0 is not in"),
        ("<!-- from tour; given 0.5 -->\nWith a ridge of 0.5 the error is 3.5 %.", None),
        ("<!-- from verify -->\nThe error is 9.9 %.", None),  # not finished
        ("<!-- from paper -->\nThe paper has 98.3 %.", None),
        ("<!-- from paper -->\nThe paper has 98.5 %.", "98.5 not in the source"),
        ("<!-- from benchmarks (F1.core) -->\nIt took 99.9 ms.", "99.9 not in the source"),
        ("<!-- settings -->\nIt waits for 30 seconds.", None),
        ("It waits for 30 seconds.", "no source of 30"),
        ("Half of 40 people, section 6.1, jaxlib 0.10.2, `0.5`, $0.5$ and 95 % intervals.", None),
        ("```text\n0.5 %\n```\n\n$$\n0.5\n$$", None),
        ("<!-- measured: python -m benchmarks.gallery --rows 10, 2026-11-19 -->\nIt took 3 s.", None),
        ("<!-- measured: python -m benchmarks.galery, 2026-11-19 -->\nIt took 3 s.", "there is no benchmarks.galery"),
        ("<!-- measured: python -m benchmarks.gallery -->\nIt took 3 s.", "a measurement is COMMAND, DATE"),
        (
            "<!-- measured: python -m experiments.verify --config=configs/verify.py:lfv, 2026-11-19 -->\nIt took 3 s.",
            "configs/verify.py has no variant lfv",
        ),
        (
            "<!-- from column study -->\n| claim | paper | study |\n| - | - | - |\n| c | 98.3 %, 3.6 % | `tour` |",
            "3.6 not in the source",
        ),
    ],
)
def test_what_is_wrong_is_said(text, message, one_run):
    found = wrong(text, one_run)
    assert found == [] if message is None else len(found) == 1 and message in found[0]


def test_the_marker_of_a_list_holds_for_its_items_but_for_those_with_their_own(one_run):
    text = "<!-- from tour -->\n- 3.5 %\n- 3.6 %\n  <!-- settings -->\n- 3.7 %\n- 3.8 %\n  <!-- settings -->\n\n- 3.5 %"
    assert [message.split()[0] for message in wrong(text, one_run)] == ["3.7", "no"]


def test_tables_without_a_report_are_refused(tmp_path):
    (tmp_path / "results.json").write_text(json.dumps({"tour": {"command": "x", "results": {}}}))
    with pytest.raises(ValueError, match="ARGS=--collect"):
        sources.known(tmp_path / "results.json")


def test_what_is_kept_of_a_run(tmp_path):
    folder = tmp_path / "verify-lfw"
    (folder / "tables").mkdir(parents=True)
    (folder / "results.json").write_text('{"EER": 0.1}')
    record = {"ended": "2026-11-19T10:00:00", "packages": {"jaxface": "1", "jax": "2", "numpy": "3"}}
    (folder / "run.json").write_text(json.dumps(record))
    (folder / "report.html").write_text("<p>In all 3 &lt; 3.5 points.</p><p>No number.</p>")
    (folder / "tables" / "headline.csv").write_text('method,EER %\n"a, b",12.3456789012\n')
    run = results.Run("verify", "lfw", (("config.data.root", "lfw"),))
    found = results.collected((run,), tmp_path, {"other": 1})
    assert found["other"] == 1
    assert found["verify:lfw"] == {
        "command": "python -m experiments.verify --config=configs/verify.py:lfw --config.data.root=DATA/lfw",
        "date": "2026-11-19",
        "versions": record["packages"],
        "results": {"EER": 0.1},
        "tables": {"headline": ["method,EER %", '"a, b",12.3457']},
        "words": ["In all 3 < 3.5 points."],
    }


def test_every_run_names_a_study_and_a_variant_and_each_study_has_a_small_run():
    names = [run.name for run in results.RUNS]
    assert len(names) == len(set(names))
    for run in (*results.RUNS, *results.SMOKE):
        config = importlib.import_module(f"configs.{run.study}").get_config(run.variant or None)
        for flag in (*(flag for flag, _ in run.data), *(f"config.{each.partition('=')[0]}" for each in run.options)):
            section, *path = flag.split(".")[1:]
            assert section in config, (run.name, flag)
            assert not path or path[0] in config[section], (run.name, flag)
    assert {run.study for run in results.RUNS} == {run.study for run in results.SMOKE}
