"""Errors of single LDAs, tuned on held-out images, and of committees, on the probes of one split.

Everybody classifies by the nearest class mean in whitened coordinates. A single LDA is a committee of one.
"""

import math
from collections.abc import Mapping

import jax
import numpy as np
from jax.typing import ArrayLike
from ml_collections import ConfigDict

from experiments.committee.samples import Samples, most_axes
from experiments.common import ratios
from experiments.common.ratios import Trials
from jaxface.core import prng
from jaxface.core.fitinfo import FitInfo, raise_if_failed
from jaxface.data import pairs
from jaxface.ensembles import (
    PAIR_SCORES,
    POSTERIORS,
    RULES,
    fused,
    fusion,
    lda_member,
    log_posteriors,
    out_of_bag,
    sampling,
    score_matrix,
)
from jaxface.ensembles.fusion import Rule
from jaxface.ensembles.lda_member import LdaMember
from jaxface.ensembles.posteriors import Posterior
from jaxface.metrics import verification

SINGLE = ("Fisherfaces, PCA to N - C", "PCA and LDA, PCA tuned", "LDA with a ridge on all axes, tuned")
COMMITTEES = (
    "random subspaces",
    "random subspaces, drawn from all axes",
    "random subspaces, LDA axes tuned",
    "bags of people",
    "bags of images",
    "bootstrap of all images",
    "random subspaces of bags of people",
    "random subspaces of bags of images",
)
BAGS = COMMITTEES[3:6]  # each with the leading axes; the first two with random axes as well
LEARNT = "weighted, learnt on held-out images"  # a rule beside those of `RULES`
OUT_OF_BAG = BAGS[1:]  # committees whose training images can judge them: people who are in a bag with fewer images
PAIRED = ("LDA with a ridge", "committee, mean over members")  # what pairs of probes are scored by
_WEIGHT_ITERS = 100  # of EM, for the weights of the members
METHODS = (*SINGLE, *(f"{name}, sum rule" for name in COMMITTEES))


def errors(config: ConfigDict, samples: Samples, number: int) -> dict[str, np.ndarray]:
    """Error `[methods]`, of the default committee by every rule and `LEARNT` `[rules + 1]`, and EER of `PAIRED` `[2]`.

    Committees that are not in `config.committees` have NaN. `out of bag` `[2]` is the error on the training images of
    `OUT_OF_BAG`. `scores`, `first` and `second` `[2, pairs]` are the pairs behind the EERs and the people they show.
    """
    key = key_of(config, number)
    fisher, tuned, ridge = single(config, samples)
    drawn = committees(config, samples, key)
    posterior = POSTERIORS[config.posterior]
    of_committees = [_error(drawn[name], samples, posterior) if name in drawn else np.nan for name in COMMITTEES]
    of_rules = [_error(drawn[COMMITTEES[0]], samples, posterior, rule=rule) for rule in RULES.values()]
    of_rules.append(learnt_error(drawn[COMMITTEES[0]], samples, posterior))
    paired = [pair_trials(config, members, samples) for members in (ridge, drawn[COMMITTEES[0]])]
    return {
        "errors": np.array([_error(each, samples, posterior) for each in (fisher, tuned, ridge)] + of_committees),
        "rules": np.array(of_rules),
        "out of bag": out_of_bag_errors(config, samples, key, drawn),
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
    posterior = POSTERIORS[config.posterior]
    best = int(np.argmin([held_out_error(_member(candidates, k), samples, posterior) for k in range(len(widths))]))
    fits = []
    for ridge in config.ridges:
        fitted, info = lda_member.fit(
            samples.train, samples.train_ids, np.arange(p)[None, :], num_classes=samples.num_people, ridge=ridge
        )
        raise_if_failed(info, "LDA with a ridge")
        fits.append(fitted)
    ridged = fits[int(np.argmin([held_out_error(fitted, samples, posterior) for fitted in fits]))]
    return _member(candidates, len(widths) - 1), _member(candidates, best), ridged


def committees(config: ConfigDict, samples: Samples, key: jax.Array) -> Mapping[str, LdaMember]:
    """The committees of `config.committees` by name, all with `num_members` members and the same number of axes.

    The first is always among them. Two images of a person cannot be bagged: those committees are left out.
    """
    drawn = bags(config, samples, key)
    width = sum(_sizes(config, samples))
    leading = np.broadcast_to(np.arange(width), (config.num_members, width))
    members = {}
    for name in COMMITTEES:
        bag = name.removeprefix("random subspaces of ")
        if name != COMMITTEES[0] and (name not in config.committees or (bag in BAGS and bag not in drawn)):
            continue
        if bag in BAGS:
            axes = leading if bag == name else _random_axes(config, samples, key, config.floor)
            members[name] = _of_bags(config, samples, axes, drawn[bag], name)
        elif name == COMMITTEES[2]:
            members[name] = fewer_axes(config, samples, key)
        else:
            members[name] = subspaces(config, samples, key, floor=config.floor if name == COMMITTEES[0] else 0.0)
    return members


def _of_bags(config: ConfigDict, samples: Samples, axes: ArrayLike, weights: jax.Array, name: str) -> LdaMember:
    """A committee on bags; a bag has fewer images than the whole, so its axes need the ridge."""
    options = {"ridge": config.bag_ridge, "block_size": config.block_size, "num_classes": samples.num_people}
    return _fitted(lda_member.fit_bags(samples.train, samples.train_ids, axes, weights, **options), name)


def fewer_axes(config: ConfigDict, samples: Samples, key: jax.Array) -> LdaMember:
    """The default committee with as many LDA axes (M_lda) as held-out images prefer."""
    axes = _random_axes(config, samples, key, config.floor)
    most = min(axes.shape[1], samples.num_people - 1)
    fit = lda_member.fit(samples.train, samples.train_ids, axes, num_classes=samples.num_people, num_components=most)
    ordered = _fitted(fit, COMMITTEES[2])
    posterior = POSTERIORS[config.posterior]
    tried = [with_axes(ordered, width) for width in lda_widths(config, most)]
    return tried[int(np.argmin([held_out_error(each, samples, posterior) for each in tried]))]


def lda_widths(config: ConfigDict, most: int) -> list[int]:
    """Numbers of LDA axes to try, ascending; the largest is all of them."""
    return np.unique(np.round(np.asarray(config.lda_widths) * most).astype(int).clip(1, most)).tolist()


def with_axes(ordered: LdaMember, width: int) -> LdaMember:
    """Members whose directions are in order, with the first `width` of them; the others become zero.

    One shape serves every width, so one program does.
    """
    kept = (np.arange(ordered.basis.shape[-1]) < width)[None, None, :]
    return LdaMember(axes=ordered.axes, basis=ordered.basis * kept, centers=ordered.centers * kept)


def learnt_error(members: LdaMember, samples: Samples, posterior: Posterior) -> float:
    """Error of the sum with the weights of the members that maximise the posteriors of held-out images."""
    log_p = log_posteriors(members, samples.held_out, posterior=posterior)
    weights, info = fusion.fit_weights(log_p, samples.held_out_ids, num_iters=_WEIGHT_ITERS)
    raise_if_failed(info, LEARNT)
    answers = fusion.weighted(log_posteriors(members, samples.probes, posterior=posterior), weights)
    return float((np.asarray(fusion.predict(answers)) != samples.probe_ids).mean())


def out_of_bag_errors(
    config: ConfigDict, samples: Samples, key: jax.Array, drawn: Mapping[str, LdaMember]
) -> np.ndarray:
    """Errors of `OUT_OF_BAG` on the training images that some bag leaves out; NaN where the committee is left out."""
    weights = bags(config, samples, key)
    found = []
    for name in OUT_OF_BAG:
        if name not in drawn:
            found.append(math.nan)
            continue
        judged = out_of_bag(
            drawn[name],
            samples.train,
            samples.train_ids,
            weights[name],
            num_classes=samples.num_people,
            posterior=POSTERIORS[config.posterior],
        )
        rows = np.flatnonzero(np.asarray(judged.num_members) > 0)
        answers = np.asarray(fusion.predict(judged.log_posteriors[rows]))
        found.append(float((answers != samples.train_ids[rows]).mean()))
    return np.array(found)


def subspaces(config: ConfigDict, samples: Samples, key: jax.Array, *, floor: float) -> LdaMember:
    """The committee on random subspaces, drawn from the axes with a variance above the floor."""
    axes = _random_axes(config, samples, key, floor)
    fit = lda_member.fit(samples.train, samples.train_ids, axes, num_classes=samples.num_people)
    return _fitted(fit, COMMITTEES[0] if floor else COMMITTEES[1])


def _random_axes(config: ConfigDict, samples: Samples, key: jax.Array, floor: float) -> jax.Array:
    fixed, drawn = _sizes(config, samples)
    variances = (samples.train**2).mean(axis=0)
    sizes = {"num_members": config.num_members, "num_fixed": fixed, "num_random": drawn}
    return sampling.feature_subspaces(prng.stream(key, "axes"), variances, floor=floor, **sizes)


def key_of(config: ConfigDict, number: int) -> jax.Array:
    """The key of a split."""
    return jax.random.fold_in(jax.random.key(config.seed), number)


def _sizes(config: ConfigDict, samples: Samples) -> tuple[int, int]:
    """M0 and M1."""
    most = most_axes(samples, config.floor)
    return max(1, round(config.fixed_part * most)), max(1, round(config.random_part * most))


def bags(config: ConfigDict, samples: Samples, key: jax.Array) -> dict[str, jax.Array]:
    """Weights `[m, n]` of the training images in bags of people and, where everybody has three, of images."""
    sizes = {"num_members": config.num_members, "num_classes": samples.num_people}
    bag_size = round(config.people_part * samples.num_people)
    people = sampling.class_bags(prng.stream(key, "people"), bag_size=bag_size, **sizes)
    drawn = {BAGS[0]: sampling.class_weights(people, samples.train_ids)}
    n = samples.train.shape[0]
    images = n // samples.num_people
    if images > 2:
        sizes["images_per_class"] = max(2, round(config.images_part * images))
        rows = sampling.image_bags(prng.stream(key, "images"), samples.train_ids, **sizes)
        drawn[BAGS[1]] = sampling.row_weights(rows, num_rows=n)
        rows = sampling.bootstrap(prng.stream(key, "bootstrap"), num_members=config.num_members, num_rows=n)
        drawn[BAGS[2]] = sampling.row_weights(rows, num_rows=n)
    return drawn


def _fitted(fit: tuple[LdaMember, FitInfo], name: str) -> LdaMember:
    members, info = fit
    raise_if_failed(info, name)
    return members


def _member(members: LdaMember, index: int) -> LdaMember:
    """A committee of one."""
    return jax.tree.map(lambda leaf: leaf[index : index + 1], members)


def _error(members: LdaMember, samples: Samples, posterior: Posterior, *, rule: Rule = fusion.sum) -> float:
    answers = fused(members, samples.probes, posterior=posterior, rule=rule)
    return float((np.asarray(fusion.predict(answers)) != samples.probe_ids).mean())


def held_out_error(members: LdaMember, samples: Samples, posterior: Posterior) -> float:
    """Error of the sum rule on the images that choose settings."""
    answers = fused(members, samples.held_out, posterior=posterior, rule=fusion.sum)
    return float((np.asarray(fusion.predict(answers)) != samples.held_out_ids).mean())


def pair_trials(config: ConfigDict, members: LdaMember, samples: Samples) -> Trials:
    """All pairs of probes, at most `max_images` of a person, by the mean pair score over the members."""
    rows = pairs.limited(samples.probe_ids, max_rows=config.max_images)
    probes = samples.probes[rows]
    scores = score_matrix(members, probes, probes, score=PAIR_SCORES[config.pair_score])
    return ratios.of_matrix(scores, samples.probe_ids[rows])
