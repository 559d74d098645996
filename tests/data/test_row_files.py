"""Rows by number are those of the array, and leave no pages in the process."""

import numpy as np
import pytest

from jaxface.data import row_files, stream


@pytest.mark.parametrize("dtype", ["<f4", ">f4", "<f2", "u1"])
def test_rows_by_number_and_ranges(tmp_path, rng, dtype):
    x = (100 * rng.random((40, 3, 2))).astype(dtype)
    np.save(tmp_path / "x.npy", x)
    file = row_files.behind(np.load(tmp_path / "x.npy", mmap_mode="r"))
    for index in ([5], [3, 4, 5, 20], [20, 4, 5, 3, 4, 39, 0], []):
        found = file.read(np.array(index, int))
        np.testing.assert_array_equal(found, x[index])
        assert found.dtype.isnative
    np.testing.assert_array_equal(file.read_range(7, 12), x[7:12])
    assert file.read_range(7, 7).shape == (0, 3, 2)
    source = stream.from_npy(tmp_path / "x.npy")
    np.testing.assert_array_equal(source.read(np.array([9, 2])), x[[9, 2]])
    for index in ([40], [-1]):
        with pytest.raises(IndexError, match=r"must be in \[0, 40\)"):
            file.read(np.array(index))
    with (tmp_path / "x.npy").open("r+b") as stored:
        stored.truncate(200)
    with pytest.raises(ValueError, match=r"x\.npy ends before row 40"):
        file.read(np.array([39]))


def test_what_is_no_map_of_a_whole_array_has_no_file(tmp_path):
    np.save(tmp_path / "x.npy", np.zeros((6, 4)))
    whole = np.load(tmp_path / "x.npy", mmap_mode="r")
    assert row_files.behind(whole) is not None
    for other in (whole[1:], whole[:, :2], np.zeros((6, 4))):
        assert row_files.behind(other) is None
