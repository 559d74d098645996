"""Out of bag: each image by hand, by the members that have not seen it, with centres of their bags alone."""

import jax
import numpy as np
import pytest

from jaxface.ensembles import fusion, lda_member, out_of_bag, sampling
from tests.ensembles.cases import LABELS, C, a_committee, samples
from tests.tolerances import assert_close


def dense(members, y, weights, *, is_cosine):
    """Sum rule over the members without the image: probabilities `[n, c]`."""
    answers = np.full((len(y), C), np.nan)
    for i in range(len(y)):
        found = []
        for t in np.flatnonzero(weights[:, i] == 0):
            z = y[:, members.axes[t]] @ members.basis[t]
            seen = [c for c in range(C) if weights[t][c == LABELS].sum() > 0]
            centers = [np.average(z[c == LABELS], axis=0, weights=weights[t][c == LABELS]) for c in seen]
            if is_cosine:
                angles = [z[i] @ m / np.linalg.norm(z[i]) / np.linalg.norm(m) for m in centers]
                scores = np.array([1 + each for each in angles])
            else:
                logits = np.array([-((z[i] - m) ** 2).sum() / 2 for m in centers])
                scores = np.exp(logits - logits.max())
            p = np.zeros(C)
            p[seen] = scores / scores.sum()
            found.append(p)
        if found:
            answers[i] = np.mean(found, axis=0)
    return answers


@pytest.mark.parametrize("posterior", [lda_member.gaussian, lda_member.cosine])
def test_each_image_is_judged_by_members_that_have_not_seen_it(rng, posterior):
    members, y = a_committee(rng), samples(rng)
    bags = "1200011031010110", "1011000111111111"
    weights = np.array([[int(times) for times in bag] for bag in bags])
    found = out_of_bag(members, y, LABELS, weights, num_classes=C, posterior=posterior)
    expected = dense(members, y, weights, is_cosine=posterior is lda_member.cosine)
    np.testing.assert_array_equal(found.num_members, (weights == 0).sum(axis=0))
    assert_close(np.exp(found.log_posteriors), expected, factor=10)
    is_seen = np.asarray(found.num_members) == 0
    assert 0 < is_seen.sum() < 16
    np.testing.assert_array_equal(np.isnan(found.log_posteriors).all(axis=1), is_seen)


def test_an_image_does_not_know_its_own_answer(rng):
    """Labels at random: the training images themselves would be named right, out of bag only by chance."""
    y = rng.normal(size=(60, 8))
    labels = np.repeat(np.arange(3), 20).astype(np.int32)
    rows = sampling.bootstrap(jax.random.key(0), num_members=40, num_rows=60)
    weights = sampling.row_weights(rows, num_rows=60)
    axes = np.broadcast_to(np.arange(8), (40, 8))
    members, _ = lda_member.fit_bags(y, labels, axes, weights, num_classes=3, ridge=0.1)
    found = out_of_bag(members, y, labels, weights, num_classes=3, posterior=lda_member.gaussian)
    error = (np.asarray(fusion.predict(found.log_posteriors)) != labels).mean()
    assert 0.45 < error < 0.85


def test_what_out_of_bag_refuses(rng):
    members, y = a_committee(rng), samples(rng)
    ask = {"num_classes": C, "posterior": lda_member.gaussian}
    with pytest.raises(ValueError, match="sample_weights"):
        out_of_bag(members, y, LABELS, np.ones((2, 15)), **ask)
    with pytest.raises(ValueError, match="sample_weights must lie in"):
        out_of_bag(members, y, LABELS, -np.ones((2, 16)), **ask)
    with pytest.raises(ValueError, match="axes"):
        out_of_bag(members, y, LABELS, np.ones((3, 16)), **ask)
