"""Errors of single LDAs, tuned on held-out images, and of committees, on the probes of one split.

Everybody classifies by the nearest class mean in whitened coordinates. A single LDA is a committee of one.
"""

from collections.abc import Mapping

import jax
import numpy as np
from ml_collections import ConfigDict

from experiments.committee.samples import Samples, most_axes
from experiments.common import ratios
from experiments.common.ratios import Trials
from jaxface.core import prng
from jaxface.core.fitinfo import FitInfo, raise_if_failed
from jaxface.data import pairs
from jaxface.ensembles import PAIR_SCORES, POSTERIORS, RULES, fusion, lda_member, log_posteriors, sampling, score_matrix
from jaxface.ensembles.fusion import Rule
from jaxface.ensembles.lda_member import LdaMember
from jaxface.metrics import verification

SINGLE = ("Fisherfaces, PCA to N - C", "PCA and LDA, PCA tuned", "LDA with a ridge on all axes, tuned")
COMMITTEES = (
    "random subspaces",
    "random subspaces, drawn from all axes",
    "bags of people",
    "bags of images",
)
PAIRED = ("LDA with a ridge", "committee, mean over members")  # what pairs of probes are scored by
METHODS = (*SINGLE, *(f"{name}, sum rule" for name in COMMITTEES))


def errors(config: ConfigDict, samples: Samples, number: int) -> dict[str, np.ndarray]:
    """Error `[methods]`, error of the default committee by every rule `[rules]`, and EER of `PAIRED` `[2]`.

    `scores`, `first` and `second` `[2, pairs]` are the pairs behind these EERs and the people that they show.
    """
    key = key_of(config, number)
    fisher, tuned, ridge = single(config, samples)
    drawn = committees(config, samples, key)
    posterior = POSTERIORS[config.posterior]
    log_p = {name: log_posteriors(members, samples.probes, posterior=posterior) for name, members in drawn.items()}
    of_committees = [_error(log_p[name], samples) if name in log_p else np.nan for name in COMMITTEES]
    of_rules = [_error(log_p[COMMITTEES[0]], samples, rule=rule) for rule in RULES.values()]
    paired = [pair_trials(config, members, samples) for members in (ridge, drawn[COMMITTEES[0]])]
    return {
        "errors": np.array([_single_error(each, samples) for each in (fisher, tuned, ridge)] + of_committees),
        "rules": np.array(of_rules),
        "eer": np.array([verification.eer(verification.roc(each.scores, each.is_same)) for each in paired]),
        **{field: np.stack(values) for field, values in zip(Trials._fields, zip(*paired, strict=True), strict=True)},
    }


def single(config: ConfigDict, samples: Samples) -> tuple[LdaMember, LdaMember, LdaMember]:
    """LDA after PCA to N - C; after the PCA that held-out images prefer; with the ridge that they prefer."""
    n, p = samples.train.shape
    most = min(n - samples.num_people, p)
    widths = np.unique(np.round(np.asarray(config.pca_widths) * most).astype(int).clip(1, most))
    place = np.arange(most)
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
    members = {
        name: subspaces(config, samples, key, floor=floor)
        for name, floor in zip(COMMITTEES, (config.floor, 0.0), strict=False)
    }
    width = sum(_sizes(config, samples))
    leading = np.broadcast_to(np.arange(width), (config.num_members, width))
    for name, weights in _bags(config, samples, key).items():
        # A bag has fewer images than the whole, so its axes need the ridge.
        options = {"ridge": config.bag_ridge, "block_size": config.block_size, "num_classes": samples.num_people}
        fit = lda_member.fit_bags(samples.train, samples.train_ids, leading, weights, **options)
        members[name] = _fitted(fit, name)
    return members


def subspaces(config: ConfigDict, samples: Samples, key: jax.Array, *, floor: float) -> LdaMember:
    """The committee on random subspaces, drawn from the axes with a variance above the floor."""
    fixed, drawn = _sizes(config, samples)
    variances = (samples.train**2).mean(axis=0)
    sizes = {"num_members": config.num_members, "num_fixed": fixed, "num_random": drawn}
    axes = sampling.feature_subspaces(prng.stream(key, "axes"), variances, floor=floor, **sizes)
    fit = lda_member.fit(samples.train, samples.train_ids, axes, num_classes=samples.num_people)
    return _fitted(fit, COMMITTEES[0] if floor else COMMITTEES[1])


def key_of(config: ConfigDict, number: int) -> jax.Array:
    """The key of a split."""
    return jax.random.fold_in(jax.random.key(config.seed), number)


def _sizes(config: ConfigDict, samples: Samples) -> tuple[int, int]:
    """M0 and M1."""
    most = most_axes(samples, config.floor)
    return max(1, round(config.fixed_part * most)), max(1, round(config.random_part * most))


def _bags(config: ConfigDict, samples: Samples, key: jax.Array) -> dict[str, jax.Array]:
    """Weights `[m, n]` of the training images in bags of people and, where everybody has three, of images."""
    sizes = {"num_members": config.num_members, "num_classes": samples.num_people}
    bag_size = round(config.people_part * samples.num_people)
    people = sampling.class_bags(prng.stream(key, "people"), bag_size=bag_size, **sizes)
    bags = {COMMITTEES[2]: sampling.class_weights(people, samples.train_ids)}
    n = samples.train.shape[0]
    images = n // samples.num_people
    if images > 2:
        sizes["images_per_class"] = max(2, round(config.images_part * images))
        rows = sampling.image_bags(prng.stream(key, "images"), samples.train_ids, **sizes)
        bags[COMMITTEES[3]] = sampling.row_weights(rows, num_rows=n)
    return bags


def _fitted(fit: tuple[LdaMember, FitInfo], name: str) -> LdaMember:
    members, info = fit
    raise_if_failed(info, name)
    return members


def _member(members: LdaMember, index: int) -> LdaMember:
    """A committee of one."""
    return jax.tree.map(lambda leaf: leaf[index : index + 1], members)


def _error(log_p: jax.Array, samples: Samples, *, rule: Rule = fusion.sum) -> float:
    return float((np.asarray(fusion.predict(rule(log_p))) != samples.probe_ids).mean())


def _single_error(member: LdaMember, samples: Samples) -> float:
    return _error(log_posteriors(member, samples.probes, posterior=lda_member.gaussian), samples)


def _held_out_error(member: LdaMember, samples: Samples) -> float:
    log_p = log_posteriors(member, samples.held_out, posterior=lda_member.gaussian)
    return float((np.asarray(fusion.predict(log_p[0])) != samples.held_out_ids).mean())


def pair_trials(config: ConfigDict, members: LdaMember, samples: Samples) -> Trials:
    """All pairs of probes, at most `max_images` of a person, by the mean pair score over the members."""
    rows = pairs.limited(samples.probe_ids, max_rows=config.max_images)
    probes = samples.probes[rows]
    scores = score_matrix(members, probes, probes, score=PAIR_SCORES[config.pair_score])
    return ratios.of_matrix(scores, samples.probe_ids[rows])
