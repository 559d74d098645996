"""One page a run: sections of prose, tables and pictures in a single file that needs no other."""

import base64
import dataclasses
import html
import json
import math
import re
import shlex
import unicodedata
from collections.abc import Mapping, Sequence
from typing import Any

from jaxface.core import messages
from jaxface.reports.tables import Table

__all__ = ["Block", "Command", "Picture", "Report", "Section", "Sheet", "pictures", "render", "tables"]

_LONGEST_NAME = 60  # of a table's files


@dataclasses.dataclass(frozen=True)
class Picture:
    """A figure with its file name (which says its format) and a caption."""

    name: str  # such as "roc.svg" or "eigenfaces.png"
    data: bytes
    caption: str = ""


@dataclasses.dataclass(frozen=True)
class Sheet(Picture):
    """A sheet of images; the page shows each row as a picture of its own, with labels that stay readable when small."""

    title: str = ""
    rows: Sequence[tuple[str, bytes]] = ()  # label and PNG
    column_labels: Sequence[str] = ()
    width: float = math.inf  # of a row at most, in the unit of the font


@dataclasses.dataclass(frozen=True)
class Command:
    """A line to type, shown as such."""

    text: str


Block = str | Table | Picture | Command  # a string is a paragraph


@dataclasses.dataclass(frozen=True)
class Section:
    """A titled part of the page; a string is a paragraph."""

    title: str
    blocks: Sequence[Block]


@dataclasses.dataclass(frozen=True)
class Report:
    """The whole page."""

    title: str
    lead: str
    sections: Sequence[Section]
    headline: Table | None = None
    made: str = ""  # when, and in what time
    config: Mapping[str, Any] = dataclasses.field(default_factory=dict)
    provenance: Mapping[str, Any] = dataclasses.field(default_factory=dict)
    credits: Sequence[str] = ()


def render(report: Report) -> str:
    """The page as HTML."""
    contents = "".join(
        f'<li><a href="#section-{i}">{_escaped(section.title)}</a></li>' for i, section in enumerate(report.sections)
    )
    headline = _block(report.headline) if report.headline is not None else ""
    body = "\n".join(_section(i, section) for i, section in enumerate(report.sections))
    return f"""<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{_escaped(report.title)}</title>
<style>{_CSS}</style>
</head>
<body>
<main>
<header>
<h1>{_escaped(report.title)}</h1>
{_paragraph(report.lead)}
{f'<p class="caption">{_escaped(report.made)}</p>' if report.made else ""}
</header>
{headline}
<nav><ol>{contents}</ol></nav>
{body}
{_how_to_repeat(report)}
{_credits(report)}
</main>
</body>
</html>
"""


def pictures(report: Report) -> list[Picture]:
    """Every picture of the page, to be kept as files beside it; two of one name are an error."""
    found = [block for section in report.sections for block in section.blocks if isinstance(block, Picture)]
    names = [picture.name for picture in found]
    if twice := sorted({name for name in names if names.count(name) > 1}):
        raise ValueError(f"pictures of a page need different names; {', '.join(twice)} comes more than once")
    return found


def tables(report: Report) -> dict[str, Table]:
    """Every table by the name of its files: its own, or the title of its section; a number is added to a name again.

    The table at the top is `headline`.
    """
    named = [("headline", report.headline)] if report.headline is not None else []
    named += [
        (block.name or section.title, block)
        for section in report.sections
        for block in section.blocks
        if isinstance(block, Table)
    ]
    found: dict[str, Table] = {}
    for title, table in named:
        slug = _slug(title)
        number = next(n for n in range(1, len(named) + 2) if _numbered(slug, n) not in found)
        found[_numbered(slug, number)] = table
    return found


def _slug(title: str) -> str:
    """A title as a file name on every system: letters and digits of ASCII, in small letters."""
    words = re.findall(r"[a-z0-9]+", unicodedata.normalize("NFKD", title).encode("ascii", "ignore").decode().lower())
    return "_".join(words)[:_LONGEST_NAME].rstrip("_") or "table"


def _numbered(slug: str, number: int) -> str:
    return slug if number == 1 else f"{slug}_{number}"


def _escaped(text: str) -> str:
    """As HTML, and without the control characters that names of files and people may hold."""
    return html.escape(messages.printable_lines(text))


def _section(index: int, section: Section) -> str:
    blocks = "\n".join(_block(block) for block in section.blocks)
    return f'<section id="section-{index}">\n<h2>{_escaped(section.title)}</h2>\n{blocks}\n</section>'


def _block(block: Block) -> str:
    if isinstance(block, Table):
        return block.to_html()
    if isinstance(block, Sheet):
        return _sheet(block)
    if isinstance(block, Picture):
        return _picture(block)
    if isinstance(block, Command):
        return f"<pre>{_escaped(block.text)}</pre>"
    return _paragraph(block)


def _picture(picture: Picture) -> str:
    caption = _escaped(picture.caption)
    image = f'<img alt="{caption}" src="{_source(picture.name, picture.data)}">'
    return f"<figure>{image}<figcaption>{caption}</figcaption></figure>"


def _sheet(sheet: Sheet) -> str:
    """A row for each label; on a narrow page the labels stand above the rows instead of beside them."""
    width = f' style="max-width: {sheet.width:g}em"' if math.isfinite(sheet.width) else ""
    names = "".join(f"<span>{_escaped(name)}</span>" for name in sheet.column_labels)
    head = f'<div class="row"><span></span><div class="names"{width}>{names}</div></div>' if names else ""
    rows = "".join(
        f'<div class="row"><span>{_escaped(label)}</span>'
        f'<img alt="{_escaped(label or sheet.caption)}"{width} src="{_source("row.png", data)}"></div>\n'
        for label, data in sheet.rows
    )
    title = f'<p class="title">{_escaped(sheet.title)}</p>' if sheet.title else ""
    kind = "sheet labelled" if any(label for label, _ in sheet.rows) else "sheet"
    caption = f"<figcaption>{_escaped(sheet.caption)}</figcaption>"
    return f'<figure>{title}<div class="{kind}">{head}{rows}</div>{caption}</figure>'


def _source(name: str, data: bytes) -> str:
    kind = {"svg": "image/svg+xml", "png": "image/png"}[name.rpartition(".")[2]]
    return f"data:{kind};base64,{base64.b64encode(data).decode()}"


def _paragraph(text: str) -> str:
    return f"<p>{_escaped(text)}</p>" if text else ""


def _how_to_repeat(report: Report) -> str:
    if not report.provenance:
        return ""
    record = report.provenance
    command = shlex.join(["python", "-m", *record["command"]]) if record.get("command") else ""
    rows: list[tuple[str, str]] = [
        (name, json.dumps(value) if isinstance(value, dict | list) else str(value))
        for name, value in record.items()
        if name != "command" and value is not None
    ]
    return f"""<section>
<h2>How to repeat this</h2>
<pre>{_escaped(command)}</pre>
<details><summary>Config</summary><pre>{_escaped(json.dumps(report.config, indent=2, sort_keys=True))}</pre></details>
<details><summary>Where it ran</summary>{Table(("what", "value"), rows).to_html()}</details>
</section>"""


def _credits(report: Report) -> str:
    if not report.credits:
        return ""
    return "<footer>" + "".join(_paragraph(text) for text in report.credits) + "</footer>"


# Figures are drawn on white, so they stand on a light card on a dark page too.
_CSS = """
:root { color-scheme: light dark; --page: #fafaf8; --ink: #1b1b1b; --quiet: #555; --line: #e2e2de; --raised: #fff;
  --code: #f1f1ec; --link: #0072b2; --card: #fff; --card-ink: #444; }
@media (prefers-color-scheme: dark) {
  :root { --page: #17181a; --ink: #e6e6e3; --quiet: #a9a9a4; --line: #35373a; --raised: #1e2022; --code: #232528;
    --link: #6cb8e6; --card: #f3f3f0; }
  figure img { mix-blend-mode: multiply; }
}
body { margin: 0; background: var(--page); color: var(--ink);
  font: 16px/1.55 system-ui, "Segoe UI", "Helvetica Neue", sans-serif; }
main { max-width: 58rem; margin: 0 auto; padding: 2.5rem 1.25rem 4rem; }
h1 { font-size: 1.9rem; line-height: 1.2; margin: 0 0 .6rem; letter-spacing: -.01em; }
h2 { font-size: 1.3rem; margin: 3rem 0 .6rem; padding-top: .9rem; border-top: 2px solid var(--ink); }
p { max-width: 44rem; margin: .6rem 0; overflow-wrap: break-word; }
nav ol { display: flex; flex-wrap: wrap; gap: .2rem 1.4rem; padding: 0; margin: 1.4rem 0 0; list-style: none;
  font-size: .92rem; }
a { color: var(--link); }
.table { margin: 1.2rem 0; }
.wide { overflow-x: auto; overflow-wrap: normal; }
.caption, figcaption, footer { color: var(--quiet); font-size: .9rem; }
.table .caption { margin: 0 0 .35rem; }
table { border-collapse: collapse; font-size: .92rem; font-variant-numeric: tabular-nums; background: var(--raised); }
th, td { padding: .35rem .8rem; border-bottom: 1px solid var(--line); text-align: left; vertical-align: top; }
th { border-bottom: 1.5px solid var(--ink); font-weight: 600; vertical-align: bottom; }
.number { text-align: right; }
figure { margin: 1.2rem 0; padding: .8rem; background: var(--card); border: 1px solid var(--line); border-radius: 6px;
  color: var(--card-ink); color-scheme: light; }
figure img { display: block; max-width: 100%; height: auto; margin: 0 auto; }
figcaption { margin-top: .5rem; color: var(--card-ink); }
.sheet { display: grid; gap: .25rem; font-size: .85rem; }
.title { margin: 0 0 .4rem; font-weight: 600; }
.row { display: grid; grid-template-columns: minmax(0, 1fr); align-items: center; }
.labelled .row { grid-template-columns: 9.5rem minmax(0, 1fr); column-gap: .7rem; text-align: right; }
.row img, .names { width: 100%; margin: 0; }
.names { display: grid; grid-auto-flow: column; grid-auto-columns: minmax(0, 1fr); text-align: center; }
pre { background: var(--code); padding: .8rem; border-radius: 6px; font-size: .85rem; white-space: pre-wrap;
  overflow-wrap: anywhere; }
details { margin: .6rem 0; }
summary { cursor: pointer; }
footer { margin-top: 3rem; }
@media (max-width: 40rem) {
  main { padding: 1.25rem .8rem 3rem; }
  h2 { margin-top: 2.2rem; }
  th, td { padding: .3rem .5rem; }
  figure { padding: .5rem; }
  .labelled .row { grid-template-columns: minmax(0, 1fr); text-align: left; row-gap: .1rem; }
  .names { font-size: .75rem; }
}
"""
