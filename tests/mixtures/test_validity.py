"""Parameters that define no density are refused by name."""

import jax.numpy as jnp
import numpy as np
import pytest

from jaxface.mixtures import validity

MEAN = jnp.zeros((2, 3))


def test_weights_must_add_up_to_one():
    validity.check_weights(jnp.log(jnp.array([0.3, 0.7])))
    validity.check_weights(jnp.array([-jnp.inf, 0.0]))
    for log_weights in (jnp.zeros(2), jnp.log(jnp.array([[0.5, 0.5], [0.2, 0.2]])), jnp.array([jnp.nan, 0.0])):
        with pytest.raises(ValueError, match="log_weights must be logarithms of weights that add up to 1"):
            validity.check_weights(log_weights)


@pytest.mark.parametrize("leading", [(), (4,)])
def test_noise_must_be_positive(leading):
    mean = jnp.zeros((*leading, 2, 3))
    validity.check_noise("noise_x", jnp.ones(mean.shape), mean)
    full = jnp.broadcast_to(jnp.eye(3), (*mean.shape, 3))
    validity.check_noise("noise_x", full, mean)
    with pytest.raises(ValueError, match=r"noise_x must lie in \(0, inf\)"):
        validity.check_noise("noise_x", jnp.zeros(mean.shape), mean)
    with pytest.raises(ValueError, match="noise_x"):
        validity.check_noise("noise_x", -full, mean)


def test_noise_must_have_the_shape_of_the_mean():
    with pytest.raises(ValueError, match="noise_x must have shape"):
        validity.check_noise("noise_x", np.ones((2, 4)), MEAN)
    with pytest.raises(ValueError, match="noise_x must have shape"):
        validity.check_noise("noise_x", np.ones((2, 3, 4)), MEAN)
