"""The rules of `tools/house.py` find what breaks them, in a small project made for the purpose."""

import pathlib
import shutil
import subprocess
import sys

import pytest

ROOT = pathlib.Path(__file__).parents[1]

CLEAN = {
    "jaxface/__init__.py": '"""A library."""\n\n__all__ = []\n',
    "jaxface/core/__init__.py": '"""A room."""\n\nfrom jaxface.core.sums import total\n\n__all__ = ["total"]\n',
    "jaxface/core/sums.py": '''"""Sums."""

__all__ = ["START", "total"]

START = 0  # of a sum


def total(x):
    """The sum of x."""
    return sum(x, START)


def inside(x):
    """For the room only."""
    return total(x)
''',
    "jaxface/faces/__init__.py": '"""Another room."""\n\n__all__ = []\n',
    "jaxface/faces/means.py": '''"""Means."""

from jaxface.core import sums
from jaxface.core.sums import total

__all__ = ["mean"]


def mean(x):
    """The mean of x."""
    return (sums.START + total(x)) / len(x)
''',
    "tests/core/test_sums.py": "from jaxface.core import sums\n\nassert sums.inside([1]) == 1\n",
    "tests/faces/test_means.py": "",
    "docs/page.md": "# A page\n\n```python\nfrom jaxface.faces.means import mean\n\nmean([1])\n```\n",
    "README.md": "# A project\n",
}


@pytest.fixture
def check(tmp_path):
    """What the script says of the project with some files replaced or added."""

    def run(**changes):
        for name, text in (CLEAN | changes).items():
            path = tmp_path / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
        (tmp_path / "tools").mkdir(exist_ok=True)
        shutil.copy(ROOT / "tools" / "house.py", tmp_path / "tools" / "house.py")
        command = [sys.executable, str(tmp_path / "tools" / "house.py")]
        found = subprocess.run(command, capture_output=True, text=True, check=False)
        assert not found.stderr
        return found.returncode, found.stdout

    return run


def test_a_clean_project_breaks_no_rule(check):
    assert check() == (0, "\nhouse: every rule holds\n")


SUMS = CLEAN["jaxface/core/sums.py"]
MEANS = CLEAN["jaxface/faces/means.py"]


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("jaxface/core/sums.py", SUMS + "\n\ndef long():\n" + "    x = 1\n" * 45, "long has 46 lines, of at most 45"),
        ("jaxface/core/sums.py", SUMS + "# a line\n" * 300, "lines, of at most 300"),
        ("jaxface/core/sums.py", SUMS + "X = 1  # fmt: skip\n", "fmt: skip overrules the formatter"),
        ("jaxface/core/sums.py", SUMS.replace("__all__", "NAMES"), "sums.py:1: no __all__"),
        ("jaxface/core/sums.py", SUMS.replace('"START", "total"', '"total", "START"'), "__all__ is not sorted"),
        ("jaxface/core/sums.py", SUMS.replace('"total"]', '"total", "x"]'), "__all__ has x, which is not defined here"),
        ("jaxface/core/sums.py", SUMS.replace('"START", ', ""), "jaxface.core.sums.START is its room's own"),
        ("jaxface/core/sums.py", SUMS.replace('"""The sum of x."""', "pass"), "total is public and has no docstring"),
        ("jaxface/core/sums.py", SUMS.replace("  # of a sum", ""), "START is a public constant without a comment"),
        (
            "jaxface/core/sums.py",
            SUMS.replace('["START", ', '["START", "inside", '),
            "inside is public and nothing in library, studies or docs uses it",
        ),
        ("jaxface/core/sums.py", SUMS.replace("total(x)", "total(x, num_identities)"), "the word here is num_people"),
        ("jaxface/faces/means.py", MEANS.replace("sums.START", "sums.inside([])"), "sums.inside is its room's own"),
        ("docs/page.md", CLEAN["docs/page.md"] + "```python\nimport os\n```\n", None),
        (
            "docs/page.md",
            "```python\nfrom jaxface.core.sums import inside\n```\n",
            "page.md:2: jaxface.core.sums.inside",
        ),
        (
            "experiments/a.py",
            "from jaxface.core.sums import inside\n",
            "a.py:1: jaxface.core.sums.inside is its room's",
        ),
        ("tests/faces/test_means.py", "from jaxface.core import sums\n\nsums._x\n", None),
        ("jaxface/faces/medians.py", '"""Medians."""\n\n__all__ = []\n', "no tests/faces/test_medians.py"),
    ],
)
def test_a_broken_rule_is_named(name, text, message, check):
    code, output = check(**{name: text})
    if message is None:
        assert code == 0, output
    else:
        assert code == 1
        assert message in output


def test_private_names_belong_to_their_module(check):
    private = SUMS + "\n\ndef _hidden():\n    return 1\n"
    used = "from jaxface.core import sums\n\nsums._hidden()\n"
    assert check(**{"jaxface/core/sums.py": private, "tests/core/test_sums.py": used})[0] == 0
    code, output = check(**{"jaxface/core/sums.py": private, "tests/faces/test_means.py": used})
    assert (code, "test_means.py:3: jaxface.core.sums._hidden is its module's own" in output) == (1, True)
