"""Docstrings of plain text as reStructuredText, and signatures and fields as they stand in the source.

The docstrings of this project are written to be read in an editor: `[n, d]` in single backticks, indented equations,
lists of modules in aligned columns, and arguments as `name: text`. Here

    single backticks       become literals, and everything else is escaped, so `W'x`, * and | mean themselves
    aligned columns        become a table
    other indented lines   become a literal block
    `name: text` lines     of the arguments of a function become a list

Fields of dataclasses and NamedTuples are explained by the comment behind them, so they are read from the source.
"""

import ast
import copy
import dataclasses
import enum
import functools
import importlib
import inspect
import re
from collections.abc import Collection, Sequence
from typing import Any

from sphinx.application import Sphinx

_CELL = re.compile(r"\S+(?: \S+)*")
_SPECIAL = re.compile(r"[\\*|@]|_(?=\W|$)")
_ARGUMENT = re.compile(r"([a-z_0-9]+(?:, [a-z_0-9]+)*): ")


def convert(text: str, arguments: Collection[str] = ()) -> list[str]:
    """The lines of a docstring as reStructuredText."""
    out: list[str] = []
    for lines in _chunks(inspect.cleandoc(text).splitlines()):
        if rows := _columns(_dedented(lines)):
            out += _table(rows)
        elif _is_literal(lines):
            out += ["::", "", *("    " + line for line in _dedented(lines)), ""]
        else:
            out += _paragraph(lines, arguments)
    return out


def inline(text: str) -> str:
    """A run of text: backticks as literals, the rest escaped."""
    out = ""
    for index, part in enumerate(text.split("`")):
        if index % 2 == 0:
            glue = "\\ " if index and part[:1].isalnum() else ""
            out += glue + _SPECIAL.sub(r"\\\g<0>", part)
        else:
            glue = "\\ " if out and (out[-1].isalnum() or out[-1] in "`=+") else ""
            out += f"{glue}``{part.strip()}``"
    return out


def _chunks(lines: Sequence[str]) -> list[list[str]]:
    """Paragraphs, tables and literal blocks; a literal block keeps its blank lines."""
    chunks: list[list[str]] = []
    for paragraph in re.split(r"\n\s*\n", "\n".join(lines)):
        for part in _parts(paragraph.strip("\n").splitlines()):
            if _is_literal(part) and chunks and _is_literal(chunks[-1]):
                chunks[-1] += ["", *part]
            else:
                chunks.append(part)
    return chunks


def _parts(lines: list[str]) -> list[list[str]]:
    """Cuts a paragraph where its indentation begins or ends, unless it is a table."""
    if not lines or _columns(_dedented(lines)):
        return [lines] if lines else []
    first = lines[0].startswith(" ")
    cut = next(
        (i for i, line in enumerate(lines) if line.startswith(" ") != first), len(lines)
    )
    return [lines[:cut], *_parts(lines[cut:])]


def _is_literal(lines: Sequence[str]) -> bool:
    return lines[0].startswith(" ") and not _columns(_dedented(lines))


def _dedented(lines: Sequence[str]) -> list[str]:
    depth = min(len(line) - len(line.lstrip()) for line in lines if line)
    return [line[depth:] for line in lines]


def _columns(lines: Sequence[str]) -> list[list[str]] | None:
    """Rows of a table of aligned columns, or None; a line without a first cell continues the row above it."""
    cells = [
        [(match.start(), match.group()) for match in _CELL.finditer(line)]
        for line in lines
    ]
    starts = sorted({start for row in cells for start, _ in row})
    heads = [row for row in cells if row and row[0][0] == 0]
    aligned = starts == [start for start, _ in max(heads, key=len, default=[])]
    if (
        len(heads) < 2
        or not 2 <= len(starts) <= 4
        or not aligned
        or any(len(row) < 2 for row in heads)
    ):
        return None
    rows: list[list[str]] = []
    for row in cells:
        if not row:
            return None
        if row[0][0] == 0:
            rows.append([""] * len(starts))
        for start, text in row:
            column = starts.index(start)
            rows[-1][column] = f"{rows[-1][column]} {text}".strip()
    return rows


def _table(rows: Sequence[Sequence[str]]) -> list[str]:
    out = [".. list-table::", "   :class: columns", "   :widths: auto", ""]
    for row in rows:
        for column, cell in enumerate(row):
            out.append(("   * - " if column == 0 else "     - ") + inline(cell))
    return [*out, ""]


def _paragraph(lines: Sequence[str], arguments: Collection[str]) -> list[str]:
    """A paragraph, with a list of the arguments that have a line of their own."""
    out: list[str] = []
    items: list[str] = []
    text: list[str] = []
    for line in lines:
        match = _ARGUMENT.match(line)
        if match and set(match.group(1).split(", ")) <= set(arguments):
            items.append(
                f"`{match.group(1)}`: {line[match.end() :]}".replace(
                    ", ", "`, `", match.group(1).count(", ")
                )
            )
        elif items:
            items[-1] += " " + line
        else:
            text.append(line)
    if text:
        out += [inline(" ".join(text)), ""]
    return out + ["- " + inline(item) for item in items] + ([""] if items else [])


@functools.cache
def _definitions(module: str) -> dict[str, ast.AST]:
    """Functions and classes of a module by qualified name."""
    source = inspect.getsource(importlib.import_module(module))
    found: dict[str, ast.AST] = {}

    def visit(body: Sequence[ast.AST], prefix: str) -> None:
        for node in body:
            if isinstance(node, ast.FunctionDef | ast.ClassDef):
                found[prefix + node.name] = node
                if isinstance(node, ast.ClassDef):
                    visit(node.body, f"{prefix}{node.name}.")

    visit(ast.parse(source).body, "")
    return found


def _definition(thing: Any) -> ast.AST | None:
    thing = inspect.unwrap(thing) if callable(thing) else thing
    module, name = (
        getattr(thing, "__module__", None),
        getattr(thing, "__qualname__", None),
    )
    if (
        not isinstance(module, str)
        or not module.startswith("jaxface")
        or not isinstance(name, str)
    ):
        return None
    return _definitions(module).get(name)


def _fields(cls: type) -> list[list[str]]:
    """Name, annotation and comment of every field of a dataclass or NamedTuple; the members of an enumeration."""
    node = _definition(cls)
    if issubclass(cls, enum.Enum):
        return [[name, f"`{member.value}`"] for name, member in cls.__members__.items()]
    if not isinstance(node, ast.ClassDef):
        return []
    lines = inspect.getsource(importlib.import_module(cls.__module__)).splitlines()
    found = []
    for item in node.body:
        if isinstance(item, ast.AnnAssign) and isinstance(item.target, ast.Name):
            annotation = ast.unparse(item.annotation)
            _, _, comment = lines[item.end_lineno - 1][item.end_col_offset :].partition(
                "#"
            )
            if not annotation.startswith("ClassVar"):
                found.append([item.target.id, f"`{annotation}`", comment.strip()])
    return found


def _on_docstring(
    _app: Sphinx, what: str, _name: str, thing: Any, _options: Any, lines: list[str]
) -> None:
    node = _definition(thing) if what in ("function", "method") else None
    arguments = (
        [argument.arg for argument in _arguments(node)]
        if isinstance(node, ast.FunctionDef)
        else []
    )
    lines[:] = convert("\n".join(lines), arguments)
    if what == "class" and (fields := _fields(thing)):
        lines += _table(fields)


def _arguments(node: ast.FunctionDef) -> list[ast.arg]:
    return [*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs]


def _on_signature(
    _app: Sphinx,
    what: str,
    _name: str,
    thing: Any,
    _options: Any,
    signature: str | None,
    returns: str | None,
) -> tuple[str | None, str | None] | None:
    """The signature as it is written, instead of one with every alias spelled out."""
    if what == "class" and (fields := _fields(thing)):
        names = (
            "value"
            if issubclass(thing, enum.Enum)
            else ", ".join(field[0] for field in fields)
        )
        return f"({'*, ' if dataclasses.is_dataclass(thing) else ''}{names})", None
    node = _definition(thing)
    if not isinstance(node, ast.FunctionDef):
        return signature, returns
    arguments = copy.copy(node.args)
    if what == "method":
        arguments.args = arguments.args[1:]
    return f"({ast.unparse(arguments)})", ast.unparse(
        node.returns
    ) if node.returns else None


def _on_skip(
    _app: Sphinx, what: str, name: str, thing: Any, skip: bool, _options: Any
) -> bool | None:
    """Fields are listed with their class already; inherited exceptions' and tuples' machinery says nothing."""
    if what == "class" and (
        type(thing).__name__ == "_tuplegetter" or name in ("add_note", "with_traceback")
    ):
        return True
    return skip


def setup(app: Sphinx) -> dict[str, bool]:
    """Connects to autodoc."""
    app.connect("autodoc-process-docstring", _on_docstring)
    app.connect("autodoc-process-signature", _on_signature)
    app.connect("autodoc-skip-member", _on_skip)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
