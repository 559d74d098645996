"""What every metric refuses in the same words: NaN, text, objects and complex numbers; and what it converts."""

import jax.numpy as jnp
import numpy as np
import pytest

from jaxface import metrics
from jaxface.metrics import (
    arguments,
    calibration,
    clustering,
    identification,
    intervals,
    normalization,
    retrieval,
    streaming,
)

SAME = np.array([True, True, False, False])
IDS = np.array([0, 1, 0, 1])
SCORES = {
    "roc": lambda s: metrics.roc(s, SAME),
    "cllr": lambda s: metrics.cllr(s, SAME),
    "reliability": lambda s: calibration.reliability(s, SAME, num_bins=3),
    "count": lambda s: streaming.count(s, SAME, [0.0, 1.0]),
    "lfw": lambda s: metrics.lfw_accuracy(s, SAME, [0, 1, 0, 1]),
    "cmc": lambda s: metrics.cmc(np.stack([s] * 4, 1), IDS, IDS),
    "retrieval": lambda s: metrics.retrieval_at_k(np.stack([s] * 4, 1), IDS, IDS, k=2),
    "subject_bootstrap": lambda s: metrics.subject_bootstrap(
        s, SAME, ["a", "b", "a", "b"], ["a", "b", "b", "a"], rng=np.random.default_rng(0), num_resamples=20
    ),
    "mean_interval": lambda s: metrics.mean_interval(s, IDS, rng=np.random.default_rng(0), num_resamples=9),
    "split_interval": lambda s: intervals.split_interval(s, test_to_train=0.0, within=metrics.SIGNED),
    "cross_entropy": lambda s: calibration.cross_entropy(s, SAME, [0.0]),
    "supported_range": lambda s: calibration.supported_range(s, SAME),
    "cohort_moments": lambda s: normalization.cohort_moments(np.stack([s, s])),
    "cosine": lambda s: metrics.cosine_distance(s, s),
}


@pytest.mark.parametrize("name", SCORES)
def test_numbers_that_no_metric_takes(name):
    measure, good = SCORES[name], np.array([2.0, 1.0, 0.5, -1.0])
    measure(good)
    with pytest.raises(ValueError, match=r"must (not be NaN|be finite)"):
        measure(np.where(good == 0.5, np.nan, good))
    for bad in (good.astype(str), good.astype(complex), np.array([2.0, None, 0.5, 1.0], object)):
        with pytest.raises(ValueError, match=r"must be real numbers; got an array of dtype .* Convert them first"):
            measure(bad)


@pytest.mark.parametrize("dtype", ["f2", "i1", "i8", "u1", ">f4", "bfloat16"])
def test_numbers_of_any_width_count_as_float64(dtype):
    """Small whole numbers are the same in every type; sums of thousands in float16 are not."""
    scores = np.arange(4000) % 100
    same = np.arange(4000) % 3 == 0
    given = jnp.asarray(scores, jnp.bfloat16) if dtype == "bfloat16" else scores.astype(dtype)
    assert metrics.cllr(given, same) == metrics.cllr(scores.astype(float), same)
    assert metrics.auc(metrics.roc(given, same)) == metrics.auc(metrics.roc(scores.astype(float), same))


LABELS = {
    "purity": lambda a, b: clustering.purity(a, b),
    "bcubed": lambda a, b: clustering.bcubed(a, b),
    "pairwise": lambda a, b: clustering.pairwise(a, b),
    "cmc": lambda a, b: identification.cmc(np.eye(4), a, b),
    "retrieval": lambda a, b: metrics.mean_average_precision(np.eye(4), a, b),
    "ranked": lambda a, b: retrieval.ranked_retrieval_at_k(np.stack([a] * 3, 1), b, k=2),
}


@pytest.mark.parametrize("name", LABELS)
def test_labels_that_name_nobody(name):
    measure = LABELS[name]
    for good in (IDS, IDS.astype(str), IDS.astype(object), IDS.astype(str).astype(object), IDS.astype(np.uint8)):
        measure(good, good)
    nan = np.array([0.0, 1.0, np.nan, 1.0])
    with pytest.raises(ValueError, match=r"must not be NaN; .* names nobody"):
        measure(nan, nan)
    for bad, found in (
        (np.array(["a", None, "b", "a"], object), "NoneType, strings"),
        (np.array(["a", 1, "b", "a"], object), "both"),
        (np.array([1.5, 1.0, 2.0, 1.0], object), "float"),
        (IDS.astype(complex), "complex128"),
    ):
        with pytest.raises(ValueError, match=f"must be all integers or all strings; got {found}"):
            measure(bad, bad)


def test_unsigned_ids_do_not_wrap():
    first, second, count = arguments.dense_pair(
        np.array([255, 1], np.uint8), np.array([-1, 1], np.int8), names=("first", "second")
    )
    assert count == 3
    assert (first == second).tolist() == [False, True]


def test_subjects_and_folds_that_are_nan(rng):
    for call, name in (
        (lambda: metrics.mean_interval(np.arange(3.0), [0, np.nan, 1], rng=rng), "subjects"),
        (lambda: metrics.lfw_accuracy(np.arange(4.0), SAME, [0, 1, np.nan, 0]), "folds"),
        (lambda: metrics.subject_bootstrap([1, 0.0], [True, False], [0, np.nan], [0, 1], rng=rng), "subject_a"),
    ):
        with pytest.raises(ValueError, match=f"{name} must not be NaN"):
            call()


def test_messages_call_arguments_by_their_names():
    with pytest.raises(ValueError, match=r"query_ids must have shape \[q\]"):
        metrics.mean_average_precision(np.eye(2), [0, 1], "x")
    with pytest.raises(ValueError, match=r"probe_ids must have shape \[q\]"):
        metrics.cmc(np.eye(2), [0, 1], "x")
    with pytest.raises(ValueError, match=r"y must have shape \[..., d\]; got shape \(\)"):
        metrics.cosine_distance([1.0, 2.0], 3.0)
