"""Counts of groups: a resample of groups is the pairs of the drawn groups written out."""

import numpy as np
import pytest

from jaxface.metrics import bootstrap, calibration, group_draws, verification
from jaxface.metrics.group_draws import GroupCounts
from tests.tolerances import assert_close

EDGES = np.linspace(-6.0, 6.0, 49)  # multiples of 1/4


@pytest.fixture
def groups(rng):
    """Scores on the edges, so that no bin hides an order, and of one kind only in some groups."""
    made = []
    for number in range(7):
        same = rng.random(30) < (0.0 if number == 2 else 0.4)
        made.append((np.round(4 * (rng.normal(size=30) + same)) / 4, same))
    return made


def counted(groups):
    return GroupCounts(*map(np.stack, zip(*(group_draws.count_group(*group, EDGES) for group in groups), strict=True)))


def test_resampled_groups_are_their_pairs_written_out(groups):
    drawn = group_draws.resample_groups(counted(groups), rng=np.random.default_rng(4), num_resamples=20, far=(0.1, 0.3))
    uniform = np.full(7, 1 / 7)
    multiplicity = np.random.default_rng(4).multinomial(7, uniform, size=20)
    for number, counts in enumerate(multiplicity):
        listed = [group for group, times in zip(groups, counts, strict=True) for _ in range(times)]
        scores, same = (np.concatenate(parts) for parts in zip(*listed, strict=True))
        curve = verification.roc(scores, same)
        found = [getattr(drawn.resampled, name)[number] for name in ("eer", "auc", "cllr", "min_cllr")]
        expected = [verification.eer(curve), verification.auc(curve)]
        expected += [calibration.cllr(scores, same), calibration.min_cllr(curve)]
        assert_close(np.array(found), np.array(expected))
        rates = [verification.verification_rate(curve, far) for far in (0.1, 0.3)]
        assert_close(drawn.resampled.rates[number, :2], np.array(rates))
    assert drawn.num_people == 7
    assert drawn.num_undefined == 0


def test_intervals_and_differences_of_groups(groups):
    better = [(scores + same, same) for scores, same in groups]
    drawn = [
        group_draws.resample_groups(counted(each), rng=np.random.default_rng(4), num_resamples=200)
        for each in (groups, better)
    ]
    found = bootstrap.subject_intervals(drawn[0])
    assert found.eer.low < found.eer.estimate < found.eer.high
    assert bootstrap.subject_differences(drawn[1], drawn[0]).eer.high < 0


def test_a_ratio_of_the_wrong_infinite_sign_costs_infinity(groups):
    scores, same = groups[0]
    groups[0] = (np.where(np.arange(30) == np.argmax(same), -np.inf, scores), same)
    drawn = group_draws.resample_groups(counted(groups), rng=np.random.default_rng(4), num_resamples=30)
    assert np.isinf(drawn.whole.cllr[0])
    assert np.isfinite(drawn.resampled.cllr).any()


def test_what_cannot_be_resampled_is_refused(groups):
    of_all = counted(groups)
    with pytest.raises(ValueError, match="subjects"):
        group_draws.resample_groups(GroupCounts(*(each[:1] for each in of_all)), rng=np.random.default_rng(0))
    alone = GroupCounts(*(each[2:3].repeat(3, axis=0) for each in of_all))
    with pytest.raises(ValueError, match="genuine and impostor"):
        group_draws.resample_groups(alone, rng=np.random.default_rng(0), num_resamples=5)
    with pytest.raises(ValueError, match="genuine"):
        group_draws.resample_groups(of_all._replace(genuine=of_all.genuine[:, 0]), rng=np.random.default_rng(0))
