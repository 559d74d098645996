"""Kernel RCA: the PCA form on kernel vectors, and Tsang's metric against an inverse formed in explicit features."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxface.core.fitinfo import Status
from jaxface.linalg import gram
from jaxface.subspace import kernel_np_per, kernel_rca, rca, transform
from tests.reference import subspace_reference as reference
from tests.subspace import draws
from tests.tolerances import assert_close

QUADRATIC = gram.polynomial(degree=2, offset=1.5)


@pytest.mark.parametrize("settings", [{"pca_components": 4}, {"ridge": 0.1}])
def test_the_pca_form_is_the_dense_linear_method_on_kernel_vectors(settings, rng):
    x, groups = draws.grouped(rng)
    kernel = gram.gaussian(bandwidth=6.0)
    found, info = kernel_rca.fit(kernel, x, groups, num_groups=5, **settings)
    width = settings.get("pca_components", 11)
    expected = reference.rca(np.asarray(kernel(x, x)), groups, width, settings.get("ridge", 0.0))
    assert_close(found.coefficients @ found.coefficients.T, expected, factor=1000)
    assert int(info.status) == Status.OK
    assert int(info.rank) == min(width, 7)
    assert_close(draws.mapped(found, x).mean(axis=0), np.zeros(width), factor=10)


@pytest.mark.parametrize("ridge", [1.0, 1e-3, 1e-6])
def test_tsangs_metric_is_the_inverse_in_feature_space(ridge, rng):
    """Of any two images, also outside the span of the training images."""
    x, groups = draws.grouped(rng, d=6)
    probes = rng.normal(size=(4, 6))
    metric, info = kernel_rca.fit_metric(QUADRATIC, x, groups, num_groups=5, ridge=ridge)
    assert int(info.status) == Status.OK
    features = reference.quadratic_features(np.concatenate([x, probes]), offset=1.5)
    within = reference.scatters(features[:12], groups)[0]
    assert_close(metric.epsilon, ridge * np.trace(within) / 12**2)
    inverse = reference.tsang(features[:12], groups, float(metric.epsilon))
    expected = reference.squared_distances(features, features, inverse)
    everything = np.concatenate([x, probes])
    assert_close(kernel_rca.squared_distance_matrix(metric, everything, everything), expected, factor=100)
    assert_close(kernel_rca.squared_distance(metric, x[0], probes[1]), expected[0, 13], factor=1000)


def test_coordinates_have_the_metric_on_the_span_and_its_neighbours_beyond(rng):
    x, groups = draws.grouped(rng, d=6)
    probes = rng.normal(size=(4, 6))
    settings = {"num_groups": 5, "ridge": 0.01}
    metric, _ = kernel_rca.fit_metric(QUADRATIC, x, groups, **settings)
    found, info = kernel_rca.fit_ridge(QUADRATIC, x, groups, **settings)
    assert int(info.status) == Status.OK
    z = draws.mapped(found, x)
    assert_close(draws.squared(z), kernel_rca.squared_distance_matrix(metric, x, x), factor=100)
    beyond = np.asarray(kernel_rca.squared_distance_matrix(metric, probes, x)) - draws.squared(
        draws.mapped(found, probes), z
    )
    assert beyond.min() > 0
    assert_close(beyond, np.tile(beyond[:, :1], 12), factor=1000)


def test_the_linear_kernel_is_linear_rca_with_the_same_ridge(rng):
    """The linear fit counts n - 1 axes, the kernel n, so their relative ridges differ by that."""
    x, groups = draws.grouped(rng)
    linear, _ = rca.fit(x, groups, num_groups=5, ridge=0.11)
    kernel, _ = kernel_rca.fit_ridge(gram.linear(), x, groups, num_groups=5, ridge=0.12)
    assert_close(draws.squared(draws.mapped(kernel, x)), draws.squared(draws.mapped(linear, x)), factor=100)


def test_a_vanishing_ridge_leads_to_kernel_np_per(rng):
    x, groups = draws.grouped(rng)
    kernel = gram.gaussian(bandwidth=6.0)
    null, _ = kernel_np_per.fit(kernel, x, groups, num_groups=5, rkhs_orthonormal=True)
    limit = draws.squared(draws.mapped(null, x))
    for ridge in (1e-3, 1e-6, 1e-8):
        metric, _ = kernel_rca.fit_metric(kernel, x, groups, num_groups=5, ridge=ridge)
        scaled = metric.epsilon * kernel_rca.squared_distance_matrix(metric, x, x)
        assert abs(scaled - limit).max() < 10 * ridge * limit.max()


def test_duplicates_fail_where_coordinates_need_an_inverse_and_only_there(rng):
    x, groups = rng.normal(size=(12, 8)), np.repeat(np.arange(4, dtype=np.int32), 3)
    x[3] = x[0]
    kernel = gram.gaussian(bandwidth=3.0)
    found, info = kernel_rca.fit_ridge(kernel, x, groups, num_groups=4, ridge=0.1)
    assert int(info.status) == Status.RANK_DEFICIENT
    assert_close(found.coefficients, np.zeros((12, 12)))
    metric, info = kernel_rca.fit_metric(kernel, x, groups, num_groups=4, ridge=0.1)
    assert int(info.status) == Status.OK
    assert_close(kernel_rca.squared_distance(metric, x[0], x[3]), 0.0)
    assert int(kernel_rca.fit(kernel, x, groups, num_groups=4, pca_components=5)[1].status) == Status.OK


def test_constant_images_are_a_status():
    x, groups = np.ones((6, 3)), np.repeat(np.arange(3, dtype=np.int32), 2)
    _, info = kernel_rca.fit_metric(gram.linear(), x, groups, num_groups=3, ridge=0.1)
    assert int(info.status) == Status.NOT_PSD


def test_a_loss_through_the_coordinates_has_the_right_derivative(rng):
    x, groups = draws.grouped(rng, d=6)
    probe, direction = rng.normal(size=6), rng.normal(size=x.shape)

    def loss(t):
        kernel = gram.Gaussian(bandwidth=4.0 + t)
        found, _ = kernel_rca.fit_ridge(kernel, x + t * direction, groups, num_groups=5, ridge=0.1 + t)
        return (transform(found, probe) ** 2).sum()

    numerical = (loss(1e-5) - loss(-1e-5)) / 2e-5
    assert abs(jax.grad(loss)(0.0) - numerical) < 1e-6 * abs(numerical)


def test_gradient_of_the_pca_form_is_zero_not_wrong(rng):
    x, groups = draws.grouped(rng)

    def outputs(a):
        found, _ = kernel_rca.fit(gram.gaussian(bandwidth=6.0), a, groups, num_groups=5, pca_components=4)
        return transform(found, jnp.ones(40)).sum()

    assert_close(jax.grad(outputs)(x), np.zeros_like(x))


@pytest.mark.parametrize(
    ("fit", "settings", "message"),
    [
        (kernel_rca.fit, {"pca_components": 8}, r"pca_components must be at most 7 .*or give a ridge\); got 8"),
        (kernel_rca.fit, {"pca_components": 12}, r"at most 11 \(12 centred samples of 12 dimensions\)"),
        (kernel_rca.fit_ridge, {"ridge": 0.0}, r"ridge must lie in \(0, inf\); got 0.0"),
        (kernel_rca.fit_metric, {"ridge": -1.0}, r"ridge must lie in \(0, inf\); got -1.0"),
    ],
)
def test_messages(fit, settings, message, rng):
    x, groups = draws.grouped(rng)
    with pytest.raises(ValueError, match=message):
        fit(gram.linear(), x, groups, num_groups=5, **settings)


@pytest.mark.parametrize("fit", [kernel_rca.fit, kernel_rca.fit_ridge, kernel_rca.fit_metric])
def test_every_group_of_one_image(fit, rng):
    with pytest.raises(ValueError, match="groups of one image alone teach nothing"):
        fit(gram.linear(), rng.normal(size=(5, 40)), np.arange(5), num_groups=5, ridge=0.1)
    with pytest.raises(ValueError, match=r"kernel must be one of jaxface\.linalg\.gram, .* got None"):
        fit(None, *draws.grouped(rng), num_groups=5, ridge=0.1)


def test_a_plain_function_is_a_kernel(rng):
    x, groups = draws.grouped(rng)
    plain, _ = kernel_rca.fit_metric(lambda a, b: a @ b.T, x, groups, num_groups=5, ridge=0.1)
    linear, _ = kernel_rca.fit_metric(gram.linear(), x, groups, num_groups=5, ridge=0.1)
    distances = [kernel_rca.squared_distance_matrix(metric, x, x) for metric in (plain, linear)]
    assert_close(*distances)


@pytest.mark.parametrize("fit", [kernel_rca.fit_ridge, kernel_rca.fit_metric])
@pytest.mark.parametrize(("dtype", "ridge"), [(np.float32, 1e-8), (np.float64, 1e-17)])
def test_a_ridge_below_the_rounding_is_a_status(fit, dtype, ridge, rng):
    x, groups = rng.normal(size=(12, 30)).astype(dtype), np.repeat(np.arange(4, dtype=np.int32), 3)
    fitted, info = fit(gram.gaussian(bandwidth=5.0), x, groups, num_groups=4, ridge=ridge)
    assert int(info.status) == Status.NOT_PSD
    if fit is kernel_rca.fit_ridge:
        assert (np.asarray(fitted.coefficients) == 0).all()
