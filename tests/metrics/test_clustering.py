import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import given
from sklearn.metrics.cluster import contingency_matrix

from jaxface.metrics import clustering as cl
from tests.tolerances import assert_close

CLASSES = ["a", "a", "a", "b", "b", "c"]
CLUSTERS = [0, 0, 1, 1, 1, -1]

labels = st.lists(st.tuples(st.sampled_from("abcd"), st.integers(-1, 3)), min_size=1, max_size=20)


def test_majority_forms_by_hand():
    assert cl.purity(CLASSES, CLUSTERS) == pytest.approx((2 + 2 + 1) / 6)
    assert cl.cluster_accuracy(CLASSES, CLUSTERS) == pytest.approx((2 + 2 + 1) / 6)
    # One cluster for all: every class is in one cluster, and half the samples are of the largest class.
    assert cl.purity(CLASSES, [0] * 6) == pytest.approx(3 / 6)
    assert cl.cluster_accuracy(CLASSES, [0] * 6) == 1.0
    assert cl.purity(CLASSES, range(6)) == 1.0
    assert cl.cluster_accuracy(CLASSES, range(6)) == pytest.approx(3 / 6)


@given(labels)
def test_against_the_dense_table_of_scikit_learn(pairs):
    classes, clusters = [c for c, _ in pairs], [k for _, k in pairs]
    dense = contingency_matrix(classes, clusters)
    assert_close(cl.purity(classes, clusters), dense.max(axis=0).sum() / len(pairs))
    assert_close(cl.cluster_accuracy(classes, clusters), dense.max(axis=1).sum() / len(pairs))


def by_sample(classes, clusters):
    """Every sample looks at the samples of its own cluster and of its own class."""
    same_class, same_cluster = (np.array(x)[:, None] == np.array(x)[None, :] for x in (classes, clusters))
    both = (same_class & same_cluster).sum(axis=1)
    return (both / same_cluster.sum(axis=1)).mean(), (both / same_class.sum(axis=1)).mean()


@given(labels)
def test_precision_and_recall_by_sample_and_by_pair(pairs):
    classes, clusters = [c for c, _ in pairs], [k for _, k in pairs]
    assert_close(tuple(cl.bcubed(classes, clusters)), by_sample(classes, clusters))
    first, second = np.triu_indices(len(pairs), 1)
    same_class, same_cluster = (np.array(x)[first] == np.array(x)[second] for x in (classes, clusters))
    both = (same_class & same_cluster).sum()
    found = cl.pairwise(classes, clusters)
    assert found.precision == (both / same_cluster.sum() if same_cluster.any() else 1)
    assert found.recall == (both / same_class.sum() if same_class.any() else 1)
    either = same_class.sum() + same_cluster.sum()
    assert found.f == pytest.approx(2 * both / either if either else 1)


def test_precision_and_recall_by_hand():
    classes, clusters = [0, 0, 0, 1, 1, 2], [0, 0, 1, 1, 1, 2]
    assert (*cl.bcubed(classes, clusters), cl.bcubed(classes, clusters).f) == pytest.approx([7 / 9] * 3)
    assert (*cl.pairwise(classes, clusters), cl.pairwise(classes, clusters).f) == pytest.approx([1 / 2] * 3)
    assert cl.bcubed(classes, range(6)) == pytest.approx((1, 3 / 6))
    assert cl.bcubed(classes, [7] * 6) == pytest.approx(((9 + 4 + 1) / 36, 1))
    assert cl.pairwise(classes, range(6)) == (1, 0)
    assert cl.pairwise(classes, range(6)).f == 0
    assert cl.pairwise(["x"], ["y"]) == cl.bcubed(["x"], ["y"]) == (1, 1)


@given(labels)
def test_swapping_the_arguments_swaps_the_measures_and_names_do_not_matter(pairs):
    classes, clusters = [c for c, _ in pairs], [k for _, k in pairs]
    assert cl.purity(classes, clusters) == cl.cluster_accuracy(clusters, classes)
    renamed = [f"cluster {9 - k}" for k in clusters]
    assert cl.purity(classes, renamed) == cl.purity(classes, clusters)
    for measure in (cl.bcubed, cl.pairwise):
        assert measure(classes, clusters)[::-1] == pytest.approx(measure(clusters, classes))


def test_many_singletons_need_no_dense_table():
    n = 100_000
    assert cl.purity(np.arange(n), np.arange(n)[::-1]) == 1.0
    assert cl.cluster_accuracy(np.arange(n), np.zeros(n)) == 1.0
    assert cl.bcubed(np.arange(n), np.arange(n)[::-1]) == pytest.approx((1, 1))
    assert cl.pairwise(np.arange(n), np.zeros(n)) == (0, 1)


def test_what_clustering_refuses():
    with pytest.raises(ValueError, match=r"clusters must have shape \[n\] with n = 2"):
        cl.purity([0, 1], [0])
    with pytest.raises(ValueError, match="the number of samples must be at least 1"):
        cl.purity([], [])
    with pytest.raises(ValueError, match=r"clusters must have shape \[n\] with n = 2"):
        cl.bcubed([0, 1], [0])
