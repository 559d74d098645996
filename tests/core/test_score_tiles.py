import jax.numpy as jnp
import numpy as np

from jaxface.core import score_tiles
from jaxface.core.score_tiles import Rows


def inner(params, a, b):
    return params * a @ b.T


def rows(x, ids, images=None):
    numbers = None if images is None else jnp.asarray(images, jnp.int32)
    return Rows(jnp.asarray(x), jnp.asarray(ids, jnp.int32), numbers)


X = np.arange(1.0, 5.0)[:, None]
IDS = [0, 0, 1, -1]  # the last row is padding
DIAGONAL = np.array([[0, 0], [0, 1], [1, 1]], np.int32)


def test_the_range_is_that_of_the_genuine_pairs_that_count():
    side = rows(X, IDS)
    low, high, is_number = score_tiles.genuine_range(
        inner, jnp.asarray(1.0), side, side, DIAGONAL, block_size=2, once=False
    )
    assert (float(low), float(high), bool(is_number)) == (1.0, 9.0, True)  # rows with themselves too
    low, high, _ = score_tiles.genuine_range(inner, jnp.asarray(1.0), side, side, DIAGONAL, block_size=2, once=True)
    assert (float(low), float(high)) == (2.0, 2.0)


def test_padding_and_pairs_of_one_image_are_not_counted():
    left, right = rows(X, IDS, [0, 1, 2, -1]), rows(X, IDS, [0, 1, 2, -1])
    pairs = np.array([[i, j] for i in range(2) for j in range(2)] + [[-1, -1]], np.int32)  # the last pair is padding
    counts = score_tiles.tile_counts(
        inner, jnp.asarray(1.0), left, right, pairs, jnp.asarray([0.0, 8.0]), num_bins=4, block_size=2, once=False
    )
    impostor, genuine = np.asarray(counts)
    assert genuine.tolist() == [0, 0, 2, 0, 0, 0]  # 1 x 2, twice
    assert impostor.tolist() == [0, 0, 2, 0, 2, 0]  # 1 x 3 and 2 x 3, twice each


def test_a_score_that_is_no_number_is_seen_where_it_counts():
    x = np.array([[1.0], [np.nan], [2.0], [np.nan]])
    for ids, expected in (([0, 0, 1, -1], False), ([0, -1, 1, -1], True)):
        side = rows(x, ids)
        found = score_tiles.genuine_range(inner, jnp.asarray(1.0), side, side, DIAGONAL, block_size=2, once=False)
        assert bool(found[2]) is expected
