import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from jaxface.core.labels import dense
from jaxface.data import groups, synthetic
from tests.reference import data_reference as reference

labels_of_people = st.lists(st.integers(-1, 5), min_size=1, max_size=40).filter(lambda labels: max(labels) >= 0)


@given(labels_of_people, st.integers(1, 4), st.integers(1, 4), st.integers(0, 10))
@settings(max_examples=150, deadline=None)
def test_random_groups(labels, group_size, min_size, seed):
    labels = np.array(labels)
    counts = np.bincount(labels[labels >= 0])
    min_size = min(min_size, group_size)
    expected = sum(int(n) // group_size + (n % group_size >= min_size) for n in counts)
    rng = np.random.default_rng(seed)
    if expected == 0:
        with pytest.raises(ValueError, match="group_size must be at most"):
            groups.random_groups(labels, group_size=group_size, min_size=min_size, rng=rng)
        return
    draws = groups.random_groups(labels, group_size=group_size, min_size=min_size, rng=rng, num_draws=3)
    assert draws.dtype == np.int32
    assert draws.shape == (3, labels.size)
    for draw in draws:
        assert (draw[labels == -1] == -1).all()
        sizes = np.bincount(draw[draw >= 0])
        assert sizes.size == expected
        assert ((sizes == group_size) | (sizes >= min_size) & (sizes < group_size)).all()
        for group in range(expected):
            assert np.unique(labels[draw == group]).size == 1
        for person in np.unique(labels[labels >= 0]):  # as many rows as possible are used
            n = (labels == person).sum()
            rest = n % group_size
            assert (draw[labels == person] == -1).sum() == (rest if rest < min_size else 0)


def test_two_groups_may_hold_one_person_and_draws_differ(rng):
    labels = np.repeat(["a", "b"], 6)
    draws = groups.random_groups(labels, group_size=3, rng=rng, num_draws=30)
    assert (draws.max(1) == 3).all()
    assert np.unique(draws, axis=0).shape[0] > 10
    together = (draws[:, 0] == draws[:, 1]).mean()  # 2 of the 5 others are in row 0's group
    assert abs(together - 0.4) < 4 * np.sqrt(0.4 * 0.6 / 30)


def test_every_row_is_left_over_equally_often(rng):
    draws = groups.random_groups(np.zeros(7, int), group_size=3, rng=rng, num_draws=3000)
    left = (draws == -1).mean(0)
    np.testing.assert_allclose(left, 1 / 7, atol=4 * np.sqrt(1 / 7 * 6 / 7 / 3000))


def test_draw_i_is_the_same_however_many_there_are():
    labels = np.repeat(np.arange(5), 7)
    few, many = (
        groups.random_groups(labels, group_size=3, rng=np.random.default_rng(3), num_draws=m, num_groups=4)
        for m in (2, 9)
    )
    np.testing.assert_array_equal(few, many[:2])


def test_a_chosen_number_of_groups(rng):
    labels = np.repeat(np.arange(4), 6)
    draws = groups.random_groups(labels, group_size=2, rng=rng, num_draws=50, num_groups=5)
    assert [np.bincount(draw[draw >= 0]).tolist() for draw in draws] == [[2] * 5] * 50
    assert ((draws >= 0).mean(0) > 0.1).all()
    with pytest.raises(ValueError, match=r"num_groups must be at most 12 \(the groups of 2 in these labels\); got 13"):
        groups.random_groups(labels, group_size=2, rng=rng, num_groups=13)


def test_kept_rows_gather_each_draw(rng):
    labels = np.array([0, 0, 0, 1, 1, 1, 1, 1, -1])
    draws = groups.random_groups(labels, group_size=2, rng=rng, num_draws=4)
    rows, ids = groups.kept_rows(draws)
    assert rows.shape == ids.shape == (4, 6)
    for draw, kept, group in zip(draws, rows, ids, strict=True):
        assert kept.tolist() == np.flatnonzero(draw >= 0).tolist()
        assert group.tolist() == draw[draw >= 0].tolist()
    with pytest.raises(ValueError, match="same number of rows each; got from 1 to 2"):
        groups.kept_rows([[0, 0], [0, -1]])


def test_errors_of_random_groups(rng):
    with pytest.raises(ValueError, match="group_size must be at most 2, the most rows of one person; got 3"):
        groups.random_groups(["a", "a", "b"], group_size=3, rng=rng)
    with pytest.raises(ValueError, match=r"min_size must be at most 2 \(group_size\); got 3"):
        groups.random_groups(["a", "a", "b"], group_size=2, min_size=3, rng=rng)


def test_movement_of_landmarks_and_of_vectors():
    points = np.zeros((4, 2, 2))
    points[1, 0] = [3, 4]  # one of two points moves by 5
    points[2] = points[1]
    assert groups.movement(points, [7, 7, 7, 8]).tolist() == [np.inf, 2.5, 0.0, np.inf]
    assert groups.movement(points[:, 0], [7, 7, 7, -1]).tolist() == [np.inf, 5.0, 0.0, np.inf]
    assert groups.movement(points[:, 0], [7, 8, 7, 8]).tolist() == [np.inf, np.inf, 5.0, 5.0]
    assert groups.movement(points[:, 0], [7, 7, 7, 7], frames=[3, 2, 5, 0]).tolist() == [
        5.0,
        np.inf,
        np.inf,
        np.inf,
    ]
    assert groups.movement(np.zeros((0, 2)), np.zeros(0, int)).shape == (0,)


tracked = st.integers(1, 25).flatmap(
    lambda n: st.tuples(
        st.lists(st.integers(-1, 2), min_size=n, max_size=n),
        st.lists(st.integers(0, 4), min_size=n, max_size=n),
        st.permutations(range(2 * n)),
    )
)


@given(tracked, st.integers(1, 3), st.one_of(st.none(), st.integers(3, 4)), st.booleans(), st.booleans())
@settings(max_examples=200, deadline=None)
def test_track_groups_walks_frame_by_frame(sample, min_size, max_size, with_frames, as_landmarks):
    tracks, steps, frames = sample
    x = np.array(steps, float)
    positions = np.stack([np.stack([x, x], 1), np.stack([x, 0 * x], 1)], 1) if as_landmarks else x[:, None]
    times = np.array(frames[: len(tracks)]) // 2 * 2 + np.arange(len(tracks)) % 2 if with_frames else None
    if times is not None and any(
        len({times[i] for i in range(len(tracks)) if tracks[i] == t}) != tracks.count(t) for t in set(tracks) - {-1}
    ):
        return
    found = groups.track_groups(positions, tracks, threshold=1.5, min_size=min_size, max_size=max_size, frames=times)
    expected = reference.track_groups(positions, tracks, 1.5, min_size, max_size, times)
    np.testing.assert_array_equal(found, expected)
    assert found.dtype == np.int32


def test_a_threshold_finds_the_runs_of_drawn_tracks(rng):
    tracks = synthetic.face_tracks(
        rng, num_people=2, tracks_per_person=2, runs_per_track=3, frames_per_run=7, size=(32, 32)
    )
    order = rng.permutation(tracks.tracks.size)  # as a tracker reports them: frame by frame, not track by track
    found = groups.track_groups(
        tracks.landmarks[order], tracks.tracks[order], threshold=2.0, frames=tracks.frames[order]
    )
    np.testing.assert_array_equal(found, tracks.groups[order])


def test_a_run_is_cut_into_pieces(rng):
    still = np.zeros((10, 2))
    assert (
        groups.track_groups(still, np.zeros(10, int), threshold=0.0, max_size=4).tolist() == [0] * 4 + [1] * 4 + [2] * 2
    )
    pieces = groups.track_groups(still, np.zeros(10, int), threshold=0.0, min_size=4, max_size=4)
    assert pieces.tolist() == [0] * 4 + [1] * 4 + [-1] * 2
    assert groups.track_groups(still, np.full(10, -1), threshold=0.0).tolist() == [-1] * 10


def test_errors_of_tracks():
    still = np.zeros((3, 2))
    with pytest.raises(ValueError, match=r"positions must have shape \[n, d\] or \[n, p, 2\]; got shape \(3,\)"):
        groups.movement(np.zeros(3), [0, 0, 0])
    with pytest.raises(ValueError, match="one integer for each of the 3 rows; got dtype int64 and shape"):
        groups.movement(still, [0, 0])
    with pytest.raises(ValueError, match="positions must be finite; 1 of 6 values"):
        groups.movement([[0, 0], [np.nan, 0], [0, 0]], [0, 0, 0])
    with pytest.raises(ValueError, match="track 4 has frame 9 twice"):
        groups.movement(still, [4, 5, 4], frames=[9, 9, 9])
    with pytest.raises(ValueError, match=r"threshold must lie in \[0, inf\]; got -1"):
        groups.track_groups(still, [0, 0, 0], threshold=-1)
    with pytest.raises(ValueError, match=r"max_size must be at least 2 \(min_size\); got 1"):
        groups.track_groups(still, [0, 0, 0], threshold=1.0, max_size=1)


def test_nan_among_positions_or_frames_is_refused(rng):
    positions, tracks = rng.normal(size=(4, 2)), np.zeros(4, int)
    with pytest.raises(ValueError, match="frames must be finite; 1 of 4 values"):
        groups.movement(positions, tracks, frames=[0.0, 1.0, np.nan, 3.0])
    positions[2, 1] = np.nan
    with pytest.raises(ValueError, match="positions must be finite; 1 of 8 values"):
        groups.track_groups(positions, tracks, threshold=1.0)


@pytest.mark.parametrize("labels", [None, 3, "anna", b"anna", {"a": 1}, {"a", "b"}, (x for x in "ab")])
def test_labels_that_are_no_list(labels):
    with pytest.raises(ValueError, match="labels must be a list or an array, one label a row; got"):
        dense(labels)


def test_labels_of_a_device_and_labels_that_are_too_large():
    rows, ids, names = dense(jnp.array([3, -1, 7]))
    assert (rows.tolist(), ids.tolist(), names) == ([0, 2], [0, 1], (3, 7))
    with pytest.raises(ValueError, match="labels must fit into 64 bits; give larger numbers as strings"):
        dense([2**70, 3])
