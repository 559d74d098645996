import math

import pytest

from jaxface.metrics.intervals import Interval
from jaxface.reports.tables import Estimate, Table, percent, percent_interval


def table():
    rows = [("a < b", percent(0.1234, 0.1, 0.15), 3), ("long name", percent(0.5), 12)]
    return Table(("method", "error %", "n"), rows, "Caption & more")


def test_estimates():
    assert str(Estimate(1.25, 1.0, 1.5, digits=2)) == "1.25 [1.00, 1.50]"
    assert str(percent(-0.031)) == "−3.1"
    assert str(percent(-0.0001)) == "0.0"
    assert str(percent(math.nan)) == "–"
    assert str(percent_interval(Interval(0.5, 0.25, 0.75), digits=0)) == "50 [25, 75]"


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
