"""Rows J: expectation maximisation of Joint Bayes against a loop over people, how it scales, and its statistics."""

import importlib
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from benchmarks import floors
from benchmarks.rows import Row, cost, speedup
from jaxface import joint_bayes
from jaxface.data import synthetic
from jaxface.joint_bayes import em, posterior
from jaxface.joint_bayes.stats import GroupedStats

_ITERATIONS = 20
_PEOPLE, _IMAGES = 2000, 45911
_SEED = 20260711
_EM_WORK = (
    "X'X once; in each iteration the eigenvectors of a d x d matrix and three products with the rows of the E-step"
)


class Problem(NamedTuple):
    """Images of labelled people and where EM starts."""

    x: np.ndarray  # [n, d]
    their_x: np.ndarray  # [n, d], in the peer's precision
    ids: np.ndarray  # int32 [n]
    start: joint_bayes.JointBayes


def _problem(d: int, dtype: str, their_dtype: str) -> Problem:
    rng = np.random.default_rng(_SEED)
    counts = 1 + rng.multinomial(_IMAGES - _PEOPLE, rng.dirichlet(np.full(_PEOPLE, 4.0)))
    truth = synthetic.gaussian_identities(rng, num_people=_PEOPLE, images_per_person=counts, dim=d)
    x = np.asarray(truth.features, dtype)
    start = joint_bayes.JointBayes(
        mean=jnp.asarray(x.mean(axis=0)),
        identity_cov=jnp.eye(d, dtype=dtype),
        noise_cov=jnp.eye(d, dtype=dtype),
    )
    return Problem(x, x.astype(their_dtype), truth.ids, start)


def _ours(problem: Problem) -> Any:
    """Statistics, grouping and all iterations."""
    people = int(problem.ids.max()) + 1
    stats = joint_bayes.collect(problem.x, problem.ids, num_people=people, shift=problem.start.mean)
    return joint_bayes.fit(stats, problem.start, num_iters=_ITERATIONS)[0]


def _loop(problem: Problem) -> tuple[np.ndarray, np.ndarray]:
    """The same EM as one would write it down: person by person, one inverse for each different number of images."""
    centered = problem.their_x - np.asarray(problem.start.mean, problem.their_x.dtype)
    order = np.argsort(problem.ids, kind="stable")
    people = np.split(centered[order], np.cumsum(np.bincount(problem.ids))[:-1])
    d = centered.shape[1]
    identity = noise = np.eye(d, dtype=centered.dtype)
    for _ in range(_ITERATIONS):
        gains: dict[int, tuple[np.ndarray, np.ndarray]] = {}
        sum_identity, sum_noise = np.zeros_like(identity), np.zeros_like(noise)
        for rows in people:
            m = len(rows)
            if m not in gains:
                gain = np.linalg.solve(m * identity + noise, identity).T * m  # T_mu (T_mu + T_eps / m)^-1
                gains[m] = gain, identity - gain @ identity
            gain, spread = gains[m]
            mu = gain @ rows.mean(axis=0)
            eps = rows - mu
            sum_identity += np.outer(mu, mu) + spread
            sum_noise += eps.T @ eps + m * spread
        identity, noise = sum_identity / len(people), sum_noise / len(centered)
    return identity, noise


def _same_model(problem: Problem, ours: Any, theirs: tuple[np.ndarray, np.ndarray]) -> str:
    tol = 1e-8 if problem.x.dtype == np.float64 else 2e-2
    worst = 0.0
    for found, expected in zip((ours.identity_cov, ours.noise_cov), theirs, strict=True):
        worst = max(worst, float(np.linalg.norm(found - expected) / np.linalg.norm(expected)))
    assert worst < tol, f"covariances differ by {worst:.1e} of their norm"
    return f"covariances after {_ITERATIONS} iterations, to {worst:.0e}"


def _floor(problem: Problem) -> Any:
    rows = jnp.asarray(problem.x[: _num_rows(np.bincount(problem.ids), problem.x.shape[1])])
    start = floors.moment(problem.x)
    return floors.em_iterations(rows, start / len(problem.x), num_iters=_ITERATIONS)


def _num_rows(count: np.ndarray, d: int) -> int:
    """The rows of an E-step: at most d + 1 for each different number of images."""
    return int(np.minimum(np.unique(count[count > 0], return_counts=True)[1], d + 1).sum())


def _em_row(name: str, d: int, dtype: str, target: float, their_dtype: str | None = None) -> Row:
    peer = "NumPy loop over people, one inverse for each number of images"
    return Row(
        name=name,
        work=f"Joint Bayes EM, {_ITERATIONS} iterations, {_PEOPLE:,} people, {_IMAGES:,} images, d = {d}",
        peer=f"the same in {their_dtype}, as NumPy has it unless told otherwise" if their_dtype else peer,
        dtype=dtype,
        data=lambda: _problem(d, dtype, their_dtype or dtype),
        ours=_ours,
        theirs=_loop,
        agree=_same_model,
        target=speedup(at_least=target),
        packages=("numpy",),
        x64=dtype == "float64",
        floor=_floor,
        floor_work=_EM_WORK,
        reason="sums over the images of a person, their grouping by number of images, and the M-step",
    )


_RANK = 100


class Recordings(NamedTuple):
    """A problem and what the peer's container is made of."""

    problem: Problem
    fields: dict[str, np.ndarray]


def _recordings() -> Recordings:
    problem = _problem(400, "float64", "float64")
    n = len(problem.x)
    fields = {
        "modelset": problem.ids.astype(str).astype(object),
        "segset": np.arange(n).astype(str).astype(object),
        "start": np.full(n, None),
        "stop": np.full(n, None),
        "stat0": np.ones((n, 1)),
        "stat1": problem.x,
    }
    return Recordings(problem, fields)


def _plda(recordings: Recordings) -> joint_bayes.JointBayes:
    """EM of a simplified PLDA, `T_mu = F F'`, whose E-step takes one person after the other in NumPy."""
    plda = importlib.import_module("speechbrain.processing.PLDA_LDA")
    model = plda.PLDA(rank_f=_RANK, nb_iter=_ITERATIONS)
    model.plda(plda.StatObject_SB(**recordings.fields))
    return joint_bayes.JointBayes(mean=model.mean, identity_cov=model.F @ model.F.T, noise_cov=model.Sigma)


def _as_likely(recordings: Recordings, ours: Any, theirs: Any) -> str:
    """Their identities have a low rank and ours have not: ours must be at least as likely."""
    x, ids, start = recordings.problem.x, recordings.problem.ids, recordings.problem.start
    stats = joint_bayes.collect(x, ids, num_people=_PEOPLE, shift=start.mean)
    each = [float(joint_bayes.log_likelihood(model, stats)) / len(x) for model in (ours, theirs)]
    assert each[0] >= each[1], f"log-likelihoods an image are {each[0]:.3f} and {each[1]:.3f}"
    return f"log-likelihoods an image {each[0]:.3f} and {each[1]:.3f}, theirs with identities of rank {_RANK}"


def _rows_of(people: int, images: int) -> tuple[GroupedStats, joint_bayes.JointBayes]:
    """Statistics with at most 12 different numbers of images, so that grouping has something to group."""
    rng = np.random.default_rng(_SEED)
    each = images // people
    counts = rng.integers(max(1, each - 5), each + 6, people)
    truth = synthetic.gaussian_identities(rng, num_people=people, images_per_person=counts, dim=128)
    x = np.asarray(truth.features, np.float32)
    mean = jnp.asarray(x.mean(axis=0))
    stats = joint_bayes.collect(x, truth.ids, num_people=people, shift=mean)
    eye = jnp.eye(128, dtype=jnp.float32)
    return joint_bayes.group_by_count(stats), joint_bayes.JointBayes(mean=mean, identity_cov=eye, noise_cov=eye)


def _iterations(problem: tuple[GroupedStats, joint_bayes.JointBayes]) -> Any:
    rows, start = problem
    return em.fit_grouped(rows, start, None, 0.0, num_iters=_ITERATIONS, tol=0.0, e_step=posterior.full, floor=1e-6)[0]


def _both_finite(_: Any, ours: Any, theirs: Any) -> str:
    assert all(bool(jnp.isfinite(model.noise_cov).all()) for model in (ours, theirs)), "a fit is not finite"
    return "both fits are finite"


def _growth_row(name: str, what: str, larger: tuple[int, int], smaller: tuple[int, int], target: float) -> Row:
    return Row(
        name=name,
        work=f"{_ITERATIONS} iterations on the statistics of {larger[0]:,} people, {larger[1]:,} images, d = 128",
        peer=f"itself, {what}: {smaller[0]:,} people, {smaller[1]:,} images",
        dtype="float32",
        data=lambda: (_rows_of(*larger), _rows_of(*smaller)),
        ours=lambda problems: _iterations(problems[0]),
        theirs=lambda problems: _iterations(problems[1]),
        agree=_both_finite,
        target=cost(at_most=target),
        floor=lambda problems: floors.em_iterations(problems[0][0].rows, problems[0][0].within, num_iters=_ITERATIONS),
        floor_work="that of J1 without X'X",
    )


def _statistics_data() -> tuple[jax.Array, jax.Array, jax.Array]:
    rng = np.random.default_rng(_SEED)
    x = jnp.asarray(rng.normal(size=(105_000, 400)).astype(np.float32))
    return x, jnp.asarray(rng.integers(0, 5000, len(x)).astype(np.int32)), jnp.zeros(400, jnp.float32)


def _collected(data: tuple[jax.Array, jax.Array, jax.Array]) -> joint_bayes.Stats:
    """As a user calls it, checks included; inside another program all rows would be one block."""
    x, ids, shift = data
    return joint_bayes.collect(x, ids, num_people=5000, shift=shift)


@jax.jit
def _product(data: tuple[jax.Array, jax.Array, jax.Array]) -> jax.Array:
    return data[0].T @ data[0]


def _same_moment(_: Any, ours: joint_bayes.Stats, theirs: jax.Array) -> str:
    worst = float(jnp.abs(ours.second_moment - theirs).max() / jnp.abs(theirs).max())
    assert worst < 1e-5, f"second moments differ by {worst:.1e}"
    return f"second moment, to {worst:.0e}"


ROWS = (
    _em_row("J1.f64", 128, "float64", 25.0),
    _em_row("J1.f32", 128, "float32", 50.0),
    _em_row("J1.f32.default", 128, "float32", 50.0, their_dtype="float64"),
    _em_row("J2.f64", 400, "float64", 30.0),
    _em_row("J2.f32", 400, "float32", 70.0),
    _em_row("J2.f32.default", 400, "float32", 70.0, their_dtype="float64"),
    Row(
        name="J2.speechbrain",
        work=f"Joint Bayes EM, {_ITERATIONS} iterations, {_PEOPLE:,} people, {_IMAGES:,} images, d = 400",
        peer=f"speechbrain PLDA of rank {_RANK}",
        dtype="float64",
        data=_recordings,
        ours=lambda recordings: _ours(recordings.problem),
        theirs=_plda,
        agree=_as_likely,
        target=speedup(at_least=3.5),
        packages=("speechbrain",),
        x64=True,
        floor=lambda recordings: _floor(recordings.problem),
        floor_work=_EM_WORK,
    ),
    _growth_row("J3.images", "with an eighth of the images", (2000, 8 * 46000), (2000, 46000), 1.1),
    _growth_row("J3.people", "with an eighth of the people", (8 * 2500, 8 * 57500), (2500, 57500), 1.3),
    Row(
        name="J4",
        work="statistics of 105,000 images, d = 400, 5,000 people",
        peer="one GEMM X'X in JAX",
        dtype="float32",
        data=_statistics_data,
        ours=_collected,
        theirs=_product,
        agree=_same_moment,
        target=cost(at_most=2.0),
        floor=_product,
        floor_work="X'X",
    ),
)
