import numpy as np

from jaxface.subspace import grouping
from tests.reference import subspace_reference as reference
from tests.subspace import draws
from tests.tolerances import projector


def test_contrasts_span_the_scatters(rng):
    x, groups = draws.grouped(rng)
    inner, outer = grouping.contrasts(x, groups, num_groups=5)
    assert inner.shape == (7, 40)
    assert outer.shape == (4, 40)
    within, _, total = reference.scatters(x, groups)
    for rows, scatter in [(inner, within), (np.concatenate([inner, outer]), total)]:
        span = np.linalg.qr(np.asarray(rows).T)[0]
        expected = reference.eigenvectors(scatter, is_zero=False, scale=np.trace(scatter))
        assert span.shape == expected.shape
        np.testing.assert_allclose(projector(span), projector(expected), atol=1e-10)


def test_equal_rows_have_a_difference_of_zero(rng):
    x = np.repeat(rng.normal(size=(3, 4)), 2, axis=0)
    inner, _ = grouping.contrasts(x, np.repeat(np.arange(3), 2), num_groups=3)
    np.testing.assert_array_equal(inner, np.zeros((3, 4)))


def test_is_complete():
    assert bool(grouping.is_complete(np.array([2, 0, 1, 1]), num_groups=3))
    assert not bool(grouping.is_complete(np.array([2, 0, 2, 2]), num_groups=3))
