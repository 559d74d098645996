"""Sweeps of moves, and the bookkeeping of rises."""

import numpy as np

from jaxface.cluster import ascent, gains, partition_priors
from jaxface.cluster.ascent import Best, Steps


def test_labels_follow_first_items():
    np.testing.assert_array_equal(ascent.by_first_items(np.array([7, 2, 7, 5, 2])), [0, 1, 0, 2, 1])


def test_rises_add_what_the_number_of_clusters_says():
    """Pitman-Yor: three merges among seven clusters, one after the other."""
    prior = partition_priors.pitman_yor(2.0, discount=0.5)
    expected = -sum(np.log(2.0 + 0.5 * (number - 1)) for number in (7, 6, 5))
    assert np.isclose(ascent.of_numbers(prior, 7, 3), expected)
    assert np.isclose(ascent.rise_of_merges(prior, np.array([1.0, 2.0, 4.0], np.float32), 7), 7 + expected)


def test_a_sweep_takes_the_largest_rise_and_no_cluster_twice():
    labels, prior = np.array([0, 0, 1, 1, 2]), partition_priors.threshold(1.0)
    # Items 0 and 3 want to leave for cluster 2; item 1 wants to be alone; the others are where they should be.
    moves = Best(
        best=np.array([2, 1, 0, 2, 0]),
        value=np.array([9.0, -5.0, -5.0, 8.0, -np.inf]),
        stay=np.array([3.0, -2.0, 3.0, 3.0, 0.0]),
    )
    raw, gained = ascent.sweep(prior, labels, moves, np.float64)
    np.testing.assert_array_equal(raw, [2, 0, 1, 1, 2])
    assert gained == 9.0 - 3.0  # of joining instead of staying; clusters 0 and 2 are then touched
    alone, gained = ascent.sweep(prior, labels, moves._replace(value=np.full(5, -np.inf)), np.float64)
    np.testing.assert_array_equal(alone, [0, 3, 1, 1, 2])
    assert gained == 2.0 + 1.0


def test_rounds_and_sweeps_alternate_until_nothing_rises():
    calls = []

    def merge(labels):
        calls.append("merge")
        return Steps(np.array([0, 0, 1]), [2.0]) if len(calls) == 1 else Steps(labels, [])

    def move(labels, sweeps_left):
        calls.append(f"move {sweeps_left}")
        return (Steps(np.array([0, 1, 1]), [1.0]), True) if len(calls) == 2 else (Steps(labels, []), True)

    found, info = ascent.ascend(merge, move, gains.items(np.zeros((3, 1))), num_sweeps=5)
    assert calls == ["merge", "move 5", "merge"]
    assert (found.labels.tolist(), found.num_clusters, found.rise) == ([0, 1, 1], 2, 3.0)
    np.testing.assert_array_equal(info.objective, [0, 2])
