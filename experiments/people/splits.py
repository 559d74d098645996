"""One split by people: a verifier of some, choices on others, and the clusters of people never seen."""

import time
from collections.abc import Callable
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from ml_collections import ConfigDict

from experiments.common.inputs import Vectors
from experiments.people import methods
from jaxface import metrics, verifier
from jaxface.cluster import partition_priors
from jaxface.core import prng
from jaxface.core.fitinfo import raise_if_failed
from jaxface.core.labels import dense
from jaxface.data import pairs, splits
from jaxface.data.splits import Split
from jaxface.faces.pipeline import ImagePipeline
from jaxface.runtime import params_io
from jaxface.verifier import Verifier, kinds

METHODS = ("ratios of sets, noise scaled", "ratios of sets, calibrated on pairs", "average linkage, cosine", "k-means")
MEASURES = ("B-cubed F", "precision", "recall", "pairwise F", "people", "people in truth", "seconds")
_CUTS = 200  # heights of a tree that are tried
_NOBODY_APART = np.zeros((0, 2), np.int64)


class Chosen(NamedTuple):
    """What the held-out people say."""

    noise_scale: float  # for ratios of sets
    slope: float  # of the calibration of pairs
    offset: float
    photos_a_person: float
    distance: float  # cosine, of average linkage


def drawn(config: ConfigDict, ids: np.ndarray) -> list[Split]:
    """Random splits by people: train, held out, test."""
    number = len(np.unique(ids))
    num_fit, num_choose = round(config.share_fit * number), round(config.share_choose * number)
    if min(num_fit, num_choose, number - num_fit - num_choose) < 2:
        raise ValueError(
            f"{number} people cannot be split: {num_fit} would train, {num_choose} choose and "
            f"{number - num_fit - num_choose} be grouped, of at least 2 each. Bring more people with "
            f"{config.min_images} to {config.max_images} photos, or change config.share_fit and config.share_choose."
        )
    people = (num_fit, num_choose, number - num_fit - num_choose)
    rng = np.random.default_rng((config.seed, 1))
    parts = splits.identity_disjoint(ids, num_people=people, rng=rng, num_splits=config.num_splits)
    return [splits.of_parts(part, train=0, held_out=1, test=2) for part in parts]


def measure(
    config: ConfigDict, vectors: Vectors, steps: ImagePipeline, split: Split, number: int
) -> dict[str, np.ndarray]:
    """The measures `[methods, measures]`, the labels of the test rows `[methods, t]`, choices and the verifier."""
    model = _fitted(config, vectors, steps, split, number)
    chosen = _choices(config, model, vectors.x[split.held_out], vectors.ids[split.held_out])
    x, ids = vectors.x[split.test], vectors.ids[split.test]
    labels, rows = [], []
    for cluster in _clusterings(config, model, x, chosen):
        began = time.perf_counter()
        labels.append(cluster())
        rows.append([*_measures(ids, labels[-1]), time.perf_counter() - began])
    return {
        "measures": np.array(rows),
        "labels": np.array(labels, np.int32),
        "chosen": np.array(chosen),
        "model": np.frombuffer(params_io.to_bytes(model, notes={"kind": config.kind}), np.uint8),
    }


def _clusterings(
    config: ConfigDict, model: Verifier, x: np.ndarray, chosen: Chosen
) -> tuple[Callable[[], np.ndarray], ...]:
    """The clusters of vectors of unknown people by every method, in the order of METHODS."""
    expected = num_expected(len(x), chosen.photos_a_person)

    def by_ratios(scaled: Verifier, slope: float, offset: float) -> np.ndarray:
        prior = expected_people(offset, expected, len(x))
        return methods.by_ratios(
            scaled, x, slope=slope, prior=prior, apart=_NOBODY_APART, num_neighbors=config.num_neighbors
        ).labels

    return (
        lambda: by_ratios(methods.with_noise(model, chosen.noise_scale), 1.0, 0.0),
        lambda: by_ratios(model, chosen.slope, chosen.offset),
        lambda: methods.cut(methods.linkage(x), chosen.distance),
        lambda: methods.by_kmeans(config, x, num_clusters=expected),
    )


def num_expected(num_images: int, photos_a_person: float) -> int:
    """How many people so many photos show; Ewens' prior needs more than one and fewer than the photos."""
    return max(2, min(num_images - 1, round(num_images / photos_a_person)))


def expected_people(offset: float, num_people: int, num_images: int) -> partition_priors.Prior:
    """Ewens' prior with an expected number of people, and the offset of a calibration as a threshold."""
    alpha = partition_priors.concentration(num_people, num_images=num_images)
    return partition_priors.product(partition_priors.ewens(alpha), partition_priors.threshold(-offset))


def _measures(ids: np.ndarray, labels: np.ndarray) -> tuple[float, ...]:
    found = metrics.bcubed(ids, labels)
    numbers = len(np.unique(labels)), len(np.unique(ids))
    return found.f, found.precision, found.recall, metrics.pairwise(ids, labels).f, *numbers


def _fitted(config: ConfigDict, vectors: Vectors, steps: ImagePipeline, split: Split, number: int) -> Verifier:
    """A verifier of the training people, calibrated on pairs of the held-out people."""
    key = prng.stream(jax.random.fold_in(jax.random.key(config.seed), number), "people")
    _, ids, names = dense(vectors.ids[split.train])
    settings = {"num_iters": config.num_iters, "num_components": config.num_components, "steps": steps}
    raw, info = verifier.fit_kind(
        key, kinds.KINDS[config.kind], jnp.asarray(vectors.x[split.train]), ids, num_people=len(names), **settings
    )
    raise_if_failed(info, config.kind)
    held = split.held_out[pairs.limited(vectors.ids[split.held_out], max_rows=config.max_pairs_images)]
    z = verifier.encode_vectors(raw, jnp.asarray(vectors.x[held]))
    model, info = verifier.calibrate(raw, z, *pairs.all_pairs(vectors.ids[held]))
    raise_if_failed(info, "calibration")
    return model


def _choices(config: ConfigDict, model: Verifier, x: np.ndarray, ids: np.ndarray) -> Chosen:
    """The settings with the largest B-cubed F on held-out people, the first among equals."""

    def f_of(labels: np.ndarray) -> float:
        return metrics.bcubed(ids, labels).f

    photos_a_person = len(ids) / len(np.unique(ids))
    prior = expected_people(0.0, num_expected(len(ids), photos_a_person), len(ids))

    def with_scale(scale: float) -> np.ndarray:
        scaled = methods.with_noise(model, scale)
        return methods.by_ratios(
            scaled, x, slope=1.0, prior=prior, apart=_NOBODY_APART, num_neighbors=config.num_neighbors
        ).labels

    tree = methods.linkage(x)
    heights = np.quantile(tree[:, 2], np.linspace(0, 1, _CUTS))
    return Chosen(
        noise_scale=max(config.noise_scales, key=lambda scale: f_of(with_scale(scale))),
        slope=float(model.calibration.slope),
        offset=float(model.calibration.offset),
        photos_a_person=photos_a_person,
        distance=float(max(heights, key=lambda height: f_of(methods.cut(tree, height)))),
    )
