import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.linalg

from jaxface.linalg import nullspace
from tests.tolerances import assert_close, largest_angle, projector


def grouped(rng, num_groups, size, d):
    """Samples `[groups, size, d]` in general position."""
    return rng.normal(size=(num_groups, size, d)) + 3 * rng.normal(size=(num_groups, 1, d))


def factors(x):
    """Differences inside groups and between them; all centred samples; samples centred by group."""
    inner = (x[:, 1:] - x[:, :1]).reshape(-1, x.shape[-1])
    outer = x[1:, 0] - x[0, 0]
    flat = x.reshape(-1, x.shape[-1])
    centered = (x - x.mean(axis=1, keepdims=True)).reshape(-1, x.shape[-1])
    return inner, outer, flat - flat.mean(axis=0), centered


def dense_complement(within, total):
    """Eigenvectors of the d x d scatters in float64: null(S_w) inside range(S_t), straight from the definition."""
    values, vectors = np.linalg.eigh(total.T @ total)
    outside = vectors[:, values > 1e-9 * values.max()]
    values, vectors = np.linalg.eigh(outside.T @ within.T @ within @ outside)
    return outside @ vectors[:, values < 1e-9 * max(values.max(), 1.0)]


def test_the_complement_equals_the_dense_definition(rng):
    x = grouped(rng, 7, 3, 40)
    inner, outer, total, within = factors(x)
    expected = dense_complement(within, total)
    assert expected.shape[1] == 6
    complement = nullspace.qr_complement(inner, outer)
    assert largest_angle(complement.basis, expected) < 1e-10
    assert int(complement.rank) == 6
    assert bool(complement.is_reliable)


@pytest.mark.parametrize("duplicate_of", [(0, 1), (3, 0)])
def test_duplicates_are_reported(rng, duplicate_of):
    x = grouped(rng, 7, 3, 40)
    x[0, 0] = x[duplicate_of]
    inner, outer, _, _ = factors(x)
    assert not bool(nullspace.qr_complement(inner, outer).is_reliable)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_dependent_rows_are_never_reliable(dtype):
    """Five rows in four dimensions. Rounding may leave every pivot of R well above zero."""
    complement = jax.jit(nullspace.qr_complement)
    for seed in range(40):
        rng = np.random.default_rng(seed)
        rows = rng.normal(size=(5, 4)) @ rng.normal(size=(4, 10)) * 10.0 ** rng.uniform(-2, 2, (5, 1))
        assert not bool(complement(*np.split(rows.astype(dtype), [3])).is_reliable)


@pytest.mark.parametrize("condition", [2e2, 3e3, 3e4])
def test_qr_finds_the_rank_in_float32_where_scatter_eigenvalues_fail(rng, condition):
    num_groups, d = 30, 400
    left = np.linalg.qr(rng.normal(size=(59, 59)))[0]
    right = np.linalg.qr(rng.normal(size=(d, 59)))[0]
    differences = (left * np.logspace(0, -np.log10(condition), 59)) @ right.T  # exactly this condition number
    inner, outer = differences[:30], differences[30:]
    found = nullspace.qr_complement(jnp.asarray(inner, jnp.float32), jnp.asarray(outer, jnp.float32))
    assert bool(found.is_reliable)
    assert int(found.rank) == num_groups - 1
    assert largest_angle(found.basis, nullspace.qr_complement(inner, outer).basis) < 1e-7 * condition
    in32 = differences.astype(np.float32)
    spectrum = np.linalg.eigvalsh(in32.T @ in32)
    found_by_scatter = (spectrum > d * np.finfo(np.float32).eps * spectrum.max()).sum()
    assert found_by_scatter < 59


def test_projector_equals_scipy_null_space(rng):
    factor = rng.normal(size=(4, 9))
    factor[3] = factor[0] + factor[1]  # rank 3
    null = scipy.linalg.null_space(factor)
    assert null.shape[1] == 6
    assert_close(nullspace.project_out(factor, np.eye(9)), projector(null))
    x = rng.normal(size=(5, 9))
    assert_close(nullspace.project_out(factor, x), x @ projector(null))


def test_derivative_equals_the_closed_form_where_eigh_is_wrong(rng):
    """A factor with equal singular values and a perturbation that keeps its rank, against finite differences."""
    factor = np.linalg.qr(rng.normal(size=(6, 3)))[0].T
    direction, weights = rng.normal(size=(3, 6)), rng.normal(size=(6, 6))

    def value(t):
        return (weights * nullspace.project_out(factor + t * direction, np.eye(6))).sum()

    numerical = (value(1e-5) - value(-1e-5)) / 2e-5
    assert abs(jax.grad(value)(0.0) - numerical) < 1e-7 * abs(numerical)

    def through_eigh(t):
        g = factor + t * direction
        vectors = jnp.linalg.eigh(g.T @ g)[1][:, :3]
        return (weights * (vectors @ vectors.T)).sum()

    wrong = jax.grad(through_eigh)(0.0)
    assert not abs(wrong - numerical) < 1e-3 * abs(numerical)


def test_second_derivative_of_the_projector(rng):
    factor, direction = rng.normal(size=(3, 6)), rng.normal(size=(3, 6))

    def value(t):
        return nullspace.project_out(factor + t * direction, np.eye(6))[0, 1]

    numerical = (value(1e-4) - 2 * value(0.0) + value(-1e-4)) / 1e-8
    assert abs(jax.grad(jax.grad(value))(0.0) - numerical) < 1e-5 * max(1.0, abs(numerical))


def test_zero_factor_projects_nothing_out(rng):
    x = rng.normal(size=5)
    assert_close(nullspace.project_out(np.zeros((2, 5)), x), x)
