import numpy as np
import pytest

from jaxface.data import delimited


@pytest.mark.parametrize("text", ["a,b\n1,2\n", "a\tb\n1\t2\n", "a;b\n1;2\n", "a b\n1   2\n", "# x\n\n a,b\n1,2"])
def test_the_delimiter_is_that_of_the_first_line(text, tmp_path):
    (tmp_path / "file").write_text(text)
    table = delimited.table(tmp_path / "file", delimited.rows(tmp_path / "file", None), known={"b"})
    assert (table.names, table.columns) == (("a", "b"), (("1",), ("2",)))
    assert (delimited.place(table, "b"), delimited.place(table, "1")) == (1, 0)


def test_a_delimiter_of_ones_own(tmp_path):
    (tmp_path / "file").write_text("x|y, z\n")
    assert delimited.rows(tmp_path / "file", "|") == [["x", "y, z"]]


@pytest.mark.parametrize(
    ("rows", "names"),
    [
        ([["b", "x"], ["u", "v"]], ("b", "x")),
        ([["u", "target"], ["v", "nontarget"]], ("1", "2")),
        ([["u", "target"], ["v", "target"]], ("1", "2")),
        ([["b", "target"], ["v", "target"]], ("b", "target")),
        ([["u", "target"], ["v", "1"]], ("u", "target")),
        ([["u", "2"], ["v", "1"]], ("1", "2")),
        ([["score"], ["1"]], ("score",)),
        ([["u"], ["v"]], ("1",)),
    ],
)
def test_headers(rows, names, tmp_path):
    assert delimited.table(tmp_path, rows, known={"b", "target"}).names == names


def test_numbers_are_ascii_digits_infinities_or_nan():
    numbers = ["1", "-1.5e-3", "inf", "-Infinity", "nan", "+2."]
    assert all(map(delimited.is_number, numbers))
    assert not any(map(delimited.is_number, ["1_000", "\N{ARABIC-INDIC DIGIT ONE}", "", "x", "1,5"]))
    assert delimited.are_numbers(numbers)
    assert not delimited.are_numbers(["1", "2", "x"])


def test_words_of_truth(tmp_path):
    cells = ["Same", "0", "NONTARGET", "yes", "False"]
    table = delimited.table(tmp_path, [[cell, "0"] for cell in cells])
    np.testing.assert_array_equal(delimited.truth(table, 0), [True, False, False, True, False])
    assert not delimited.are_truths(["1", "2"])
