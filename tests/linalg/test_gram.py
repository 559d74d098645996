import jax
import jax.numpy as jnp
import numpy as np
import pytest
from sklearn.metrics import pairwise

from jaxface.linalg import gram
from tests.tolerances import assert_close


def times_two(x, y):
    return 2 * x @ y.T


KERNELS = {
    "linear": (gram.linear(), pairwise.linear_kernel),
    "gaussian": (
        gram.gaussian(bandwidth=1.5),
        lambda x, y: pairwise.rbf_kernel(x, y, gamma=1 / (2 * 1.5**2)),
    ),
    "cosine": (gram.cosine(), pairwise.cosine_similarity),
    "polynomial": (
        gram.polynomial(degree=3, offset=0.5),
        lambda x, y: pairwise.polynomial_kernel(x, y, degree=3, gamma=1, coef0=0.5),
    ),
    "a function": (gram.as_kernel(times_two), lambda x, y: 2 * x @ y.T),
}


@pytest.mark.parametrize("name", KERNELS)
def test_kernels_equal_scikit_learn_under_every_transformation(name, rng):
    kernel, reference = KERNELS[name]
    x, y = rng.normal(size=(6, 4)), rng.normal(size=(5, 4))
    assert_close(kernel(x, y), reference(x, y))
    assert_close(jax.jit(lambda k, a, b: k(a, b))(kernel, x, y), reference(x, y))
    batched = jax.vmap(kernel, in_axes=(0, None))(jnp.stack([x, 2 * x]), jnp.asarray(y))
    assert_close(batched[1], reference(2 * x, y))
    assert kernel(x.astype(np.float32), y.astype(np.float32)).dtype == jnp.float32


def test_changing_the_bandwidth_does_not_retrace(rng):
    traces = []

    @jax.jit
    def matrix(kernel, x):
        traces.append(1)
        return kernel(x, x)

    x = jnp.asarray(rng.normal(size=(4, 3)))
    matrix(gram.gaussian(bandwidth=1.0), x)
    matrix(gram.gaussian(bandwidth=2.0), x)
    assert len(traces) == 1


def test_errors_name_the_argument():
    with pytest.raises(ValueError, match=r"bandwidth must lie in \(0, inf\); got -1.0"):
        gram.gaussian(bandwidth=-1.0)
    with pytest.raises(ValueError, match="degree must be at least 1; got 0"):
        gram.polynomial(degree=0)
    with pytest.raises(ValueError, match=r"offset must lie in \[0, inf\)"):
        gram.polynomial(degree=2, offset=-1.0)


@pytest.mark.parametrize("name", ["linear", "gaussian", "polynomial"])
def test_whole_numbers_give_the_same_kernel(name, rng):
    kernel, _ = KERNELS[name]
    x = rng.integers(0, 256, (4, 3)).astype(np.uint8)
    assert_close(kernel(x, x), kernel(x.astype(np.float32), x.astype(np.float32)))
