import jax
import numpy as np

from jaxface.linalg import gram
from jaxface.subspace import KernelMap, kernel_map, pca, transform
from tests.tolerances import assert_close


def test_equals_the_sum_over_training_images(rng):
    train, coefficients, offset = rng.normal(size=(6, 4)), rng.normal(size=(6, 3)), rng.normal(size=3)
    fitted = KernelMap(kernel=gram.gaussian(bandwidth=2.0), train=train, coefficients=coefficients, offset=offset)
    x = rng.normal(size=4)
    expected = offset + sum(np.exp(-((x - row) ** 2).sum() / 8) * a for row, a in zip(train, coefficients, strict=True))
    assert_close(transform(fitted, x), expected)


def test_a_linear_method_on_the_rows_of_the_gram_matrix(rng):
    """Kernel vectors of probes are `k(train, x)`, uncentred, as those of the training images are."""
    train, x = rng.normal(size=(6, 4)), rng.normal(size=4)
    kernel = gram.polynomial(degree=2)
    k = np.asarray(kernel(train, train))
    linear, _ = pca.fit(k, num_components=3)
    fitted = kernel_map.from_linear(kernel, train, linear)
    assert_close(transform(fitted, x), transform(linear, np.asarray(kernel(train, x[None]))[:, 0]), factor=10)
    centered = kernel_map.centered_map(kernel, train, k, rng.normal(size=(6, 2)))
    assert_close(jax.vmap(transform, in_axes=(None, 0))(centered, train).mean(axis=0), np.zeros(2))


def test_probes_are_one_product_and_not_one_shifted_copy_of_the_training_images_each(rng):
    """Under vmap no array of probes x images x dimensions appears."""
    fitted = KernelMap(
        kernel=gram.gaussian(bandwidth=2.0), train=rng.normal(size=(7, 5)), coefficients=np.eye(7), offset=np.zeros(7)
    )
    program = jax.make_jaxpr(jax.vmap(transform, in_axes=(None, 0)))(fitted, rng.normal(size=(11, 5)))
    sizes = [out.aval.size for equation in program.eqns for out in equation.outvars]
    assert max(sizes) <= 11 * 7


def test_leading_coordinates_keep_their_offset(rng):
    train, a, offset = rng.normal(size=(6, 4)), rng.normal(size=(6, 3)), rng.normal(size=3)
    fitted = KernelMap(kernel=gram.linear(), train=train, coefficients=a, offset=offset)
    whole, kept = (transform(each, train[0]) for each in (fitted, kernel_map.leading(fitted, 2)))
    assert_close(kept, whole.at[2].set(0.0))
