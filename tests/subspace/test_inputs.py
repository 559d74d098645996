"""Units, NaN, unsigned labels, narrow types: the same answer, NaN, a status or an error, and never a guess."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxface.core.fitinfo import Status
from jaxface.linalg import gram
from jaxface.subspace import held_out, kcfa, kernel_np_per, kernel_rca, lda, np_per, rca, transform
from jaxface.subspace.linear_map import reconstruct
from tests.subspace import draws

GROUPS = np.repeat(np.arange(6, dtype=np.int32), 4)
SIX = {"num_groups": 6}
FITS = {  # fit, and the power of the unit that its basis has
    "rca with a ridge": (functools.partial(rca.fit, ridge=0.1, **SIX), -1),
    "rca after pca": (functools.partial(rca.fit, pca_components=8, **SIX), -1),
    "lda": (functools.partial(lda.fit, num_classes=6, num_components=4), -1),
    "lda with a ridge": (functools.partial(lda.fit, num_classes=6, num_components=4, ridge=0.1), -1),
    "np_per": (functools.partial(np_per.fit, **SIX), 0),
    "np_per, dual": (functools.partial(np_per.fit_dual, **SIX), 0),
    "np_per, dependent": (functools.partial(np_per.fit_dependent, **SIX), 0),
}
KERNEL_FITS = {
    "kcfa": functools.partial(kcfa.fit, num_classes=6, ridge=1e-2),
    "kernel rca": functools.partial(kernel_rca.fit, ridge=0.1, **SIX),
    "kernel rca, ridge": functools.partial(kernel_rca.fit_ridge, ridge=0.1, **SIX),
    "kernel rca, metric": functools.partial(kernel_rca.fit_metric, ridge=0.1, **SIX),
    "kernel np_per": functools.partial(kernel_np_per.fit, **SIX),
    "kernel np_per, rkhs": functools.partial(kernel_np_per.fit, rkhs_orthonormal=True, **SIX),
}
JITTED = [name for name in FITS if name != "np_per, dependent"]


@pytest.fixture
def x(rng):
    return jnp.asarray(rng.normal(size=(24, 40)) + 2 * rng.normal(size=(6, 40))[GROUPS], jnp.float32)


def kernel_of(name):
    return gram.gaussian(bandwidth=1.0 if name == "kcfa" else 8.0)


@pytest.mark.parametrize("name", FITS)
def test_linear_maps_in_any_unit(name, x):
    """To the last bit, for a power of two is no rounding."""
    fit, unit = FITS[name]
    fitted, info = fit(x, GROUPS)
    for power in (-100, -60, 60, 100):
        scale = 2.0**power
        other, report = fit(scale * x, GROUPS)
        assert (int(report.status), int(report.rank)) == (int(Status.OK), int(info.rank))
        np.testing.assert_array_equal(np.asarray(other.basis, np.float64) / scale**unit, fitted.basis)
        np.testing.assert_array_equal(np.asarray(other.mean, np.float64) / scale, fitted.mean)
        with np.errstate(over="ignore"):
            np.testing.assert_array_equal(report.jitter, np.float32(scale**2 * float(info.jitter)))


@pytest.mark.parametrize("name", [name for name in KERNEL_FITS if name != "kcfa"])
def test_a_gram_matrix_that_leaves_the_range_is_a_status(name, x):
    """Inner products go with the square of the unit, and no method can work in a unit of its own inside any kernel."""
    for power in (-100, -62, -58, 58, 62, 100):
        _, info = KERNEL_FITS[name](gram.linear(), 2.0**power * x, GROUPS)
        assert int(info.status) >= Status.NON_FINITE, power
    for power in (-40, 40):
        assert int(KERNEL_FITS[name](gram.linear(), 2.0**power * x, GROUPS)[1].status) == Status.OK


def test_fit_dependent_refuses_a_gram_matrix_that_is_infinite(x):
    with pytest.raises(ValueError, match=r"the Gram matrix kernel\(x, x\) must be finite"):
        kernel_np_per.fit_dependent(gram.linear(), 2.0**100 * x, GROUPS, **SIX)


def test_unit_energy_and_held_out_errors_have_no_unit(x, rng):
    kernel = gram.gaussian(bandwidth=1.0)
    filters, _ = kcfa.fit(kernel, x, GROUPS, num_classes=6, ridge=1e-2)
    expected = kcfa.score_matrix(filters, x, x), kcfa.median_distance(x), held_out.group_error(x, GROUPS)
    for scale in (2.0**-100, 2.0**100):
        other, _ = kcfa.fit(kernel, scale * x, GROUPS, num_classes=6, ridge=1e-2)
        found = (
            kcfa.score_matrix(other, scale * x, scale * x),
            kcfa.median_distance(scale * x),
            held_out.group_error(scale * x, GROUPS),
        )
        for left, right in zip(found, expected, strict=True):
            np.testing.assert_array_equal(left, right)


@pytest.mark.parametrize("name", [*JITTED, *KERNEL_FITS])
def test_nan_under_jit_is_a_status(name, x):
    fit = FITS[name][0] if name in FITS else functools.partial(KERNEL_FITS[name], kernel_of(name))
    with pytest.raises(ValueError, match="x must be finite"):
        fit(x.at[2, 3].set(jnp.nan), GROUPS)
    _, info = jax.jit(lambda x: fit(x, GROUPS))(x.at[2, 3].set(jnp.nan))
    assert int(info.status) == Status.NON_FINITE


def test_nan_in_an_image_is_nan_in_its_own_results(x):
    filters, _ = kcfa.fit(gram.gaussian(bandwidth=1.0), x, GROUPS, num_classes=6, ridge=1e-2)
    metric, _ = kernel_rca.fit_metric(gram.gaussian(bandwidth=8.0), x, GROUPS, ridge=0.1, **SIX)
    probes = x[:5].at[3, 7].set(jnp.nan)
    lost = np.zeros((24, 5), bool)
    lost[:, 3] = True
    for scores in (
        kcfa.score_matrix(filters, x, probes),
        kernel_rca.squared_distance_matrix(metric, x, probes),
        kernel_rca.squared_distance_matrix(metric, probes, x).T,
    ):
        np.testing.assert_array_equal(np.isnan(scores), lost)
    np.testing.assert_array_equal(
        np.isnan(np_per.project_onto(x, GROUPS, probes, **SIX)), np.broadcast_to(lost[0][:, None], (5, 40))
    )


def test_nothing_is_projected_with_training_images_that_hold_nan(x):
    broken = x.at[0, 0].set(jnp.nan)
    with pytest.raises(ValueError, match="x must be finite"):
        np_per.project_onto(broken, GROUPS, x[:2], **SIX)
    assert np.isnan(jax.jit(lambda x: np_per.project_onto(x, GROUPS, x[:2], **SIX))(broken)).all()


def test_held_out_errors_refuse_nan_and_count_a_broken_map_as_failed(x, rng):
    _, groups = draws.grouped(rng, (3, 2, 3, 2))
    settings = jnp.array([0.1])

    def fit(ridge, x, groups, *, num_groups):
        return rca.fit(x, groups, num_groups=num_groups, ridge=ridge)

    images = rng.normal(size=(10, 5))
    with pytest.raises(ValueError, match="x must be finite"):
        held_out.errors(fit, settings, np.where(images > 1, np.nan, images), groups, num_folds=2, rng=rng)
    broken = {"transform": lambda fitted, row: row * jnp.nan}
    found = held_out.errors(fit, settings, images, groups, num_folds=2, rng=rng, **broken)
    assert np.isposinf(found).all()


@pytest.mark.parametrize("dtype", [np.uint8, np.uint32])
def test_unsigned_labels(dtype, x):
    for fit, _ in FITS.values():
        np.testing.assert_array_equal(fit(x, GROUPS.astype(dtype))[0].basis, fit(x, GROUPS)[0].basis)


@pytest.mark.parametrize("dtype", [np.uint8, np.float16])
def test_what_would_wrap_or_round_is_refused_at_every_door(dtype, x):
    narrow, kernel = np.asarray(x).astype(dtype), gram.linear()
    fitted, _ = rca.fit(x, GROUPS, ridge=0.1, **SIX)
    mapped, _ = kernel_rca.fit(kernel, x, GROUPS, ridge=0.1, **SIX)
    metric, _ = kernel_rca.fit_metric(kernel, x, GROUPS, ridge=0.1, **SIX)
    calls = [functools.partial(fit, narrow, GROUPS) for fit, _ in FITS.values()]
    calls += [functools.partial(fit, kernel, narrow, GROUPS) for fit in KERNEL_FITS.values()]
    calls += [
        lambda: transform(fitted, narrow[0]),
        lambda: reconstruct(fitted, narrow[0]),
        lambda: transform(mapped, narrow[0]),
        lambda: kernel_rca.squared_distance_matrix(metric, narrow, narrow),
        lambda: np_per.project_onto(x, GROUPS, narrow, **SIX),
        lambda: held_out.group_error(jnp.asarray(narrow), GROUPS),
        lambda: kcfa.median_distance(narrow),
    ]
    for call in calls:
        with pytest.raises(ValueError, match=rf"must be a floating point array.*; got dtype {np.dtype(dtype)}"):
            call()
