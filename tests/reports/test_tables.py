import csv
import io
import math
import re

import numpy as np
import pytest

from jaxface.metrics.intervals import Interval
from jaxface.reports.tables import (
    Estimate,
    Spread,
    Table,
    csv_text,
    intervals_over,
    percent,
    percent_interval,
    percent_spread,
)


def table():
    rows = [("a < b", percent(0.1234, 0.1, 0.15), 3), ("long name", percent(0.5), 12)]
    return Table(("method", "error %", "n"), rows, "Caption & more")


def test_estimates():
    assert str(Estimate(1.25, 1.0, 1.5, digits=2)) == "1.25 [1.00, 1.50]"
    assert str(percent(-0.031)) == "−3.1"
    assert str(percent(-0.0001)) == "0.0"
    assert str(percent(math.nan)) == "–"
    assert str(Estimate(168627.49, 35391.14, 301863.83, digits=2)) == "1.69e5 [35391.14, 3.02e5]"
    assert str(Estimate(-math.inf, digits=2)) == "−inf"
    assert str(percent_interval(Interval(0.5, 0.25, 0.75), digits=0)) == "50 [25, 75]"


def test_means_with_deviations_are_numbers():
    """They stand on the right, and the CSV has the mean and the deviation in columns of their own."""
    table = Table(
        ("start", "purity %", "accuracy %"),
        [
            ("a", percent_spread([0.5, 0.7]), Spread(0.25, 0.01, scale=100.0, kind="SE")),
            ("b", percent_spread([0.5]), Spread(math.nan)),
            ("c", percent_spread([0.5, 0.5]), "–"),
        ],
    )
    assert table.to_text().splitlines() == [
        "start     purity %  accuracy %",
        "a      60.0 ± 14.1  25.0 ± 1.0",
        "b             50.0           –",
        "c             50.0           –",
    ]
    rows = list(csv.reader(io.StringIO(table.to_csv())))
    assert rows[0] == ["start", "purity %", "purity % SD", "accuracy %", "accuracy % SE"]
    assert [float(value) for value in rows[1][1:]] == pytest.approx([60.0, 100 * math.sqrt(0.02), 25.0, 1.0])
    assert rows[2:] == [["b", "50.0", "", "", ""], ["c", "50.0", "", "", ""]]
    assert '<td class="number">60.0&nbsp;±&nbsp;14.1</td>' in table.to_html()


def test_plain_numbers_are_short():
    shown = {
        9999: "9999", 10_000: "10,000", -16_384: "−16,384", 6117.487: "6117", 12_345.6: "12346", 5.918e-7: "5.918e−7",
        0.25: "0.25", 2.5e9: "2.5e9", math.inf: "inf", np.float32(0.5): "0.5", np.int64(12_000): "12,000",
    }  # fmt: skip
    for number, text in shown.items():
        assert Table(("n",), [(number,)]).to_text().splitlines()[1].strip() == text
    assert Table(("n",), [(2.5e9,)]).to_csv() == "n\n2500000000.0\n"


def test_absent_numbers_keep_a_column_on_the_right():
    table = Table(("a", "b", "c"), [("x", 1.5, "–"), ("y", "–", "–"), ("z", "", "word")])
    assert table.numeric() == [False, True, False]
    assert table.to_csv().splitlines()[1:] == ["x,1.5,–", "y,,–", "z,,word"]


def test_a_caption_is_as_wide_as_the_page():
    """Inside the table it would be as narrow as the table, and scroll away with it."""
    text = Table(("n",), [(1,)], "A long caption").to_html()
    assert text.index("A long caption</p>") < text.index('<div class="wide">') < text.index("<table")
    assert "<caption>" not in text


def test_captions_say_where_there_is_no_interval():
    assert intervals_over(5, "random splits") == "95 % intervals over 5 random splits"
    assert intervals_over(4, "random splits") == "mean over 4 random splits, too few for intervals"
    assert intervals_over(1, "random splits") == "mean over 1 random split, too few for intervals"


def test_html_is_escaped_and_numbers_stand_right():
    text = table().to_html()
    assert "a &lt; b" in text
    assert "Caption &amp; more" in text
    assert '<td class="number">12.3 [10.0,&nbsp;15.0]</td>' in text
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
    assert mixed.to_csv().splitlines() == ["method,error,error low,error high", "a,50.0,25.0,75.0", "b,,,"]


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
    assert table.to_csv().splitlines()[0] == "'=name,error %"
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
