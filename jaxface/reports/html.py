"""One page a run: sections of prose, tables and pictures in a single file that needs no other."""

import base64
import dataclasses
import html
import json
import shlex
from collections.abc import Mapping, Sequence
from typing import Any

from jaxface.core import messages
from jaxface.reports.tables import Table

__all__ = ["Block", "Command", "Picture", "Report", "Section", "pictures", "render"]


@dataclasses.dataclass(frozen=True)
class Picture:
    """A figure with its file name (which says its format) and a caption."""

    name: str  # such as "roc.svg" or "eigenfaces.png"
    data: bytes
    caption: str = ""


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
    """Every picture of the page, to be kept as files beside it."""
    return [block for section in report.sections for block in section.blocks if isinstance(block, Picture)]


def _escaped(text: str) -> str:
    """As HTML, and without the control characters that names of files and people may hold."""
    return html.escape(messages.printable_lines(text))


def _section(index: int, section: Section) -> str:
    blocks = "\n".join(_block(block) for block in section.blocks)
    return f'<section id="section-{index}">\n<h2>{_escaped(section.title)}</h2>\n{blocks}\n</section>'


def _block(block: Block) -> str:
    if isinstance(block, Table):
        return f'<div class="wide">{block.to_html()}</div>'
    if isinstance(block, Picture):
        return _picture(block)
    if isinstance(block, Command):
        return f"<pre>{_escaped(block.text)}</pre>"
    return _paragraph(block)


def _picture(picture: Picture) -> str:
    kind = {"svg": "image/svg+xml", "png": "image/png"}[picture.name.rpartition(".")[2]]
    source = f"data:{kind};base64,{base64.b64encode(picture.data).decode()}"
    caption = _escaped(picture.caption)
    return f'<figure><img alt="{caption}" src="{source}"><figcaption>{caption}</figcaption></figure>'


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


_CSS = """
:root { color-scheme: light; }
body { margin: 0; background: #fafaf8; color: #1b1b1b; font: 16px/1.55 system-ui, "Segoe UI", "Helvetica Neue", sans-serif; }
main { max-width: 58rem; margin: 0 auto; padding: 2.5rem 1.25rem 4rem; }
h1 { font-size: 1.9rem; line-height: 1.2; margin: 0 0 .6rem; letter-spacing: -.01em; }
h2 { font-size: 1.3rem; margin: 3rem 0 .6rem; padding-top: .9rem; border-top: 2px solid #1b1b1b; }
p { max-width: 44rem; margin: .6rem 0; }
nav ol { display: flex; flex-wrap: wrap; gap: .2rem 1.4rem; padding: 0; margin: 1.4rem 0 0; list-style: none; font-size: .92rem; }
a { color: #0072b2; }
table { border-collapse: collapse; margin: 1rem 0; font-size: .92rem; font-variant-numeric: tabular-nums; background: #fff; }
caption { text-align: left; padding: .3rem 0; color: #555; }
th, td { padding: .35rem .8rem; border-bottom: 1px solid #e2e2de; text-align: left; vertical-align: top; }
th { border-bottom: 1.5px solid #1b1b1b; font-weight: 600; }
.number { text-align: right; white-space: nowrap; }
.wide { overflow-x: auto; }
figure { margin: 1.2rem 0; padding: .8rem; background: #fff; border: 1px solid #e8e8e4; border-radius: 6px; overflow-x: auto; }
figure img { display: block; max-width: 100%; height: auto; margin: 0 auto; }
figcaption { margin-top: .5rem; color: #555; font-size: .9rem; }
pre { background: #f1f1ec; padding: .8rem; border-radius: 6px; overflow-x: auto; font-size: .85rem; }
details { margin: .6rem 0; }
summary { cursor: pointer; }
footer { margin-top: 3rem; color: #555; font-size: .88rem; }
"""
