"""Round trips, what clipping and folding do, what the report says, and gradients of the implicit solution."""

import dataclasses
import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxface.core.fitinfo import Status
from jaxface.features import (
    MAPS,
    choose_bandwidth,
    dekernelize,
    fastfood,
    forms,
    invert,
    invert_matrix,
    kitchen_sinks,
    maps,
)
from tests.features import draws
from tests.features.draws import KINDS, a_map
from tests.tolerances import assert_close

LINEAR = {"least_squares": dekernelize.least_squares, "conjugate_gradient": dekernelize.conjugate_gradient}
METHODS = LINEAR | {"gauss_newton": dekernelize.gauss_newton}
FEW_STEPS = functools.partial(dekernelize.conjugate_gradient, num_iters=2)
SHORT_DESCENT = functools.partial(dekernelize.gauss_newton, num_iters=1)


def mapped(kind, x, *, num_features, quantile, form=forms.sin, init=None):
    """A map whose bandwidth keeps the share `quantile` of the rows of x in range, and their features."""
    init = MAPS[kind] if init is None else init
    settings = {"init": init, "num_features": num_features, "quantile": quantile, "form": form}
    bandwidth = choose_bandwidth(jax.random.key(0), x, **settings)
    params = init(
        jax.random.key(0), input_dim=x.shape[1], num_features=num_features, bandwidth=bandwidth, dtype=x.dtype
    )
    return params, maps.feature_matrix(params, x, form=form)


def relative_error(found, x):
    return (np.linalg.norm(found - x, axis=1) / np.linalg.norm(x, axis=1)).max()


OTHER_FORMS = [("fastfood", forms.cos_sin), ("fastfood", forms.complex)]  # a form works on V x, whatever drew V


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize(("kind", "form"), [*((kind, forms.sin) for kind in KINDS), *OTHER_FORMS])
def test_exact_in_range(kind, form, method, rng):
    x = rng.normal(size=(5, 6))
    params, z = mapped(kind, x, num_features=24, quantile=1.0, form=form)
    found, validity = invert_matrix(params, z, form=form, method=METHODS[method])
    assert relative_error(found, x) < (1e-6 if form is forms.sin else 1e-9)
    assert (validity.status == Status.OK).all()
    for share in (validity.share_clipped, validity.share_out_of_range):
        np.testing.assert_array_equal(share, 0)
    assert validity.residual.max() < 1e-7


def test_full_size_in_float32(rng):
    """d = 1024: 1e-6 in range, and 1e-6 by Gauss-Newton with a tenth of the entries folded, where (20) is far off."""
    x = rng.normal(size=(4, 1024)).astype(np.float32)
    for quantile, methods in ((1.0, METHODS), (0.9, METHODS)):
        params, z = mapped("fastfood", x, num_features=5 * 1024, quantile=quantile, init=draws.first_blocks)
        sizes = draws.angles(params, x)
        for name, method in methods.items():
            found, validity = invert_matrix(params, z, form=forms.sin, method=method)
            if quantile == 1.0 or name == "gauss_newton":
                assert relative_error(found, x) < 1e-6, name
                assert validity.residual.max() < 1e-6
                assert (validity.status == Status.OK).all()
            else:
                assert relative_error(found, x) > 0.1
                assert validity.residual.min() > 0.1
            if name == "gauss_newton":
                # The bandwidth puts one entry at the very end of the range; an entry as near as that may count or not.
                assert_close(validity.share_out_of_range, (sizes > np.pi / 2 + 5e-4).mean(axis=1), factor=1e3)
    # The bandwidth does not change the conditioning: once is enough.
    spectrum = np.linalg.eigvalsh(np.asarray(maps.gram_matrix(params), float))
    np.testing.assert_allclose(validity.conditioning, spectrum[-1] / spectrum[0], rtol=0.1)


def test_pairs_double_the_range(rng):
    """At |x| = 0.75 sigma the sine is folded and the angle of a pair is not."""
    x = rng.normal(size=(4, 32))
    x *= 0.75 / np.linalg.norm(x, axis=1)[:, None]
    params = a_map("fastfood", input_dim=32, num_features=320, bandwidth=1.0)
    for form, low, high in ((forms.sin, 0.02, 0.2), (forms.cos_sin, 0, 1e-9)):
        found, _ = invert_matrix(params, maps.feature_matrix(params, x, form=form), form=form)
        assert low <= relative_error(found, x) < high


def test_gauss_newton_mends_what_clipping_cannot(rng):
    x = rng.normal(size=(4, 32))
    params, z = mapped("fastfood", x, num_features=320, quantile=0.9)
    linear, _ = invert_matrix(params, z, form=forms.sin)
    found, validity = invert_matrix(params, z, form=forms.sin, method=dekernelize.gauss_newton)
    assert relative_error(linear, x) > 0.1
    assert relative_error(found, x) < 1e-9
    expected = (draws.angles(params, x) > np.pi / 2 + 1e-6).mean(axis=1)
    assert_close(validity.share_out_of_range, expected)
    assert validity.share_out_of_range.mean() > 0.05


def test_gauss_newton_never_ends_above_its_start(rng):
    z = rng.uniform(-1, 1, size=(4, 320)) / 320**0.5
    params = a_map("fastfood", input_dim=32, num_features=320, bandwidth=1.0)
    _, linear = invert_matrix(params, z, form=forms.sin)
    _, descended = invert_matrix(params, z, form=forms.sin, method=dekernelize.gauss_newton)
    assert (descended.residual <= linear.residual + 1e-3).all()
    assert descended.residual.mean() < linear.residual.mean()


def test_gauss_newton_ends_at_the_minimum(rng):
    """Noise leaves a residual, beside which the last improvements are rounding; the steps go on all the same."""
    params = a_map("fastfood")
    v = draws.dense(params)
    for _ in range(3):
        z = np.asarray(maps.transform(params, 0.3 * rng.normal(size=6), form=forms.sin))
        z = z * (1 + 0.05 * rng.normal(size=20))
        found, validity = invert(params, z, form=forms.sin, method=dekernelize.gauss_newton)
        sine, cosine = np.sin(v @ found), np.cos(v @ found)
        error = sine - 20**0.5 * z
        newton = np.linalg.solve((v.T * (cosine**2 - sine * error)) @ v, v.T @ (cosine * error))
        assert np.linalg.norm(newton) < 1e-12 * np.linalg.norm(found)
        assert int(validity.status) == Status.OK


def test_a_step_that_does_not_descend_is_undone():
    """From 3 the undamped step on |arctan x|^2 goes to -9.5, the next to 130, and so on."""
    found = dekernelize._damped(
        jnp.arctan, jnp.asarray([3.0]), jnp.asarray(1e-8), tol=1e-9, num_iters=60, num_inner_iters=3
    )
    assert abs(float(found.x[0])) < 1e-6
    assert bool(found.is_converged)


@pytest.mark.parametrize("method", METHODS.values(), ids=METHODS)
def test_features_out_of_range_are_clipped_and_counted(method, rng):
    params = a_map("fastfood")
    z = np.array(maps.transform(params, 0.1 * rng.normal(size=6), form=forms.sin))
    z[[1, 5, 11]] = [5.0, -9.0, 1.0001 / 20**0.5]
    found, validity = invert(params, z, form=forms.sin, method=method)
    assert np.isfinite(found).all()
    assert_close(validity.share_clipped, 3 / 20)
    gradient = jax.grad(lambda z: invert(params, z, form=forms.sin, method=method)[0].sum())(jnp.asarray(z))
    assert np.isfinite(gradient).all()
    if method is not dekernelize.gauss_newton:
        np.testing.assert_array_equal(gradient[np.array([1, 5, 11])], 0)


@pytest.mark.parametrize("method", METHODS.values(), ids=METHODS)
def test_zero_features_give_zero(method):
    found, validity = invert(a_map("fastfood"), np.zeros(20), form=forms.sin, method=method)
    assert_close((found, validity.residual), (np.zeros(6), np.zeros(())))
    assert int(validity.status) == Status.OK


@pytest.mark.parametrize("kind", KINDS)
def test_the_square_inverse(kind, rng):
    x = rng.normal(size=(4, 8))
    params, z = mapped(kind, x, num_features=8, quantile=1.0)
    found, _ = invert_matrix(params, z, form=forms.sin, method=dekernelize.square)
    assert relative_error(found, x) < 1e-5


def test_padding_is_not_solved_for(rng):
    """Noise on the features: known zeros make the error smaller than solving for all D coordinates."""
    x = rng.normal(size=(20, 17))
    params, z = mapped("fastfood", x, num_features=40, quantile=1.0)
    noisy = z + 1e-3 * rng.normal(size=z.shape)
    padded = dataclasses.replace(params, input_dim=32)
    known, _ = invert_matrix(params, noisy, form=forms.sin)
    unknown, _ = invert_matrix(padded, noisy, form=forms.sin)
    assert known.shape == (20, 17)
    assert np.linalg.norm(known - x) < 0.8 * np.linalg.norm(unknown[:, :17] - x)


def test_least_squares_equals_the_dense_solution_off_the_manifold(rng):
    params = a_map("fastfood")
    z = rng.uniform(-1, 1, size=20) / 20**0.5
    expected = np.linalg.lstsq(draws.dense(params), np.arcsin(20**0.5 * z), rcond=None)[0]
    for method in LINEAR.values():
        assert_close(invert(params, z, form=forms.sin, method=method)[0], expected, factor=1e3)


@pytest.mark.parametrize("form", [forms.sin, forms.cos_sin])
@pytest.mark.parametrize("method", METHODS.values(), ids=METHODS)
def test_gradients_are_those_of_the_implicit_solution(method, form, rng):
    """With respect to features off the manifold, so that the residual is not zero, and to S, G and B."""
    params, _ = mapped("fastfood", rng.normal(size=(5, 6)), num_features=20, quantile=1.0)
    z = maps.transform(params, 0.5 * rng.normal(size=6), form=form)
    z = jnp.asarray(z * (1 + 0.05 * rng.normal(size=z.shape)))
    weights = rng.normal(size=6)
    learned = {name: getattr(params, name) for name in ("signs", "gaussian", "scale")}

    @jax.jit
    @functools.partial(jax.value_and_grad, argnums=(0, 1))
    def loss(learned, z):
        return weights @ invert(dataclasses.replace(params, **learned), z, form=form, method=method)[0]

    direction = jax.tree.map(lambda leaf: rng.normal(size=leaf.shape), (learned, z))
    ahead, behind = (
        loss(*jax.tree.map(lambda a, b, s=s: a + s * b, (learned, z), direction))[0] for s in (1e-6, -1e-6)
    )
    gradient = loss(learned, z)[1]
    inner = sum(np.vdot(a, b) for a, b in zip(jax.tree.leaves(gradient), jax.tree.leaves(direction), strict=True))
    assert_close(inner, (ahead - behind) / 2e-6, factor=1e5)


@pytest.mark.parametrize("method", METHODS.values(), ids=METHODS)
def test_rows_in_blocks_are_the_vectors_one_by_one(method, rng):
    x = rng.normal(size=(5, 6))
    params, z = mapped("fastfood", x, num_features=24, quantile=0.95)
    one_by_one = [invert(params, row, form=forms.sin, method=method) for row in z]
    expected = jax.tree.map(lambda *leaves: np.stack(leaves), *one_by_one)
    for block_size in (2, maps.BLOCK_SIZE):
        found = invert_matrix(params, z, form=forms.sin, method=method, block_size=block_size)
        assert_close(found, expected, factor=1e3)


def test_draws_are_vmapped(rng):
    keys, x = jax.random.split(jax.random.key(0), 3), 0.3 * rng.normal(size=6)

    def round_trip(key):
        params = fastfood.init(key, input_dim=6, num_features=20, bandwidth=4.0)
        return invert(params, maps.transform(params, x, form=forms.sin), form=forms.sin)[0]

    assert_close(jax.vmap(round_trip)(keys), np.stack([x] * 3), factor=1e3)


def test_it_is_compiled_once(rng):
    traces = []

    def method(params):
        traces.append(1)
        return dekernelize.least_squares(params)

    for seed in (0, 1):
        params = a_map("fastfood", seed=seed)
        invert(params, maps.transform(params, rng.normal(size=6), form=forms.sin), form=forms.sin, method=method)
    assert len(traces) == 1


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("sigma", [1e6, 1e8])
def test_images_of_sixteen_bits_come_back_in_float32(sigma, method, rng):
    """Bandwidth and vectors grow together, and V'angles becomes as small as they are large."""
    x = rng.normal(size=(3, 20)) * sigma / 10
    params = kitchen_sinks.init(jax.random.key(0), input_dim=20, num_features=160, bandwidth=np.float32(sigma))
    z = maps.feature_matrix(params, x.astype(np.float32), form=forms.sin)
    found, validity = invert_matrix(params, z, form=forms.sin, method=METHODS[method])
    assert relative_error(np.asarray(found, float), x) < 1e-5
    np.testing.assert_array_equal(validity.status, np.full(3, Status.OK))


@pytest.mark.parametrize("scale", [2.0**-100, 2.0**-33, 2.0**66])
@pytest.mark.parametrize("method", METHODS)
def test_the_way_back_has_no_unit(method, scale, rng):
    x = rng.normal(size=(3, 6)).astype(np.float32)
    expected, report = invert_matrix(
        *mapped("fastfood", x, num_features=24, quantile=1.0), form=forms.sin, method=METHODS[method]
    )
    params, z = mapped("fastfood", np.float32(scale) * x, num_features=24, quantile=1.0)
    found, validity = invert_matrix(params, z, form=forms.sin, method=METHODS[method])
    assert_close(found / np.float32(scale), expected, factor=10)
    assert_close(validity.conditioning, report.conditioning)
    np.testing.assert_array_equal(validity.status, report.status)


@pytest.mark.parametrize("method", METHODS)
def test_nan_among_features_is_nan_in_its_own_vector_only(method, rng):
    x = rng.normal(size=(5, 6))
    params, z = mapped("fastfood", x, num_features=24, quantile=1.0)
    lost = z.at[1, 5].set(jnp.nan)
    found, validity = invert_matrix(params, lost, form=forms.sin, method=METHODS[method])
    assert np.isnan(found[1]).all()
    assert int(validity.status[1]) == Status.NON_FINITE
    for share in (validity.share_clipped, validity.share_out_of_range, validity.residual):
        np.testing.assert_array_equal(np.isnan(share), [False, True, False, False, False])
    kept = np.array([0, 2, 3, 4])
    assert_close(found[kept], invert_matrix(params, z, form=forms.sin, method=METHODS[method])[0][kept])
