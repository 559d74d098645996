"""The Python of the documentation runs, and prints what the pages say it prints.

The `python` blocks of a page run in order in one namespace, in an empty folder. A `text` block right after one is
what it prints: words must agree, whole numbers too, and other numbers within 10 % or one unit of their last digit.
"""

import contextlib
import io
import pathlib
import re
import subprocess
import sys

import jax
import pytest

from jaxface.data import orl

DOCS = pathlib.Path(__file__).parents[2] / "docs"
PAGES = sorted(page for page in DOCS.rglob("*.md") if "```python\n" in page.read_text())
FENCE = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
NUMBER = re.compile(r"\d+(?:\.(\d+))?(?:e[-+]?\d+)?")


def blocks(page):
    """Start, language and contents of every fenced block, and whether it stands right after the one before."""
    text, end = page.read_text(), -1
    for match in FENCE.finditer(text):
        follows = end >= 0 and not text[end : match.start()].strip()
        yield text.count("\n", 0, match.start(2)), match.group(1), match.group(2), follows
        end = match.end()


def assert_printed(printed, shown):
    assert NUMBER.sub("#", printed).split() == NUMBER.sub("#", shown).split(), f"printed\n{printed}\nshown\n{shown}"
    for actual, expected in zip(NUMBER.finditer(printed), NUMBER.finditer(shown), strict=True):
        digits = expected.group(1)
        unit = 0 if digits is None else 1.01 * 10.0 ** -len(digits)
        slack = unit and max(unit, 0.1 * float(expected.group()))
        assert abs(float(actual.group()) - float(expected.group())) <= slack, f"printed\n{printed}\nshown\n{shown}"


@pytest.fixture
def precision_of_the_suite():
    yield
    jax.config.update("jax_enable_x64", True)


@pytest.mark.usefixtures("precision_of_the_suite")
@pytest.mark.parametrize("page", PAGES, ids=[str(page.relative_to(DOCS)) for page in PAGES])
def test_page_runs(page, tmp_path, monkeypatch):
    """In float32, as a reader has it who types the page, unless the page chooses float64."""
    if "orl.load(" in page.read_text():
        try:
            orl.find()
        except FileNotFoundError as error:
            pytest.skip(str(error))
    monkeypatch.chdir(tmp_path)
    jax.config.update("jax_enable_x64", False)
    namespace = {"__name__": "__page__"}
    printed = None
    for line, language, code, follows in blocks(page):
        if language == "python":
            with contextlib.redirect_stdout(io.StringIO()) as out:
                exec(compile("\n" * line + code, str(page), "exec"), namespace)
            printed = out.getvalue()
        elif language == "text" and follows and printed is not None:
            assert_printed(printed, code)
            printed = None


def test_the_comparison_of_what_is_printed_can_fail():
    assert_printed("error 3.5 % of 400\n", "error 3.5 % of 400\n")
    assert_printed("error 3.6 % of 400", "error 3.5 % of 400")
    for other in ("error 3.9 % of 400", "error 3.5 % of 401", "errors 3.5 % of 400", "error 3.5 %"):
        with pytest.raises(AssertionError):
            assert_printed(other, "error 3.5 % of 400")


WIDEST = 88  # columns of code that a page shows without a bar to scroll


def test_code_fits_the_page():
    wide = [
        f"{page.name}:{line + number}"
        for page in sorted(DOCS.glob("*.md"))
        for line, _, code, _ in blocks(page)
        for number, text in enumerate(code.split("\n"), start=1)
        if len(text) > WIDEST
    ]
    assert wide == []


def test_every_picture_is_on_a_page_and_says_how_it_was_made():
    listed = dict(
        re.findall(r"^\| (\S+\.(?:svg|png)) \| .* \| `(.+)` \|$", (DOCS / "images/README.md").read_text(), re.M)
    )
    kept = {file.name for file in (DOCS / "images").iterdir()} - {"README.md"}
    shown = {name for page in DOCS.glob("*.md") for name in re.findall(r"\]\(images/(.+?)\)", page.read_text())}
    assert kept == shown == set(listed)
    for command in listed.values():
        study, config = re.match(r"python -m experiments\.(\w+) --config=(configs/\w+\.py)", command).groups()
        assert (DOCS.parent / config).is_file()
        assert (DOCS.parent / "experiments" / study).is_dir()


def test_docstrings_convert():
    """In a process of its own, for the extensions of the documentation are not importable from here."""
    pytest.importorskip("sphinx")
    check = [sys.executable, "-c", CHECK, str(DOCS / "_ext")]
    done = subprocess.run(check, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


CHECK = r"""
import sys
sys.path.insert(0, sys.argv[1])
import plain_docstrings
text = '''Sum of x `[n, d]`s, |x| * 2.

    a     first
    bc    second `b`
          goes on

    f(x) = |x|,
        x > 0

x: a vector
that is long'''
lines = plain_docstrings.convert(text, ["x"])
assert lines[0] == r"Sum of x ``[n, d]``\ s, \|x\| \* 2.", lines
assert "   * - bc" in lines, lines
assert "     - second ``b`` goes on" in lines, lines
assert "    f(x) = |x|," in lines, lines
assert "- ``x``: a vector that is long" in lines, lines
"""
