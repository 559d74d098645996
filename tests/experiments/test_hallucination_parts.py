"""The smaller parts of the study of hallucination: neutrality, measurements, bandwidths, dictionaries of a kernel."""

import math

import jax
import numpy as np
import pytest

from configs import hallucinate
from experiments.hallucinate import bandwidths, claims, faces, kernels, measurements, methods, neutral
from jaxface import features, hallucination
from jaxface.data import synthetic
from jaxface.metrics.intervals import Interval
from jaxface.sparse.dictionary import Dictionary


@pytest.fixture
def config():
    return hallucinate.get_config("smoke").unlock()


@pytest.fixture
def data(rng, config):
    drawn = synthetic.rendered_faces(rng, num_people=16, images_per_person=12, size=(8, 8)).data
    return faces.select(config, drawn)


def drawn(rng, within, between, num=3000):
    """Images `[n, 3]` of people with 1 to 4 images, of these variances in every entry."""
    ids = np.repeat(np.arange(num), rng.integers(1, 5, num))
    people = math.sqrt(between) * rng.normal(size=(num, 3))
    return people[ids] + math.sqrt(within) * rng.normal(size=(ids.size, 3)), ids


def test_variances_are_those_that_were_drawn(rng):
    x, ids = drawn(rng, within=0.5, between=2.0)
    sums = neutral.sums(x, ids)
    assert (sums.counts >= 2).all()
    (within,), (between,) = neutral.variances(sums, np.ones((1, len(sums.counts))))
    assert within / 3 == pytest.approx(0.5, rel=0.05)
    assert between / 3 == pytest.approx(2.0, rel=0.1)
    people, counts = np.unique(ids, return_counts=True)
    inside = [x[ids == person].var(axis=0, ddof=1) * (n - 1) for person, n in zip(people, counts, strict=True) if n > 1]
    assert within == pytest.approx(np.sum(inside) / (counts[counts > 1] - 1).sum())


def test_a_person_drawn_twice_counts_twice(rng):
    x, ids = drawn(rng, within=1.0, between=1.0, num=8)
    sums = neutral.sums(x, ids)
    weights = rng.integers(0, 3, len(sums.counts)) + 1.0
    rows = np.repeat(np.arange(len(weights)), weights.astype(int))
    repeated = neutral.Sums(*(field[rows] for field in sums))
    for one, other in zip(neutral.variances(sums, weights[None]), neutral.variances(repeated, np.ones((1, len(rows)))),
                          strict=True):  # fmt: skip
        np.testing.assert_allclose(one, other)


def test_blur_is_not_neutral_and_losing_what_changes_is(rng):
    """Halving everything leaves R at 1; halving the distance of every image from the mean of its person does not."""
    x, ids = drawn(rng, within=1.0, between=1.0)
    settings = {"num_resamples": 200, "seed": 0}
    means = np.stack([x[ids == person].mean(axis=0) for person in range(3000)])[ids]
    blurred = neutral.measured(x, x / 2, ids, **settings)
    assert blurred.ratio.estimate == pytest.approx(1)
    assert blurred.within.estimate == pytest.approx(0.25)
    assert blurred.between.estimate == pytest.approx(0.25)
    calmer = neutral.measured(x, means + (x - means) / 2, ids, **settings)
    assert calmer.within.estimate == pytest.approx(0.25)
    assert calmer.ratio.high < 0.3
    assert neutral.verdict(calmer.ratio) == "people vary less among themselves"
    assert neutral.verdict(Interval(1.2, 1.1, 1.3)) == "people vary more among themselves"
    assert neutral.verdict(Interval(1.0, 0.9, 1.1)) == "not decided"
    assert neutral.measured(x[ids < 3], x[ids < 3], ids[ids < 3], **settings) is None


def test_small_images_are_means_over_squares(config, rng):
    image = rng.random((8, 12))
    operator = measurements.smaller((8, 12), 4)
    expected = image.reshape(2, 4, 3, 4).mean(axis=(1, 3))
    np.testing.assert_allclose((operator @ image.ravel()).reshape(2, 3), expected)
    shown = measurements._picture(operator, image.reshape(1, -1)).reshape(8, 12)
    np.testing.assert_allclose(shown, np.kron(expected, np.ones((4, 4))))
    with pytest.raises(ValueError, match=r"config\.measurements\.factor must divide the height, 8; got 3"):
        measurements.smaller((8, 12), 3)
    config.measurements.methods = ("network",)
    with pytest.raises(ValueError, match="must need nothing but faces and a key; 'network' needs key, optimizer"):
        measurements.check(config)


def test_ridge_from_a_small_image(config, data):
    fold = next(faces.folds(config, data))
    operator = measurements.smaller(fold.shape, 2)
    images = measurements.reconstructed(config, "ridge", fold.train, fold.test, operator)
    found = hallucination.fit_measured(hallucination.METHODS["ridge"], fold.train, operator, ridge=0.03)
    expected = hallucination.reconstruct_matrix(found.model, (fold.test @ operator.T).astype(np.float32))
    np.testing.assert_allclose(images, np.clip(expected, 0, 1), atol=1e-5)


def test_a_narrower_bandwidth_makes_features_larger(config, data):
    """The size of `V y` grows as the bandwidth falls: `|y| / bandwidth` for a Gaussian map."""
    mask = faces.rectangle(data.shape, (0, 4, 0, 8))
    for quantile, (low, high) in {0.999: (0.3, 0.6), 0.7: (1.2, 1.8)}.items():
        signals = hallucination.feature_signals(
            jax.random.key(0), data.x, mask, beta=10.0, expansion=5, quantile=quantile
        )
        dictionary = Dictionary(atoms=signals.transform(data.x[:7]).T)
        model = hallucination.feature_hallucinator(signals, dictionary, sparsity=2)
        v = np.asarray(features.dense_matrix(signals.face_map))
        size = bandwidths.size(model, data.x)
        assert size == pytest.approx(np.sqrt((((data.x - data.x.mean(axis=0)) @ v.T) ** 2).mean()), rel=1e-4)
        assert low < size < high
    assert methods.means({"a/psnr": np.array([1.0, 3.0]), "a/size": np.array(7.0)}) == {"a": 2.0}


def test_people_are_named_by_what_their_dictionaries_leave(config, data):
    config.kernels.update(num_people=6, num_splits=5, class_atoms=4, kernels=())
    found = kernels.classified(config, data)
    assert found["num_people"] == 6
    assert found["test_to_train"] == 1
    errors = kernels._errors(found)
    assert list(errors) == ["nearest neighbour", "dictionaries"]  # those of a kernel are in the smoke run
    assert all(values.shape == (5,) and values.mean() < 0.5 for values in errors.values())  # 83 % by chance
    config.kernels.num_train = 100
    with pytest.raises(ValueError, match=r"people with more photos than config\.kernels\.num_train"):
        kernels.classified(config, data)


def test_the_paper_is_quoted_in_decibels():
    assert claims.Claim("fastfood_10x", "dw_ksvd").printed == pytest.approx(2.5094)
    assert claims.Claim("streamed_5x", "streamed_dw_ksvd").printed == pytest.approx(1.2849)
    assert math.isnan(claims.Claim("network", "ridge").printed)
    assert math.isnan(claims.Claim("streamed_5x", "fastfood_5x").printed)
