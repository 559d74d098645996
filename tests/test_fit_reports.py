"""What every fit reports: one table over the fits, and a new fit is one more row.

Entry t of the objective is its value at the parameters that step t starts from. The jitter is what was added, in the
units of the matrix it was added to.
"""

import dataclasses
import functools
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxface import joint_bayes as jb
from jaxface.core.pytree import member
from jaxface.ensembles import fusion, lda_member
from jaxface.linalg import gram
from jaxface.losses import calibration, minimize, scores
from jaxface.losses import fusion as score_fusion
from jaxface.subspace import kcfa, kernel_np_per, kernel_rca, lda, np_per, rca
from tests.tolerances import assert_close

STEPS = 3
IDS = np.repeat(np.arange(6, dtype=np.int32), 4)
RNG = np.random.default_rng(0)
X = RNG.normal(size=(24, 30)) + 2 * RNG.normal(size=(6, 30))[IDS]
IMAGES = X[:, :4]
Y = (X - X.mean(axis=0)) @ np.linalg.svd(X - X.mean(axis=0), full_matrices=False)[2][:23].T
AXES = np.array([[0, 1, 2, 5, 7, 9, 11]], np.int32)
LOGS = np.log(RNG.dirichlet(np.ones(4), size=(3, 20)))
LABELS = RNG.integers(0, 4, 20)
SCORES, SAME = RNG.normal(size=60) + np.repeat([1.0, -1.0], 30), np.repeat([True, False], 30)
SIX = {"num_groups": 6}


@dataclasses.dataclass(frozen=True)
class Iterative:
    """A fit that goes in steps, its objective written down independently, and where it starts."""

    name: str
    fit: Callable[[int], tuple[Any, Any]]  # of the number of steps
    objective: Callable[[Any], Any]  # of the parameters
    start: Any


@dataclasses.dataclass(frozen=True)
class Ridged:
    """A fit that adds to a matrix: the jitter at two units of the data."""

    name: str
    fit: Callable[[float], tuple[Any, Any]]  # of the unit
    power: int  # of the unit that the matrix has: 2 for a covariance
    expected: Callable[[], float]  # in the unit 1, densely


STATS = jb.collect(IMAGES, IDS, num_people=6, shift=IMAGES.mean(axis=0))
START = jb.JointBayes(mean=STATS.shift, identity_cov=2 * jnp.eye(4), noise_cov=jnp.eye(4))
PRIOR = jb.JointBayes(mean=STATS.shift, identity_cov=jnp.diag(jnp.arange(1.0, 5)), noise_cov=0.5 * jnp.eye(4))
PATH = jnp.array([0.1, 0.6])
ROOT = np.array([[2.0, 0], [1, 1], [0, 1], [0.5, 0]])
FACTORS = jb.LowRankJointBayes(mean=STATS.shift, root=ROOT, noise_cov=np.eye(4))
THIN = jb.JointBayes(mean=STATS.shift, identity_cov=ROOT @ ROOT.T, noise_cov=np.eye(4))


def left_out(num_iters):
    return jb.leave_one_out(IMAGES, IDS, PRIOR, PATH[:1], num_people=6, num_iters=num_iters)


def weights_objective(weights):
    right = np.exp(LOGS)[:, np.arange(20), LABELS]
    return np.log(np.asarray(weights) @ right).mean()


def rosenbrock(point, data):
    return (1 - point[0]) ** 2 + data * (point[1] - point[0] ** 2) ** 2


BINS = jb.quality.collect_bins(IMAGES, IDS, np.arange(24) % 2, num_people=6, num_bins=2, shift=IMAGES.mean(axis=0))
FEATURES = np.stack([SCORES, SCORES**2], axis=1)


def fusion_objective(found):
    cost = scores.pairwise_logistic(score_fusion.fuse(found, FEATURES), SAME, prior=0.3)
    return cost + 1e-3 / 2 * ((found.weights * FEATURES.std(axis=0)) ** 2).sum()


def calibration_objective(found):
    standard = (SCORES - SCORES.mean()) / SCORES.std()
    slope = found.slope * SCORES.std()
    offset = found.offset + found.slope * SCORES.mean()
    return scores.pairwise_logistic(slope * standard + offset, SAME, prior=0.3) + 1e-4 * slope**2


ITERATIVE = [
    Iterative(
        "joint_bayes.fit",
        lambda steps: jb.fit(STATS, START, num_iters=steps),
        lambda model: jb.log_likelihood(model, STATS),
        START,
    ),
    Iterative(
        "joint_bayes.fit with a prior",
        lambda steps: jb.fit(STATS, START, prior=PRIOR, prior_weight=0.4, num_iters=steps),
        lambda model: jb.penalized_objective(model, STATS, PRIOR, 0.4),
        START,
    ),
    Iterative(
        "joint_bayes.fit, approximate E-step",
        lambda steps: jb.fit(STATS, START, num_iters=steps, e_step=jb.posterior.approximate),
        lambda model: jb.log_likelihood(model, STATS),
        START,
    ),
    Iterative(
        "joint_bayes.fit, PX-EM",
        lambda steps: jb.fit(STATS, START, num_iters=steps, e_step=jb.posterior.expanded),
        lambda model: jb.log_likelihood(model, STATS),
        START,
    ),
    Iterative(
        "joint_bayes.fit_factors",
        lambda steps: jb.fit_factors(STATS, FACTORS, num_iters=steps),
        lambda model: jb.log_likelihood(jb.to_dense(model), STATS),
        FACTORS,
    ),
    Iterative(
        "joint_bayes.fit_low_rank",
        lambda steps: jb.fit_low_rank(STATS, THIN, rank=2, num_iters=steps),
        lambda model: jb.log_likelihood(model, STATS),
        THIN,
    ),
    Iterative(
        "joint_bayes.fit_path",
        lambda steps: jb.fit_path(STATS, START, PRIOR, PATH, num_iters=steps),
        lambda path: jnp.stack([jb.penalized_objective(member(path, i), STATS, PRIOR, PATH[i]) for i in (0, 1)]),
        jax.tree.map(lambda leaf: jnp.stack([leaf, leaf]), START),
    ),
    Iterative(
        "ensembles.fusion.fit_weights",
        lambda steps: fusion.fit_weights(LOGS, LABELS, num_iters=steps),
        weights_objective,
        np.full(3, 1 / 3),
    ),
    Iterative(
        "losses.minimize, L-BFGS",
        lambda steps: minimize(rosenbrock, jnp.array([-1.0, 1.5]), 3.0, num_iters=steps),
        lambda point: rosenbrock(point, 3.0),
        jnp.array([-1.0, 1.5]),
    ),
    Iterative(
        "losses.minimize, Adam",
        lambda steps: minimize(rosenbrock, jnp.array([-1.0, 1.5]), 3.0, num_iters=steps, learning_rate=0.1),
        lambda point: rosenbrock(point, 3.0),
        jnp.array([-1.0, 1.5]),
    ),
    Iterative(
        "losses.calibration.fit",
        lambda steps: calibration.fit(SCORES, SAME, prior=0.3, num_iters=steps),
        calibration_objective,
        calibration.Affine(slope=1 / SCORES.std(), offset=-SCORES.mean() / SCORES.std()),
    ),
    Iterative(
        "losses.fusion.fit",
        lambda steps: score_fusion.fit(FEATURES, SAME, prior=0.3, ridge=1e-3, num_iters=steps),
        fusion_objective,
        score_fusion.Fusion(weights=jnp.zeros(2), offset=jnp.zeros(())),
    ),
    Iterative(
        "joint_bayes.quality.fit_weights",
        lambda steps: jb.quality.fit_weights(BINS, START, num_iters=steps),
        lambda found: jb.log_likelihood(found.model, jb.quality.weighted(BINS, found.weights)),
        jb.quality.WeightedModel(START, jnp.ones(2)),
    ),
]


@pytest.mark.parametrize("row", ITERATIVE, ids=lambda row: row.name)
def test_the_objective_is_that_of_the_parameters_a_step_starts_from(row):
    _, info = row.fit(STEPS)
    found = np.moveaxis(np.asarray(info.objective), -1, 0)
    assert len(found) == STEPS
    assert (np.asarray(info.num_iters) == STEPS).all()
    assert_close(found[0], row.objective(row.start), factor=10)
    for step in range(1, STEPS):
        assert_close(found[step], row.objective(row.fit(step)[0]), factor=10)


def within(x, labels, number):
    """The trace of S_w / number."""
    return sum(((x[labels == c] - x[labels == c].mean(axis=0)) ** 2).sum() for c in range(6)) / number


def duplicates(unit):
    """Nobody's two images differ, so that the noise needs a floor: 1e-6 of the mean variance of an image."""
    stats = jb.collect(unit * IMAGES[4 * IDS], IDS, num_people=6, shift=np.zeros(4))
    start = jb.JointBayes(mean=jnp.zeros(4), identity_cov=unit**2 * jnp.eye(4), noise_cov=unit**2 * jnp.eye(4))
    return jb.fit(stats, start, num_iters=100)


def floor_of_duplicates():
    """At the end of EM the model is that of the people's images alone, and the noise is the floor itself."""
    model, _ = duplicates(1.0)
    return 1e-6 * float(jnp.trace(model.identity_cov)) / 4


def gram_of_people():
    k = X @ X.T
    own = (IDS[:, None] == IDS[None, :]) / 4
    return k, np.eye(24) - own


def trace_within_features():
    k, centring = gram_of_people()
    return np.trace(centring @ k @ centring) / 24**2


LINEAR = gram.linear()
RIDGED = [
    Ridged(
        "subspace.rca.fit",
        lambda unit: rca.fit(unit * X, IDS, ridge=0.2, **SIX),
        2,
        lambda: 0.2 * within(X, IDS, 24) / 23,
    ),
    Ridged(
        "subspace.lda.fit",
        lambda unit: lda.fit(unit * X, IDS, num_classes=6, num_components=3, pca_components=23, ridge=0.2),
        2,
        lambda: 0.2 * within(X, IDS, 18) / 23,
    ),
    Ridged(
        "subspace.kernel_rca.fit",
        lambda unit: kernel_rca.fit(LINEAR, unit * X, IDS, ridge=0.2, **SIX),
        4,
        lambda: 0.2 * within(X @ X.T, IDS, 24) / 23,
    ),
    Ridged(
        "subspace.kernel_rca.fit_ridge",
        lambda unit: kernel_rca.fit_ridge(LINEAR, unit * X, IDS, ridge=0.2, **SIX),
        2,
        lambda: 0.2 * trace_within_features(),
    ),
    Ridged(
        "subspace.kernel_rca.fit_metric",
        lambda unit: kernel_rca.fit_metric(LINEAR, unit * X, IDS, ridge=0.2, **SIX),
        2,
        lambda: 0.2 * trace_within_features(),
    ),
    Ridged(
        "subspace.kcfa.fit",  # on unit energy, so without a unit
        lambda unit: kcfa.fit(gram.polynomial(degree=2, offset=1.0), unit * X, IDS, num_classes=6, ridge=0.2),
        0,
        lambda: 0.2 * 4.0,
    ),
    Ridged(
        "ensembles.lda_member.fit",
        lambda unit: lda_member.fit(unit * Y, IDS, AXES, num_classes=6, ridge=0.2),
        2,
        lambda: np.array([0.2 * within(Y[:, AXES[0]], IDS, 24) / 7]),
    ),
    Ridged(
        "ensembles.lda_member.fit in order",
        lambda unit: lda_member.fit(unit * Y, IDS, AXES, num_classes=6, ridge=0.2, num_components=2),
        2,
        lambda: np.array([0.2 * within(Y[:, AXES[0]], IDS, 24) / 7]),
    ),
    Ridged(
        "ensembles.lda_member.fit_bags",
        lambda unit: lda_member.fit_bags(unit * Y, IDS, AXES, np.full((1, 24), 0.5), num_classes=6, ridge=0.2),
        2,
        lambda: np.array([0.2 * within(Y[:, AXES[0]], IDS, 24) / 7]),
    ),
    Ridged("joint_bayes.fit", duplicates, 2, floor_of_duplicates),
]


@pytest.mark.parametrize("row", RIDGED, ids=lambda row: row.name)
def test_the_jitter_is_what_was_added(row):
    _, info = row.fit(1.0)
    assert_close(info.jitter, row.expected(), factor=1e3)
    assert_close(row.fit(3.0)[1].jitter, 3.0**row.power * info.jitter, factor=1e3)


WITHOUT = {
    "subspace.rca.fit": lambda: rca.fit(X, IDS, pca_components=9, **SIX),
    "subspace.lda.fit": lambda: lda.fit(X, IDS, num_classes=6, num_components=3),
    "subspace.np_per.fit": lambda: np_per.fit(X, IDS, **SIX),
    "subspace.np_per.fit_dual": lambda: np_per.fit_dual(X, IDS, **SIX),
    "subspace.np_per.fit_dependent": lambda: np_per.fit_dependent(X, IDS, **SIX),
    "subspace.kernel_np_per.fit": lambda: kernel_np_per.fit(LINEAR, X, IDS, **SIX),
    "subspace.kernel_np_per.fit_dependent": lambda: kernel_np_per.fit_dependent(LINEAR, X, IDS, **SIX),
    "subspace.kernel_rca.fit": lambda: kernel_rca.fit(LINEAR, X, IDS, pca_components=9, **SIX),
    "ensembles.lda_member.fit": lambda: lda_member.fit(Y, IDS, AXES, num_classes=6),
    "joint_bayes.fit": functools.partial(jb.fit, STATS, START, num_iters=1),
    "joint_bayes.fit_factors": functools.partial(jb.fit_factors, STATS, FACTORS, num_iters=1),
    "joint_bayes.leave_one_out": functools.partial(left_out, 1),
}


@pytest.mark.parametrize("name", WITHOUT)
def test_where_nothing_was_added_the_jitter_is_zero(name):
    _, info = WITHOUT[name]()
    assert not np.asarray(info.jitter).any()
    assert not np.asarray(info.status).any()


def test_leave_one_out_reports_the_objectives_of_its_fits():
    """Entry t is the objective at the parameters after t steps, also of a fit without one person."""
    _, info = left_out(STEPS)
    rows, others = IMAGES[IDS != 2], IDS[IDS != 2]
    mean = rows.mean(axis=0)
    stats = jb.collect(rows, others, num_people=6, shift=mean)
    model = jb.JointBayes(mean=mean, identity_cov=PRIOR.identity_cov, noise_cov=PRIOR.noise_cov)
    for step in range(STEPS):
        if step:
            fitted, _ = jb.fit(stats, model, prior=PRIOR, prior_weight=PATH[0], num_iters=step)
        at = fitted if step else model
        assert_close(info.objective[2, 0, step], jb.penalized_objective(at, stats, PRIOR, PATH[0]), factor=10)
