import numpy as np
import scipy.stats

from tests.features import draws
from tests.features.draws import a_map
from tests.tolerances import assert_close


def test_directions_of_orthogonal_blocks_are_orthogonal():
    v = draws.dense(a_map("orthogonal"))
    for block in (v[:6], v[6:12], v[12:18], v[18:]):
        directions = block / np.linalg.norm(block, axis=1)[:, None]
        assert_close(directions @ directions.T, np.eye(len(block)))
    assert np.linalg.norm(v[:6] @ v[6:12].T) > 1


def test_first_columns_of_orthogonal_blocks_are_uniform():
    """QR alone fixes the signs of its diagonal: without the correction the first entry would lean to one side."""
    drawn = draws.many("orthogonal", **draws.SQUARE).frequencies
    for row in range(3):
        for column in range(3):
            assert scipy.stats.kstest(np.asarray(drawn[:, row, column]), "norm").pvalue > 1e-4
