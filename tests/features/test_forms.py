"""Every form of every map estimates its own kernel without bias over thousands of draws, and how the variances compare.

The z-scores of one seed are fixed numbers; 4.5 is far beyond chance for all of them together.
"""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxface.features import forms, maps, spectra
from tests.features import draws
from tests.features.draws import NUM_DRAWS, SQUARE, a_map, many
from tests.reference import features_reference as reference
from tests.tolerances import assert_close

DIM, FEATURES, BANDWIDTH = 11, 12, 1.3  # padded to 16, and the block is cut
SPECTRA = {
    "gaussian": (spectra.gaussian, reference.gaussian_kernel),
    "matern 1/2": (spectra.matern(nu=0.5), reference.matern_kernel(0.5)),
    "matern 5/2": (spectra.matern(nu=2.5), reference.matern_kernel(2.5)),
    "laplacian": (spectra.laplacian, reference.laplacian_kernel),
}
ROTATION_INVARIANT = ("gaussian", "matern 1/2", "matern 5/2")
PAIRS = [(kind, name) for kind in ("kitchen_sinks", "orthogonal", "fastfood") for name in ROTATION_INVARIANT]
PAIRS.append(("kitchen_sinks", "laplacian"))


def vectors():
    """Three pairs: dense difference, along an axis, and the same vector twice."""
    rng = np.random.default_rng(5)
    x = rng.normal(size=DIM)
    x *= 0.9 / np.linalg.norm(x)
    return [(x, rng.normal(size=DIM) / 3), (x, x + 1.2 * np.eye(DIM)[2]), (x, x)]


def drawn(kind, spectrum=spectra.gaussian):
    return many(kind, spectrum, input_dim=DIM, num_features=FEATURES, bandwidth=BANDWIDTH)


@jax.jit
def estimates(params, x, y):
    """One estimate of each form a draw, from one projection."""

    def of_draw(params, key):
        phase = forms.random_phase(key, num_features=FEATURES)
        u, v = maps.project(params, x), maps.project(params, y)
        found = {form.__name__: form(u) @ form(v) for form in (forms.cos_sin, forms.sin)}
        complex_product = jnp.vdot(forms.complex(u), forms.complex(v))
        return found | {"complex": complex_product.real, "random_phase": phase(u) @ phase(v)}

    return jax.vmap(of_draw)(params, jax.random.split(jax.random.key(2), NUM_DRAWS))


def z_score(values, expected):
    error = np.std(values) / len(values) ** 0.5
    return (np.mean(values) - expected) / max(error, 1e-12)


@pytest.mark.parametrize(("kind", "name"), PAIRS)
def test_every_form_is_unbiased_for_its_own_kernel(kind, name):
    spectrum, kernel = SPECTRA[name]
    params = drawn(kind, spectrum)
    for x, y in vectors():
        found = estimates(params, x, y)
        full, sine = kernel(x - y, BANDWIDTH), reference.sine_kernel(kernel, x, y, BANDWIDTH)
        for form, values in found.items():
            assert abs(z_score(values, sine if form == "sin" else full)) < 4.5, form


def test_sine_alone_is_far_from_the_gaussian():
    x, y = vectors()[0]
    values = estimates(drawn("fastfood"), x, y)["sin"]
    expected = reference.gaussian_sine_kernel(x, y, BANDWIDTH)
    np.testing.assert_allclose(expected, reference.sine_kernel(reference.gaussian_kernel, x, y, BANDWIDTH), rtol=1e-12)
    assert abs(z_score(values, expected)) < 4.5
    assert abs(z_score(values, reference.gaussian_kernel(x - y, BANDWIDTH))) > 50


@pytest.mark.parametrize(
    ("kind", "dense", "axis"),
    [
        ("kitchen_sinks", (0.9, 1.1), (0.9, 1.1)),
        ("fastfood", (1.5, 2.1), (0.1, 0.3)),
        ("orthogonal", (0, 0.9), (0, 0.9)),
    ],
)
def test_variance_beside_independent_frequencies(kind, dense, axis):
    params, spread = many(kind, **SQUARE), np.random.default_rng(0).normal(size=16)
    assert dense[0] < draws.variance_ratio(params, 1.2 * spread / np.linalg.norm(spread)) < dense[1]
    assert axis[0] < draws.variance_ratio(params, 1.2 * np.eye(16)[3]) < axis[1]


def test_the_error_falls_with_the_root_of_the_number_of_features():
    rng = np.random.default_rng(0)
    x = rng.normal(size=(20, 16)) / 3
    exact = np.array([[reference.gaussian_kernel(a - b, 1.5) for b in x] for a in x])
    errors = []
    params = a_map("fastfood", input_dim=16, num_features=2000)
    u = maps.feature_matrix(params, x, form=lambda u: u)
    for num_features in (64, 2000):  # the first rows are those of a smaller map
        z = np.asarray(forms.cos_sin(u[:, :num_features]))
        errors.append(np.sqrt(np.mean((z @ z.T - exact) ** 2)))
    assert errors[0] / errors[1] > 4
    assert errors[1] < 0.02


@pytest.mark.parametrize("f", [6, 24])
def test_a_sine_that_is_beyond_one_by_rounding_is_not_clipped(f):
    z = np.full(f, 1 / np.sqrt(f), np.float32)
    assert np.float32(np.sqrt(f)) * z[0] > 1
    found = forms.inverse(forms.sin).angles(jnp.asarray(z))
    assert not found.is_clipped.any()
    assert_close(found.angles, np.full(f, np.pi / 2, np.float32))


def test_sorf_is_near_the_kernel_of_a_sphere_and_has_a_bias():
    x, y = vectors()[0]
    values = estimates(drawn("sorf"), x, y)
    gaussian, sphere = (k(x - y, BANDWIDTH) for k in (reference.gaussian_kernel, reference.sphere_kernel(16)))
    mean = np.mean(values["cos_sin"])
    assert abs(mean - sphere) < 0.02
    assert abs(mean - gaussian) < 0.03
