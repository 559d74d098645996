import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from jaxface.data import pairs
from tests.reference import data_reference as reference

FILES = ("ann/1.png", "ann/2.png", "bob/1.png", "bob, jr/1.png")


@given(st.lists(st.integers(0, 3), max_size=12))
@settings(max_examples=50, deadline=None)
def test_all_pairs(ids):
    found = pairs.all_pairs(np.array(ids, int))
    assert list(zip(*(field.tolist() for field in found), strict=True)) == reference.all_pairs(ids)
    assert (found.first.dtype, found.is_same.dtype) == (np.int32, bool)


@given(st.lists(st.integers(-1, 3), max_size=30), st.integers(2, 7))
@settings(max_examples=150, deadline=None)
def test_nobody_has_more_rows_than_the_limit(ids, limit):
    rows = pairs.limited(np.array(ids, int), max_rows=limit)
    assert rows.tolist() == sorted(set(rows.tolist()))
    for person in set(ids):
        own = [row for row, each in enumerate(ids) if each == person]
        kept = [place for place, row in enumerate(own) if row in rows]
        assert len(kept) == min(len(own), limit)
        gaps = np.diff(kept)
        assert gaps.size == 0 or gaps.max() - gaps.min() <= 1  # spread evenly
        assert kept[-1] == len(own) - 1  # over all of them, and not the first ones
        assert kept[0] < len(own) / len(kept)


def test_one_person_with_many_photos_does_not_decide(rng):
    ids = rng.permutation(np.concatenate([np.zeros(530, int), np.repeat(np.arange(1, 61), 4)]))
    assert pairs.largest_share(ids, pairs.all_pairs(ids)) > 0.98
    rows = pairs.limited(ids, max_rows=10)
    assert pairs.largest_share(ids[rows], pairs.all_pairs(ids[rows])) == 45 / (45 + 60 * 6)
    assert np.isnan(pairs.largest_share(np.arange(3), pairs.all_pairs(np.arange(3))))
    with pytest.raises(ValueError, match=r"max_rows must be at least 2 \(one row makes no pair\); got 1"):
        pairs.limited(ids, max_rows=1)


def test_errors_of_sampling(rng):
    with pytest.raises(ValueError, match=r"ids must be integers \[n\]; got dtype float64"):
        pairs.all_pairs([0.5, 1.0])


def test_text_files_round_trip(tmp_path):
    written = pairs.all_pairs(np.array([0, 0, 1, 2]))
    pairs.save(tmp_path / "pairs.csv", written, FILES)
    assert (tmp_path / "pairs.csv").read_text().startswith("a,b,same\nann/1.png,ann/2.png,1\nann/1.png,bob/1.png,0\n")
    for read, expected in zip(pairs.load(tmp_path / "pairs.csv", FILES), written, strict=True):
        np.testing.assert_array_equal(read, expected)
        assert read.dtype == expected.dtype


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "line 1: expected the header 'a,b,same'"),
        ("x,y,same\n", "line 1: expected the header"),
        ("a,b,same\n", "holds no pairs"),
        (
            "a,b,same\nann/1.png,ann/2.png\n",
            "line 2: expected two file names and 1 .same. or 0; got 'ann/1.png,ann/2.png'",
        ),
        ("a,b,same\nann/1.png,ann/2.png,yes\n", "line 2: expected two file names"),
        (
            "a,b,same\nann/1.png,ann/3.png,1\n",
            r"line 2: 'ann/3\.png' is not among the 4 files\. Did you mean 'ann/",
        ),
        ("a,b,same\nann/1.png,../secret.png,0\n", r"line 2: '\.\./secret\.png' leads outside the data root"),
        ("a,b,same\nann/1.png,ann/../../x.png,0\n", "leads outside the data root"),
        ("a,b,same\n/etc/passwd,ann/1.png,0\n", "'/etc/passwd' leads outside the data root"),
        ("a,b,same\nann/1.png,ann/1.png,1\n", r"line 2: 'ann/1\.png' is paired with itself"),
        (
            "a,b,same\nann/1.png,ann/2.png,1\nann/2.png,ann/1.png,1\n",
            "line 3: this pair stands in line 2 already",
        ),
    ],
)
def test_damaged_text_files(tmp_path, text, message):
    (tmp_path / "pairs.csv").write_text(text)
    with pytest.raises(ValueError, match=rf"pairs\.csv.*{message}"):
        pairs.load(tmp_path / "pairs.csv", FILES)


@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_files_as_spreadsheets_write_them(tmp_path, end):
    """A byte order mark, Windows line ends, an empty line at the end."""
    lines = ["a,b,same", "ann/1.png,ann/2.png,1", "ann/1.png,bob/1.png,0", "", ""]
    (tmp_path / "pairs.csv").write_bytes(b"\xef\xbb\xbf" + end.join(lines).encode())
    assert pairs.load(tmp_path / "pairs.csv", FILES).is_same.tolist() == [True, False]


def test_files_that_are_not_text(tmp_path):
    (tmp_path / "pairs.csv").write_bytes(b"a,b,same\nann/1.png,ann/2.png,1\nJos\xe9/1.png,bob/1.png,0\n")
    with pytest.raises(ValueError, match=r"pairs\.csv, after line \d: not CSV in UTF-8"):
        pairs.load(tmp_path / "pairs.csv", FILES)
    (tmp_path / "pairs.csv").write_text("a,b,same\n" + "x" * 200_000 + ",bob/1.png,0\n")
    with pytest.raises(ValueError, match=r"pairs\.csv, after line \d: not CSV in UTF-8 .field larger than"):
        pairs.load(tmp_path / "pairs.csv", FILES)


def test_files_without_the_truth(tmp_path):
    (tmp_path / "pairs.csv").write_text("a,b\nann/1.png,ann/2.png\nbob/1.png,ann/1.png\n")
    assert not pairs.has_truth(tmp_path / "pairs.csv")
    first, second = pairs.load_unlabeled(tmp_path / "pairs.csv", FILES)
    assert [(FILES[a], FILES[b]) for a, b in zip(first, second, strict=True)] == [
        ("ann/1.png", "ann/2.png"),
        ("ann/1.png", "bob/1.png"),  # rows in ascending order, as `load` gives them
    ]
    with pytest.raises(ValueError, match="line 1: expected the header 'a,b,same'"):
        pairs.load(tmp_path / "pairs.csv", FILES)
    (tmp_path / "pairs.csv").write_text("a,b\nann/1.png,ann/2.png,1\n")
    with pytest.raises(ValueError, match=r"line 2: expected two file names; got 'ann/1\.png,ann/2\.png,1'"):
        pairs.load_unlabeled(tmp_path / "pairs.csv", FILES)
    (tmp_path / "pairs.csv").write_text("a,b,same\nann/1.png,ann/2.png,1\n")
    assert pairs.has_truth(tmp_path / "pairs.csv")


def test_a_name_of_several_rows_is_refused_where_a_pair_uses_it(tmp_path):
    (tmp_path / "pairs.csv").write_text("a,b,same\nx,y,1\n")
    assert pairs.load(tmp_path / "pairs.csv", ["x", "y", "z", "z"]).first.tolist() == [0]
    with pytest.raises(ValueError, match=r"line 2: 'x' names several rows"):
        pairs.load(tmp_path / "pairs.csv", ["x", "y", "x"])
