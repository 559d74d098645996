"""What the size of a committee and the freedom of its members do, on one split."""

import jax
import jax.numpy as jnp
import numpy as np
from ml_collections import ConfigDict

from experiments.committee.samples import Samples, freedom
from jaxface.core import prng
from jaxface.core.fitinfo import raise_if_failed
from jaxface.core.pytree import member
from jaxface.ensembles import POSTERIORS, choose, diagnose, fusion, lda_member, log_posteriors, sampling, sweep


def sizes(config: ConfigDict, samples: Samples) -> dict[str, np.ndarray]:
    """Accuracy `[settings, T]`, and errors and correlations `[settings]`, over M0 and M1, in one compilation."""
    most_axes = freedom(samples, config.floor)
    grid = [(round(a * most_axes), max(1, round(b * most_axes))) for a, b in config.size_parts]
    fixed, drawn = np.array(grid, np.int32).T
    most = np.full(len(grid), samples.num_people - 1, np.int32)
    found = sweep(
        prng.stream(jax.random.key(config.seed), "sizes"),
        samples.train, samples.train_ids, samples.probes, samples.probe_ids,
        num_fixed=fixed, num_random=drawn, num_components=most, num_members=config.num_members,
        num_classes=samples.num_people, floor=config.floor, posterior=POSTERIORS[config.posterior],
    )  # fmt: skip
    raise_if_failed(found.info, "sizes of committees")
    return {
        "fixed": fixed,
        "drawn": drawn,
        "accuracy": np.asarray(found.growth.accuracy),
        "average error": np.asarray(found.diagnosis.average_error),
        "committee error": np.asarray(found.diagnosis.committee_error),
        "correlation": np.asarray(found.diagnosis.mean_correlation),
    }


def freedom_of_choice(config: ConfigDict, samples: Samples) -> dict[str, np.ndarray]:
    """Strength against diversity: every member takes the best of rho random candidates, judged on held-out images.

    With rho = 1 members differ most; when every member may choose among all candidates, all choose the same.
    """
    key = prng.stream(jax.random.key(config.seed), "choice")
    axes = sampling.feature_subspaces(
        prng.stream(key, "candidates"), (samples.train**2).mean(axis=0), num_members=config.num_candidates,
        num_fixed=0, num_random=max(2, round(config.candidate_part * freedom(samples, config.floor))),
        floor=config.floor,
    )  # fmt: skip
    candidates, info = lda_member.fit(samples.train, samples.train_ids, axes, num_classes=samples.num_people)
    raise_if_failed(info, "candidates")
    posterior = POSTERIORS[config.posterior]
    held_out = log_posteriors(candidates, samples.held_out, posterior=posterior)
    probes = log_posteriors(candidates, samples.probes, posterior=posterior)
    # The mean log posterior of the right class: finer than a rate of errors, so that ties are rare.
    right = jnp.take_along_axis(held_out, jnp.asarray(samples.held_out_ids)[None, :, None], axis=2)[:, :, 0].mean(
        axis=1
    )
    rows = []
    for rho in config.choices:
        subsets = sampling.parameter_subsets(
            prng.stream(key, "subsets"), num_members=config.num_members, num_candidates=config.num_candidates,
            subset_size=rho,
        )  # fmt: skip
        chosen = choose(jnp.broadcast_to(right, (config.num_members, len(right))), subsets)
        found = member(probes, chosen)
        diagnosis = diagnose(found, samples.probe_ids)
        wrong = np.asarray(fusion.predict(fusion.sum(found))) != samples.probe_ids
        rows.append((diagnosis.average_error, diagnosis.committee_error, diagnosis.mean_correlation, wrong.mean()))
    strength, together, correlation, error = np.array(rows, float).T
    return {
        "rho": np.array(config.choices),
        "rho average error": strength,
        "rho committee error": together,
        "rho correlation": correlation,
        "rho error": error,
    }
