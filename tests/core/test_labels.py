import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from jaxface.core.labels import dense, natural_key

labels_of_people = st.lists(st.integers(-1, 5), min_size=1, max_size=40).filter(lambda labels: max(labels) >= 0)


@given(
    labels_of_people,
    st.sampled_from([list, np.array, lambda labels: [None if v == -1 else f"p{v}" for v in labels]]),
)
@settings(max_examples=60, deadline=None)
def test_dense_names_every_kept_row(labels, form):
    given_labels = form(labels)
    rows, ids, names = dense(given_labels)
    assert rows.tolist() == [row for row, label in enumerate(labels) if label != -1]
    assert [names[i] for i in ids] == [given_labels[row] for row in rows]
    assert sorted(set(ids.tolist())) == list(range(len(names)))
    assert ids.dtype == np.int32


def test_names_are_in_natural_order_whatever_the_order_of_rows():
    assert dense(["s10", "s2", "s1", "s2"]).names == ("s1", "s2", "s10")
    assert dense([10, 2, 1]).names == (1, 2, 10)
    assert dense(np.array([3, 200], np.uint8)).names == (3, 200)
    assert dense(np.array(["b", "a"])).ids.tolist() == [1, 0]
    assert dense((None, "a", -1)).rows.tolist() == [1]


@pytest.mark.parametrize(
    ("labels", "message"),
    [
        ([-1, None], "must name at least one row; got 2 rows, all of them -1 or None"),
        ([], "must name at least one row; got 0 rows"),
        ([1, "a"], "all integers or all strings, None or -1 where there is none; got int, str"),
        ([True, False], "got bool"),
        ([1.0, 2.0], "got float"),
        (np.array([1.0, 2.0]), "labels must be integers or strings; got dtype float64"),
        (np.array([[1], [2]]), r"labels must have shape \[n\]; got shape \(2, 1\)"),
    ],
)
def test_labels_that_are_none(labels, message):
    with pytest.raises(ValueError, match=message):
        dense(labels)


def test_natural_order_of_equal_numbers_is_settled_by_the_name():
    names = ["s10", "s2", "s02", "s", "2", "10a"]
    assert sorted(names, key=natural_key) == ["2", "10a", "s", "s02", "s2", "s10"]
