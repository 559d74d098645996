"""Does a source model help when few target people are known? The splits and the models of every method.

Every split draws target people to train, to calibrate and to test, and source people too if the target is the source
through a simulated camera. All methods see the same features (PCA of the source), are centred on the mean of the
training people of the target, and have the same calibration people, who choose w, fit the affine calibration and count
in the budget of every method. At most `max_images` images of a person calibrate and test, so that no person dominates
the pairs.
"""

import dataclasses
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from ml_collections import ConfigDict

from experiments.common import fields
from experiments.common.inputs import Vectors
from experiments.verify import domains
from jaxface import joint_bayes, verifier
from jaxface.core import prng
from jaxface.core.fitinfo import Status, raise_if_failed
from jaxface.core.labels import dense
from jaxface.data import pairs, splits
from jaxface.data.splits import Split
from jaxface.joint_bayes import JointBayes, Stats, adaptation, posterior
from jaxface.joint_bayes.posterior import EStep
from jaxface.metrics import calibration
from jaxface.subspace import LinearMap

METHODS = (
    "source only",
    "target only",
    "pooled",
    "transfer, w by log-likelihood",
    "transfer, w by Cllr",
    "target only, approximate EM",
    "transfer, approximate EM",
    "source, CORAL, no labels",
    "source, CORAL+, no labels",
    "source, Kaldi's adaptation, no labels",
)
TRANSFER = 3  # the method that is saved
ADAPTATIONS = (
    adaptation.coral,
    partial(adaptation.coral_plus, gamma_identity=0.5, gamma_noise=0.5),
    partial(adaptation.kaldi, to_identity=0.7, to_noise=0.3),
)
STRENGTHS = (1.0, 3.0, 10.0, 30.0, 100.0, 300.0, 1000.0)  # images' worth of the source, to choose from


@dataclasses.dataclass(frozen=True)
class Source:
    """The source's part in the model of every target."""

    reduction: LinearMap
    stats: Stats
    model: JointBayes


@dataclasses.dataclass(frozen=True)
class Problem:
    """The source, and the features and people of the target by the rows of a split."""

    source: Source
    split: Split  # rows of the target
    features: Mapping[str, Any]  # field of `Split` -> [n, r]
    ids: Mapping[str, np.ndarray]  # field of `Split` -> people [n]


@dataclasses.dataclass(frozen=True)
class Fitted:
    """The models of all methods and how w was chosen."""

    models: Sequence[JointBayes]
    chosen: np.ndarray  # [2], w by log-likelihood and by Cllr
    held_out: np.ndarray  # [weights], log-likelihood of the calibration people


def check(config: ConfigDict, *, section: str = "") -> None:
    """Refuses fields with values that no split can have."""
    counts = ("num_splits", "source_people", "target_people", "num_components", "num_iters", "camera.size")
    fields.counts(config, *counts, section=section)
    # Fewer than two people, or two images of a person, make no pair of either kind.
    fields.counts(config, "calibration_people", "test_people", "max_images", minimum=2, section=section)
    fields.shares(config, "weights", section=section)
    fields.not_negative(config, "camera.noise", section=section)


def draws(config: ConfigDict, source: Vectors, target: Vectors, rng: np.random.Generator) -> Iterator[Problem]:
    """The problems of all splits; a source of other people than the target is fitted once."""
    fitted = None
    for source_rows, split in [_random_split(config, target, rng) for _ in range(config.num_splits)]:
        if fitted is None or source_rows is not None:
            fitted = source_model(config, source, source_rows)
        yield prepare(config, fitted, target, split)


def source_model(config: ConfigDict, source: Vectors, rows: np.ndarray | None) -> Source:
    """PCA and Joint Bayes of some rows of the source, or of all if rows is None."""
    rows = np.arange(len(source.ids)) if rows is None else rows
    key, x = prng.stream(jax.random.key(config.seed), "pca"), jnp.asarray(source.x[rows])
    widest = min(len(x) - 1, x.shape[1])
    num_components = widest if config.num_components is None else config.num_components
    settings = {"num_components": num_components, "length_normalize": config.length_normalize}
    reduction, info = verifier.fit_reduction(key, x, **settings)
    raise_if_failed(info, "PCA of the source")
    features = verifier.reduce(reduction, x, length_normalize=config.length_normalize)
    stats = _collected(features, source.ids[rows])
    return Source(reduction, stats, _fitted(config, stats, "source"))


def prepare(config: ConfigDict, source: Source, target: Vectors, split: Split) -> Problem:
    """The target's features in the source's PCA, by the rows of a split."""

    def reduced(rows: np.ndarray) -> Any:
        x = jnp.asarray(target.x[rows])
        return verifier.reduce(source.reduction, x, length_normalize=config.length_normalize)

    by_part = split._asdict()
    features = {part: reduced(rows) for part, rows in by_part.items()}
    return Problem(source, split, features, {part: target.ids[rows] for part, rows in by_part.items()})


def training_part(problem: Problem, size: int) -> tuple[Any, np.ndarray]:
    """Features `[n, r]` and ids `[n]` of the first `size` training people."""
    rows = np.isin(problem.ids["train"], np.unique(problem.ids["train"])[:size])
    return problem.features["train"][rows], problem.ids["train"][rows]


def fit(config: ConfigDict, problem: Problem, size: int) -> Fitted:
    """The models of all methods, from `size` of the target's training people."""
    stats, held_stats = _sums(problem, *training_part(problem, size))
    prior = dataclasses.replace(problem.source.model, mean=stats.shift)
    held = problem.features["held_out"], dense(problem.ids["held_out"]).ids
    path, weights = _path(config, stats, prior, posterior.full), np.asarray(config.weights)
    by_likelihood = joint_bayes.choose_weight(path, held_stats)
    by_cllr = joint_bayes.choose_weight(path, held, criterion=_minus_cllr)
    approximate = joint_bayes.choose_weight(_path(config, stats, prior, posterior.approximate), held_stats)
    models = (
        prior,
        _fitted(config, stats, "target", allow=Status.RANK_DEFICIENT),
        _fitted(config, joint_bayes.pool(problem.source.stats, stats), "pooled"),
        by_likelihood.model,
        by_cllr.model,
        _fitted(config, stats, "target", e_step=posterior.approximate, allow=Status.RANK_DEFICIENT),
        approximate.model,
        *adapted(prior, training_part(problem, size)[0]),
    )
    centered = [dataclasses.replace(model, mean=stats.shift) for model in models]
    chosen = weights[[int(by_likelihood.chosen), int(by_cllr.chosen)]]
    return Fitted(centered, chosen, np.asarray(by_likelihood.values))


def moved(config: ConfigDict, problem: Problem) -> Fitted:
    """The source about the mean of all training photos, its adaptations without names, and the transfer with names."""
    z = problem.features["train"]
    stats, held_stats = _sums(problem, z, problem.ids["train"])
    prior = dataclasses.replace(problem.source.model, mean=stats.shift)
    choice = joint_bayes.choose_weight(_path(config, stats, prior, posterior.full), held_stats)
    chosen = np.asarray(config.weights)[[int(choice.chosen)]]
    return Fitted((prior, *adapted(prior, z), choice.model), chosen, np.asarray(choice.values))


def adapted(source: JointBayes, x: Any) -> list[JointBayes]:
    """The source model adapted to images `[n, r]` whose labels nobody looks at, each shrunk by its own two halves."""
    shuffled = x[np.random.default_rng(0).permutation(len(x))]
    found = []
    for adapt in ADAPTATIONS:
        strength, _ = adaptation.choose_strength(adapt, source, shuffled, np.array(STRENGTHS))
        model, info = adapt(source, adaptation.shrunk(adaptation.target_of(x), source, strength=strength))
        raise_if_failed(info, "adaptation")
        found.append(model)
    return found


def score(problem: Problem, fitted: Fitted, part: str) -> tuple[np.ndarray, np.ndarray]:
    """Raw log-likelihood ratios `[methods, pairs]` of all pairs of a field of `Split`, and which show one person."""
    z, trial = problem.features[part], pairs.all_pairs(problem.ids[part])
    return np.stack([pair_scores(model, z, trial) for model in fitted.models]), trial.is_same


def pair_scores(model: JointBayes, z: Any, trial: pairs.Pairs) -> np.ndarray:
    """Log-likelihood ratios `[pairs]` of pairs of features `[n, r]`."""
    return np.asarray(_all_scores(model, z))[trial.first, trial.second]


def _random_split(config: ConfigDict, target: Vectors, rng: np.random.Generator) -> tuple[np.ndarray | None, Split]:
    """Rows of the source, None for all of them, and a split of the target by people drawn at random.

    If both sides show the same people, some of them are the source and nobody is on both sides. Held-out people, who
    calibrate, and test people give at most `max_images` images each.
    """
    num_source = (config.source_people,) if domains.is_simulated(config) else ()
    num_people = (*num_source, max(config.target_people), config.calibration_people, config.test_people)
    part = splits.identity_disjoint(target.ids, num_people=num_people, rng=rng)[0]
    k = len(num_source)
    train, test, held_out = splits.of_parts(part, train=k, held_out=k + 1, test=k + 2)
    test, held_out = (rows[pairs.limited(target.ids[rows], max_rows=config.max_images)] for rows in (test, held_out))
    return (np.flatnonzero(part == 0) if num_source else None), Split(train, test, held_out)


def _sums(problem: Problem, x: Any, ids: np.ndarray) -> tuple[Stats, Stats]:
    """Statistics of training images about their mean, and those of the held-out people about the same."""
    stats, held = _collected(x, ids), dense(problem.ids["held_out"])
    of_held = joint_bayes.collect(problem.features["held_out"], held.ids, num_people=len(held.names), shift=stats.shift)
    return stats, of_held


def _collected(x: Any, labels: np.ndarray) -> Stats:
    _, ids, names = dense(labels)
    return joint_bayes.collect(x, ids, num_people=len(names), shift=x.mean(axis=0))


def _fitted(
    config: ConfigDict, stats: Stats, what: str, e_step: EStep = posterior.full, allow: Status = Status.OK
) -> JointBayes:
    model, info = joint_bayes.fit(stats, joint_bayes.init(stats), num_iters=config.num_iters, e_step=e_step)
    if int(info.status) != allow:
        raise_if_failed(info, f"Joint Bayes of the {what}")
    return model


def _path(config: ConfigDict, stats: Stats, prior: JointBayes, e_step: EStep) -> JointBayes:
    """The fits of all w, from the source's covariances."""
    weights = jnp.asarray(config.weights, stats.sum.dtype)
    path, info = joint_bayes.fit_path(stats, prior, prior, weights, num_iters=config.num_iters, e_step=e_step)
    # With w = 0 and few images the fit is RANK_DEFICIENT by its status; that w then loses by its criterion.
    raise_if_failed(info._replace(status=jnp.where(weights > 0, info.status, 0)), "transfer")
    return path


@jax.jit
def _all_scores(model: JointBayes, z: jax.Array) -> jax.Array:
    return joint_bayes.llr_matrix(joint_bayes.diagonalize(model), z, z)


def _minus_cllr(model: JointBayes, held_out: tuple[Any, np.ndarray]) -> Any:
    z, ids = held_out
    trial = pairs.all_pairs(ids)
    return jnp.asarray(-calibration.cllr(pair_scores(model, z, trial), trial.is_same))
