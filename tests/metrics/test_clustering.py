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


@given(labels)
def test_swapping_the_arguments_swaps_the_measures_and_names_do_not_matter(pairs):
    classes, clusters = [c for c, _ in pairs], [k for _, k in pairs]
    assert cl.purity(classes, clusters) == cl.cluster_accuracy(clusters, classes)
    renamed = [f"cluster {9 - k}" for k in clusters]
    assert cl.purity(classes, renamed) == cl.purity(classes, clusters)


def test_many_singletons_need_no_dense_table():
    n = 100_000
    assert cl.purity(np.arange(n), np.arange(n)[::-1]) == 1.0
    assert cl.cluster_accuracy(np.arange(n), np.zeros(n)) == 1.0


def test_what_clustering_refuses():
    with pytest.raises(ValueError, match=r"clusters must have shape \[n\] with n = 2"):
        cl.purity([0, 1], [0])
    with pytest.raises(ValueError, match="the number of samples must be at least 1"):
        cl.purity([], [])
