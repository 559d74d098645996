"""The model without weights, and the models with weights of every quality, on people never seen.

All see the same features and the same people, once as they are and once scaled to one length, which by itself takes
away some of what a damage does. Of the people of a fold, the training people fit the model and free
weights, the held-out people choose exponents and fit the affine calibration of every method, and the test people are
scored.
"""

from collections.abc import Iterator, Mapping
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from ml_collections import ConfigDict

from experiments.common import weighted
from experiments.quality import degrade
from experiments.quality.measured import MEASURED
from jaxface import joint_bayes, verifier
from jaxface.core import prng
from jaxface.core.fitinfo import raise_if_failed
from jaxface.core.labels import dense
from jaxface.data import pairs, splits
from jaxface.data.splits import Split
from jaxface.joint_bayes import JointBayes, quality
from jaxface.losses import calibration

PLAIN = "without weights"
KNOWN = "known kind and amount"
BOTH = "sharpness and contrast"
FORMS = {"as they are": False, "one length": True}  # of the features


class Graded(NamedTuple):
    """The bin of every photo by one quality, and the quality of each bin if it is a number."""

    name: str
    bins: np.ndarray  # [n]
    num_bins: int
    levels: np.ndarray | None  # [b]


class Fitted(NamedTuple):
    """A model and how much a photo of each bin counts."""

    name: str
    model: JointBayes
    weights: np.ndarray  # [n], of every photo
    of_bins: np.ndarray  # [b]


def folds(config: ConfigDict, ids: np.ndarray) -> list[Split]:
    """Every person tests in one fold; of the others a share is held out."""
    rng = np.random.default_rng((config.seed, 4))
    parts = splits.identity_folds(ids, num_folds=config.num_folds, rng=rng)[0]
    found = []
    for fold in range(config.num_folds):
        others = np.flatnonzero(parts != fold)
        people = rng.permutation(np.unique(ids[others]))
        is_held = np.isin(ids[others], people[: max(2, round(config.held_out * len(people)))])
        found.append(Split(others[~is_held], np.flatnonzero(parts == fold), others[is_held]))
    return found


def qualities_of(arrays: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
    """The qualities that are numbers, `[n]` each, by name; known ones first."""
    known = {"known amount": -arrays["level"].astype(float)}
    found = known | dict(zip(MEASURED, arrays["measured"], strict=True))
    if "detector" not in arrays:
        return found
    length = np.log(np.linalg.norm(arrays["x"], axis=1))
    return found | {"score of the detector": arrays["detector"], "length of the vector": length}


def graded(config: ConfigDict, arrays: Mapping[str, np.ndarray], train: np.ndarray) -> list[Graded]:
    """The bins of every quality; their edges are those of the training photos."""
    amounts = degrade.Amounts(arrays["kind"], arrays["level"])
    found = [Graded(KNOWN, degrade.cells(config, amounts), len(degrade.cell_names(config)), None)]
    for name, values in qualities_of(arrays).items():
        bins = quality.bins_of(values, quality.bin_edges(values[train], num_bins=config.num_bins))
        levels = quality.bin_means(values[train], bins[train], num_bins=config.num_bins)
        found.append(Graded(name, bins, config.num_bins, levels))
    side = config.num_bins_of_two
    two = [quality.bins_of(values, quality.bin_edges(values[train], num_bins=side)) for values in arrays["measured"]]
    return [*found, Graded(BOTH, two[0] * side + two[1], side * side, None)]


def names(config: ConfigDict, arrays: Mapping[str, np.ndarray]) -> tuple[str, ...]:
    """The methods of a form of the features, in the order of `fits`."""
    everything = np.arange(len(arrays["ids"]))
    return (PLAIN, *(name for each in graded(config, arrays, everything) for name in _ways(each)))


def _ways(each: Graded) -> tuple[str, ...]:
    free = f"{each.name}, free weights"
    return (free,) if each.levels is None else (f"{each.name}, exponent", free)


def scores_of_fold(config: ConfigDict, arrays: Mapping[str, np.ndarray], split: Split) -> dict[str, np.ndarray]:
    """Scores `[methods, pairs]` of the test people of a fold, the methods of all forms, and the weights of the bins."""
    ids = arrays["ids"]
    test, held = (pairs.all_pairs(ids[rows]) for rows in (split.test, split.held_out))
    raw, calibrated, kept = [], [], {}
    features = {form: reduced(config, arrays["x"], split, length_normalize=scaled) for form, scaled in FORMS.items()}
    every = ((name, each) for name, x in features.items() for each in fits(config, arrays, x, split))
    for form, fitted in every:
        of_test, of_held = (
            weighted.pair_scores(
                fitted.model, fitted.weights, features[form], rows[np.stack([trial.first, trial.second], axis=1)]
            )
            for rows, trial in ((split.test, test), (split.held_out, held))
        )
        affine, info = calibration.fit(of_held, held.is_same)
        raise_if_failed(info, f"calibration, {fitted.name}")
        raw.append(of_test)
        calibrated.append(np.asarray(calibration.calibrate(affine, raw[-1])))
        kept[f"weights, {fitted.name}, {form}"] = fitted.of_bins
    return kept | {
        "raw": np.array(raw),
        "calibrated": np.array(calibrated),
        "is_same": test.is_same,
        "first": ids[split.test][test.first],
        "second": ids[split.test][test.second],
    }


def reduced(config: ConfigDict, x: np.ndarray, split: Split, *, length_normalize: bool) -> jax.Array:
    """Principal components of the training people, or the vectors themselves."""
    key, train = prng.stream(jax.random.key(config.seed), "pca"), jnp.asarray(x[split.train])
    if config.num_components is None:
        rows = jnp.asarray(x)
        return verifier.normalize_length(rows) if length_normalize else rows
    settings = {"num_components": config.num_components, "length_normalize": length_normalize}
    reduction, info = verifier.fit_reduction(key, train, **settings)
    raise_if_failed(info, "PCA")
    return verifier.reduce(reduction, jnp.asarray(x), length_normalize=length_normalize)


def fits(config: ConfigDict, arrays: Mapping[str, np.ndarray], x: jax.Array, split: Split) -> Iterator[Fitted]:
    """The models of all methods, in the order of `names`."""
    ids = arrays["ids"]
    train, held_out = (_ids_within(ids, rows) for rows in (split.train, split.held_out))
    num_people = int(ids.max()) + 1  # in every fold, so that one program serves all
    shift = x[split.train].mean(axis=0)
    stats = joint_bayes.recenter(joint_bayes.collect(x, train, num_people=num_people, shift=shift))
    start = joint_bayes.init(stats)
    model, info = joint_bayes.fit(stats, start, num_iters=config.num_iters)
    raise_if_failed(info, "the model without weights")
    yield Fitted(PLAIN, model, np.ones(len(ids)), np.ones(1))
    for each in graded(config, arrays, split.train):
        of_train, of_held = (
            quality.collect_bins(x, part, each.bins, num_people=num_people, num_bins=each.num_bins, shift=stats.shift)
            for part in (train, held_out)
        )
        if each.levels is not None:
            candidates = quality.exponents(of_train, each.levels, np.asarray(config.alphas))
            chosen, info = quality.fit_candidates(of_train, of_held, candidates, num_iters=config.num_iters)
            raise_if_failed(info, each.name)
            yield _fitted(f"{each.name}, exponent", chosen.model, chosen.weights, each)
        free, info = quality.fit_weights(of_train, start, num_iters=config.num_iters)
        raise_if_failed(info, each.name)
        yield _fitted(f"{each.name}, free weights", free.model, free.weights, each)


def _fitted(name: str, model: JointBayes, weights: jax.Array, each: Graded) -> Fitted:
    of_bins = np.asarray(weights)
    return Fitted(name, model, of_bins[each.bins], of_bins)


def _ids_within(ids: np.ndarray, rows: np.ndarray) -> np.ndarray:
    """Dense ids `[n]` of the people of these rows, -1 for all other rows."""
    found = np.full(len(ids), -1, np.int32)
    found[rows] = dense(ids[rows]).ids
    return found
