import csv
import io
import math
import re

import numpy as np
import pytest

from jaxface.metrics.intervals import Interval
from jaxface.reports.tables import Estimate, Table, csv_text, intervals_over, percent, percent_interval


def table():
    rows = [("a < b", percent(0.1234, 0.1, 0.15), 3), ("long name", percent(0.5), 12)]
    return Table(("method", "error %", "n"), rows, "Caption & more")


def test_estimates():
    assert str(Estimate(1.25, 1.0, 1.5, digits=2)) == "1.25 [1.00, 1.50]"
    assert str(percent(-0.031)) == "−3.1"
    assert str(percent(-0.0001)) == "0.0"
    assert str(percent(math.nan)) == "–"
    assert str(percent_interval(Interval(0.5, 0.25, 0.75), digits=0)) == "50 [25, 75]"


def test_captions_say_where_there_is_no_interval():
    assert intervals_over(5, "random splits") == "95 % intervals over 5 random splits"
    assert intervals_over(4, "random splits") == "mean over 4 random splits, too few for intervals"
    assert intervals_over(1, "random splits") == "mean over 1 random split, too few for intervals"


def test_html_is_escaped_and_numbers_stand_right():
    text = table().to_html()
    assert "a &lt; b" in text
    assert "Caption &amp; more" in text
    assert '<td class="number">12.3 [10.0, 15.0]</td>' in text
    assert '<td class="number">12</td>' in text
    assert "<td>long name</td>" in text


def test_text_is_aligned():
    assert table().to_text().splitlines() == [
        "method               error %   n",
        "a < b      12.3 [10.0, 15.0]   3",
        "long name               50.0  12",
    ]


def test_csv_keeps_full_precision_and_the_ends_of_intervals():
    assert table().to_csv().splitlines() == [
        "method,error %,error % low,error % high,n",
        "a < b,12.34,10.0,15.0,3",
        "long name,50.0,,,12",
    ]
    mixed = Table(("method", "error"), [("a", percent(0.5, 0.25, 0.75)), ("b", "–")])
    assert mixed.to_csv().splitlines() == ["method,error,error low,error high", "a,50.0,25.0,75.0", "b,–,,"]


def test_ragged_rows_are_an_error():
    with pytest.raises(ValueError, match="a row of 1 cells in a table of 2 columns"):
        Table(("a", "b"), [("x",)])


HOSTILE = ("=1+1", "+1+1", "-1+1", "@SUM(A1)", " =1+1", "\t=1+1", "\r=1", "＝1+1", "a;=1+1", '=cmd|" /C calc"!A0')


def test_spreadsheets_run_nothing_that_comes_from_outside():
    rows = list(csv.reader(io.StringIO(csv_text([[text] for text in HOSTILE]))))
    for text, (cell,) in zip(HOSTILE, rows, strict=True):
        assert not re.match(r"\s*[=+\-@＝]", cell)
        assert not re.search(r";\s*[=+\-@＝]", cell)
        assert text.strip("\t\r")[-3:] in cell
    table = Table(("=name", "error %"), [(text, percent(0.5)) for text in HOSTILE])
    assert table.to_csv().splitlines()[0] == "'=name,error %,error % low,error % high"
    assert not re.search(r"^\"?\s*[=+\-@＝]", table.to_csv(), re.MULTILINE)


def test_numbers_stay_numbers():
    numbers = [-1, -1.5, "-1.500000", "+1.33", "1e-7", "-inf", np.float64(-0.25), True, ".5", "7."]
    (row,) = csv.reader(io.StringIO(csv_text([numbers])))
    assert row == ["-1", "-1.5", "-1.500000", "+1.33", "1e-7", "-inf", "-0.25", "True", ".5", "7."]
    assert csv_text([["a,b", 'say "so"', "–", "Zoë"]]) == '"a,b","say ""so""",–,Zoë\n'


def test_names_carry_no_control_characters_anywhere():
    """A name with the codes that clear a terminal, one with a new line, one that is not UTF-8."""
    names = ("a\x1b[2J", "b\nc", "caf\udce9")
    table = Table(("name\x07", "n"), [(name, 1) for name in names], "caption\x1b")
    for text in (table.to_text(), table.to_csv(), table.to_html()):
        assert all(line.isprintable() for line in text.split("\n"))
        assert text.encode()
        assert "a\\x1b[2J" in text
        assert "b\\nc" in text
        assert "caf\\xe9" in text
    assert len(table.to_csv().splitlines()) == 4
