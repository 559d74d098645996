import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxface.data import rendering
from jaxface.faces import tps
from tests.faces.cases import REFERENCE
from tests.reference import faces_reference as reference
from tests.tolerances import assert_close

# Compiled whole: dispatched one by one, every operation would be compiled on its own.
# The ridge is traced, and most tests use NUM landmarks and as many points: they share one program.
interpolant = jax.jit(tps.interpolant)
transform = jax.jit(tps.transform)
warp = jax.jit(tps.warp, static_argnames=("height", "width"))
bilinear = jax.jit(tps.bilinear)

NUM = 9
SQUARE = np.array([[0.0, 0.0], [0.0, 9.0], [9.0, 0.0], [9.0, 9.0], [4.0, 5.0]])


@pytest.mark.parametrize("ridge", [0.0, 1e-3, 0.5])
def test_the_spline_equals_the_null_space_solve(rng, ridge):
    source, target = 40 * rng.random((NUM, 2)), 90 * rng.random((NUM, 2))
    points = 60 * rng.random((NUM, 2)) - 10
    spline = interpolant(source, target, ridge=ridge)
    assert_close(transform(spline, jnp.asarray(points)), reference.tps(source, target, ridge, points), factor=100)


def test_without_ridge_the_landmarks_are_met(rng):
    source, target = 200 * rng.random((NUM, 2)), 48 * rng.random((NUM, 2))
    spline = interpolant(source, target, ridge=0.0)
    assert_close(transform(spline, jnp.asarray(source)), target, factor=10)


def test_float32_meets_the_landmarks_of_a_face_within_a_hundredth_of_a_pixel(rng):
    source = (200 * rng.random((68, 2))).astype("float32")
    target = (source / 4 + np.sin(source / 40)).astype("float32")
    spline = interpolant(source, target, ridge=0.0)
    assert spline.weights.dtype == jnp.float32
    assert_close(transform(spline, jnp.asarray(source)), target, factor=20)


def test_affine_maps_are_reproduced_without_bending(rng):
    linear = rng.normal(size=(2, 2))
    source = 30 * rng.random((NUM, 2))
    spline = interpolant(source, source @ linear + 3, ridge=0.0)
    points = 100 * rng.random((NUM, 2))
    assert_close(transform(spline, jnp.asarray(points)), points @ linear + 3, factor=10)
    assert_close(spline.weights, np.zeros((NUM, 2)), factor=100)


def test_a_large_ridge_tends_to_the_affine_least_squares_fit(rng):
    source, target = 30 * rng.random((NUM, 2)), 30 * rng.random((NUM, 2))
    design = np.column_stack([np.ones(NUM), source])
    expected = design @ np.linalg.lstsq(design, target, rcond=None)[0]
    result = transform(interpolant(source, target, ridge=1e9), jnp.asarray(source))
    assert_close(result, expected, factor=100)


def test_the_ridge_does_not_depend_on_the_image_size(rng):
    source, target = 30 * rng.random((NUM, 2)), 30 * rng.random((NUM, 2))
    points = 30 * rng.random((NUM, 2))
    small = transform(interpolant(source, target, ridge=0.1), jnp.asarray(points))
    large = transform(interpolant(8 * source, target, ridge=0.1), jnp.asarray(8 * points))
    assert_close(large, small)


@pytest.mark.parametrize("channels", [(), (3,)])
def test_bilinear_sampling_equals_the_loop(rng, channels):
    image = rng.random((5, 7, *channels))
    points = np.concatenate([9 * rng.random((20, 2)) - 1.5, [[0, 0], [6, 4], [3, 2], [20, -5]]])
    assert_close(bilinear(image, jnp.asarray(points)), reference.bilinear(image, points))


def test_bilinear_sampling_of_a_single_row(rng):
    image = rng.random((1, 4))
    points = np.array([[1.25, 0.0], [3.5, 3.0]])
    assert_close(bilinear(image, jnp.asarray(points)), reference.bilinear(image, points))


def test_points_are_column_then_row():
    image = jnp.asarray([[0.0, 1.0, 2.0], [10.0, 11.0, 12.0]])
    assert_close(bilinear(image, jnp.asarray([[2.0, 0.0], [0.0, 1.0], [0.5, 0.5]])), np.array([2.0, 10.0, 5.5]))


def test_the_warp_moves_landmarks_onto_the_reference(rng):
    """A smooth image whose value tells where a pixel comes from: its landmarks are read off at the reference."""
    rows, columns = np.meshgrid(np.arange(40.0), np.arange(30.0), indexing="ij")
    image = np.stack([columns / 30, rows / 40, np.zeros_like(rows)], axis=-1)
    landmarks = 2 * REFERENCE + rng.normal(size=REFERENCE.shape)
    warped = warp(image, landmarks, REFERENCE, height=18, width=16, ridge=0.0)
    x, y = REFERENCE.astype(int).T
    found = np.asarray(warped)[y, x, :2] * [30, 40]
    assert_close(found, landmarks, factor=10)


def test_the_warp_is_the_spline_and_the_sampler(rng):
    image, landmarks = rng.random((18, 16)), REFERENCE + rng.normal(size=REFERENCE.shape)
    grid = np.array([[x, y] for y in range(18) for x in range(16)], float)
    places = reference.tps(REFERENCE, landmarks, 0.2, grid)
    expected = reference.bilinear(image, places).reshape(18, 16)
    assert_close(warp(image, landmarks, REFERENCE, height=18, width=16, ridge=0.2), expected, factor=10)


def test_identical_landmarks_leave_the_image_alone(rng):
    image = rng.random((18, 16))
    assert_close(warp(image, REFERENCE, REFERENCE, height=18, width=16, ridge=0.0), image, factor=10)


def test_landmarks_of_the_data_room_undo_the_pose_of_a_drawn_face():
    """The two rooms mean the same by a point: a turned and shifted face is brought back to the frontal one."""
    frontal = rendering.Capture()
    posed = frontal._replace(shift_x=4.0, shift_y=-2.0, roll=0.2, log_scale=0.1)
    image, expected = (rendering.render(rendering.MEAN_FACE, capture, size=(60, 50)) for capture in (posed, frontal))
    landmarks, places = (rendering.landmarks(rendering.MEAN_FACE, c, size=(60, 50)) for c in (posed, frontal))
    found = np.asarray(warp(image, landmarks, places, height=60, width=50, ridge=0.0))
    face = np.s_[15:52, 8:42]
    assert np.abs(found - expected)[face].mean() < 0.15 * np.abs(image - expected)[face].mean()


def test_the_gradient_is_finite_where_points_meet_knots():
    def at_the_knots(source):
        return transform(interpolant(source, SQUARE**2, ridge=0.0), jnp.asarray(SQUARE)).sum()

    assert np.isfinite(jax.jit(jax.grad(at_the_knots))(SQUARE)).all()


@pytest.mark.parametrize("direction", [(1.0, 0.0), (0.3, 0.7)])
def test_landmarks_on_a_line_are_refused_or_finite_when_traced(rng, direction):
    source = jnp.asarray(np.outer([0.0, 1.0, 2.5, 4.0], direction) + 2)
    target = jnp.asarray(rng.random((4, 2)))
    with pytest.raises(ValueError, match="must not lie on one line"):
        tps.interpolant(source, target, ridge=0.0)

    def through(source, target, points):
        return tps.transform(tps.interpolant(source, target, ridge=0.0), points)

    assert_close(jax.jit(through)(source, target, source), target, factor=1e4)
    assert np.isfinite(jax.jit(through)(source, target, source + 1.0)).all()


def test_bad_landmarks_are_refused():
    twice = np.concatenate([SQUARE, SQUARE[:1]])
    with pytest.raises(ValueError, match=r"points 0 and 5 coincide.*ridge above 0"):
        tps.interpolant(twice, twice, ridge=0.0)
    # The points are concrete in this program, so they are looked at.
    assert np.isfinite(jax.jit(lambda: tps.interpolant(twice, twice, ridge=0.1))().weights).all()
    with pytest.raises(ValueError, match="must be at least 3"):
        tps.interpolant(SQUARE[:2], SQUARE[:2], ridge=0.0)
    with pytest.raises(ValueError, match="number of landmarks must be at least 3"):
        warp(np.ones((4, 4)), SQUARE[:1], SQUARE[:1], height=4, width=4, ridge=0.0)
    with pytest.raises(ValueError, match=r"target_points must have shape \[k, 2\] with k = 5"):
        tps.interpolant(SQUARE, SQUARE[:4], ridge=0.0)
    with pytest.raises(ValueError, match="source_points must be a floating point array"):
        tps.interpolant(SQUARE.astype(int), SQUARE, ridge=0.0)
    with pytest.raises(ValueError, match="ridge must lie in"):
        tps.interpolant(SQUARE, SQUARE, ridge=-1.0)
    with pytest.raises(ValueError, match="source_points must be finite"):
        tps.interpolant(np.full((4, 2), np.nan), SQUARE[:4], ridge=0.0)


def test_nan_in_a_knot_is_nan_where_it_bends():
    spline = tps.interpolant(REFERENCE, REFERENCE[::-1], ridge=0.1)
    broken = dataclasses.replace(spline, knots=spline.knots.at[0, 1].set(jnp.nan))
    assert bool(jnp.isnan(tps.transform(broken, REFERENCE)).all())


def test_points_that_are_no_numbers_are_refused():
    with pytest.raises(ValueError, match="points must be"):
        tps.bilinear(np.ones((4, 4)), REFERENCE.astype(str))
