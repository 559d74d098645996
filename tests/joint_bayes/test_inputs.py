"""Unsigned ids, weights in the place of counts, bytes and NaN: refused, passed on as NaN, or said in the status."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxface.core.fitinfo import Status
from jaxface.joint_bayes import (
    JointBayes,
    choose_rank,
    collect,
    diagonalize,
    fit,
    group_by_count,
    init,
    leave_one_out,
    llr,
    llr_matrix,
    log_likelihood,
    posterior,
    project,
    set_llr,
    set_llr_matrix,
)
from jaxface.joint_bayes.em import m_step, update
from jaxface.joint_bayes.stats import by_person
from tests.joint_bayes import draws
from tests.tolerances import assert_close


@pytest.fixture
def model(rng):
    return draws.joint_bayes(rng, d=2)


@pytest.fixture
def images(rng, model):
    return draws.stacked(draws.people(rng, model, (2, 3, 2)))


@pytest.mark.parametrize("dtype", [np.uint8, np.uint32])
def test_unsigned_ids_are_ids(dtype, images, model):
    """A person who is left out gets the id -1, which is 255 in one byte."""
    x, ids = images
    weights = np.array([0.3])
    expected, _ = leave_one_out(x, ids, model, weights, num_people=3, num_iters=2)
    for given in (ids.astype(dtype), jnp.asarray(ids.astype(dtype))):
        found, _ = leave_one_out(x, given, model, weights, num_people=3, num_iters=2)
        assert_close(found, expected)
        part = collect(x, given, num_people=3, shift=np.zeros(2))
        assert_close(part, collect(x, ids, num_people=3, shift=np.zeros(2)))


def test_leave_one_out_reports_each_fit(images, model):
    """Without a prior two images of a person in two dimensions leave directions without a within-person variance."""
    x, ids = images
    flat = x * np.array([1.0, 0.0])
    _, info = leave_one_out(flat, ids, model, np.array([0.0, 0.5]), num_people=3, num_iters=2)
    assert info.status.shape == (3, 2)
    assert (info.status[:, 0] == int(Status.RANK_DEFICIENT)).all()
    assert (info.status[:, 1] == int(Status.OK)).all()


def test_leave_one_out_needs_two_people(images, model):
    x, _ = images
    weights, alone = np.array([0.5]), np.zeros(len(x), np.int32)
    with pytest.raises(ValueError, match="ids must name at least two people; got 1"):
        leave_one_out(x, alone, model, weights, num_people=2, num_iters=1)
    found, info = jax.jit(
        lambda ids: leave_one_out(x, ids, model, weights, num_people=2, num_iters=1)
    )(alone)  # fmt: skip
    assert np.isnan(found).all()
    assert int(info.status[0, 0]) == Status.UNIDENTIFIED


WRONG_COUNTS = {"a weight": 1.5, "a negative count": -1.0, "NaN": np.nan}


def with_count(stats, value):
    return stats._replace(count=stats.count.at[0].set(value))


@pytest.mark.parametrize("value", WRONG_COUNTS.values(), ids=WRONG_COUNTS)
def test_counts_that_are_no_numbers_of_images_are_refused(value, images, model):
    stats = with_count(collect(*images, num_people=3, shift=np.zeros(2)), value)
    calls = [init, group_by_count, by_person, lambda s: fit(s, model, num_iters=1), lambda s: log_likelihood(model, s)]
    for call in calls:
        with pytest.raises(ValueError, match="must hold numbers of images, which are whole and at least 0; got 1"):
            call(stats)


@pytest.mark.parametrize("value", WRONG_COUNTS.values(), ids=WRONG_COUNTS)
def test_under_jit_such_counts_give_nan_and_a_failing_status(value, images, model):
    stats = with_count(collect(*images, num_people=3, shift=np.zeros(2)), value)

    @jax.jit
    def both(stats):
        return fit(stats, model, prior=model, prior_weight=0.5, num_iters=1), log_likelihood(model, stats), init(stats)

    (_, info), likelihood, first = both(stats)
    assert int(info.status) == Status.NON_FINITE
    assert np.isnan(likelihood)
    assert np.isnan(first.noise_cov).all()


def test_the_steps_ask_for_numbers_of_images_too(images, model):
    rows = by_person(collect(*images, num_people=3, shift=np.zeros(2)))
    moments, _ = posterior.full(model, rows)
    halves = rows._replace(count=rows.count / 2, row_count=rows.row_count / 2)
    for e_step in (posterior.full, posterior.approximate):
        with pytest.raises(ValueError, match="the count of stats must hold numbers of images"):
            e_step(model, halves)
        moments_of_halves, value = jax.jit(e_step)(model, halves)
        assert np.isnan(value)
        assert np.isnan(moments_of_halves.noise).all()
    with pytest.raises(ValueError, match="the count of stats must hold numbers of images"):
        update(model, halves, None, 0.0, e_step=posterior.full, floor=1e-6)
    with pytest.raises(ValueError, match="num_images of moments must hold numbers of images"):
        m_step(moments._replace(num_images=3.5), None, 0.0)
    with pytest.raises(ValueError, match=r"count must lie in \[0, inf\); got -1.0"):
        posterior.identity(model, np.ones(2), -1.0)


FORMS = {
    "llr": lambda model, x: llr(model, x[0], x[1]),
    "project": lambda model, x: project(diagonalize(model), x[0]),
    "llr_matrix": lambda model, x: llr_matrix(diagonalize(model), x, x),
    "set_llr": lambda model, x: set_llr(diagonalize(model), x[0], 1, x[1], 1),
    "set_llr_matrix": lambda model, x: set_llr_matrix(diagonalize(model), x, np.ones(2), x, np.ones(2)),
}


@pytest.mark.parametrize("dtype", ["uint8", "int64", "float16", "complex128"])
@pytest.mark.parametrize("form", FORMS)
def test_scores_refuse_what_would_wrap_or_round(form, dtype, model):
    """The sum of two bytes, 200 + 100, is 44."""
    x = np.array([[200, 100], [100, 200]]).astype(dtype)
    for call in (FORMS[form], jax.jit(FORMS[form])):
        with pytest.raises(ValueError, match=rf"must be a floating point array.*; got dtype {dtype}"):
            call(model, x)


def test_nan_in_a_row_is_nan_in_the_scores_of_that_row_alone(rng, model):
    basis, gallery, probes = diagonalize(model), rng.normal(size=(3, 2)), rng.normal(size=(4, 2))
    probes[1, 0] = np.nan
    lost = np.zeros((3, 4), bool)
    lost[:, 1] = True
    sizes = np.array([1, 2, 2, 1])
    for scores in (llr_matrix(basis, gallery, probes), set_llr_matrix(basis, gallery, np.ones(3), probes, sizes)):
        np.testing.assert_array_equal(np.isnan(scores), lost)
    assert np.isnan(llr(model, probes[1], gallery[0]))
    with pytest.raises(ValueError, match=r"count_b must lie in \[0, inf\); got 1 values outside, the first nan"):
        set_llr_matrix(basis, gallery, np.ones(3), probes, np.array([1, np.nan, 2, 1]))


def test_no_rank_is_chosen_for_a_model_with_nan_or_indefinite_noise(model):
    for noise in (jnp.full((2, 2), jnp.nan), -jnp.eye(2)):
        broken = JointBayes(mean=model.mean, identity_cov=model.identity_cov, noise_cov=noise)
        with pytest.raises(ValueError, match="model must be a valid one; its truncation bounds are NaN"):
            choose_rank(broken, tol=0.1)


@pytest.mark.parametrize("power", [-100, -66, -60, -57, -40, 40, 57, 62, 100])
def test_in_any_unit_a_fit_is_right_or_says_that_it_is_not(power):
    """Covariances are squares, and float32 ends at 2^127: beyond the square root there is no model to be had."""
    rng = np.random.default_rng(0)
    ids = np.repeat(np.arange(6, dtype=np.int32), 4)
    x = jnp.asarray(rng.normal(size=(24, 4)) + 2 * rng.normal(size=(6, 4))[ids], jnp.float32)

    def scores(scale):
        covs = {"identity_cov": 2 * scale**2 * np.eye(4), "noise_cov": scale**2 * np.eye(4)}
        prior = JointBayes(mean=jnp.zeros(4, jnp.float32), **{k: jnp.asarray(v, jnp.float32) for k, v in covs.items()})
        images = scale * x
        stats = collect(images, ids, num_people=6, shift=images.mean(axis=0))
        model, info = fit(stats, prior, prior=prior, prior_weight=0.3, num_iters=4)
        _, left_out = leave_one_out(images, ids, prior, np.array([0.3]), num_people=6, num_iters=4)
        return llr_matrix(diagonalize(model), images, images), int(info.status), left_out.status

    with np.errstate(over="ignore", under="ignore"):
        found, status, left_out = scores(2.0**power)
    if abs(power) > 57:
        assert status >= Status.NON_FINITE
        assert (left_out >= Status.NON_FINITE).all()
    elif power > -57:
        assert status == Status.OK
        assert (left_out == Status.OK).all()
        np.testing.assert_allclose(found, scores(1.0)[0], atol=1e-4)


@pytest.mark.parametrize("power", [-30, 30])
def test_the_objective_of_a_source_that_lacks_directions_has_no_unit(power, rng):
    """In float32, where a ridge of a fixed size would outgrow the covariances of data of the size 1e-9."""
    scale, ids = 2.0**power, np.repeat(np.arange(6, dtype=np.int32), 4)
    x = jnp.asarray(rng.normal(size=(24, 3)) + 2 * rng.normal(size=(6, 3))[ids], jnp.float32)

    def objective(scale):
        cov = jnp.asarray(scale**2 * np.diag([2.0, 1.0, 0.0]), jnp.float32)
        noise = jnp.asarray(scale**2 * np.eye(3), jnp.float32)
        prior = JointBayes(mean=jnp.zeros(3, jnp.float32), identity_cov=cov, noise_cov=noise)
        stats = collect(scale * x, ids, num_people=6, shift=np.zeros(3, np.float32))
        return fit(stats, prior, prior=prior, prior_weight=0.5, num_iters=3)[1].objective

    # (1 - w) log p changes by -k d log(scale), the divergence of two covariances by nothing.
    np.testing.assert_allclose(objective(scale) + 0.5 * 24 * 3 * np.log(scale), objective(1.0), rtol=1e-4)
