import numpy as np

from jaxface.linalg import scatter
from tests.tolerances import assert_close


def test_factors_give_the_scatters_of_the_definition(rng):
    labels = np.array([2, 0, 2, 2, 0, 4, 4, 1], np.int32)  # class 3 is empty, class 1 has one sample
    x = rng.normal(size=(8, 3)) + 100
    within, between = np.zeros((3, 3)), np.zeros((3, 3))
    for c in np.unique(labels):
        members = x[labels == c]
        for row in members:
            within += np.outer(row - members.mean(0), row - members.mean(0))
        between += len(members) * np.outer(members.mean(0) - x.mean(0), members.mean(0) - x.mean(0))
    found_within = scatter.matrix(scatter.within_factor(x, labels, num_classes=5))
    found_between = scatter.matrix(scatter.between_factor(x, labels, num_classes=5))
    assert_close(found_within, within, factor=100)
    assert_close(found_between, between, factor=100)
    assert_close(found_within + found_between, scatter.matrix(scatter.total_factor(x)), factor=100)
