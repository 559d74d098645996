"""Ties, NaN, impossible truths, units, unsigned labels: the same answer, NaN, a status or an error; never a guess."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxface.core.fitinfo import FitError, Status, raise_if_failed
from jaxface.ensembles import (
    POSTERIORS,
    RULES,
    choose,
    fused,
    fusion,
    growth,
    lda_member,
    log_posteriors,
    sampling,
    score_matrix,
    score_pairs,
)
from jaxface.ensembles.pair_scores import cosine, distance
from jaxface.ensembles.posteriors import gaussian as posteriors_of_rows
from tests.ensembles import draws
from tests.tolerances import assert_close

C = 6
KEY = jax.random.key(0)


@pytest.mark.parametrize("name", RULES)
def test_growth_names_the_classes_that_the_rule_names_of_every_prefix(name):
    """Members that give the same posteriors to other classes: mathematical ties, which rounding settles one way."""
    rng, rule = np.random.default_rng(0), RULES[name]
    base = rng.dirichlet(np.ones(3), size=500)
    log_p = jnp.asarray(np.log([rng.permuted(base, axis=1) for _ in range(9)]), jnp.float32)
    named = [np.asarray(fusion.predict(rule(log_p[:size]))) for size in range(1, 10)]
    for label in range(3):
        found = growth(log_p, np.full(500, label, np.int32), rule=rule).accuracy
        np.testing.assert_array_equal(np.round(500 * found), [(of_size == label).sum() for of_size in named])


@pytest.mark.parametrize("name", RULES)
def test_nan_names_no_class(name, rng):
    log_p = draws.posteriors(rng)
    log_p[2, 3, 1] = np.nan
    answer = RULES[name](jnp.asarray(log_p))
    assert np.isnan(answer[3]).any()
    assert np.isfinite(np.delete(answer, 3, axis=0)).all()
    with pytest.raises(ValueError, match="fused must be free of NaN to name a class; 1 answers hold NaN"):
        fusion.predict(answer)
    named = jax.jit(fusion.predict)(answer)
    assert np.flatnonzero(np.asarray(named) == -1).tolist() == [3]
    accuracy = growth(log_p, np.zeros(7, np.int32), rule=RULES[name]).accuracy
    np.testing.assert_array_equal(np.isnan(accuracy), [False, False, True, True, True])


def test_weights_are_not_fitted_to_nan(rng):
    log_p, labels = draws.posteriors(rng), np.zeros(7, np.int32)
    log_p[1, 2, 3] = np.nan
    with pytest.raises(
        ValueError, match=r"log_posteriors must lie in \[-inf, inf\); got 1 values outside, the first nan"
    ):
        fusion.fit_weights(log_p, labels, num_iters=2)
    _, info = jax.jit(functools.partial(fusion.fit_weights, num_iters=2))(log_p, labels)
    assert int(info.status) == Status.NON_FINITE


@pytest.mark.parametrize("tol", [0.0, 1e-3])
def test_an_impossible_truth_leaves_the_weights_equal_and_says_so(tol):
    with np.errstate(divide="ignore"):
        log_p = np.log(np.array([[[0.0, 1.0]], [[0.0, 1.0]]]))
    weights, info = fusion.fit_weights(log_p, np.zeros(1, np.int32), num_iters=3, tol=tol)
    assert_close(weights, np.array([0.5, 0.5]))
    assert int(info.status) == Status.UNIDENTIFIED
    with pytest.raises(FitError, match="every candidate gives the truth a probability of zero"):
        raise_if_failed(info)


def test_no_candidate_is_chosen_by_nan():
    criterion, subsets = np.array([[0.1, 0.7, 0.3], [0.4, np.nan, 0.2]]), np.array([[0, 1], [1, 2]])
    with pytest.raises(ValueError, match="criterion must be free of NaN to choose by; 1 members found NaN"):
        choose(criterion, subsets)
    np.testing.assert_array_equal(jax.jit(choose)(criterion, subsets), [1, -1])


def test_no_axes_are_drawn_by_nan():
    with pytest.raises(ValueError, match="variances must be finite; 1 of 3"):
        sampling.feature_subspaces(KEY, np.array([2.0, np.nan, 1.0]), num_members=1, num_fixed=1, num_random=1)


def test_unsigned_labels_and_axes(rng):
    y, labels, _ = draws.coordinates(rng)
    axes = draws.random_axes(rng, 2, 4, y.shape[1])
    narrow, weights, people = labels.astype(np.uint8), np.ones((2, len(y)), np.uint8), np.array([[0, 2]], np.uint32)
    fit = functools.partial(lda_member.fit, y, num_classes=C)
    assert_close(fit(narrow, axes.astype(np.uint8)), fit(labels, axes))
    bags = functools.partial(lda_member.fit_bags, y, num_classes=C)
    assert_close(bags(narrow, axes, weights), bags(labels, axes, np.ones((2, len(y)))))
    np.testing.assert_array_equal(sampling.class_weights(people, narrow)[0], (labels == 0) | (labels == 2))


@pytest.mark.parametrize("power", [-100, -60, 60, 100])
@pytest.mark.parametrize("num_components", [None, 2])
def test_members_in_any_unit(power, num_components, rng):
    """To the last bit: a power of two is no rounding. The basis has the inverse unit, the jitter the square."""
    y, labels, _ = draws.coordinates(rng)
    y, scale = jnp.asarray(y, jnp.float32), 2.0**power
    axes, weights = draws.random_axes(rng, 2, 4, y.shape[1]), rng.uniform(size=(2, len(y)))
    settings = {"num_classes": C, "ridge": 0.1, "num_components": num_components}
    for fit in (lda_member.fit, functools.partial(lda_member.fit_bags, sample_weights=weights)):
        members, info = fit(y=y, labels=labels, axes=axes, **settings)
        other, report = fit(y=scale * y, labels=labels, axes=axes, **settings)
        np.testing.assert_array_equal(scale * np.asarray(other.basis, np.float64), members.basis)
        np.testing.assert_array_equal(other.centers, members.centers)
        assert report.status.tolist() == info.status.tolist() == [0, 0]
        with np.errstate(over="ignore"):
            np.testing.assert_array_equal(report.jitter, np.float32(scale**2 * np.asarray(info.jitter, np.float64)))
        for posterior in POSTERIORS.values():
            assert_close(
                log_posteriors(other, scale * y, posterior=posterior), log_posteriors(members, y, posterior=posterior)
            )


@pytest.mark.parametrize("scale", [1e-30, 1.0, 1e30])
def test_columns_that_are_not_principal_are_found_in_any_unit(scale, rng):
    y, labels, _ = draws.coordinates(rng)
    turned = scale * y[:, :2] @ np.array([[1.0, 1.0], [0.0, 1.0]])
    with pytest.raises(ValueError, match="y must be the principal coordinates of these very samples"):
        lda_member.fit(turned.astype(np.float32), labels, np.array([[0, 1]]), num_classes=C)


@pytest.mark.parametrize("dtype", [np.uint8, np.float16])
def test_what_would_wrap_or_round_is_refused_at_every_door(dtype, rng):
    y, labels, _ = draws.coordinates(rng)
    axes = draws.random_axes(rng, 2, 4, y.shape[1])
    members, _ = lda_member.fit(y, labels, axes, num_classes=C)
    one, x = jax.tree.map(lambda leaf: leaf[0], members), y.astype(dtype)
    log_p = np.zeros((2, len(y), C), dtype)
    calls = {
        "fit": lambda: lda_member.fit(x, labels, axes, num_classes=C),
        "enroll": lambda: lda_member.enroll(members, x, labels, num_classes=C),
        "transform": lambda: lda_member.transform(one, x[0]),
        "gaussian": lambda: lda_member.gaussian(one, x),
        "log_posteriors": lambda: log_posteriors(members, x, posterior=lda_member.cosine),
        "fused": lambda: fused(members, x, posterior=lda_member.gaussian, rule=fusion.sum),
        "score_matrix": lambda: score_matrix(members, x, x, score=cosine),
        "score_pairs": lambda: score_pairs(members, x, x, score=distance),
        "growth": lambda: growth(log_p, labels),
        "sum": lambda: fusion.sum(jnp.asarray(log_p)),
        "predict": lambda: fusion.predict(jnp.asarray(log_p[0])),
        "fit_weights": lambda: fusion.fit_weights(log_p, labels, num_iters=1),
    }
    for call in calls.values():
        with pytest.raises(ValueError, match=rf"must be a floating point array.*; got dtype {np.dtype(dtype)}"):
            call()


@pytest.mark.parametrize("scale", [1.0, 1e13, 1e25])
def test_people_who_lie_far_apart_have_posteriors_of_zero_and_one(scale, rng):
    """Members and images in a larger unit: squares of distances are infinite, and the nearest person is certain."""
    members = lda_member.LdaMember(
        axes=np.arange(3, dtype=np.int32),
        basis=(scale * rng.normal(size=(3, 2))).astype(np.float32),
        centers=(scale**1.5 * rng.normal(size=(4, 2))).astype(np.float32),
    )
    y = (np.sqrt(scale) * rng.normal(size=(9, 3))).astype(np.float32)
    z, centers = y.astype(np.float64) @ members.basis, np.asarray(members.centers, np.float64)
    squared = ((z[:, None] - centers[None]) ** 2).sum(axis=2) / 2
    expected = -squared - jax.nn.logsumexp(-squared, axis=1, keepdims=True)
    for found in (
        lda_member.gaussian(members, y),
        posteriors_of_rows(jnp.asarray(z, jnp.float32), jnp.asarray(centers, jnp.float32)),
    ):
        near = np.isfinite(found)
        np.testing.assert_allclose(np.asarray(found)[near], expected[near], rtol=1e-4, atol=1e-4)
        assert (expected[~near] < -1e30).all()
    assert np.isfinite(lda_member.cosine(members, y)).all()


def test_what_is_known_inside_a_program_is_checked_there_too(rng):
    """A committee and posteriors that a jitted function closes over are concrete while it is traced."""
    y, labels, _ = draws.coordinates(rng)
    members, _ = lda_member.fit(y, labels, draws.random_axes(rng, 2, 4, y.shape[1]), num_classes=C)
    known = fused(members, y, posterior=lda_member.gaussian, rule=fusion.sum)

    @jax.jit
    def both(y):
        return fused(members, y, posterior=lda_member.gaussian, rule=fusion.sum), fusion.predict(known)

    again, named = both(y)
    assert_close(again, known)
    np.testing.assert_array_equal(named, fusion.predict(known))
    with pytest.raises(ValueError, match="number of columns of x must be at least"):
        jax.jit(lambda y: fused(members, y, posterior=lda_member.gaussian, rule=fusion.sum))(y[:, :1])
