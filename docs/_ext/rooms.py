"""Pages and tables that follow the source, so that a new room or study needs no entry here.

    api/generated/<room>.md  the docstring of the package, then a section for each module with its public members
    % rooms                  a line that becomes the table of the rooms
    % studies                a line that becomes the table of the experiments that have a config

The tables show what docstrings say first.
"""

import ast
import importlib
import pkgutil
from collections.abc import Callable
from pathlib import Path

from sphinx.application import Sphinx

_BLOCK = "```{{eval-rst}}\n.. automodule:: {name}\n{options}```\n"
_ROOT = Path(__file__).parents[2]


def names() -> list[str]:
    """The rooms: every package in `jaxface`."""
    package = importlib.import_module("jaxface")
    return sorted(
        info.name for info in pkgutil.iter_modules(package.__path__) if info.ispkg
    )


def page(room: str) -> str:
    """The Markdown of a room's page."""
    package = f"jaxface.{room}"
    folder = Path(*importlib.import_module("jaxface").__path__) / room
    modules = [info.name for info in pkgutil.iter_modules([str(folder)])]
    parts = [f"# {package}\n", _BLOCK.format(name=package, options="")]
    for module in modules:
        name = f"{package}.{module}"
        parts += [f"## {module}\n", _BLOCK.format(name=name, options="   :members:\n")]
    return "\n".join(parts)


def _head(file: Path) -> str:
    """The first paragraph of a module's docstring, on one line."""
    text = ast.get_docstring(ast.parse(file.read_text())) or ""
    return " ".join(text.split("\n\n")[0].split()).replace("|", r"\|")


def rooms_table() -> str:
    """Rooms with what their docstrings say first."""
    rows = [
        f"| [`jaxface.{room}`](api/generated/{room}.md) | {_head(_ROOT / 'jaxface' / room / '__init__.py')} |"
        for room in names()
    ]
    return "\n".join(["| room | what it is |", "| --- | --- |", *rows])


def studies_table() -> str:
    """Experiments with a config of the same name, and what the config says first."""
    files = sorted((_ROOT / "configs").glob("*.py"))
    rows = [
        f"| `{file.stem}` | {_head(file)} |"
        for file in files
        if (_ROOT / "experiments" / file.stem / "study.py").is_file()
    ]
    return "\n".join(["| study | what it does |", "| --- | --- |", *rows])


TABLES: dict[str, Callable[[], str]] = {
    "% rooms": rooms_table,
    "% studies": studies_table,
}


def _fill(_app: Sphinx, _docname: str, source: list[str]) -> None:
    lines = source[0].split("\n")
    source[0] = "\n".join(TABLES[line]() if line in TABLES else line for line in lines)


def _write(app: Sphinx) -> None:
    folder = Path(app.srcdir) / "api" / "generated"
    folder.mkdir(exist_ok=True)
    pages = {folder / f"{room}.md": page(room) for room in names()}
    for file in set(folder.iterdir()) - pages.keys():
        file.unlink()
    for file, text in pages.items():
        if (
            not file.is_file() or file.read_text() != text
        ):  # an unchanged page keeps its time and is not built again
            file.write_text(text)


def setup(app: Sphinx) -> dict[str, bool]:
    """Writes the pages when Sphinx starts and the tables when it reads."""
    app.connect("builder-inited", _write)
    app.connect("source-read", _fill)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
