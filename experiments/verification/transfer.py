"""Does a source model help when few target people are known? Error and calibration against their number.

Every split draws source people, target people to train on, to calibrate on and to test on. All methods see the same
features (PCA of the source images), are centred on the training target's mean, and have the same calibration people:
these choose w and fit the affine calibration, and count in every method's budget.
"""

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from ml_collections import ConfigDict

from experiments import inputs
from experiments.verification import camera, verifier
from experiments.verification.verifier import Verifier
from jaxface import joint_bayes
from jaxface.core.fitinfo import Status, raise_if_failed
from jaxface.data import LabelledImages, pairs, splits
from jaxface.faces import pipeline
from jaxface.joint_bayes import JointBayes, Stats
from jaxface.losses import calibration
from jaxface.metrics import calibration as calibration_metrics
from jaxface.metrics import verification
from jaxface.runtime.log import Writer, progress
from jaxface.subspace import LinearMap, pca

METHODS = ("source only", "target only", "pooled", "transfer, w by log-likelihood", "transfer, w by Cllr")
MEASURES = ("EER", "raw Cllr", "Cllr")


@dataclasses.dataclass(frozen=True)
class Split:
    """Features of every part of one split, and what the source alone gives."""

    steps: pipeline.ImagePipeline
    reduction: LinearMap
    features: Mapping[str, Any]  # part -> [n, r]
    ids: Mapping[str, np.ndarray]  # part -> people
    source_stats: Stats
    source_model: JointBayes


@dataclasses.dataclass(frozen=True)
class Fitted:
    """The models of all methods and how w was chosen."""

    models: Sequence[JointBayes]
    chosen: np.ndarray  # [2], w by log-likelihood and by Cllr
    held_out: np.ndarray  # [weights], log-likelihood of the calibration people


def run(config: ConfigDict, writer: Writer | None = None) -> dict[str, np.ndarray]:
    """`measure` between the domains of a config."""
    return measure(config, *domains(config), np.random.default_rng((config.seed, 1)), writer)


def measure(
    config: ConfigDict,
    source: LabelledImages,
    target: LabelledImages,
    rng: np.random.Generator,
    writer: Writer | None = None,
) -> dict[str, np.ndarray]:
    """Every measure `[measures, methods, sizes, splits]`, the chosen weights, and the scores of all splits.

    Each split's measures go to `writer` as soon as they are known.
    """
    sizes = tuple(config.target_people)
    parts = [_people(config, source, target, rng) for _ in range(config.num_splits)]
    measures = np.zeros((len(MEASURES), len(METHODS), len(sizes), config.num_splits))
    weights = np.zeros((2, len(sizes), config.num_splits))
    held_out = np.zeros((len(sizes), config.num_splits, len(config.weights)))
    kept: dict[str, Any] = {}
    for split, part in enumerate(progress(parts, "splits")):
        prepared = prepare(config, source, target, part)
        for k, size in enumerate(sizes):
            fitted = fit(config, prepared, size)
            tested, is_same = score(prepared, fitted, "test")
            held, held_same = score(prepared, fitted, "calibrate")
            calibrated = [_calibrated(held[m], held_same, tested[m]) for m in range(len(METHODS))]
            for m in range(len(METHODS)):
                measures[:, m, k, split] = _measures(tested[m], calibrated[m], is_same)
            weights[:, k, split] = fitted.chosen
            held_out[k, split] = fitted.held_out
            kept[f"calibrated {size}/{split}"] = np.stack(calibrated)
            kept[f"is_same {size}/{split}"] = is_same
        if writer is not None:
            writer.scalars(split, _named(measures[..., split], sizes))
    everything = {
        f"calibrated scores {size}": np.concatenate([kept[f"calibrated {size}/{s}"] for s in range(len(parts))], axis=1)
        for size in sizes
    }
    same = {
        f"is_same {size}": np.concatenate([kept[f"is_same {size}/{s}"] for s in range(len(parts))]) for size in sizes
    }
    pictures = _pictures(source, target)
    return {"measures": measures, "weights": weights, "held_out": held_out, "pictures": pictures, **everything, **same}


def domains(config: ConfigDict) -> tuple[LabelledImages, LabelledImages]:
    """Source and target faces; without a source set of its own, the target is the same faces by another camera."""
    source = inputs.load_faces(config.data)
    if config.target.loader is not None:
        return source, inputs.load_faces(config.target)
    return source, seen_by_other_camera(config, source, np.random.default_rng((config.seed, 0)))


def seen_by_other_camera(config: ConfigDict, faces: LabelledImages, rng: np.random.Generator) -> LabelledImages:
    """The same people and shots through the simulated camera of a config."""
    seen = camera.other_camera(faces.images, size=config.camera.size, noise=config.camera.noise, rng=rng)
    return dataclasses.replace(faces, images=seen)


def prepare(
    config: ConfigDict, source: LabelledImages, target: LabelledImages, part: Mapping[str, np.ndarray]
) -> Split:
    """PCA of the source, the features of every part, and the source model."""
    steps = pipeline.build(config.image_steps)
    vectors = {
        name: inputs.encode(source.images[rows] if name == "source" else target.images[rows], config.image_steps)
        for name, rows in part.items()
    }
    reduction, info = pca.fit(vectors["source"], num_components=config.num_components, whiten=config.length_normalize)
    raise_if_failed(info, "PCA of the source")
    features = {
        name: verifier.reduced(reduction, x, length_normalize=config.length_normalize) for name, x in vectors.items()
    }
    ids = {name: (source if name == "source" else target).ids[rows] for name, rows in part.items()}
    stats = _collected(features["source"], ids["source"])
    model = _fitted(config, stats, "source")
    return Split(steps, reduction, features, ids, stats, model)


def fit(config: ConfigDict, split: Split, size: int) -> Fitted:
    """The models of all methods, from `size` of the target's training people."""
    rows = np.isin(split.ids["train"], np.unique(split.ids["train"])[:size])
    stats = _collected(split.features["train"][rows], split.ids["train"][rows])
    prior = dataclasses.replace(split.source_model, mean=stats.shift)
    pooled = Stats(
        jnp.concatenate([split.source_stats.count, stats.count]),
        jnp.concatenate([split.source_stats.sum, stats.sum]),
        split.source_stats.second_moment + stats.second_moment,
        stats.shift,
    )
    weights = jnp.asarray(config.weights, stats.sum.dtype)
    path, info = joint_bayes.fit_path(stats, prior, prior, weights, num_iters=config.num_iters)
    # With w = 0 and fewer varying directions than dimensions the status says so, and that w loses by its score.
    raise_if_failed(info._replace(status=jnp.where(weights > 0, info.status, 0)), "transfer")
    held, held_ids = split.features["calibrate"], joint_bayes.dense_ids(split.ids["calibrate"])[0]
    held_stats = joint_bayes.collect(held, held_ids, num_identities=int(held_ids.max()) + 1, shift=stats.shift)
    by_likelihood = joint_bayes.choose_weight(path, held_stats)
    by_cllr = joint_bayes.choose_weight(path, (held, held_ids), criterion=_minus_cllr)
    models = (
        prior,
        _fitted(config, stats, "target", allow=Status.RANK_DEFICIENT),
        _fitted(config, pooled, "pooled"),
        by_likelihood.model,
        by_cllr.model,
    )
    chosen = np.asarray(weights)[[int(by_likelihood.chosen), int(by_cllr.chosen)]]
    centred = [dataclasses.replace(model, mean=stats.shift) for model in models]
    return Fitted(centred, chosen, np.asarray(by_likelihood.values))


def score(split: Split, fitted: Fitted, part: str) -> tuple[np.ndarray, np.ndarray]:
    """Raw log-likelihood ratios `[methods, pairs]` of all pairs of a part, and which show one person."""
    z, trial = split.features[part], pairs.all_pairs(split.ids[part])
    scores = [_pair_scores(model, z, trial) for model in fitted.models]
    return np.stack(scores), trial.is_same


def final_verifier(config: ConfigDict) -> tuple[Verifier, LabelledImages, np.ndarray]:
    """The transfer model of the first split with most people, calibrated, and the target images it has never seen."""
    source, target = domains(config)
    part = _people(config, source, target, np.random.default_rng((config.seed, 1)))
    split = prepare(config, source, target, part)
    fitted = fit(config, split, max(config.target_people))
    held, held_same = score(split, fitted, "calibrate")
    method = METHODS.index("transfer, w by log-likelihood")
    affine, info = calibration.fit(held[method], held_same)
    raise_if_failed(info, "calibration")
    whole = Verifier(
        steps=split.steps,
        reduction=split.reduction,
        model=fitted.models[method],
        calibration=affine,
        length_normalize=config.length_normalize,
    )
    return whole, target, part["test"]


def _people(
    config: ConfigDict, source: LabelledImages, target: LabelledImages, rng: np.random.Generator
) -> dict[str, np.ndarray]:
    """Rows of every part of a split, by people drawn at random; the same people never stand on both sides."""
    wanted = (max(config.target_people), config.calibration_people, config.test_people)
    if config.target.loader is not None:
        part = splits.identity_disjoint(target.ids, num_people=wanted, rng=rng)[0]
        rows = [np.arange(len(source.ids)), *(np.flatnonzero(part == k) for k in range(3))]
    else:
        part = splits.identity_disjoint(target.ids, num_people=(config.source_people, *wanted), rng=rng)[0]
        rows = [np.flatnonzero(part == k) for k in range(4)]
    return dict(zip(("source", "train", "calibrate", "test"), rows, strict=True))


def _collected(x: Any, labels: np.ndarray) -> Stats:
    ids, names = joint_bayes.dense_ids(labels)
    return joint_bayes.collect(x, ids, num_identities=len(names), shift=x.mean(axis=0))


def _fitted(config: ConfigDict, stats: Stats, what: str, allow: Status = Status.OK) -> JointBayes:
    e_step = joint_bayes.E_STEPS[config.e_step]
    model, info = joint_bayes.fit(stats, joint_bayes.init(stats), num_iters=config.num_iters, e_step=e_step)
    if int(info.status) != allow:
        raise_if_failed(info, f"Joint Bayes of the {what}")
    return model


def _pair_scores(model: JointBayes, z: Any, trial: pairs.Pairs) -> np.ndarray:
    return np.asarray(_all_scores(model, z))[trial.first, trial.second]


@jax.jit
def _all_scores(model: JointBayes, z: jax.Array) -> jax.Array:
    return joint_bayes.llr_matrix(joint_bayes.diagonalize(model), z, z)


def _minus_cllr(model: JointBayes, held_out: tuple[Any, np.ndarray]) -> Any:
    z, ids = held_out
    trial = pairs.all_pairs(ids)
    return jnp.asarray(-calibration_metrics.cllr(_pair_scores(model, z, trial), trial.is_same))


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


def _measures(raw: np.ndarray, calibrated: np.ndarray, is_same: np.ndarray) -> tuple[float, float, float]:
    eer = verification.eer(verification.roc(raw, is_same))
    return eer, calibration_metrics.cllr(raw, is_same), calibration_metrics.cllr(calibrated, is_same)


def _pictures(source: LabelledImages, target: LabelledImages) -> np.ndarray:
    """One image of some people on each side `[2, people, h, w]`; blank where a side has fewer people."""
    shape = source.images.shape[1:3]
    sheet = np.ones((2, 8, *shape), np.float32)
    for row, faces in enumerate((source, target)):
        for column, person in enumerate(np.unique(faces.ids)[:8]):
            image = faces.images[np.flatnonzero(faces.ids == person)[0]]
            if image.shape == shape:
                sheet[row, column] = image
    return sheet
