"""Each message once: what came, what was expected, what to do."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxface.ensembles import (
    assess,
    choose,
    diagnose,
    fused,
    fusion,
    growth,
    lda_member,
    pair_scores,
    sampling,
    score_matrix,
    score_pairs,
)
from jaxface.ensembles.members import map_members
from tests.ensembles import draws

KEY = jax.random.key(0)
Y, LABELS, VARIANCES = draws.coordinates(np.random.default_rng(0))  # 27 images of 6 people, 26 axes
N = len(Y)
AXES = np.tile(np.arange(5, dtype=np.int32), (2, 1))
UNIT = np.ones((2, N), np.int32)
LOGS = np.log(np.full((2, 3, 4), 0.25))


def fit(**changes):
    settings = {"y": Y, "labels": LABELS, "axes": AXES, "num_classes": 6} | changes
    return lda_member.fit(settings.pop("y"), settings.pop("labels"), settings.pop("axes"), **settings)


def fit_bags(weights, axes=AXES):
    return lda_member.fit_bags(Y, LABELS, axes, weights, num_classes=6)


def subspaces(**changes):
    settings = {"num_members": 2, "num_fixed": 2, "num_random": 3} | changes
    return sampling.feature_subspaces(KEY, VARIANCES, **settings)


def image_bags(labels=LABELS, **changes):
    settings = {"num_members": 2, "num_classes": 6, "images_per_class": 2} | changes
    return sampling.image_bags(KEY, labels, **settings)


CASES = {
    "no members": (
        lambda: subspaces(num_members=0),
        r"num_members must be at least 1 \(a committee has members\); got 0",
    ),
    "no bags of people": (
        lambda: sampling.class_bags(KEY, num_members=0, num_classes=3, bag_size=2),
        "num_members must be at least 1",
    ),
    "no bags of images": (lambda: image_bags(num_members=0), "num_members must be at least 1"),
    "more axes than above the floor": (
        lambda: subspaces(num_random=20, floor=0.5),
        r"num_fixed \+ num_random must be at most \d+, the axes whose variance is above the floor; got 2 \+ 20",
    ),
    "more axes than there are": (
        lambda: subspaces(num_random=25),
        r"width must be at most 26 \(the number of axes\); got 27",
    ),
    "a negative number of axes": (lambda: subspaces(num_fixed=-1), "num_fixed must be at least 0; got -1"),
    "a negative number of random axes": (lambda: subspaces(num_random=-1), "num_random must be at least 0; got -1"),
    "no axes at all": (lambda: subspaces(num_fixed=0, num_random=0), "width must be at least 1; got 0"),
    "a width too small": (
        lambda: subspaces(width=4),
        r"num_fixed \+ num_random must be at most 4 \(the width of the draws\); got 5",
    ),
    "a floor of one": (lambda: subspaces(floor=1.0), r"floor must lie in \[0, 1\); got 1.0"),
    "traced sizes without a width": (
        lambda: jax.jit(lambda size: subspaces(num_random=size))(3),
        "width must be given when num_fixed or num_random is traced",
    ),
    "an old key": (
        lambda: sampling.class_bags(np.zeros(2, np.uint32), num_members=1, num_classes=3, bag_size=2),
        "key must be a typed PRNG key",
    ),
    "bags larger than the people": (
        lambda: sampling.class_bags(KEY, num_members=1, num_classes=3, bag_size=4),
        r"bag_size must be at most 3 \(the number of classes\); got 4",
    ),
    "a bag of one class": (
        lambda: sampling.class_bags(KEY, num_members=1, num_classes=3, bag_size=1),
        "bag_size must be at least 2",
    ),
    "nothing to choose from": (
        lambda: sampling.parameter_subsets(KEY, num_members=1, num_candidates=3, subset_size=0),
        "subset_size must be at least 1; got 0",
    ),
    "more than the candidates": (
        lambda: sampling.parameter_subsets(KEY, num_members=1, num_candidates=3, subset_size=4),
        r"subset_size must be at most 3 \(the number of candidates\); got 4",
    ),
    "a person with one image": (
        lambda: image_bags(np.array([0, 0, 1, 2, 2], np.int32), num_classes=3),
        "labels must hold at least two images of every class to bag images; class 1 has 1. Remove such people, or bag",
    ),
    "a person with one image under the bootstrap": (
        lambda: image_bags(np.array([0, 0, 1, 2, 2], np.int32), num_classes=3, bootstrap=True),
        "class 1 has 1",
    ),
    "more images than a person has": (
        lambda: image_bags(images_per_class=4),
        r"images_per_class must be at most 3, the images of class 1; got 4. Take fewer, or bootstrap=True",
    ),
    "one image a person": (
        lambda: image_bags(images_per_class=1),
        r"images_per_class must be at least 2 \(one image tells nothing about S_w\); got 1",
    ),
    "the rule of no members": (lambda: fusion.min(LOGS[:0]), "number of members must be at least 1; got 0"),
    "the rule of integers": (lambda: fusion.max(LOGS.astype(int)), "log_posteriors must be a floating point array"),
    "an unknown rule": (
        lambda: growth(LOGS, np.zeros(3, np.int32), rule=jnp.mean),
        r"rule must be one of fusion.sum, fusion.product, fusion.min, fusion.max, fusion.median, fusion.vote; got",
    ),
    "a rule by its name": (lambda: growth(LOGS, np.zeros(3, np.int32), rule="sum"), "rule must be one of fusion.sum"),
    "labels of other probes": (
        lambda: diagnose(LOGS, np.zeros(2, np.int32)),
        r"labels must have shape \[n\] with n = 3; got shape \(2,\)",
    ),
    "labels of other people": (lambda: diagnose(LOGS, np.full(3, 4, np.int32)), r"labels must be in \[0, 4\)"),
    "images of other people to assess": (
        lambda: assess(fit()[0], Y, np.full(N, 6, np.int32), posterior=lda_member.gaussian),
        r"labels must be in \[0, 6\)",
    ),
    "nobody to assess": (
        lambda: assess(fit()[0], Y[:0], np.zeros(0, np.int32), posterior=lda_member.gaussian),
        "number of images must be at least 1; got 0",
    ),
    "images in other coordinates to assess": (
        lambda: assess(fit()[0], Y[:, :3], LABELS, posterior=lda_member.gaussian),
        "number of columns of x must be at least",
    ),
    "a rule by its name to assess": (
        lambda: assess(fit()[0], Y, LABELS, posterior=lda_member.gaussian, rule="sum"),
        "rule must be one of fusion.sum",
    ),
    "posteriors of one member": (
        lambda: diagnose(LOGS[0], np.zeros(3, np.int32)),
        r"log_posteriors must have shape \[m, n, c\]; got shape \(3, 4\)",
    ),
    "posteriors of nobody": (
        lambda: diagnose(LOGS[:0], np.zeros(3, np.int32)),
        "number of members must be at least 1; got 0",
    ),
    "posteriors of no images": (
        lambda: diagnose(LOGS[:, :0], np.zeros(0, np.int32)),
        "number of images must be at least 1; got 0",
    ),
    "weights from labels of other people": (
        lambda: fusion.fit_weights(LOGS, np.full(3, 4, np.int32), num_iters=1),
        r"labels must be in \[0, 4\)",
    ),
    "weights of no images": (
        lambda: fusion.fit_weights(LOGS[:, :0], np.zeros(0, np.int32), num_iters=1),
        "number of images must be at least 1; got 0",
    ),
    "weights of no members": (
        lambda: fusion.fit_weights(LOGS[:0], np.zeros(3, np.int32), num_iters=1),
        "number of members must be at least 1; got 0",
    ),
    "weights of other members": (
        lambda: fusion.weighted(LOGS, np.full(3, 1 / 3)),
        r"member_weights must have shape \[2\]; got shape \(3,\)",
    ),
    "a negative weight of a member": (
        lambda: fusion.weighted(LOGS, np.array([1.5, -0.5])),
        r"member_weights must lie in \[0, inf\); got 1 values outside, the first -0.5",
    ),
    "weights without iterations": (
        lambda: fusion.fit_weights(LOGS, np.zeros(3, np.int32), num_iters=0),
        "num_iters must be at least 1; got 0",
    ),
    "a choice among no candidates": (
        lambda: choose(np.zeros((2, 3)), np.zeros((3, 1), int)),
        r"subsets must have shape \[m, rho\] with m = 2; got shape \(3, 1\)",
    ),
    "members of different numbers": (
        lambda: map_members(lambda pair: pair[0], (jnp.zeros(3), jnp.zeros(2))),
        "tree must have one leading member axis on every leaf",
    ),
    "probes in other coordinates": (
        lambda: score_matrix(fit()[0], Y, Y[:, :3], score=pair_scores.cosine),
        r"probes must have shape \[q, p\] with p = 26; got shape \(27, 3\)",
    ),
    "pairs that do not pair": (
        lambda: score_pairs(fit()[0], Y, Y[1:], score=pair_scores.cosine),
        r"second must have shape \[p, d\] with p = 27; got shape \(26, 26\)",
    ),
    "nobody to recognise": (
        lambda: fused(fit()[0], Y[:0], posterior=lda_member.gaussian, rule=fusion.sum),
        "number of rows must be at least 1; got 0",
    ),
    "enrolment without a picture of somebody": (
        lambda: lda_member.enroll(fit()[0], Y, LABELS, num_classes=7),
        r"labels must use every id in \[0, 7\); got 6 of them, 6 is missing",
    ),
    "enrolment with NaN": (
        lambda: lda_member.enroll(fit()[0], Y * np.nan, LABELS, num_classes=6),
        "y must be finite",
    ),
    "enrolment in other coordinates": (
        lambda: lda_member.enroll(fit()[0], Y[:, :3], LABELS, num_classes=6),
        r"axes must lie in \[-1, 2\]",
    ),
    "enrolment with integers": (
        lambda: lda_member.enroll(fit()[0], Y.astype(int), LABELS, num_classes=6),
        "y must be a floating point array",
    ),
}


@pytest.mark.parametrize("what", CASES)
def test_message(what):
    call, message = CASES[what]
    with pytest.raises(ValueError, match=message):
        call()
