"""From a source model to a target: fits for a path of prior weights w, and the w that held-out people prefer."""

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.typing import ArrayLike

from jaxface.core import checks
from jaxface.core.fitinfo import FitInfo
from jaxface.core.pytree import member, num_members
from jaxface.joint_bayes import em, objectives, posterior
from jaxface.joint_bayes.counts import checked_weights
from jaxface.joint_bayes.model import JointBayes
from jaxface.joint_bayes.posterior import EStep
from jaxface.joint_bayes.stats import collect, grouped
from jaxface.linalg.class_stats import Stats, recenter

__all__ = ["choose_weight", "fit_path", "leave_one_out"]

Criterion = Callable[[JointBayes, Any], jax.Array]  # larger is better


class Choice(NamedTuple):
    """The preferred model of a path."""

    model: JointBayes
    chosen: jax.Array  # int32 [], place in the path
    values: jax.Array  # [p], the criterion along the path


def fit_path(
    stats: Stats,
    init: JointBayes,
    prior: JointBayes,
    prior_weights: ArrayLike,
    *,
    num_iters: int,
    tol: float = 0.0,
    e_step: EStep = posterior.full,
    floor: float = 1e-6,
) -> tuple[JointBayes, FitInfo]:
    """One fit for each w of `prior_weights` `[p]`, in one vmapped call; every field gains the leading axis p.

    `e_step` is `posterior.full` or `posterior.approximate`: PX-EM takes no prior.
    """
    checks.shapes(prior_weights=(prior_weights, "p"))
    checks.floating(prior_weights=prior_weights)
    checks.between("prior_weights", prior_weights, 0.0, 1.0)
    checks.positive("floor", floor)
    stats, start, source = em.checked_problem(stats, init, prior, prior_weights, e_step=e_step)
    target = grouped(stats)

    def fit_at(prior_weight: jax.Array) -> tuple[JointBayes, FitInfo]:
        return em.fit_grouped(
            target, start, source, prior_weight, num_iters=num_iters, tol=tol, e_step=e_step, floor=floor
        )

    return jax.vmap(fit_at)(jnp.asarray(prior_weights, start.mean.dtype))


def choose_weight(path: JointBayes, held_out: Any, *, criterion: Criterion = objectives.log_likelihood) -> Choice:
    """The member of a path with the largest criterion on held-out data; the first among equals.

    The default is the log-likelihood of the `Stats` of held-out people. Any `criterion(model, held_out)` will do, such
    as minus Cllr of their pairs, which is closer to the application but noisy with few people. Members with a value
    that is not finite are never chosen.
    """
    values = jnp.stack([criterion(member(path, index), held_out) for index in range(num_members(path))])
    if checks.is_concrete(values) and not bool(jnp.isfinite(values).any()):
        raise ValueError(f"the criterion must be finite for some member of the path; got {values.tolist()}.")
    usable = jnp.where(jnp.isfinite(values), values, -jnp.inf)
    index = jnp.argmax(usable).astype(jnp.int32)
    return Choice(member(path, index), index, values)


def leave_one_out(
    x: ArrayLike,
    ids: ArrayLike,
    prior: JointBayes,
    prior_weights: ArrayLike,
    *,
    num_people: int,
    num_iters: int,
    weights: ArrayLike | None = None,
    tol: float = 0.0,
    e_step: EStep = posterior.full,
    floor: float = 1e-6,
) -> tuple[jax.Array, FitInfo]:
    """Held-out log-likelihood `[p]` along `prior_weights`, each person left out once: if people are too few to split.

    x, ids          images `[n, d]` of the target and their dense people `[n]`, -1 for rows to leave out
    prior           the source model; every fit starts at its covariances and its own training mean
    prior_weights   `[p]`, each w in [0, 1]
    num_people      people in ids, two at least
    weights, num_iters, tol, e_step, floor  of the images `[n]`, as in `stats.collect`; the others as in `fit_path`

    The report has the leading axes c and p. People are left out one after the other, so that only one path is in
    memory. Gradients are stopped.
    """
    others = {"ids": (ids, "n"), "prior_weights": (prior_weights, "p")} | em.axes_of("prior", prior)
    checks.samples(x=(x, "n d"), beside=others)
    checks.at_least("num_people", num_people, 2, "one person must remain")
    ids = checks.dense_labels("ids", ids, num_people, padding=True)
    checks.between("prior_weights", prior_weights, 0.0, 1.0)
    if checks.is_concrete(ids) and (found := len(np.unique(np.asarray(ids)[np.asarray(ids) >= 0]))) < 2:
        raise ValueError(f"ids must name at least two people; got {found}. One must remain when another is left out.")
    x, ids = jnp.asarray(x), jnp.asarray(ids)
    if weights is not None:
        checks.shapes(x=(x, "n d"), weights=(weights, "n"))
        weights = checked_weights("weights", weights, x.dtype)
    settings = {"num_iters": num_iters, "tol": tol, "e_step": e_step, "floor": floor}
    return _leave_one_out(x, ids, prior, jnp.asarray(prior_weights), weights, num_people=num_people, **settings)


@partial(jax.jit, static_argnames=("num_people", "num_iters", "tol", "e_step", "floor"))
def _leave_one_out(
    x: jax.Array,
    ids: jax.Array,
    prior: JointBayes,
    prior_weights: jax.Array,
    weights: jax.Array | None,
    *,
    num_people: int,
    num_iters: int,
    tol: float,
    e_step: EStep,
    floor: float,
) -> tuple[jax.Array, FitInfo]:
    x, ids, prior = jax.lax.stop_gradient((x, ids, prior))
    center, collected = x.mean(axis=0), partial(collect, x, num_people=num_people, weights=weights)

    def without(person: jax.Array) -> tuple[jax.Array, FitInfo]:
        train = recenter(collected(jnp.where(ids == person, -1, ids), shift=center))
        test = collected(jnp.where(ids == person, ids, -1), shift=train.shift)
        start = JointBayes(mean=train.shift, identity_cov=prior.identity_cov, noise_cov=prior.noise_cov)
        path, info = fit_path(
            train, start, prior, prior_weights, num_iters=num_iters, tol=tol, e_step=e_step, floor=floor
        )
        return jax.vmap(objectives.log_likelihood, in_axes=(0, None))(path, test), info

    values, info = jax.lax.map(without, jnp.arange(num_people, dtype=ids.dtype))
    return values.sum(axis=0), info
