import jax.numpy as jnp
import numpy as np
import pytest
import scipy.linalg

from jaxface.linalg import hadamard
from tests.tolerances import assert_close


@pytest.mark.parametrize("size", [1, 2, 16, 64, 128, 1024, 8192])
def test_equals_the_dense_matrix(size, rng):
    x = rng.normal(size=(2, size))
    dense = scipy.linalg.hadamard(size, dtype=np.int8)  # the product makes floats of a few columns at a time
    columns = np.array_split(dense, max(1, size // 512), axis=1)
    assert_close(hadamard.transform(x), np.concatenate([x @ some for some in columns], axis=1))


def test_matrix_equals_scipy():
    assert_close(hadamard.matrix(32, dtype=jnp.float32), scipy.linalg.hadamard(32).astype(np.float32))


def test_twice_is_the_length_times_the_identity(rng):
    x = rng.normal(size=256)
    assert_close(hadamard.transform(hadamard.transform(x)) / 256, x)


def test_other_lengths_are_an_error_that_says_what_to_do():
    with pytest.raises(ValueError, match=r"power of two; got 12\. Pad with zeros to 16"):
        hadamard.transform(jnp.zeros(12))


def test_integers_are_refused_and_the_matrix_holds_its_own_square():
    with pytest.raises(ValueError, match="x must be a floating point array; got dtype uint8"):
        hadamard.transform(jnp.ones(8, jnp.uint8))
    h = hadamard.matrix(128)
    assert_close(h @ h, 128 * np.eye(128))
    assert hadamard.next_power_of_two(np.int64(5)) == 8
