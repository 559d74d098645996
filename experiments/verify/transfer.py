"""Does a source model help when few target people are known? Error and calibration against their number.

Every split draws target people to train on, to calibrate on and to test on, and source people where the target is the
source by a simulated camera. All methods see the same features (PCA of the source), are centred on the training
target's mean, and have the same calibration people: these choose w and fit the affine calibration, and count in every
method's budget. At most `max_images` images of a person calibrate and test, so nobody's pairs outnumber the others'.
"""

import dataclasses
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from ml_collections import ConfigDict

from experiments.common import fields, inputs, trials
from experiments.common.inputs import Vectors
from experiments.verify import camera
from jaxface import joint_bayes
from jaxface.core import prng
from jaxface.core.fitinfo import Status, raise_if_failed
from jaxface.core.labels import dense
from jaxface.data import LabelledImages, overlap, pairs, splits
from jaxface.data.splits import Split
from jaxface.faces import pipeline
from jaxface.joint_bayes import JointBayes, Stats, posterior
from jaxface.joint_bayes.posterior import EStep
from jaxface.losses import calibration
from jaxface.metrics import calibration as calibration_metrics
from jaxface.metrics import verification
from jaxface.runtime.log import JsonlWriter, progress
from jaxface.subspace import LinearMap, pca
from jaxface.verifier import Verifier
from jaxface.verifier.coordinates import reduce

METHODS = (
    "source only",
    "target only",
    "pooled",
    "transfer, w by log-likelihood",
    "transfer, w by Cllr",
    "target only, approximate EM",
    "transfer, approximate EM",
)
TRANSFER = 3  # the method that is saved
CAMERA = "camera"  # the loader of a target that is the source, by a simulated camera
MEASURES = ("EER", "raw Cllr", "Cllr")
_EXACT_PCA = 2000  # images; more take the randomised one


@dataclasses.dataclass(frozen=True)
class Source:
    """What the source gives every target."""

    reduction: LinearMap
    stats: Stats
    model: JointBayes


@dataclasses.dataclass(frozen=True)
class Problem:
    """The source, and the target's features by the rows of a split."""

    source: Source
    features: Mapping[str, Any]  # field of `Split` -> [n, r]
    ids: Mapping[str, np.ndarray]  # field of `Split` -> people


@dataclasses.dataclass(frozen=True)
class Fitted:
    """The models of all methods and how w was chosen."""

    models: Sequence[JointBayes]
    chosen: np.ndarray  # [2], w by log-likelihood and by Cllr
    held_out: np.ndarray  # [weights], log-likelihood of the calibration people


def check(config: ConfigDict, *, section: str = "") -> None:
    """Refuses fields with values that no split can have."""
    fields.counts(
        config, "num_splits", "source_people", "target_people", "num_components", "num_iters", "camera.size",
        section=section,
    )  # fmt: skip
    # Fewer than two people, or two images of a person, make no pair of either kind.
    fields.counts(config, "calibration_people", "test_people", "max_images", minimum=2, section=section)
    fields.shares(config, "weights", section=section)
    fields.not_negative(config, "camera.noise", section=section)


def measure(
    config: ConfigDict, source: Vectors, target: Vectors, rng: np.random.Generator, writer: JsonlWriter | None = None
) -> dict[str, np.ndarray]:
    """Every measure `[measures, methods, sizes, splits]`, the chosen weights, and the scores of all splits.

    Each split's measures go to `writer` as soon as they are known. `largest share` `[splits]` is the part that one
    person has in the genuine test pairs, at most.
    """
    sizes = tuple(config.target_people)
    measures = np.zeros((len(MEASURES), len(METHODS), len(sizes), config.num_splits))
    weights = np.zeros((2, len(sizes), config.num_splits))
    share = np.zeros(config.num_splits)
    held_out = np.zeros((len(sizes), config.num_splits, len(config.weights)))
    kept: dict[str, Any] = {}
    for number, problem in enumerate(progress(draws(config, source, target, rng), "splits", total=config.num_splits)):
        share[number] = trials.share_of(problem.ids["test"])
        for k, size in enumerate(sizes):
            fitted = fit(config, problem, size)
            tested, is_same = score(problem, fitted, "test")
            held, held_same = score(problem, fitted, "held_out")
            calibrated = [_calibrated(held[m], held_same, tested[m]) for m in range(len(METHODS))]
            for m in range(len(METHODS)):
                measures[:, m, k, number] = measures_of(tested[m], calibrated[m], is_same)
            weights[:, k, number] = fitted.chosen
            held_out[k, number] = fitted.held_out
            kept[f"calibrated {size}/{number}"] = np.stack(calibrated)
            kept[f"is_same {size}/{number}"] = is_same
        if writer is not None:
            writer.scalars(number, _named(measures[..., number], sizes))

    def joined(name: str) -> np.ndarray:
        return np.concatenate([kept[f"{name}/{number}"] for number in range(config.num_splits)], axis=-1)

    everything = {f"calibrated scores {size}": joined(f"calibrated {size}") for size in sizes}
    same = {f"is_same {size}": joined(f"is_same {size}") for size in sizes}
    found = {"measures": measures, "weights": weights, "held_out": held_out, "largest share": share}
    found |= everything | same
    if source.images is not None and target.images is not None:
        found["pictures"] = _pictures((source.images, source.ids), (target.images, target.ids))
    return found


def is_simulated(config: ConfigDict) -> bool:
    """Whether the target is the source by a simulated camera: on request, and for the demonstration faces."""
    return config.target.loader == CAMERA or (config.target.loader is None and config.data.loader == "orl")


def domains(config: ConfigDict) -> tuple[Vectors, Vectors]:
    """Source and target: two sets of different people, or one set and what a simulated camera makes of it."""
    if is_simulated(config):
        if config.data.loader == "embeddings":
            raise ValueError(
                f"--config.target.loader={CAMERA} needs images: embeddings have no camera to change. Name a target "
                "file with other people: --config.target.loader=embeddings --config.target.root=FILE."
            )
        faces = inputs.load_faces(config.data)
        return clean_and_changed(config, faces, np.random.default_rng((config.seed, 0)))
    if config.target.loader is None:
        raise ValueError(
            "--config.target.loader is missing: this study takes a model of some people to other people in another "
            "setting. Name the images or embeddings of these: --config.target.loader=folders "
            f"--config.target.root=FOLDER. With --config.target.loader={CAMERA} the other setting is a simulated "
            f"camera of {config.camera.size} x {config.camera.size} pixels, for a demonstration on your images."
        )
    steps = pipeline.build(config.image_steps)
    source, target = inputs.load_vectors(config.data, steps), inputs.load_vectors(config.target, steps)
    if source.x.shape[1] != target.x.shape[1]:
        raise ValueError(
            f"source and target must have the same features; got {source.x.shape[1]} and {target.x.shape[1]} "
            "dimensions. Give images one size, or embeddings of one tool."
        )
    overlap.refuse_shared_people(
        source=overlap.Known(source.x, source.ids, source.names),
        target=overlap.Known(target.x, target.ids, target.names),
    )
    return source, target


def clean_and_changed(config: ConfigDict, faces: LabelledImages, rng: np.random.Generator) -> tuple[Vectors, Vectors]:
    """The faces as they are, and the same people and shots through the simulated camera of a config."""
    steps = pipeline.build(config.image_steps)
    seen = camera.other_camera(faces.images, size=config.camera.size, noise=config.camera.noise, rng=rng)
    return inputs.vectors_of(faces, steps), inputs.vectors_of(dataclasses.replace(faces, images=seen), steps)


def draws(config: ConfigDict, source: Vectors, target: Vectors, rng: np.random.Generator) -> Iterator[Problem]:
    """The problems of all splits; a source of other people than the target is learnt once."""
    learnt = None
    for source_rows, split in [_random_split(config, target, rng) for _ in range(config.num_splits)]:
        if learnt is None or source_rows is not None:
            learnt = source_model(config, source, source_rows)
        yield prepare(config, learnt, target, split)


def source_model(config: ConfigDict, source: Vectors, rows: np.ndarray | None) -> Source:
    """PCA and Joint Bayes of some rows of the source; None: of all."""
    rows = np.arange(len(source.ids)) if rows is None else rows
    x = jnp.asarray(source.x[rows])
    settings = {"num_components": config.num_components, "whiten": config.length_normalize}
    if len(x) <= _EXACT_PCA:
        reduction, info = pca.fit(x, **settings)
    else:
        reduction, info = pca.fit_randomized(prng.stream(jax.random.key(config.seed), "pca"), x, **settings)
    raise_if_failed(info, "PCA of the source")
    features = reduce(reduction, x, length_normalize=config.length_normalize)
    stats = _collected(features, source.ids[rows])
    return Source(reduction, stats, _fitted(config, stats, "source"))


def prepare(config: ConfigDict, source: Source, target: Vectors, split: Split) -> Problem:
    """The target's features in the source's PCA, by the rows of a split."""
    named = split._asdict()
    features = {
        name: reduce(source.reduction, jnp.asarray(target.x[rows]), length_normalize=config.length_normalize)
        for name, rows in named.items()
    }
    return Problem(source, features, {name: target.ids[rows] for name, rows in named.items()})


def training_part(problem: Problem, size: int) -> tuple[Any, np.ndarray]:
    """Features `[n, r]` and ids `[n]` of the first `size` training people."""
    rows = np.isin(problem.ids["train"], np.unique(problem.ids["train"])[:size])
    return problem.features["train"][rows], problem.ids["train"][rows]


def fit(config: ConfigDict, problem: Problem, size: int) -> Fitted:
    """The models of all methods, from `size` of the target's training people."""
    stats = _collected(*training_part(problem, size))
    prior = dataclasses.replace(problem.source.model, mean=stats.shift)
    ours = problem.source.stats
    pooled = Stats(
        jnp.concatenate([ours.count, stats.count]),
        jnp.concatenate([ours.sum, stats.sum]),
        ours.second_moment + stats.second_moment,
        stats.shift,
    )
    held, held_ids = problem.features["held_out"], dense(problem.ids["held_out"]).ids
    held_stats = joint_bayes.collect(held, held_ids, num_people=int(held_ids.max()) + 1, shift=stats.shift)
    path, weights = _path(config, stats, prior, posterior.full), np.asarray(config.weights)
    by_likelihood = joint_bayes.choose_weight(path, held_stats)
    by_cllr = joint_bayes.choose_weight(path, (held, held_ids), criterion=_minus_cllr)
    approximate = joint_bayes.choose_weight(_path(config, stats, prior, posterior.approximate), held_stats)
    models = (
        prior,
        _fitted(config, stats, "target", allow=Status.RANK_DEFICIENT),
        _fitted(config, pooled, "pooled"),
        by_likelihood.model,
        by_cllr.model,
        _fitted(config, stats, "target", e_step=posterior.approximate, allow=Status.RANK_DEFICIENT),
        approximate.model,
    )
    centered = [dataclasses.replace(model, mean=stats.shift) for model in models]
    chosen = weights[[int(by_likelihood.chosen), int(by_cllr.chosen)]]
    return Fitted(centered, chosen, np.asarray(by_likelihood.values))


def score(problem: Problem, fitted: Fitted, part: str) -> tuple[np.ndarray, np.ndarray]:
    """Raw log-likelihood ratios `[methods, pairs]` of all pairs of a field of `Split`, and which show one person."""
    z, trial = problem.features[part], pairs.all_pairs(problem.ids[part])
    return np.stack([pair_scores(model, z, trial) for model in fitted.models]), trial.is_same


def pair_scores(model: JointBayes, z: Any, trial: pairs.Pairs) -> np.ndarray:
    """Log-likelihood ratios `[pairs]` of pairs of features `[n, r]`."""
    return np.asarray(_all_scores(model, z))[trial.first, trial.second]


def measures_of(raw: np.ndarray, calibrated: np.ndarray, is_same: np.ndarray) -> tuple[float, float, float]:
    """EER, Cllr of raw scores and Cllr of calibrated ones."""
    eer = verification.eer(verification.roc(raw, is_same))
    return eer, calibration_metrics.cllr(raw, is_same), calibration_metrics.cllr(calibrated, is_same)


def final_verifier(
    config: ConfigDict, source: Vectors, target: Vectors, rng: np.random.Generator
) -> tuple[Verifier, np.ndarray]:
    """The transfer model of the first split with most people, calibrated, and the target rows it has never seen."""
    source_rows, split = _random_split(config, target, rng)
    learnt = source_model(config, source, source_rows)
    problem = prepare(config, learnt, target, split)
    fitted = fit(config, problem, max(config.target_people))
    held, held_same = score(problem, fitted, "held_out")
    affine, info = calibration.fit(held[TRANSFER], held_same)
    raise_if_failed(info, "calibration")
    whole = Verifier(
        steps=pipeline.build(config.image_steps if target.images is not None else ()),
        reduction=learnt.reduction,
        model=fitted.models[TRANSFER],
        calibration=affine,
        length_normalize=config.length_normalize,
    )
    return whole, split.test


def _random_split(config: ConfigDict, target: Vectors, rng: np.random.Generator) -> tuple[np.ndarray | None, Split]:
    """Rows of the source, None for all of them, and a split of the target by people drawn at random.

    Where both sides show the same people, some of them are the source and nobody is on both sides. Held-out people,
    who calibrate, and test people give at most `max_images` images each.
    """
    num_source = (config.source_people,) if is_simulated(config) else ()
    num_people = (*num_source, max(config.target_people), config.calibration_people, config.test_people)
    part = splits.identity_disjoint(target.ids, num_people=num_people, rng=rng)[0]
    k = len(num_source)
    train, test, held_out = splits.of_parts(part, train=k, held_out=k + 1, test=k + 2)
    test, held_out = (rows[pairs.limited(target.ids[rows], max_rows=config.max_images)] for rows in (test, held_out))
    return (np.flatnonzero(part == 0) if num_source else None), Split(train, test, held_out)


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
    # With w = 0 and fewer varying directions than dimensions the status says so, and that w loses by its score.
    raise_if_failed(info._replace(status=jnp.where(weights > 0, info.status, 0)), "transfer")
    return path


@jax.jit
def _all_scores(model: JointBayes, z: jax.Array) -> jax.Array:
    return joint_bayes.llr_matrix(joint_bayes.diagonalize(model), z, z)


def _minus_cllr(model: JointBayes, held_out: tuple[Any, np.ndarray]) -> Any:
    z, ids = held_out
    trial = pairs.all_pairs(ids)
    return jnp.asarray(-calibration_metrics.cllr(pair_scores(model, z, trial), trial.is_same))


def _calibrated(held: np.ndarray, held_same: np.ndarray, tested: np.ndarray) -> np.ndarray:
    affine, info = calibration.fit(held, held_same)
    raise_if_failed(info, "calibration")
    return np.asarray(calibration.calibrate(affine, tested))


def _named(values: np.ndarray, sizes: Sequence[int]) -> dict[str, float]:
    """Measures `[measures, methods, sizes]` of one split by name."""
    return {
        f"{measure}, {method}, {size} people": float(values[i, m, k])
        for i, measure in enumerate(MEASURES)
        for m, method in enumerate(METHODS)
        for k, size in enumerate(sizes)
    }


def _pictures(*sides: tuple[np.ndarray, np.ndarray]) -> np.ndarray:
    """One image of some people on each side `[sides, people, h, w]`; blank where a side has fewer people."""
    shape = sides[0][0].shape[1:3]
    sheet = np.ones((len(sides), 8, *shape), np.float32)
    for row, (images, ids) in enumerate(sides):
        for column, person in enumerate(np.unique(ids)[:8]):
            image = images[np.flatnonzero(ids == person)[0]]
            if image.shape == shape:
                sheet[row, column] = image
    return sheet
