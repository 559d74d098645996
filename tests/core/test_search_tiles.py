import numpy as np

from jaxface.core import search_tiles
from jaxface.core.search_tiles import GROUP


def test_rows_of_groups_come_once_and_in_order():
    # The group from row 100 is the last of its part; the next part begins at 120.
    groups = np.array([[120, 0, 100], [0, 0, 0]], np.int32)
    rows = np.asarray(search_tiles.rows_of(groups, 150))
    expected = [*range(64), *range(100, 120), *range(120, 150)]
    assert rows[0][rows[0] >= 0].tolist() == expected
    assert rows[1][rows[1] >= 0].tolist() == list(range(64))
    assert rows.shape == (2, 3 * GROUP)


def test_tiles_are_whole_groups():
    assert [search_tiles.tile_rows(n) for n in (1, 64, 65, 5000)] == [64, 64, 128, search_tiles.TILE]


def test_a_few_probes_are_scored_again_together():
    assert search_tiles.probes_at_once(640, 512) == 2**23 // (640 * 512)
    assert search_tiles.probes_at_once(64, 4) == 64
    assert search_tiles.probes_at_once(10**6, 512) == 1
