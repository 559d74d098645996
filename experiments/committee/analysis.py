"""What the size of a committee and the choice of its members do, on one split."""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
from ml_collections import ConfigDict

from experiments.committee.samples import Samples, most_axes
from jaxface.core import prng
from jaxface.core.fitinfo import FitInfo, raise_if_failed
from jaxface.core.pytree import member
from jaxface.ensembles import POSTERIORS, assess, choose, fit_members, lda_member, sampling
from jaxface.ensembles.committee import Diagnosis, Growth
from jaxface.ensembles.lda_member import LdaMember
from jaxface.ensembles.posteriors import Posterior


def sizes(config: ConfigDict, samples: Samples) -> dict[str, np.ndarray]:
    """Accuracy `[settings, T]`, and errors and correlations `[settings]`, over M0 and M1, in one compilation."""
    most = most_axes(samples, config.floor)
    grid = [(round(a * most), max(1, round(b * most))) for a, b in config.size_parts]
    fixed, drawn = np.array(grid, np.int32).T
    key = prng.stream(jax.random.key(config.seed), "sizes")
    grown, diagnosis, info = _committees(
        key,
        samples,
        np.array(grid, np.int32),
        num_members=config.num_members,
        num_people=samples.num_people,
        width=int((fixed + drawn).max()),
        floor=config.floor,
        posterior=POSTERIORS[config.posterior],
    )
    raise_if_failed(info, "sizes of committees")
    return {
        "fixed": fixed,
        "drawn": drawn,
        "accuracy": np.asarray(grown.accuracy),
        "average error": np.asarray(diagnosis.average_error),
        "committee error": np.asarray(diagnosis.committee_error),
        "correlation": np.asarray(diagnosis.mean_correlation),
    }


@partial(jax.jit, static_argnames=("num_members", "num_people", "width", "floor", "posterior"))
def _committees(
    key: jax.Array,
    samples: Samples,
    grid: jax.Array,
    *,
    num_members: int,
    num_people: int,
    width: int,
    floor: float,
    posterior: Posterior,
) -> tuple[Growth, Diagnosis, FitInfo]:
    """A committee for each (M0, M1) of the grid `[s, 2]`; every result has the leading axis s.

    The draws are as wide as the largest setting, and smaller ones leave places empty. All settings share one program,
    one key and most of their random axes, so they differ by their sizes and not by their luck.
    """
    variances = (samples.train**2).mean(axis=0)
    num_components = min(width, num_people - 1)

    def at(setting: jax.Array) -> tuple[Growth, Diagnosis, FitInfo]:
        fixed, drawn = setting
        draws = {"num_members": num_members, "num_fixed": fixed, "num_random": drawn, "width": width, "floor": floor}
        axes = sampling.feature_subspaces(key, variances, **draws)
        members, info = lda_member.fit(
            samples.train, samples.train_ids, axes, num_classes=num_people, num_components=num_components
        )
        diagnosis, grown = assess(members, samples.probes, samples.probe_ids, posterior=posterior)
        return grown, diagnosis, info

    return jax.lax.map(at, grid)


def strength_against_diversity(config: ConfigDict, samples: Samples) -> dict[str, np.ndarray]:
    """Every member takes the best of rho random candidates, judged on held-out images.

    With rho = 1 members differ most; when every member may choose among all candidates, all choose the same.
    """
    key = prng.stream(jax.random.key(config.seed), "choice")
    candidates, merit = _candidates(config, samples, prng.stream(key, "candidates"))
    rows = []
    for rho in config.choices:
        numbers = {"num_members": config.num_members, "num_candidates": config.num_candidates, "subset_size": rho}
        subsets = sampling.parameter_subsets(prng.stream(key, "subsets"), **numbers)
        chosen = choose(jnp.broadcast_to(merit, (config.num_members, len(merit))), subsets)
        posterior = POSTERIORS[config.posterior]
        found, grown = assess(member(candidates, chosen), samples.probes, samples.probe_ids, posterior=posterior)
        rows.append((found.average_error, found.committee_error, found.mean_correlation, 1 - grown.accuracy[-1]))
    strength, together, correlation, error = np.array(rows, float).T
    return {
        "rho": np.array(config.choices),
        "rho average error": strength,
        "rho committee error": together,
        "rho correlation": correlation,
        "rho error": error,
    }


def _candidates(config: ConfigDict, samples: Samples, key: jax.Array) -> tuple[LdaMember, jax.Array]:
    """The candidates, and how good each of them is on held-out images `[candidates]`.

    A candidate is as good as its mean log posterior of the right class, which ties less often than a rate of errors.
    """
    axes = sampling.feature_subspaces(
        key,
        (samples.train**2).mean(axis=0),
        num_members=config.num_candidates,
        num_fixed=0,
        num_random=max(2, round(config.candidate_part * most_axes(samples, config.floor))),
        floor=config.floor,
    )
    candidates, info = lda_member.fit(samples.train, samples.train_ids, axes, num_classes=samples.num_people)
    raise_if_failed(info, "candidates")
    posterior = POSTERIORS[config.posterior]
    return candidates, _merits(candidates, samples.held_out, samples.held_out_ids, posterior=posterior)


@partial(jax.jit, static_argnames="posterior")
def _merits(candidates: LdaMember, x: jax.Array, labels: jax.Array, *, posterior: Posterior) -> jax.Array:
    """The mean log posterior of the right class `[m]`, one candidate at a time."""

    def merit(candidate: LdaMember) -> jax.Array:
        return jnp.take_along_axis(posterior(candidate, x), labels[:, None], axis=1).mean()

    return fit_members(merit, candidates, block_size=1)
