"""Errors of single LDAs, tuned on held-out images, and of committees, on the probes of one split.

Everybody classifies by the nearest class mean in whitened coordinates. A single LDA is a committee of one.
"""

from collections.abc import Mapping

import jax
import numpy as np
from ml_collections import ConfigDict

from experiments.committee.samples import Samples, freedom
from jaxface.core import prng
from jaxface.core.fitinfo import FitInfo, raise_if_failed
from jaxface.data import pairs
from jaxface.ensembles import POSTERIORS, RULES, fusion, lda_member, log_posteriors, sampling, score_matrix
from jaxface.ensembles.lda_member import LdaMember
from jaxface.ensembles.pair_scores import cosine
from jaxface.metrics import verification

SINGLE = ("Fisherfaces, PCA to N - C", "PCA and LDA, PCA tuned", "LDA with a ridge on all axes, tuned")
COMMITTEES = (
    "random subspaces",
    "random subspaces, drawn from all axes",
    "bags of people",
    "bags of images",
)
METHODS = (*SINGLE, *(f"{name}, sum rule" for name in COMMITTEES))


def errors(config: ConfigDict, samples: Samples, number: int) -> dict[str, np.ndarray]:
    """Error `[methods]`, error of the default committee by every rule `[rules]`, and EER of its pair scores `[2]`."""
    key = jax.random.fold_in(jax.random.key(config.seed), number)
    fisher, tuned, ridge = single(config, samples)
    drawn = committees(config, samples, key)
    posterior = POSTERIORS[config.posterior]
    own = [
        _error(log_posteriors(drawn[name], samples.probes, posterior=posterior), samples) if name in drawn else np.nan
        for name in COMMITTEES
    ]
    found = log_posteriors(drawn[COMMITTEES[0]], samples.probes, posterior=posterior)
    rules = [float((np.asarray(fusion.predict(rule(found))) != samples.probe_ids).mean()) for rule in RULES.values()]
    return {
        "errors": np.array([_single_error(each, samples) for each in (fisher, tuned, ridge)] + own),
        "rules": np.array(rules),
        "eer": np.array(
            [_eer(members, samples, max_images=config.max_images) for members in (ridge, drawn[COMMITTEES[0]])]
        ),
    }


def single(config: ConfigDict, samples: Samples) -> tuple[LdaMember, LdaMember, LdaMember]:
    """LDA after PCA to N - C; after the PCA that held-out images prefer; with the ridge that they prefer."""
    n, p = samples.train.shape
    most_axes = min(n - samples.num_people, p)
    widths = np.unique(np.round(np.asarray(config.pca_widths) * most_axes).astype(int).clip(1, most_axes))
    place = np.arange(most_axes)
    axes = np.where(place[None, :] < widths[:, None], place[None, :], -1)
    candidates, info = lda_member.fit(samples.train, samples.train_ids, axes, num_classes=samples.num_people)
    raise_if_failed(info, "PCA and LDA")
    best = int(np.argmin([_held_out_error(_member(candidates, k), samples) for k in range(len(widths))]))
    fits = []
    for ridge in config.ridges:
        fitted, info = lda_member.fit(
            samples.train, samples.train_ids, np.arange(p)[None, :], num_classes=samples.num_people, ridge=ridge
        )
        raise_if_failed(info, "LDA with a ridge")
        fits.append(fitted)
    ridged = fits[int(np.argmin([_held_out_error(fitted, samples) for fitted in fits]))]
    return _member(candidates, len(widths) - 1), _member(candidates, best), ridged


def committees(config: ConfigDict, samples: Samples, key: jax.Array) -> Mapping[str, LdaMember]:
    """The committees by name, all with `num_members` members and the same number of axes.

    Two images of a person cannot be bagged: that committee is left out.
    """
    n = samples.train.shape[0]
    most_axes = freedom(samples, config.floor)
    fixed, drawn = (max(1, round(part * most_axes)) for part in (config.fixed_part, config.random_part))
    variances = (samples.train**2).mean(axis=0)
    sizes = {"num_members": config.num_members, "num_fixed": fixed, "num_random": drawn}
    found = {}
    for name, floor in zip(COMMITTEES, (config.floor, 0.0), strict=False):
        axes = sampling.feature_subspaces(prng.stream(key, "axes"), variances, floor=floor, **sizes)
        found[name] = _fitted(
            lda_member.fit(samples.train, samples.train_ids, axes, num_classes=samples.num_people), name
        )
    people = sampling.class_bags(
        prng.stream(key, "people"), num_members=config.num_members, num_classes=samples.num_people,
        bag_size=round(config.people_part * samples.num_people),
    )  # fmt: skip
    bags = {COMMITTEES[2]: sampling.class_weights(people, samples.train_ids)}
    images = n // samples.num_people
    if images > 2:
        rows = sampling.image_bags(
            prng.stream(key, "images"), samples.train_ids, num_members=config.num_members,
            num_classes=samples.num_people, images_per_class=max(2, round(config.images_part * images)),
        )  # fmt: skip
        bags[COMMITTEES[3]] = sampling.row_weights(rows, num_rows=n)
    for name, weights in bags.items():
        # A bag has fewer images than the whole, so its axes need the ridge.
        leading = np.broadcast_to(np.arange(fixed + drawn), (config.num_members, fixed + drawn))
        fit = lda_member.fit_bags(
            samples.train, samples.train_ids, leading, weights, num_classes=samples.num_people, ridge=config.bag_ridge,
            block_size=config.block_size,
        )  # fmt: skip
        found[name] = _fitted(fit, name)
    return found


def _fitted(fit: tuple[LdaMember, FitInfo], name: str) -> LdaMember:
    members, info = fit
    raise_if_failed(info, name)
    return members


def _member(members: LdaMember, index: int) -> LdaMember:
    """A committee of one."""
    return jax.tree.map(lambda leaf: leaf[index : index + 1], members)


def _error(found: jax.Array, samples: Samples) -> float:
    return float((np.asarray(fusion.predict(fusion.sum(found))) != samples.probe_ids).mean())


def _single_error(member: LdaMember, samples: Samples) -> float:
    return _error(log_posteriors(member, samples.probes, posterior=lda_member.gaussian), samples)


def _held_out_error(member: LdaMember, samples: Samples) -> float:
    found = log_posteriors(member, samples.held_out, posterior=lda_member.gaussian)
    return float((np.asarray(fusion.predict(found[0])) != samples.held_out_ids).mean())


def _eer(members: LdaMember, samples: Samples, *, max_images: int) -> float:
    """EER of all pairs of probes, at most `max_images` of a person, by the mean cosine over the members."""
    rows = pairs.limited(samples.probe_ids, max_rows=max_images)
    trial = pairs.all_pairs(samples.probe_ids[rows])
    scores = np.asarray(score_matrix(members, samples.probes[rows], samples.probes[rows], score=cosine))
    return verification.eer(verification.roc(scores[trial.first, trial.second], trial.is_same))
