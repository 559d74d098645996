import html.parser
import re

import numpy as np
import pytest

from jaxface.reports import figures, sheets
from jaxface.reports import html as page
from jaxface.reports.figures import Curve
from jaxface.reports.html import Command, Picture, Report, Section
from jaxface.reports.tables import Table

VOID = {"meta", "img"}


class Balanced(html.parser.HTMLParser):
    """Checks that tags close in order and collects what the page refers to."""

    def __init__(self):
        super().__init__()
        self.open, self.sources, self.ids, self.anchors = [], [], set(), set()

    def handle_starttag(self, tag, attrs):
        attributes = dict(attrs)
        self.sources += [attributes[k] for k in ("src",) if k in attributes]
        self.ids |= {attributes["id"]} if "id" in attributes else set()
        self.anchors |= {attributes["href"].removeprefix("#")} if tag == "a" else set()
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag


def report():
    svg = figures.to_svg(figures.curves([Curve("a", [0, 1], [0, 1])], x_label="x", y_label="y"))
    png = figures.to_png(sheets.image_grid([[[[0.0, 1.0], [1.0, 0.0]]]]))
    section = Section(
        "Results <1>",
        ("A & B", Table(("m", "v"), [("x", 1.5)]), Picture("a.svg", svg, "A line"), Picture("b.png", png)),
    )
    return Report(
        title="A run", lead="What it shows.", sections=[section, Section("Empty", (Command("run < this"),))],
        headline=Table(("k", "v"), [("eer", 0.1)]), config={"seed": 0},
        provenance={"command": ["experiments.tour", "--config=configs/tour.py:smoke", "--workdir=a b"], "x64": True},
        credits=("The faces of somebody",),
    )  # fmt: skip


def test_the_page_is_whole_and_needs_no_other_file():
    text = page.render(report())
    parser = Balanced()
    parser.feed(text)
    assert parser.open == []
    assert len(parser.sources) == 2
    assert all(source.startswith("data:image/") for source in parser.sources)
    assert parser.anchors <= parser.ids
    assert "http" not in text.replace("http://www.w3.org", "")
    assert "Results &lt;1&gt;" in text
    assert "<p>A &amp; B</p>" in text
    assert "<pre>run &lt; this</pre>" in text
    assert "python -m experiments.tour --config=configs/tour.py:smoke &#x27;--workdir=a b&#x27;" in text
    assert "The faces of somebody" in text
    assert "&quot;seed&quot;: 0" in text


def test_pictures_are_listed_for_the_folder():
    assert [picture.name for picture in page.pictures(report())] == ["a.svg", "b.png"]


def test_two_pictures_of_one_name_are_an_error():
    section = Section("S", (Picture("a.svg", b""), Picture("b.svg", b""), Picture("a.svg", b"")))
    with pytest.raises(ValueError, match=r"need different names; a\.svg comes more than once"):
        page.pictures(Report(title="", lead="", sections=[section]))


def test_tables_are_named_by_their_sections():
    """A name says what a table holds, stays the same when sections before it change, and is one on every system."""
    table, own = Table(("m",), [(1,)]), Table(("m",), [(2,)], name="claims")
    sections = [
        Section("Does it win? (Zoë's 5 %)", (table, "words", table, own)),
        Section("–", (table,)),
        Section("x" * 200, (table,)),
        Section("Claims", (table,)),
    ]
    names = list(page.tables(Report(title="", lead="", sections=sections, headline=table)))
    assert names == [
        "headline", "does_it_win_zoe_s_5", "does_it_win_zoe_s_5_2", "claims", "table", "x" * 60, "claims_2",
    ]  # fmt: skip
    assert page.tables(Report(title="", lead="", sections=sections))["claims"] is own
    assert "headline" not in page.tables(Report(title="", lead="", sections=sections))


def test_labels_of_a_sheet_are_text_of_the_page():
    sheet = sheets.sheet(
        "faces.png", np.zeros((2, 3, 4, 4)), caption="Some", row_labels=("up", "<down>"), column_labels=("1", "2", "3")
    )
    text = page.render(Report(title="", lead="", sections=[Section("S", (sheet,))]))
    parser = Balanced()
    parser.feed(text)
    assert parser.open == []
    assert len(parser.sources) == 2  # one picture a row
    body = re.sub("<style>.*</style>", "", text, flags=re.DOTALL)
    assert all(f"<span>{label}</span>" in body for label in ("up", "&lt;down&gt;", "1", "2", "3"))
    assert page.pictures(Report(title="", lead="", sections=[Section("S", (sheet,))])) == [sheet]


def test_a_dark_page_keeps_figures_on_a_light_card():
    """Every colour of the page is a variable that the dark palette sets, but for the card of figures."""
    text = page.render(report())
    style = text[text.index("<style>") : text.index("</style>")]
    light, dark = re.findall(r":root \{([^}]*)\}", style)
    names = [set(re.findall(r"(--[a-z-]+):", part)) for part in (light, dark)]
    assert names[0] - names[1] == {"--card-ink"}
    rest = style[style.index("body {") :]
    assert not re.search(r"#[0-9a-f]{3}", rest)
    brightness = {part: int(re.search(r"--card: #(..)", part).group(1).ljust(2, "f")[0], 16) for part in (light, dark)}
    assert min(brightness.values()) == 15


def test_the_page_says_when_it_was_made():
    text = page.render(Report(title="T", lead="L", sections=[], made="Begun on 2026-11-19 at 14:00 UTC; took 3 s."))
    assert text.index("<p>L</p>") < text.index("Begun on 2026-11-19 at 14:00 UTC; took 3 s.") < text.index("</header>")


def test_the_page_has_no_control_characters():
    """Names of people and files come from outside; the page is UTF-8 whatever they are."""
    name = "d\x1b[2Jn \udce9 <b>"
    blocks = (name, Table((name,), [(name,)], name), Command(name), Picture("a.png", b"x", name))
    text = page.render(
        Report(title=name, lead=name, sections=[Section(name, blocks)], config={"root": name}, credits=(name,),
               provenance={"command": [name], "host": name})
    )  # fmt: skip
    assert text.encode()
    assert all(line.isprintable() for line in text.split("\n"))
    assert "d\\x1b[2Jn \\xe9 &lt;b&gt;" in text
