import jax
import jax.numpy as jnp
import numpy as np

from jaxface.linalg import krylov
from tests.tolerances import assert_close, projector


def with_spectrum(rng, values):
    q = np.linalg.qr(rng.normal(size=(len(values), len(values))))[0]
    return jnp.asarray((q * values) @ q.T)


def test_conjugate_gradients_solve_and_count(rng):
    a, b = with_spectrum(rng, np.linspace(1, 10, 12)), rng.normal(size=12)
    found = krylov.conjugate_gradient(lambda v: a @ v, jnp.asarray(b), tol=1e-12, num_iters=50)
    assert_close(found.x, np.linalg.solve(a, b), factor=10)
    assert bool(found.is_converged)
    assert 5 < int(found.num_iters) <= 14


def test_ends_at_the_residual_asked_for(rng):
    a, b = with_spectrum(rng, np.geomspace(1, 1e4, 40)), rng.normal(size=40)
    found = krylov.conjugate_gradient(lambda v: a @ v, jnp.asarray(b), tol=1e-3, num_iters=200)
    left = np.linalg.norm(a @ found.x - b) / np.linalg.norm(b)
    before = krylov.conjugate_gradient(lambda v: a @ v, jnp.asarray(b), tol=0.0, num_iters=int(found.num_iters) - 1)
    assert left <= 1e-3 < np.linalg.norm(a @ before.x - b) / np.linalg.norm(b)


def test_two_eigenvalues_take_two_steps(rng):
    a, b = with_spectrum(rng, np.repeat([1.0, 7.0], 5)), rng.normal(size=10)
    found = krylov.conjugate_gradient(lambda v: a @ v, jnp.asarray(b), tol=1e-10, num_iters=50)
    assert int(found.num_iters) == 2


def test_too_few_steps_are_reported(rng):
    a, b = with_spectrum(rng, np.geomspace(1, 1e6, 12)), rng.normal(size=12)
    found = krylov.conjugate_gradient(lambda v: a @ v, jnp.asarray(b), tol=1e-12, num_iters=3)
    assert not bool(found.is_converged)
    assert int(found.num_iters) == 3


def test_nothing_to_solve_and_a_singular_operator_stay_finite():
    zero = krylov.conjugate_gradient(lambda v: 2 * v, jnp.zeros(3), tol=1e-8, num_iters=9)
    assert_close((zero.x, zero.is_converged), (np.zeros(3), np.True_))
    singular = krylov.conjugate_gradient(lambda v: 0 * v, jnp.ones(3), tol=1e-8, num_iters=9)
    assert np.isfinite(singular.x).all()
    assert not bool(singular.is_converged)


def test_spectral_range_is_exact_after_d_steps_and_inside_before(rng):
    values = np.geomspace(1, 50, 20)
    a = with_spectrum(rng, values)
    start = jnp.asarray(rng.normal(size=20))
    found = krylov.spectral_range(lambda v: a @ v, start, num_steps=99)
    np.testing.assert_allclose(found, (values[0], values[-1]), rtol=1e-3)
    least, largest = krylov.spectral_range(lambda v: a @ v, start, num_steps=6)
    assert values[0] < least < largest < values[-1]


def test_a_multiple_of_the_identity_has_one_eigenvalue():
    for start in (jnp.ones(8), jnp.arange(1.0, 9.0)):
        found = krylov.spectral_range(lambda v: 3.0 * v, start, num_steps=8)
        np.testing.assert_allclose(found, 3.0, rtol=1e-12)


def test_an_early_end_is_not_an_eigenvalue_zero():
    found = krylov.spectral_range(lambda v: jnp.asarray([2.0, 5.0, 9.0]) * v, jnp.asarray([0.0, 1.0, 0.0]), num_steps=3)
    np.testing.assert_allclose(found, 5.0, rtol=1e-12)


def test_the_range_has_no_gradient():
    gradient = jax.grad(lambda s: krylov.spectral_range(lambda v: s * v, jnp.ones(4), num_steps=4)[1])(2.0)
    assert float(gradient) == 0


def test_the_unit_of_b_does_not_matter_in_float32(rng):
    """Squares of 1e-25 and of 1e25 are out of range there."""
    a, b = with_spectrum(rng, np.linspace(1, 10, 12)).astype(jnp.float32), rng.normal(size=12)
    plain = krylov.conjugate_gradient(lambda v: a @ v, jnp.asarray(b, jnp.float32), tol=1e-6, num_iters=50)
    for unit in (2.0**-85, 2.0**85):
        found = krylov.conjugate_gradient(lambda v: a @ v, jnp.asarray(unit * b, jnp.float32), tol=1e-6, num_iters=50)
        assert int(found.num_iters) == int(plain.num_iters) > 5
        np.testing.assert_allclose(found.x / unit, plain.x, rtol=1e-5)
        assert bool(found.is_converged)
    assert not np.asarray(krylov.conjugate_gradient(lambda v: a @ v, jnp.zeros(12), tol=1e-6, num_iters=5).x).any()


def test_the_leading_eigenvector_is_right_to_rounding(rng):
    a = with_spectrum(rng, np.linspace(1, 10, 30))
    expected = np.linalg.eigh(a)[1][:, -1]
    start = jnp.asarray(rng.normal(size=30))
    vector = krylov.leading_eigenvector(lambda v: a @ v, start, num_restarts=200)
    assert_close(abs(vector @ expected), 1.0)
    few = krylov.leading_eigenvector(lambda v: a @ v, start, num_restarts=1)
    assert abs(few @ expected) < 1 - 1e-9
    assert not np.asarray(krylov.leading_eigenvector(lambda v: a @ v, 0 * start, num_restarts=9)).any()


def test_an_invariant_start_stays_where_it_is():
    vector = krylov.leading_eigenvector(lambda v: 3.0 * v, jnp.arange(1.0, 5.0), num_restarts=9)
    assert_close(vector, np.arange(1.0, 5.0) / np.sqrt(30))


def test_leading_subspace_is_that_of_the_singular_vectors(rng):
    a = jnp.asarray(rng.normal(size=(20, 3)) @ np.diag([9.0, 5.0, 2.0]) @ rng.normal(size=(3, 8)))
    directions = krylov.leading_subspace(
        lambda v: a @ v, lambda u: a.T @ u, jnp.asarray(rng.normal(size=(8, 3))), num_passes=2
    )
    assert_close(projector(directions), np.linalg.pinv(a) @ a, factor=10)


def test_the_norm_of_an_operator_is_estimated(rng):
    sizes = [
        float(krylov.frobenius_norm(lambda v, a=a: a @ v, 40, dtype=jnp.float64)) / np.linalg.norm(a)
        for a in rng.normal(size=(20, 30, 40))
    ]
    assert 0.8 < np.mean(sizes) < 1.2
    assert 0.5 < min(sizes) < max(sizes) < 2
    assert float(krylov.frobenius_norm(lambda v: 0 * v, 40, dtype=jnp.float32)) == 0
