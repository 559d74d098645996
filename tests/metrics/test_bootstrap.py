import functools

import numpy as np
import pytest
from scipy import stats

from jaxface.metrics import bootstrap, calibration, draws, resampling, verification
from tests.metrics.coverage import interval_of_pairs
from tests.metrics.people import people_pairs, tied_people
from tests.reference import metrics_reference as ref
from tests.tolerances import assert_close

FAR = (0.0, 0.1, 0.25, 1.0)


def test_resamples_of_one_person_are_left_out():
    scores, same = np.array([3.0, 2.0, 1.0]), np.array([True, True, False])
    a, b = np.array([0, 1, 0]), np.array([0, 1, 1])
    result = bootstrap.subject_bootstrap(scores, same, a, b, rng=np.random.default_rng(0), num_resamples=200)
    assert 70 < result.num_undefined < 130  # half the draws of two people
    assert result.num_people == 2


def test_the_estimates_are_the_metrics_of_the_data(rng):
    scores, same, a, b = tied_people(rng, num_people=12, images=4, decimals=1)
    result = bootstrap.subject_bootstrap(scores, same, a, b, rng=rng, num_resamples=50, far=FAR, threshold=-1.5)
    curve = verification.roc(scores, same)
    assert_close(result.eer.estimate, verification.eer(curve))
    assert_close(result.auc.estimate, verification.auc(curve))
    assert_close(result.cllr.estimate, calibration.cllr(scores, same))
    assert_close(result.accuracy.estimate, np.mean((scores >= -1.5) == same))
    assert_close(result.far_there.estimate, (scores >= -1.5)[~same].mean())
    assert_close(result.vr_there.estimate, (scores >= -1.5)[same].mean())
    rates = np.array([verification.verification_rate(curve, far) for far in FAR])
    assert_close(result.verification_rate.estimate, rates)
    band = np.array([verification.verification_rate(curve, far) for far in result.band_far])
    assert_close(result.band_vr.estimate, band)
    for interval in (
        result.eer,
        result.auc,
        result.cllr,
        result.accuracy,
        result.verification_rate,
        result.band_vr,
    ):
        assert not (np.asarray(interval.low) >= np.asarray(interval.high)).any()
    assert result.eer.low < result.eer.high
    assert np.isnan(result.verification_rate.low).tolist() == [False, False, False, True]  # at FAR 1 all are 1
    known = ~np.isnan(result.band_vr.low)
    assert known.mean() > 0.9
    assert (np.diff(result.band_vr.low[known]) >= 0.0).all()


def test_without_a_threshold_there_is_no_accuracy(rng):
    result = bootstrap.subject_bootstrap(*tied_people(rng), rng=rng, num_resamples=5)
    assert (result.accuracy, result.far_there, result.vr_there) == (None, None, None)


def test_names_of_subjects_and_the_order_of_pairs_change_nothing(rng):
    scores, same, a, b = tied_people(rng, num_people=6, images=3, decimals=1)
    names = np.array([f"person {i}" for i in range(6)])
    order = rng.permutation(scores.size)
    whole = bootstrap.subject_bootstrap(scores, same, a, b, rng=np.random.default_rng(1), num_resamples=40)
    swapped = bootstrap.subject_bootstrap(
        scores[order],
        same[order],
        names[b][order],
        names[a][order],
        rng=np.random.default_rng(1),
        num_resamples=40,
    )
    assert_close(swapped, whole)


def test_the_same_generator_gives_the_same_interval_and_another_does_not(rng):
    pairs = tied_people(rng, num_people=10, images=4, decimals=3)
    first, again, other = (
        bootstrap.subject_bootstrap(*pairs, rng=np.random.default_rng(seed), num_resamples=60) for seed in (4, 4, 5)
    )
    assert first.eer == again.eer
    assert first.eer != other.eer


def test_subjects_cover_the_population_and_pairs_do_not():
    """60 data sets of 40 people x 4 images; bounds that a correct 95 % interval breaks once in 10,000 runs.

    The population EER is that of 16,000 simulated people (standard error .0004). `tests.metrics.coverage` counts 200
    data sets.
    """
    rng = np.random.default_rng(11)
    truth, num_sets = 0.1734, 60
    by_subject = by_pair = 0
    for _ in range(num_sets):
        scores, same, a, b = people_pairs(rng, num_people=40, images=4)
        eer = bootstrap.subject_bootstrap(scores, same, a, b, rng=rng, num_resamples=200, band_far=[0.1]).eer
        by_subject += eer.low <= truth <= eer.high
        low, high = interval_of_pairs(rng, scores, same, 60)
        by_pair += low <= truth <= high
    assert by_subject >= stats.binom.ppf(1e-4, num_sets, 0.93)
    assert by_pair <= stats.binom.ppf(1 - 1e-4, num_sets, 0.72)
    assert by_pair < by_subject - 6


def test_mean_interval_against_written_out_resamples(rng):
    values, subjects = rng.normal(size=14), np.array(list("aabbbcccddddde"))
    interval = bootstrap.mean_interval(values, subjects, rng=np.random.default_rng(2), num_resamples=99, level=0.8)
    counts = np.concatenate(list(resampling.multiplicities(5, 99, np.random.default_rng(2))))
    means = sorted(
        np.mean([v for v, s in zip(values, subjects, strict=True) for _ in range(int(row["abcde".index(s)]))])
        for row in counts
    )
    assert_close(interval.estimate, values.mean())
    # A fifth of 99 outside: 9 below, 9 above.
    assert_close((interval.low, interval.high), (means[9], means[89]))


def test_mean_interval_is_wide_when_people_differ(rng):
    subjects = np.repeat(np.arange(20), 10)
    values = (subjects % 2).astype(float)  # each person all right or all wrong
    by_subject = bootstrap.mean_interval(values, subjects, rng=rng)
    by_image = bootstrap.mean_interval(values, np.arange(200), rng=rng)
    assert by_subject.high - by_subject.low > 2.5 * (by_image.high - by_image.low)


def test_what_subject_bootstrap_refuses(rng):
    scores, same, a, b = tied_people(rng)
    draw = functools.partial(bootstrap.subject_bootstrap, rng=rng, num_resamples=3)
    wrong = b.copy()
    wrong[0] = 4
    with pytest.raises(ValueError, match="it is not for 1 pairs, the first at index 0"):
        draw(scores, same, a, wrong)
    with pytest.raises(ValueError, match=r"subject_b must have shape \[p\] with p ="):
        draw(scores, same, a, b[1:])
    with pytest.raises(ValueError, match="num_resamples must be at least 1"):
        draw(scores, same, a, b, num_resamples=0)
    with pytest.raises(ValueError, match=r"level must lie in \(0, 1\)"):
        draw(scores, same, a, b, level=95)
    with pytest.raises(ValueError, match=r"far must lie in \[0, 1\]"):
        draw(scores, same, a, b, far=(1.0, 2.0))
    with pytest.raises(ValueError, match=r"band_far must have shape \[f\]"):
        draw(scores, same, a, b, band_far=0.1)
    with pytest.raises(ValueError, match="threshold must not be NaN"):
        draw(scores, same, a, b, threshold=np.nan)
    with pytest.raises(ValueError, match="scores must not be NaN"):
        draw(scores * np.nan, same, a, b)
    lonely = [1.0, 0.0], [True, False], ["a", "b"], ["a", "c"]  # three people: 7 resamples in 9 lack somebody
    with pytest.raises(ValueError, match="none of 1 resamples drew both"):
        draw(*lonely, num_resamples=1, rng=np.random.default_rng(1))


def test_what_mean_interval_refuses(rng):
    with pytest.raises(ValueError, match="the number of subjects must be at least 2"):
        bootstrap.mean_interval([1.0, 2.0], ["a", "a"], rng=rng)
    with pytest.raises(ValueError, match="the number of values must be at least 1"):
        bootstrap.mean_interval([], [], rng=rng)
    with pytest.raises(ValueError, match="values must be finite"):
        bootstrap.mean_interval([1.0, np.inf], ["a", "b"], rng=rng)


@pytest.mark.parametrize(("level", "outside"), [(0.9, 50), (0.95, 25), (0.8, 100), (0.5, 250), (0.994, 3)])
def test_percentiles_leave_so_many_draws_outside(level, outside, rng):
    interval = bootstrap._percentiles(0.0, rng.permutation(1000).astype(float), level, num_people=40)
    assert (interval.low, interval.high) == (outside, 999 - outside)


def test_there_is_no_interval_of_few_people_or_without_width(rng):
    """The EER of separated scores is 0 in every resample: [0, 0] claims that it is known."""
    scores, same, a, b = people_pairs(rng, num_people=8, images=3)
    apart = np.where(same, 1.0, -1.0)
    found = bootstrap.subject_bootstrap(apart, same, a, b, rng=rng, num_resamples=60)
    assert (found.eer.estimate, found.auc.estimate) == (0.0, 1.0)
    assert np.isnan([found.eer.low, found.eer.high, found.auc.low, found.auc.high]).all()
    assert np.isnan(found.verification_rate.low).all()
    few = (a < 4) & (b < 4)
    found = bootstrap.subject_bootstrap(scores[few], same[few], a[few], b[few], rng=rng, num_resamples=60)
    assert np.isnan([found.eer.low, found.eer.high, found.cllr.low, found.cllr.high]).all()
    for values, people in ((np.ones(12), np.arange(12)), (rng.normal(size=12), np.arange(12) % 4)):
        interval = bootstrap.mean_interval(values, people, rng=rng, num_resamples=60)
        assert np.isnan([interval.low, interval.high]).all()
        assert interval.estimate == values.mean()


def test_scores_of_infinity_leave_an_interval_without_an_upper_end(rng):
    scores, same, a, b = people_pairs(rng, num_people=8, images=3)
    scores = np.where(same & (a == 0), -np.inf, scores)
    cllr = bootstrap.subject_bootstrap(scores, same, a, b, rng=rng, num_resamples=60).cllr
    assert np.isfinite(cllr.low)
    assert cllr.high == cllr.estimate == np.inf


def drawn_alike(systems, same, a, b, *, num_resamples):
    """The draws of each system, with the same resamples of people."""
    rngs = (np.random.default_rng(5) for _ in systems)
    return [
        draws.resample_subjects(scores, same, a, b, rng=rng, num_resamples=num_resamples, far=FAR)
        for scores, rng in zip(systems, rngs, strict=True)
    ]


def test_differences_equal_those_of_resamples_written_out(rng):
    scores, same, a, b = tied_people(rng, num_people=6, images=3, decimals=1)
    other = np.round(scores + rng.normal(size=len(scores)), 1)
    found = bootstrap.subject_differences(*drawn_alike((scores, other), same, a, b, num_resamples=60), level=0.9)
    drawn = np.concatenate(list(resampling.multiplicities(6, 60, np.random.default_rng(5))))
    drawn = drawn[(drawn > 0).sum(axis=1) > 1]

    def statistics(values, counts):
        listed, labels = ref.expanded_pairs(values.tolist(), same.tolist(), a, b, counts)
        points = ref.roc_points(listed, labels)
        return [float(ref.eer(points)), ref.cllr(listed, labels), float(ref.verification_rate(points, 0.25))]

    gaps = np.array([np.subtract(statistics(scores, c), statistics(other, c)) for c in drawn.astype(int)])
    outside = int(round(0.05 * len(gaps), 9))
    low, high = np.sort(gaps, axis=0)[[outside, -1 - outside]]
    everybody = np.subtract(statistics(scores, np.ones(6, int)), statistics(other, np.ones(6, int)))
    of_far = [end[2] for end in found.verification_rate]
    for k, ends in enumerate((found.eer, found.cllr, of_far)):
        assert_close(np.array(ends), np.array([everybody[k], low[k], high[k]]))


def test_a_system_differs_from_itself_by_nothing(rng):
    scores, same, a, b = people_pairs(rng, num_people=8, images=3)
    scores = np.where(same & (a == 0), -np.inf, scores)
    found = bootstrap.subject_differences(*drawn_alike((scores, scores), same, a, b, num_resamples=40))
    assert (found.eer.estimate, found.auc.estimate, found.cllr.estimate) == (0.0, 0.0, 0.0)
    assert np.isnan([found.eer.low, found.cllr.high]).all()  # no width, so no interval


def test_a_small_difference_on_the_same_pairs_is_seen(rng):
    scores, same, a, b = people_pairs(rng, num_people=40, images=4)
    better = scores + 0.2 * same
    alone = bootstrap.subject_bootstrap(scores, same, a, b, rng=rng, num_resamples=200).auc
    together = bootstrap.subject_differences(*drawn_alike((better, scores), same, a, b, num_resamples=200)).auc
    assert together.low > 0
    assert together.high - together.low < 0.5 * (alone.high - alone.low)


def test_differences_need_the_same_pairs_resamples_and_rates(rng):
    scores, same, a, b = people_pairs(rng, num_people=8, images=3)
    draw = functools.partial(draws.resample_subjects, num_resamples=10)
    one, other = (draw(scores, same, a, b, rng=np.random.default_rng(seed)) for seed in (1, 2))
    for different in (other, draw(scores[1:], same[1:], a[1:], b[1:], rng=np.random.default_rng(1))):
        with pytest.raises(ValueError, match="same pairs and resamples"):
            bootstrap.subject_differences(one, different)
    with pytest.raises(ValueError, match="same FARs"):
        bootstrap.subject_differences(one, draw(scores, same, a, b, rng=np.random.default_rng(1), far=(0.5,)))
