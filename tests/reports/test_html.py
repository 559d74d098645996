import html.parser

from jaxface.reports import figures
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
    png = figures.to_png(figures.image_grid([[[[0.0, 1.0], [1.0, 0.0]]]]))
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
