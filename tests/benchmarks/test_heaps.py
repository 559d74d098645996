"""The command that groups many photos, on few."""

import numpy as np

from benchmarks import heaps


def test_lists_and_the_matrix_find_the_same_groups(capsys):
    by_lists, by_matrix = heaps.run(40, 8, 39, with_matrix=True)
    np.testing.assert_array_equal(by_lists.labels, by_matrix.labels)
    printed = capsys.readouterr().out.splitlines()
    assert [line.split(":")[0] for line in printed[:3]] == ["lists", "groups by lists", "groups by the matrix"]
    assert printed[3] == printed[4]
