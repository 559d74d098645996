"""Each message once: what came, what was expected, what to do."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxface.joint_bayes import (
    JointBayes,
    LowRankJointBayes,
    Stats,
    choose_rank,
    choose_weight,
    collect,
    diagonalize,
    fit,
    fit_factors,
    fit_low_rank,
    fit_path,
    free,
    group_by_count,
    init,
    init_factors,
    leading_factors,
    leave_one_out,
    llr,
    llr_matrix,
    llr_of_factors,
    merge,
    penalized_objective,
    pool,
    posterior,
    recenter,
    sample,
    set_llr,
    set_llr_matrix,
)
from tests.joint_bayes import draws


def stats(d=2, people=3):
    rng = np.random.default_rng(0)
    ids = np.arange(2 * people, dtype=np.int32) // 2
    return draws.collected(rng.normal(size=(2 * people, d)), ids, np.zeros(d), num_people=people)


def model(d=2):
    return JointBayes(mean=jnp.zeros(d), identity_cov=jnp.eye(d), noise_cov=jnp.eye(d))


def path():
    return jax.tree.map(lambda leaf: jnp.stack([leaf, leaf]), model())


def thin(root=((1.0,), (0.0,)), noise=None):
    return LowRankJointBayes(mean=jnp.zeros(2), root=np.asarray(root), noise_cov=jnp.eye(2) if noise is None else noise)


X, IDS, SHIFT = np.zeros((4, 2)), np.array([0, 0, 1, 1], np.int32), np.zeros(2)

CASES = {
    "factors of another dimension": (
        lambda: fit_factors(stats(), thin(np.ones((3, 1))), num_iters=1),
        r"root must have shape \[d, r\] with d = 2; got shape \(3, 1\)",
    ),
    "factors of integers": (
        lambda: fit_factors(stats(), thin(np.ones((2, 1), int)), num_iters=1),
        "root must be a floating point array; got dtype int64",
    ),
    "factors without a floor": (
        lambda: fit_factors(stats(), thin(), num_iters=1, floor=0.0),
        r"floor must lie in \(0, inf\); got 0.0",
    ),
    "factors of one person": (
        lambda: fit_factors(stats(people=1), thin(), num_iters=1),
        "stats must hold images of at least two people",
    ),
    "a start of no factors": (lambda: init_factors(stats(), rank=0), "rank must be at least 1; got 0"),
    "a start of too many factors": (
        lambda: init_factors(stats(), rank=3),
        r"rank must be at most 2 \(the dimension\); got 3",
    ),
    "a start without a ridge": (
        lambda: init_factors(stats(), rank=1, ridge=0.0),
        r"ridge must lie in \(0, inf\); got 0.0",
    ),
    "too many leading factors": (
        lambda: leading_factors(model(), rank=3),
        r"rank must be at most 2 \(the dimension\); got 3",
    ),
    "a batch of images by factors": (
        lambda: llr_of_factors(thin(), X, X),
        r"x1 must have shape \[d\]; got shape \(4, 2\)",
    ),
    "factors of a file whose shapes differ": (
        lambda: thin(np.ones((3, 1))).check(),
        r"root must have shape .* with d = 2; got shape \(3, 1\)",
    ),
    "factors of a file with noise that is none": (
        lambda: thin(noise=-jnp.eye(2)).check(),
        "noise_cov must be positive definite",
    ),
    "NaN features": (
        lambda: collect(np.full((4, 2), np.nan), IDS, num_people=2, shift=SHIFT),
        r"x must be finite; 8 of 8 values are NaN or infinite, the first at index \(0, 0\)",
    ),
    "integer features": (
        lambda: collect(X.astype(int), IDS, num_people=2, shift=SHIFT),
        "x must be a floating point array; got dtype int64",
    ),
    "a shift of another dimension": (
        lambda: collect(X, IDS, num_people=2, shift=np.zeros(3)),
        r"shift must have shape \[d\] with d = 2; got shape \(3,\) \(d = 2 comes from x\)",
    ),
    "ids that are not dense": (
        lambda: collect(X, IDS + 3, num_people=2, shift=SHIFT),
        r"ids must be in \[0, 2\) or -1 for padding; got values from 3 to 4",
    ),
    "names for ids": (
        lambda: collect(X, np.zeros(4), num_people=2, shift=SHIFT),
        "ids must be dense integers; got dtype float64",
    ),
    "blocks about different shifts": (
        lambda: merge(stats(), recenter(stats(), np.ones(2))),
        "a and b must be collected about the same shift; recenter one of them",
    ),
    "pooled sets of other dimensions": (
        lambda: pool(stats(), stats(d=3)),
        r"b must have shape \[n, d\] with d = 2; got shape \(3, 3\)",
    ),
    "blocks of different people": (lambda: merge(stats(), stats(people=4)), r"b must have shape \[c, d\] with c = 3"),
    "no images": (
        lambda: group_by_count(Stats(jnp.zeros(3), jnp.zeros((3, 2)), jnp.zeros((2, 2)), jnp.zeros(2))),
        "stats must hold at least one image; every count is zero",
    ),
    "a start of another dimension": (
        lambda: fit(stats(), model(3), num_iters=1),
        r"init_mean must have shape \[d\] with d = 2; got shape \(3,\)",
    ),
    "a source of another dimension": (
        lambda: fit(stats(), model(), prior=model(3), prior_weight=0.5, num_iters=1),
        r"prior_mean must have shape \[d\] with d = 2; got shape \(3,\)",
    ),
    "one person": (
        lambda: fit(stats(people=1), model(), num_iters=1),
        "stats must hold images of at least two people; got 1",
    ),
    "nobody": (
        lambda: fit(Stats(jnp.zeros(3), jnp.zeros((3, 2)), jnp.zeros((2, 2)), jnp.zeros(2)), model(), num_iters=1),
        "stats must hold images of at least two people; got 0",
    ),
    "w above one": (
        lambda: fit(stats(), model(), prior=model(), prior_weight=1.5, num_iters=1),
        r"prior_weight must lie in \[0, 1\]; got 1.5",
    ),
    "a weight without a prior": (
        lambda: fit(stats(), model(), prior_weight=0.5, num_iters=1),
        "prior_weight must be 0 without a prior; got 0.5. Give the source model as prior",
    ),
    "a prior for PX-EM": (
        lambda: fit(stats(), model(), prior=model(), prior_weight=0.5, num_iters=1, e_step=posterior.expanded),
        "prior must be None with e_step=posterior.expanded; got a source model.*use e_step=posterior.full",
    ),
    "a path of PX-EM": (
        lambda: fit_path(stats(), model(), model(), np.array([0.0]), num_iters=1, e_step=posterior.expanded),
        "prior must be None with e_step=posterior.expanded",
    ),
    "a low rank above the dimension": (
        lambda: fit_low_rank(stats(), model(), rank=3, num_iters=1),
        r"rank must be at most 2 \(the dimension\); got 3",
    ),
    "a low rank of zero": (
        lambda: fit_low_rank(stats(), model(), rank=0, num_iters=1),
        "rank must be at least 1; got 0",
    ),
    "low rank without a floor": (
        lambda: fit_low_rank(stats(), model(), rank=1, num_iters=1, floor=-1.0),
        r"floor must lie in \(0, inf\); got -1.0",
    ),
    "low rank of one person": (
        lambda: fit_low_rank(stats(people=1), model(), rank=1, num_iters=1),
        "stats must hold images of at least two people; got 1",
    ),
    "no floor": (lambda: fit(stats(), model(), num_iters=1, floor=0.0), r"floor must lie in \(0, inf\); got 0.0"),
    "no iterations": (lambda: fit(stats(), model(), num_iters=0), "num_iters must be at least 1; got 0"),
    "no ridge": (lambda: init(stats(), ridge=0.0), r"ridge must lie in \(0, inf\); got 0.0"),
    "a path outside the interval": (
        lambda: fit_path(stats(), model(), model(), np.array([0.0, -1.0, 2.0]), num_iters=1),
        r"prior_weights must lie in \[0, 1\]; got 2 values outside, the first -1.0",
    ),
    "one weight for a path": (
        lambda: fit_path(stats(), model(), model(), np.asarray(0.5), num_iters=1),
        r"prior_weights must have shape \[p\]; got shape \(\)",
    ),
    "nobody left": (
        lambda: leave_one_out(X, 0 * IDS, model(), np.array([0.5]), num_people=1, num_iters=1),
        r"num_people must be at least 2 \(one person must remain\); got 1",
    ),
    "an old key": (
        lambda: sample(np.zeros(2, np.uint32), model(), num_people=1, num_images=1),
        "key must be a typed PRNG key",
    ),
    "a rank above the dimension": (
        lambda: diagonalize(model(), rank=3),
        r"rank must be at most 2 \(the dimension\); got 3",
    ),
    "free parameters without a direction": (lambda: free(model(), rank=0), "rank must be at least 1; got 0"),
    "a tolerance of zero": (
        lambda: choose_rank(model(), tol=0.0),
        r"tol must lie in \(0, inf\); got 0.0",
    ),
    "probes of another dimension": (
        lambda: llr_matrix(diagonalize(model()), X, np.zeros((4, 3))),
        r"probes must have shape \[q, d\] with d = 2; got shape \(4, 3\)",
    ),
    "sums of another rank": (
        lambda: set_llr_matrix(diagonalize(model()), X, np.ones(4), np.zeros((4, 3)), np.ones(4)),
        r"sum_b must have shape \[q, r\] with r = 2; got shape \(4, 3\)",
    ),
    "several weights": (
        lambda: fit(stats(), model(), prior=model(), prior_weight=jnp.array([0.1, 0.5]), num_iters=1),
        r"prior_weight must be one number; got shape \(2,\). transfer.fit_path takes several",
    ),
    "a negative floor of a path": (
        lambda: fit_path(stats(), model(), model(), np.array([0.5]), num_iters=1, floor=-1.0),
        r"floor must lie in \(0, inf\); got -1.0",
    ),
    "a weight beyond one": (
        lambda: penalized_objective(model(), stats(), model(), 7.0),
        r"prior_weight must lie in \[0, 1\]; got 7.0",
    ),
    "people beyond the number of identities": (
        lambda: leave_one_out(X, IDS + 1, model(), np.array([0.5]), num_people=2, num_iters=1),
        r"ids must be in \[0, 2\) or -1 for padding; got values from 1 to 2",
    ),
    "a path that fits nobody": (
        lambda: choose_weight(path(), None, criterion=lambda model, _: jnp.nan * model.mean.sum()),
        r"the criterion must be finite for some member of the path; got \[nan, nan\]",
    ),
    "a number for a shift": (
        lambda: recenter(stats(), 0.0),
        r"shift must have shape \[d\]; got shape \(\)",
    ),
    "a batch of images as one": (
        lambda: llr(model(), X, X),
        r"x1 must have shape \[d\]; got shape \(4, 2\)",
    ),
    "a batch of sets as one": (
        lambda: set_llr(diagonalize(model()), X, 1.0, X, 1.0),
        r"sum_a must have shape \[r\]; got shape \(4, 2\)",
    ),
    "a set of a negative size": (
        lambda: set_llr_matrix(diagonalize(model()), X, np.array([1, -1, 1, 1]), X, np.ones(4)),
        r"count_a must lie in \[0, inf\); got 1 values outside, the first -1",
    ),
    "sizes that nobody knows yet": (
        lambda: jax.jit(lambda count: set_llr_matrix(diagonalize(model()), X, np.ones(4), X, count))(np.ones(4)),
        "count_a and count_b must be known outside jit and vmap.*or vmap set_llr",
    ),
}


@pytest.mark.parametrize("what", CASES)
def test_message(what):
    call, message = CASES[what]
    with pytest.raises(ValueError, match=message):
        call()


@pytest.mark.parametrize("field", ["identity_cov", "noise_cov"])
@pytest.mark.parametrize("role", ["init", "prior"])
def test_covariances_of_another_dimension(role, field):
    wrong = JointBayes(**(vars(model()) | {field: jnp.eye(3)}))
    given = {"prior": wrong, "prior_weight": 0.5} if role == "prior" else {}
    with pytest.raises(ValueError, match=rf"{role}_{field} must have shape \[d, d\] with d = 2; got shape \(3, 3\)"):
        fit(stats(), wrong if role == "init" else model(), num_iters=1, **given)
