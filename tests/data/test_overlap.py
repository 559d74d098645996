"""People on two sides of a test are refused with their names."""

import numpy as np
import pytest

from jaxface.data.overlap import Known, identical_rows, refuse_shared_people, refuse_shared_rows


def people(rng, names, *, dim=4):
    return Known(rng.normal(size=(2 * len(names), dim)), np.repeat(np.arange(len(names)), 2), names)


def test_different_people_pass(rng):
    refuse_shared_people(source=people(rng, ("ann", "bob")), target=people(rng, ("cid", "dan")))


def test_a_name_on_both_sides_is_refused(rng):
    with pytest.raises(ValueError, match=r"source and target must show different people; 'bob', 'cid' are in both"):
        refuse_shared_people(source=people(rng, ("ann", "cid", "bob")), target=people(rng, ("bob", "cid", "eve")))


def test_names_without_a_row_do_not_count(rng):
    source = people(rng, ("ann", "bob"))
    target = people(rng, ("bob", "cid"))
    target = Known(target.rows[2:], target.ids[2:], target.names)
    refuse_shared_people(source=source, target=target)


def test_numbers_are_compared_as_text(rng):
    with pytest.raises(ValueError, match=r"'1' is in both.*give them different names"):
        refuse_shared_people(source=people(rng, (0, 1)), target=people(rng, ("1", "2")))


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_an_identical_row_under_another_name_is_refused(rng, dtype):
    source, target = people(rng, ("ann", "bob")), people(rng, ("cid", "dan"))
    target.rows[3] = source.rows[1].astype(np.float32)
    target = target._replace(rows=target.rows.astype(dtype))
    with pytest.raises(ValueError, match="'ann' in source and 'dan' in target"):
        refuse_shared_people(source=source, target=target)


def test_every_pair_of_sides_is_compared(rng):
    sides = {name: people(rng, (f"{name} 1", f"{name} 2")) for name in ("fit", "calibrate", "test")}
    refuse_shared_people(**sides)
    sides["test"].rows[0] = sides["calibrate"].rows[0]
    with pytest.raises(ValueError, match="calibrate and test"):
        refuse_shared_people(**sides)


def test_long_lists_are_cut(rng):
    names = tuple(f"p{k}" for k in range(9))
    with pytest.raises(ValueError, match="'p4' and 4 more are in both"):
        refuse_shared_people(a=people(rng, names), b=people(rng, names))


def test_one_row_under_two_names(rng):
    known = people(rng, ("ann", "bob", "cid"))
    refuse_shared_rows(known, source="PHOTOS")
    known.rows[1] = known.rows[0]  # twice the same photo of one person
    refuse_shared_rows(known, source="PHOTOS")
    known.rows[4], known.rows[1] = 0.0, -0.0
    with pytest.raises(ValueError, match="PHOTOS holds the same image or vector under two names: 'ann' and 'cid'"):
        refuse_shared_rows(known, source="PHOTOS")


def test_identical_rows(rng):
    rows = rng.normal(size=(5, 3, 2))
    asked = np.stack([rows[3], rows[3] + 1e-3, rows[0], -rows[0]])
    assert identical_rows(rows, asked.astype(np.float32)).tolist() == [True, False, True, False]
    assert identical_rows(rows[:0], asked).tolist() == [False] * 4


def test_rows_without_a_name_are_not_compared():
    refuse_shared_rows(Known(np.ones((3, 2)), np.array([-1, -1, 0]), ("ann",)), source="mine")
