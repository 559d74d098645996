import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from jaxface.data import splits

ragged = st.lists(st.integers(1, 6), min_size=2, max_size=8)


def shuffled_ids(counts, rng):
    return rng.permutation(np.repeat(np.arange(len(counts)), counts))


@given(ragged, st.data())
@settings(max_examples=80, deadline=None)
def test_identity_disjoint(counts, data):
    rng = np.random.default_rng(data.draw(st.integers(0, 5)))
    ids = shuffled_ids(counts, rng)
    first = data.draw(st.integers(1, len(counts) - 1))
    second = data.draw(st.integers(1, len(counts) - first))
    parts = splits.identity_disjoint(ids, num_people=(first, second), rng=rng, num_splits=4)
    assert parts.dtype == np.int32
    for part in parts:
        of_person = [set(part[ids == person].tolist()) for person in range(len(counts))]
        assert all(len(found) == 1 for found in of_person)
        flat = [found.pop() for found in of_person]
        assert (flat.count(0), flat.count(1)) == (first, second)
        assert flat.count(-1) == len(counts) - first - second


@given(st.lists(st.integers(3, 7), min_size=1, max_size=6), st.integers(1, 2), st.integers(0, 5))
@settings(max_examples=60, deadline=None)
def test_k_shot(counts, num_train, seed):
    rng = np.random.default_rng(seed)
    ids = shuffled_ids(counts, rng)
    parts = splits.k_shot(ids, num_train=num_train, rng=rng, num_splits=3)
    assert set(np.unique(parts)) == {0, 1}
    for part in parts:
        assert np.bincount(ids[part == 0]).tolist() == [num_train] * len(counts)
    train, test = splits.rows_in(parts, 0), splits.rows_in(parts, 1)
    assert train.shape == (3, num_train * len(counts))
    for row in range(3):
        assert sorted([*train[row], *test[row]]) == list(range(ids.size))


def test_k_shot_draws_each_row_equally_often(rng):
    ids = np.repeat(np.arange(3), 5)
    parts = splits.k_shot(ids, num_train=2, rng=rng, num_splits=3000)
    np.testing.assert_allclose((parts == 0).mean(0), 0.4, atol=4 * np.sqrt(0.24 / 3000))


@given(ragged, st.integers(2, 4), st.integers(0, 5))
@settings(max_examples=60, deadline=None)
def test_folds(counts, num_folds, seed):
    rng = np.random.default_rng(seed)
    ids = shuffled_ids(counts, rng)
    num_folds = min(num_folds, len(counts))
    for part in splits.identity_folds(ids, num_folds=num_folds, rng=rng, num_splits=2):
        fold_of = [set(part[ids == person].tolist()) for person in range(len(counts))]
        assert all(len(found) == 1 for found in fold_of)
        sizes = np.bincount([found.pop() for found in fold_of], minlength=num_folds)
        assert sizes.max() - sizes.min() <= 1
    for part in splits.image_folds(ids, num_folds=num_folds, rng=rng, num_splits=2):
        for rows in (part, *(part[ids == person] for person in range(len(counts)))):
            sizes = np.bincount(rows, minlength=num_folds)
            assert sizes.max() - sizes.min() <= 1


@pytest.mark.parametrize(
    "draw",
    [
        lambda ids, rng, m: splits.identity_disjoint(ids, num_people=(2, 1), rng=rng, num_splits=m),
        lambda ids, rng, m: splits.k_shot(ids, num_train=2, rng=rng, num_splits=m),
        lambda ids, rng, m: splits.identity_folds(ids, num_folds=2, rng=rng, num_splits=m),
        lambda ids, rng, m: splits.image_folds(ids, num_folds=3, rng=rng, num_splits=m),
    ],
)
def test_split_i_is_the_same_however_many_there_are_and_splits_differ(draw):
    ids = np.repeat(np.arange(5), 4)
    few, many = draw(ids, np.random.default_rng(1), 3), draw(ids, np.random.default_rng(1), 12)
    np.testing.assert_array_equal(few, many[:3])
    assert np.unique(many, axis=0).shape[0] > 4


def test_rows_in():
    parts = np.array([[0, 1, 2, 0, -1], [2, 0, 0, 1, -1]])
    assert splits.rows_in(parts, 0).tolist() == [[0, 3], [1, 2]]
    assert splits.rows_in(parts, parts.max()).tolist() == [[2], [0]]
    assert splits.rows_in(parts, (1, 2)).tolist() == [[1, 2], [0, 3]]
    with pytest.raises(ValueError, match="same number of rows in part 0; got from 1 to 2"):
        splits.rows_in([[0, 0, 1], [0, 1, 1]], 0)


def test_a_split_of_parts():
    one = splits.of_parts([0, 1, 2, 0, -1], held_out=2)
    assert [rows.tolist() for rows in one] == [[0, 3], [1], [2]]
    assert one.test_to_train == 0.5
    many = splits.of_parts([[0, 1, 2, 2], [2, 0, 1, 2]], train=2, test=(0, 1))
    assert many.train.tolist() == [[2, 3], [0, 3]]
    assert many.test.tolist() == [[0, 1], [1, 2]]
    assert many.held_out.shape == (2, 0)
    assert many.test_to_train == 1.0


def test_few_shot_splits_of_different_sizes_test_the_same_rows():
    ids = np.array([0, 0, 0, 0, 0, 0, 1, 1, 1, 1, 1, 2, 2, 2, 2, 2, 2, 2])
    options = {"most_train": 3, "num_held_out": 1, "seed": 3, "num_splits": 4}
    small, large = (splits.few_shot(ids, num_train=number, **options) for number in (2, 3))
    assert len(small) == 4
    assert len({split.test.tobytes() for split in small}) > 1
    for few, many in zip(small, large, strict=True):
        np.testing.assert_array_equal(few.test, many.test)
        np.testing.assert_array_equal(few.held_out, many.held_out)
        assert set(few.train) < set(many.train)
        assert ids[many.train].tolist() == [0, 0, 0, 1, 1, 1, 2, 2, 2]
        assert ids[few.held_out].tolist() == [0, 1, 2]
        assert sorted(np.concatenate(many)) == list(range(ids.size))
    with pytest.raises(ValueError, match=r"num_train must be at most 3 \(most_train\); got 4"):
        splits.few_shot(ids, num_train=4, **options)


def test_errors(rng):
    ids = np.array([0, 0, 0, 1, 1, 2])
    with pytest.raises(
        ValueError,
        match="num_train = 2 needs 3 rows of each person; 2 of 3 people have fewer, such as id 1 with 2",
    ):
        splits.k_shot(ids, num_train=2, rng=rng)
    with pytest.raises(ValueError, match=r"num_people must be at most 3 \(all people there are; .*\); got 4"):
        splits.identity_disjoint(ids, num_people=(2, 2), rng=rng)
    with pytest.raises(ValueError, match=r"num_people\[1\] must be at least 1; got 0"):
        splits.identity_disjoint(ids, num_people=(2, 0), rng=rng)
    with pytest.raises(ValueError, match=r"num_folds must be at most 3 \(the people there are\); got 4"):
        splits.identity_folds(ids, num_folds=4, rng=rng)
    with pytest.raises(ValueError, match="ids must be dense; id 1 of 0 to 2 does not occur"):
        splits.image_folds([0, 2, 2], num_folds=2, rng=rng)
    with pytest.raises(ValueError, match="ids must be in"):
        splits.image_folds([-1, 0, 0], num_folds=2, rng=rng)
    with pytest.raises(ValueError, match="ids must hold at least one row"):
        splits.image_folds(np.zeros(0, int), num_folds=2, rng=rng)
