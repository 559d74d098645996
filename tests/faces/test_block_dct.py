import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.fft

from jaxface.faces import block_dct
from tests.reference import faces_reference as reference
from tests.tolerances import assert_close

# Compiled whole: dispatched one by one, every operation would be compiled on its own.
encode = jax.jit(block_dct.encode, static_argnames=("grid", "block", "num_coefficients"))


def test_the_matrix_is_the_orthonormal_dct(rng):
    for size in (1, 2, 8, 13):
        matrix = block_dct.dct_matrix(size)
        assert_close(matrix @ matrix.T, np.eye(size))
        x = rng.random(size)
        assert_close(matrix @ x, scipy.fft.dct(x, type=2, norm="ortho"))


def test_the_zigzag_starts_to_the_right_and_visits_every_frequency():
    order = block_dct.zigzag(4)
    assert [tuple(pair) for pair in order.tolist()][:10] == reference.ZIGZAG
    assert sorted(map(tuple, order.tolist())) == [(i, j) for i in range(4) for j in range(4)]


@pytest.mark.parametrize("size", [(32, 24), (37, 23), (9, 50)])
@pytest.mark.parametrize("num_coefficients", [1, 4, 10])
def test_coefficients_equal_the_transform_of_each_resized_block(rng, size, num_coefficients):
    image = rng.random(size)
    result = encode(image, grid=(4, 3), block=8, num_coefficients=num_coefficients)
    assert_close(result, reference.block_dct(image, (4, 3), 8, num_coefficients))


def test_the_default_is_a_vector_of_1024(rng):
    image = rng.random((20, 18))
    vector = encode(image)
    assert vector.shape == (1024,)
    assert_close(vector, reference.block_dct(image, (16, 16), 8, 4))


def test_a_constant_image_has_only_means():
    vector = np.asarray(encode(jnp.full((33, 21), 0.25))).reshape(16, 16, 4)
    assert_close(vector[..., 0], np.full((16, 16), 8 * 0.25))
    assert_close(vector[..., 1:], np.zeros((16, 16, 3)))


def test_what_cannot_be_encoded_is_refused():
    image = jnp.ones((16, 16))
    with pytest.raises(ValueError, match="num_coefficients must be at most 4"):
        encode(image, block=2, num_coefficients=5)
    with pytest.raises(ValueError, match=r"grid must be \(rows, columns\)"):
        encode(image, grid=(16,))
    with pytest.raises(ValueError, match="new_size must be at least 1"):
        encode(image, grid=(0, 16))
    with pytest.raises(ValueError, match="must be grey"):
        encode(jnp.ones((16, 16, 3)))
