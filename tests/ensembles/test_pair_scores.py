import jax
import numpy as np
import pytest

from jaxface.core.pytree import member
from jaxface.ensembles import PAIR_SCORES, lda_member, score_matrix, score_pairs
from tests.ensembles import draws
from tests.tolerances import assert_close


def committee(rng, counts=(5, 3, 6, 4, 5, 4)):
    y, labels, _ = draws.coordinates(rng, counts=counts)
    members, _ = lda_member.fit(y, labels, draws.random_axes(rng, 5, 4, y.shape[1]), num_classes=len(counts))
    return members, rng.normal(size=(7, y.shape[1])), rng.normal(size=(4, y.shape[1]))


def loop(members, gallery, probes, name):
    """Member by member, pair by pair."""
    total = np.zeros((len(gallery), len(probes)))
    for t in range(5):
        one = member(members, t)
        for i, x in enumerate(gallery):
            for j, y in enumerate(probes):
                a, b = (np.asarray(lda_member.transform(one, image)) for image in (x, y))
                if name == "cosine":
                    total[i, j] += a @ b / np.linalg.norm(a) / np.linalg.norm(b)
                elif name == "distance":
                    total[i, j] -= np.sum((a - b) ** 2)
                else:
                    p, q = (np.exp(-np.sum((z - np.asarray(one.centers)) ** 2, axis=1) / 2) for z in (a, b))
                    total[i, j] += (p / p.sum()) @ (q / q.sum())
    return total / 5


@pytest.mark.parametrize("name", PAIR_SCORES)
def test_matrix_and_pairs_equal_the_loop(name, rng):
    members, gallery, probes = committee(rng)
    expected = loop(members, gallery, probes, name)
    assert_close(score_matrix(members, gallery, probes, score=PAIR_SCORES[name]), expected, factor=10)
    pairs = score_pairs(members, gallery[:4], probes, score=PAIR_SCORES[name])
    assert_close(pairs, np.diag(expected[:4]), factor=10)


@pytest.mark.parametrize("block_size", [1, 3, 7])
def test_unchanged_by_block_size(block_size, rng):
    members, gallery, probes = committee(rng)
    score = PAIR_SCORES["cosine"]
    whole = score_matrix(members, gallery, probes, score=score)
    assert_close(score_matrix(members, gallery, probes, score=score, block_size=block_size), whole, factor=0.01)
    pairs = score_pairs(members, gallery[:4], probes, score=score, block_size=block_size)
    assert_close(pairs, np.diag(whole[:4]), factor=0.01)


def test_larger_scores_for_the_same_person(rng):
    """People who trained nothing: a committee of some tells others apart."""
    x, labels = draws.people(rng, counts=(4,) * 24, d=40, separation=2.5)
    centered = x - x[:64].mean(axis=0)
    _, _, axes = np.linalg.svd(centered[:64], full_matrices=False)
    y = centered @ axes[:40].T
    drawn = draws.random_axes(rng, 10, 12, 40)
    members, _ = lda_member.fit(y[:64], labels[:64], drawn, num_classes=16)
    new, who = y[64:], labels[64:]
    same = (who[:, None] == who[None, :])[np.triu_indices(32, 1)]
    for name, score in PAIR_SCORES.items():
        scores = np.asarray(score_matrix(members, new, new, score=score))[np.triu_indices(32, 1)]
        area = (scores[same][:, None] > scores[~same][None, :]).mean()
        assert area > (0.75 if name == "same_class" else 0.9), (name, area)


def test_any_member_brings_its_score(rng):
    weights = rng.normal(size=(3, 2))

    def weighted_product(weight, gallery, probes):
        return (gallery * weight[None, :]) @ probes.T

    x, y = rng.normal(size=(4, 2)), rng.normal(size=(5, 2))
    found = score_matrix(weights, x, y, score=jax.tree_util.Partial(weighted_product))
    assert_close(found, (x * weights.mean(axis=0)) @ y.T)
