import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.stats

from jaxface.features import MAPS, forms, maps, spectra


def test_a_very_rough_kernel_has_finite_features(rng):
    params = MAPS["kitchen_sinks"](
        jax.random.key(0), input_dim=2, num_features=4096, bandwidth=np.float32(1), spectrum=spectra.matern(nu=0.05)
    )
    assert np.isfinite(maps.feature_matrix(params, np.ones((1, 2), np.float32), form=forms.cos_sin)).all()


def test_equal_smoothness_is_one_function():
    """`jit` knows a spectrum by its identity: the same nu must not compile again."""
    assert spectra.matern(nu=1.5) is spectra.matern(nu=1.5)
    assert spectra.matern(nu=1.5) is not spectra.matern(nu=2.5)


def test_row_lengths_are_those_of_a_multivariate_t():
    """Squared lengths over the dimension follow F(d, 2 nu)."""
    lengths = np.asarray(spectra.row_lengths(jax.random.key(0), 4000, 5, spectra.matern(nu=1.5), jnp.float64))
    assert scipy.stats.kstest(lengths**2 / 5, scipy.stats.f(5, 3).cdf).pvalue > 1e-3


def test_the_laplacian_has_a_scale_for_each_coordinate():
    scales = spectra.laplacian(jax.random.key(0), 3, 4, jnp.float32)
    assert (scales.shape, scales.dtype) == ((3, 4), jnp.float32)
    with pytest.raises(ValueError, match="one scale a row"):
        spectra.rotation_invariant(jax.random.key(0), 3, 4, spectra.laplacian, jnp.float32)
