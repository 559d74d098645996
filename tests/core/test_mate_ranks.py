"""Ranks of mates by counting against the full matrix of scores."""

import numpy as np
import pytest

from jaxface import metrics
from jaxface.core import gallery_parts, mate_ranks

G, Q, D, K = 700, 9, 5, 4


def inner(params, a, b):
    return a @ b.T


def rows(rng, n):
    return rng.integers(-2, 3, (n, D)).astype(np.float32)


def people_of(rows_of_a_person, rng):
    """Rows of a person stand together; the people are in no order."""
    return rng.permutation(1000)[np.arange(G) // rows_of_a_person]


@pytest.mark.parametrize("rows_of_a_person", [1, 3, 200])
def test_ranks_equal_those_of_the_matrix(rows_of_a_person, rng, monkeypatch):
    monkeypatch.setattr(gallery_parts, "ROWS_READ", 320)  # people and groups reach from one part into the next
    gallery, probes = rows(rng, G), rows(rng, Q)
    gallery_ids = people_of(rows_of_a_person, rng)
    probe_ids = np.append(rng.choice(gallery_ids, Q - 2), [2000, 2001])
    scores = gallery @ probes.T
    found = mate_ranks.identify(inner, None, gallery, gallery_ids, probes, probe_ids, num_best=K)
    names = np.unique(gallery_ids)
    best = np.array([scores[gallery_ids == name].max(axis=0) for name in names])
    for i, own in enumerate(probe_ids[:-2]):
        mate, others = best[names == own, i][0], best[names != own, i]
        assert found.ranks.mates[i] == mate
        assert found.ranks.higher[i] == (others > mate).sum()
        assert found.ranks.tied[i] == (others == mate).sum()
    np.testing.assert_array_equal(found.ranks.best, scores.max(axis=0))
    assert np.isnan(found.ranks.mates[-2:]).all()
    assert found.ranks.higher[-2:].tolist() == found.ranks.tied[-2:].tolist() == [-1, -1]
    for ties in ("pessimistic", "expected"):
        np.testing.assert_array_equal(
            metrics.cmc_from_counts(found.ranks.higher[:-2], found.ranks.tied[:-2], num_people=names.size, ties=ties),
            metrics.cmc(scores[:, :-2], gallery_ids, probe_ids[:-2], ties=ties),
        )
        np.testing.assert_array_equal(
            metrics.rank_hits(found.ranks.higher[:-2], found.ranks.tied[:-2], ties=ties),
            metrics.nearest_neighbor_hits(scores[:, :-2], gallery_ids, probe_ids[:-2], ties=ties),
        )
    counted = metrics.open_set_from_counts(*found.ranks, rank=2)
    for ours, theirs in zip(counted, metrics.open_set(scores, gallery_ids, probe_ids, rank=2), strict=True):
        np.testing.assert_array_equal(ours, theirs)
    for i, listed in enumerate(found.best.rows):
        order = np.argsort(-scores[:, i], kind="stable")
        first = np.sort(np.unique(gallery_ids[order], return_index=True)[1])[:K]
        assert listed[: len(first)].tolist() == order[first].tolist()


def test_nan_leaves_out_its_row_and_its_probe_only(rng):
    gallery, probes, ids = rows(rng, G), rows(rng, Q), people_of(3, rng)
    expected = mate_ranks.identify(inner, None, np.delete(gallery, 4, 0), np.delete(ids, 4), probes, ids[:Q])
    gallery[4, 1], probes[7, 0] = np.nan, np.nan
    found = mate_ranks.identify(inner, None, gallery, ids, probes, ids[:Q])
    others = np.arange(Q) != 7
    for ours, theirs in zip(found.ranks, expected.ranks, strict=True):
        np.testing.assert_array_equal(ours[others], theirs[others])
    assert np.isnan([found.ranks.mates[7], found.ranks.best[7]]).all()
    assert found.ranks.higher[7] == -1


def test_what_it_refuses(rng):
    gallery, probes = rows(rng, 4), rows(rng, 2)
    with pytest.raises(ValueError, match=r"gallery_ids must have the rows of a person next to each other.*argsort"):
        mate_ranks.identify(inner, None, gallery, [0, 1, 0, 2], probes, [0, 1])
    gallery[3] = np.nan
    with pytest.raises(ValueError, match=r"number for the mate of each probe.*1 probes, the first at index 1"):
        mate_ranks.identify(inner, None, gallery, [0, 0, 1, 2], probes, [0, 2])
