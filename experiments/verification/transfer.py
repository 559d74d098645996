"""Does a source model help when few target people are known? Error and calibration against their number.

Every split draws source people, target people to train on, to calibrate on and to test on. All methods see the same
features (PCA of the source images), are centred on the training target's mean, and have the same calibration people:
these choose w and fit the affine calibration, and count in every method's budget.
"""

import dataclasses
from collections.abc import Mapping
from typing import Any

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
from jaxface.runtime.log import progress
from jaxface.subspace import pca

METHODS = ("source only", "target only", "pooled", "transfer, w by log-likelihood", "transfer, w by Cllr")
MEASURES = ("EER", "raw Cllr", "Cllr")


@dataclasses.dataclass(frozen=True)
class Scored:
    """Scores of the pairs of some people, by each method `[methods, pairs]`."""

    scores: np.ndarray
    is_same: np.ndarray


def run(config: ConfigDict) -> dict[str, np.ndarray]:
    """Every measure `[measures, methods, sizes, splits]`, the chosen weights, and the scores of the first split."""
    source, target = domains(config)
    rng = np.random.default_rng((config.seed, 1))
    sizes = tuple(config.target_people)
    parts = [_people(config, source, target, rng) for _ in range(config.num_splits)]
    measures = np.zeros((len(MEASURES), len(METHODS), len(sizes), config.num_splits))
    weights = np.zeros((2, len(sizes), config.num_splits))
    held_out = np.zeros((len(sizes), config.num_splits, len(config.weights)))
    kept: dict[str, Any] = {}
    for split, part in enumerate(progress(parts, "splits")):
        for k, size in enumerate(sizes):
            fitted = fit_split(config, source, target, part, size)
            tested = score(fitted, part["test"])
            held = score(fitted, part["calibrate"])
            calibrated = [_calibrated(held, tested, m) for m in range(len(METHODS))]
            for m in range(len(METHODS)):
                measures[:, m, k, split] = _measures(tested.scores[m], calibrated[m], tested.is_same)
            weights[:, k, split] = fitted["chosen"]
            held_out[k, split] = fitted["held_out"]
            kept[f"calibrated {size}/{split}"] = np.stack(calibrated)
            kept[f"is_same {size}/{split}"] = tested.is_same
    calibrated = {
        f"calibrated scores {size}": np.concatenate([kept[f"calibrated {size}/{s}"] for s in range(len(parts))], axis=1)
        for size in sizes
    }
    same = {
        f"is_same {size}": np.concatenate([kept[f"is_same {size}/{s}"] for s in range(len(parts))]) for size in sizes
    }
    pictures = _pictures(source, target)
    return {"measures": measures, "weights": weights, "held_out": held_out, "pictures": pictures, **calibrated, **same}


def domains(config: ConfigDict) -> tuple[LabelledImages, LabelledImages]:
    """Source and target faces; without a source set of its own, the target is the same faces by another camera."""
    source = inputs.load_faces(config.data)
    if config.target.loader is not None:
        return source, inputs.load_faces(config.target)
    rng = np.random.default_rng((config.seed, 0))
    seen = camera.other_camera(source.images, size=config.camera.size, noise=config.camera.noise, rng=rng)
    return source, dataclasses.replace(source, images=seen)


def fit_split(
    config: ConfigDict, source: LabelledImages, target: LabelledImages, part: Mapping[str, np.ndarray], size: int
) -> dict[str, Any]:
    """The models of all methods, from `size` of the target's training people."""
    steps = pipeline.build(config.image_steps)
    from_source = _encoded(steps, source.images[part["source"]])
    reduction, info = pca.fit(from_source, num_components=config.num_components, whiten=config.length_normalize)
    raise_if_failed(info, "PCA of the source")

    def features(faces: LabelledImages, rows: np.ndarray) -> jnp.ndarray:
        vectors = _encoded(steps, faces.images[rows])
        return verifier.reduced(reduction, vectors, length_normalize=config.length_normalize)

    train = _first_people(target.ids, part["train"], size)
    mine = features(target, train)
    source_stats = _collected(features(source, part["source"]), source.ids[part["source"]])
    stats = _collected(mine, target.ids[train])
    source_model = _fitted(config, source_stats, joint_bayes.init(source_stats), "source")
    prior = dataclasses.replace(source_model, mean=stats.shift)
    pooled_stats = Stats(
        jnp.concatenate([source_stats.count, stats.count]),
        jnp.concatenate([source_stats.sum, stats.sum]),
        source_stats.second_moment + stats.second_moment,
        stats.shift,
    )
    weights = jnp.asarray(config.weights, mine.dtype)
    path, path_info = joint_bayes.fit_path(stats, prior, prior, weights, num_iters=config.num_iters)
    held = part["calibrate"]
    held_features, held_ids = features(target, held), joint_bayes.dense_ids(target.ids[held])[0]
    held_stats = joint_bayes.collect(
        held_features, held_ids, num_identities=int(held_ids.max()) + 1, shift=stats.shift
    )
    by_likelihood = joint_bayes.choose_weight(path, held_stats)
    by_cllr = joint_bayes.choose_weight(path, (held_features, held_ids), criterion=_minus_cllr)
    # A weight of 0 with fewer varying directions than dimensions is reported by its status, and loses by its score.
    raise_if_failed(path_info._replace(status=jnp.where(weights > 0, path_info.status, 0)), "transfer")
    models = [
        prior,
        _fitted(config, stats, joint_bayes.init(stats), "target", allow=Status.RANK_DEFICIENT),
        _fitted(config, pooled_stats, joint_bayes.init(pooled_stats), "pooled"),
        by_likelihood.model,
        by_cllr.model,
    ]
    return {
        "steps": steps,
        "reduction": reduction,
        "models": [dataclasses.replace(model, mean=stats.shift) for model in models],
        "chosen": np.asarray(weights)[[int(by_likelihood.chosen), int(by_cllr.chosen)]],
        "held_out": np.asarray(by_likelihood.values),
        "features": lambda rows: features(target, rows),
        "ids": target.ids,
    }


def score(fitted: Mapping[str, Any], rows: np.ndarray) -> Scored:
    """Raw log-likelihood ratios of all pairs of target rows, by every model."""
    z, trial = fitted["features"](rows), pairs.all_pairs(fitted["ids"][rows])
    scores = [
        np.asarray(joint_bayes.llr_matrix(joint_bayes.diagonalize(model), z, z))[trial.first, trial.second]
        for model in fitted["models"]
    ]
    return Scored(np.stack(scores), trial.is_same)


def final_verifier(config: ConfigDict) -> tuple[Verifier, LabelledImages, np.ndarray]:
    """The transfer model of the first split with most people, calibrated, and the target images it has never seen."""
    source, target = domains(config)
    part = _people(config, source, target, np.random.default_rng((config.seed, 1)))
    fitted = fit_split(config, source, target, part, max(config.target_people))
    held = score(fitted, part["calibrate"])
    method = METHODS.index("transfer, w by log-likelihood")
    affine, info = calibration.fit(held.scores[method], held.is_same)
    raise_if_failed(info, "calibration")
    whole = Verifier(
        steps=fitted["steps"],
        reduction=fitted["reduction"],
        model=fitted["models"][method],
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


def _first_people(ids: np.ndarray, rows: np.ndarray, size: int) -> np.ndarray:
    return rows[np.isin(ids[rows], np.unique(ids[rows])[:size])]


def _encoded(steps: pipeline.ImagePipeline, images: np.ndarray) -> Any:
    return pipeline.encode_batch(steps, jnp.asarray(images, inputs.working_dtype()), block_size=inputs.BLOCK)


def _collected(x: Any, labels: np.ndarray) -> Stats:
    ids, names = joint_bayes.dense_ids(labels)
    return joint_bayes.collect(x, ids, num_identities=len(names), shift=x.mean(axis=0))


def _fitted(
    config: ConfigDict, stats: Stats, start: JointBayes, what: str, allow: Status = Status.OK
) -> JointBayes:
    model, info = joint_bayes.fit(stats, start, num_iters=config.num_iters, e_step=joint_bayes.E_STEPS[config.e_step])
    if int(info.status) != allow:
        raise_if_failed(info, f"Joint Bayes of the {what}")
    return model


def _minus_cllr(model: JointBayes, held_out: tuple[Any, np.ndarray]) -> Any:
    z, ids = held_out
    trial = pairs.all_pairs(ids)
    scores = np.asarray(joint_bayes.llr_matrix(joint_bayes.diagonalize(model), z, z))[trial.first, trial.second]
    return jnp.asarray(-calibration_metrics.cllr(scores, trial.is_same))


def _calibrated(held: Scored, tested: Scored, method: int) -> np.ndarray:
    affine, info = calibration.fit(held.scores[method], held.is_same)
    raise_if_failed(info, "calibration")
    return np.asarray(calibration.calibrate(affine, tested.scores[method]))


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


