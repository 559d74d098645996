import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

from jaxface.core.fitinfo import Status
from jaxface.hallucination import linear as linear_hallucination
from jaxface.hallucination import network as network_hallucination
from jaxface.hallucination import reconstruction as hallucination
from jaxface.hallucination.network import Layers, fit_network
from tests.sparse import draws
from tests.tolerances import assert_close

KEY = jax.random.key(0)
MASK = draws.top_mask()
MIRROR = np.arange(30).reshape(6, 5)[:, ::-1].ravel()
SETTINGS = {
    "ridge": 0.01, "width": 8, "num_layers": 2, "num_epochs": 30, "batch_size": 10, "dropout": 0.1,
    "optimizer": optax.adam(0.01),
}  # fmt: skip


def curved(rng, n=60):
    """Faces whose hidden half is the square of what is seen."""
    x = draws.faces(rng, n=n)
    x[:, ~MASK] = 4 * (x[:, MASK] - 0.5) ** 2
    return x


def psnr(model, x):
    images = np.asarray(hallucination.reconstruct_matrix(model, x[:, MASK]))
    return float(np.mean(-10 * np.log10(((images - x) ** 2).mean(axis=1))))


def weights(rng, v=15, d=30, f=4, layers=3):
    shapes = Layers((v, d), (v, f), (layers - 1, f, f), (layers, f), (f, d), (d,))
    return Layers(*(jnp.asarray(rng.normal(size=shape)) for shape in shapes))


def test_layers_are_those_of_the_formula(rng):
    w, seen = jax.tree.map(np.asarray, weights(rng)), rng.normal(size=(6, 15))

    def gelu(u):
        return u / 2 * (1 + np.tanh(np.sqrt(2 / np.pi) * (u + 0.044715 * u**3)))

    hidden = gelu(seen @ w.first + w.biases[0])
    for matrix, bias in zip(w.others, w.biases[1:], strict=True):
        hidden = hidden + gelu(hidden @ matrix + bias)
    assert_close(network_hallucination.network(w, seen), seen @ w.linear + hidden @ w.last + w.offset)


def test_begins_as_ridge_regression(rng):
    x = draws.faces(rng)
    still, _ = fit_network(KEY, x, MASK, **SETTINGS | {"optimizer": optax.set_to_zero()})
    ridge, _ = linear_hallucination.fit_ridge(x, MASK, ridge=0.01)
    images = [hallucination.reconstruct_matrix(model, x[:, MASK]) for model in (still, ridge)]
    assert_close(*images, factor=100)


def test_learns_what_no_matrix_can(rng):
    x = curved(rng)
    train, test = x[:40], x[40:]
    model, info = fit_network(KEY, train, MASK, **SETTINGS)
    ridge, _ = linear_hallucination.fit_ridge(train, MASK, ridge=0.01)
    assert psnr(model, test) > psnr(ridge, test) + 0.5
    assert info.objective.shape == (30,)
    assert info.objective[-1] < info.objective[0] - 0.3
    assert int(info.status) == Status.OK
    again, _ = fit_network(KEY, train, MASK, **SETTINGS)
    np.testing.assert_array_equal(again.layers.last, model.layers.last)


def test_the_mirror_image_of_what_is_seen_gives_the_mirror_image(rng):
    x = draws.faces(rng)
    model, _ = fit_network(KEY, x, MASK, mirror=MIRROR, **SETTINGS)
    face, turned = x[0], x[0][MIRROR]
    images = [hallucination.reconstruct(model, each[MASK]) for each in (face, turned)]
    assert_close(images[1], np.asarray(images[0])[MIRROR], factor=10)
    assert np.abs(np.asarray(images[0]) - np.asarray(images[1])).max() > 1e-3


def one_step(x, rate, **options):
    """A step of plain gradient descent on all faces: of two, the first is of length zero."""
    optimizer = optax.chain(optax.sgd(rate), optax.scale_by_schedule(lambda count: count))
    whole = {"num_epochs": 2, "batch_size": len(x), "dropout": 0.0, "optimizer": optimizer}
    return fit_network(KEY, x, MASK, floor=0.1, **SETTINGS | whole | options)


def residual_over_errors(faces, matrix, floor):
    """What a step moves the offset by, per rate: the network begins at zero."""
    residual = faces - faces[:, MASK] @ matrix
    weights = 1 / ((residual**2).mean(axis=1) + floor)
    return 2 / faces.shape[1] * (weights[:, None] * residual).mean(axis=0)


def test_a_step_is_that_of_the_optimizer(rng):
    x = draws.faces(rng)
    matrix = np.asarray(linear_hallucination.fit_ridge(x, MASK, ridge=0.01)[0].matrix)
    faces = x - x.mean(axis=0)
    errors = ((faces - faces[:, MASK] @ matrix) ** 2).mean(axis=1)
    floor = 0.1 * np.median(errors)
    model, info = one_step(x, 0.5)
    assert_close(model.layers.offset, 0.5 * residual_over_errors(faces, matrix, floor), factor=100)
    assert_close(info.objective, np.full(2, np.log(errors + floor).mean()), factor=100)


def test_about_half_of_the_faces_are_mirrored(rng):
    x = draws.faces(rng, n=200)
    matrix = np.asarray(linear_hallucination.fit_ridge(x, MASK, ridge=0.01)[0].matrix)
    mean = x.mean(axis=0)
    faces = x - (mean + mean[MIRROR]) / 2
    floor = 0.1 * np.median(((faces - faces[:, MASK] @ matrix) ** 2).mean(axis=1))
    plain, turned = (residual_over_errors(each, matrix, floor) for each in (faces, faces[:, MIRROR]))
    moved = np.asarray(one_step(x, 1.0, mirror=MIRROR)[0].layers.offset)
    assert 0.3 < (moved - plain) @ (turned - plain) / ((turned - plain) @ (turned - plain)) < 0.7


def test_dropout_keeps_the_size_of_a_layer(rng):
    x = draws.faces(rng, n=200)
    whole, dropped = (
        np.asarray(one_step(x, 1.0, dropout=share, width=64, num_layers=1)[0].layers.last) for share in (0.0, 0.5)
    )
    assert abs((dropped * whole).sum() / (whole**2).sum() - 1) < 0.2
    assert np.abs(dropped - whole).max() > 0.01 * np.abs(whole).max()


def test_float32_stays_float32_and_the_same_faces_are_returned(rng):
    x = np.tile(draws.faces(rng, n=1), (40, 1)).astype(np.float32)
    model, info = fit_network(KEY, x, MASK, **SETTINGS)
    leaves = [leaf for leaf in jax.tree.leaves((model, info)) if jnp.issubdtype(leaf.dtype, jnp.floating)]
    assert {leaf.dtype for leaf in leaves} == {np.dtype("float32")}
    image = hallucination.reconstruct(model, x[0][MASK])
    assert image.dtype == jnp.float32
    assert np.isfinite(image).all()
    assert np.abs(image - x[0]).max() < 0.1


def test_bad_input(rng):
    x = draws.faces(rng)
    with pytest.raises(ValueError, match=r"batch_size must be at most 40 \(the number of faces\); got 41"):
        fit_network(KEY, x, MASK, **SETTINGS | {"batch_size": 41})
    with pytest.raises(ValueError, match="mirror must be its own inverse"):
        fit_network(KEY, x, MASK, mirror=np.roll(np.arange(30), 1), **SETTINGS)
    with pytest.raises(ValueError, match="mask must show a pixel where it shows its mirror image"):
        fit_network(KEY, x, np.arange(30) == 0, mirror=MIRROR, **SETTINGS)
    with pytest.raises(ValueError, match="dropout must lie in"):
        fit_network(KEY, x, MASK, **SETTINGS | {"dropout": 1.0})
