import re

from jaxface.reports import latex
from jaxface.reports.tables import Spread, Table, percent

SPECIAL = '\\input{/etc/passwd} & 5 % $x_1$ #2 ~ ^ {[*]} <|> " Zoë − ± – ×'

# What LaTeX prints for each escape, longest first.
PRINTED = {
    r"\textbackslash{}": "\\", r"\textasciitilde{}": "~", r"\textasciicircum{}": "^", r"\textless{}": "<",
    r"\textgreater{}": ">", r"\textbar{}": "|", r"$\times$": "×", r"$\pm$": "±", r"$-$": "−", "{[}": "[", "{]}": "]",
    "{*}": "*", r"\&": "&", r"\%": "%", r"\$": "$", r"\#": "#", r"\_": "_", r"\{": "{", r"\}": "}", "--": "–",
    "''": '"',
}  # fmt: skip


def printed(cell):
    """The text that a reader of the paper sees; fails on a character that LaTeX would run."""
    token = re.compile("|".join(map(re.escape, PRINTED)) + r"|[^\\{}$&%#_~^\[\]*<>|\"]")
    text, place = "", 0
    while place < len(cell):
        found = token.match(cell, place)
        assert found, cell[place:]
        text += PRINTED.get(found.group(), found.group())
        place = found.end()
    return text


def test_a_table_compiles_and_says_what_the_page_says():
    rows = [(SPECIAL, percent(-0.031, -0.05, 0.01), 3), ("[a]", Spread(1.0, 0.5), 12_000), ("*", "–", 5e-7)]
    table = Table(("name_1", "error %", "n"), rows, "A caption of 5 %\n\\end{tabular}")
    lines = latex.tabular(table).splitlines()
    assert lines[0] == "% A caption of 5 %\\n\\end{tabular}"  # a comment of one line
    assert lines[1:3] == [r"\begin{tabular}{lrr}", r"\hline"]
    assert lines[4] == r"\hline"
    assert lines[-2:] == [r"\hline", r"\end{tabular}"]
    shown = [re.sub(r" \\\\$", "", line) for line in (lines[3], *lines[5:-2])]
    cells = [[printed(cell) for cell in re.split(r" (?<!\\)& ", line)] for line in shown]
    assert cells[0] == ["name_1", "error %", "n"]
    assert cells[1] == [SPECIAL, "−3.1 [−5.0, 1.0]", "3"]
    assert cells[2:] == [["[a]", "1.0 ± 0.5", "12,000"], ["*", "–", "5e−7"]]
    for line in lines[5:-2]:
        assert line.endswith(r" \\")
        assert not line.startswith(("[", "*"))  # an option of the line break before it


def test_names_carry_no_control_characters():
    text = latex.tabular(Table(("a\x1b",), [("b\nc",), ("caf\udce9",)], "d\x07"))
    assert all(line.isprintable() for line in text.split("\n"))
    assert text.encode()
    assert r"b\textbackslash{}nc" in text
