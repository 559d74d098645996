import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxface import hallucination
from jaxface.core.fitinfo import Status
from jaxface.hallucination import kernel as by_kernel
from jaxface.hallucination import linear
from jaxface.linalg import gram
from tests.hallucination.fits import (
    KEY,
    MASK,
    dense,
    mean_square,
)
from tests.sparse import draws
from tests.tolerances import assert_close


def test_a_ridge_below_the_rounding_says_so(rng):
    x = np.repeat(rng.random((8, 30)).astype(np.float32), 5, axis=0)  # 15 visible pixels of 8 faces
    for fit in (functools.partial(by_kernel.fit_kernel_ridge, gram.linear()), linear.fit_ridge):
        _, info = fit(x, MASK, ridge=1e-9)
        assert int(info.status) == Status.NOT_PSD


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize(
    "fit", [linear.fit_ridge, functools.partial(by_kernel.fit_kernel_ridge, gram.linear())], ids=["linear", "kernel"]
)
def test_as_many_faces_as_pixels_need_a_ridge(fit, dtype):
    """About their mean, 15 faces of 15 visible pixels have rank 14; 40 draws, for the rounding of each is another."""
    for seed in range(40):
        x = np.random.default_rng(seed).random((15, 30)).astype(dtype)
        _, info = fit(x, MASK, ridge=1e-2 * np.finfo(dtype).eps)
        assert int(info.status) == Status.NOT_PSD
        assert int(fit(x, MASK, ridge=1e3 * np.finfo(dtype).eps)[1].status) == Status.OK


def inner(x, y):
    return x @ y.T


def test_a_plain_function_is_a_kernel(rng):
    x = draws.faces(rng)
    plain, _ = by_kernel.fit_kernel_ridge(inner, x, MASK, ridge=0.1)
    known, _ = by_kernel.fit_kernel_ridge(gram.linear(), x, MASK, ridge=0.1)
    assert_close(plain.coefficients, known.coefficients, factor=100)


def test_a_weight_of_zero_leaves_the_others_their_gradient(rng):
    x = draws.faces(rng)
    weights = jnp.ones(len(x)).at[3].set(0.0)

    def total(weights):
        return by_kernel.fit_kernel_ridge(gram.linear(), x, MASK, ridge=0.1, sample_weights=weights)[0].coefficients[
            1, 2
        ]

    found, step = jax.grad(total)(weights), 1e-5
    assert np.isfinite(found).all()
    move = jnp.zeros(len(x)).at[7].set(step)
    np.testing.assert_allclose(found[7], (total(weights + move) - total(weights - move)) / (2 * step), rtol=1e-4)


def test_kernel_ridge_is_the_minimum_in_feature_space(rng):
    """`sum w |y - f(v)|^2 + r |f|^2` with `f = sum a_i k(v_i, .)`: its gradient in a vanishes."""
    x = draws.faces(rng, n=15)
    weights = rng.uniform(0.5, 2, size=15)
    kernel = gram.gaussian(bandwidth=1.0)
    model, _ = by_kernel.fit_kernel_ridge(kernel, x, MASK, ridge=0.05, sample_weights=weights)
    centered = x - x.mean(axis=0)
    k = np.asarray(kernel(centered[:, MASK], centered[:, MASK]))
    w = np.diag(weights / weights.mean())
    a = np.asarray(model.coefficients)
    assert_close(k @ w @ (centered - k @ a), 0.05 * k @ a, factor=100)
    expected = x.mean(axis=0) + np.asarray(kernel(centered[:1, MASK], centered[:, MASK]))[0] @ a
    assert_close(hallucination.reconstruct(model, x[0][MASK]), expected, factor=100)


def test_a_weight_of_zero_leaves_a_face_out(rng):
    x = draws.faces(rng, n=15)
    x[0] = 1 - x[1]
    weights = np.ones(15)
    weights[0] = 0
    kernel = gram.gaussian(bandwidth=1.0)
    model, _ = by_kernel.fit_kernel_ridge(kernel, x, MASK, ridge=0.05, sample_weights=weights)
    assert not np.asarray(model.coefficients[0]).any()


def test_fastfood_ridge_is_ridge_on_its_features(rng):
    x = draws.faces(rng)
    weights = rng.uniform(0.5, 2, size=40)
    model, _ = by_kernel.fit_fastfood_ridge(
        KEY, x, MASK, num_features=24, bandwidth=1.0, ridge=0.05, sample_weights=weights
    )
    mean = x.mean(axis=0)
    angles = (x - mean)[:, MASK] @ dense(model.features).T
    z = np.concatenate([np.cos(angles), np.sin(angles)], axis=1) / np.sqrt(24)  # (10)-(13)
    w = (weights / weights.mean())[:, None]
    expected = np.linalg.solve(z.T @ (w * z) + 0.05 * np.eye(48), z.T @ (w * (x - mean)))
    assert_close(model.coefficients, expected, factor=1e3)


def test_fastfood_ridge_comes_near_the_exact_kernel(rng):
    faces = draws.faces(rng)
    train, test = faces[:32], faces[32:]
    exact, _ = by_kernel.fit_kernel_ridge(gram.gaussian(bandwidth=1.0), train, MASK, ridge=0.1)
    wanted = hallucination.reconstruct_matrix(exact, test[:, MASK])
    distances = []
    for num_features in (16, 1024):
        model, _ = by_kernel.fit_fastfood_ridge(KEY, train, MASK, num_features=num_features, bandwidth=1.0, ridge=0.1)
        distances.append(np.sqrt(mean_square(hallucination.reconstruct_matrix(model, test[:, MASK]), wanted)))
    assert distances[1] < 0.3 * distances[0]
    assert distances[1] < 0.2 * np.sqrt(mean_square(wanted, test.mean(axis=0)[None, :]))
