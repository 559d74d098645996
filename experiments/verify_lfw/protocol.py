"""LFW, unrestricted: features, PCA and models from the people of all other folds, scores for the pairs of one fold.

View 1 is for choosing settings and View 2 for reporting. Features are encoded once; each fold is a stage.
"""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from ml_collections import ConfigDict

from experiments.common import inputs
from experiments.verify_lfw import few_factors
from jaxface import joint_bayes, verifier
from jaxface.core import prng
from jaxface.core.blocks import each_row
from jaxface.core.fitinfo import raise_if_failed
from jaxface.core.labels import dense
from jaxface.data import Listing, folders, lfw
from jaxface.data.pairs import Pairs
from jaxface.faces import pipeline
from jaxface.joint_bayes import JointBayes
from jaxface.linalg import distances
from jaxface.runtime.log import progress
from jaxface.subspace import LinearMap, lda, pca, transform

METHODS = (
    "cosine of raw features",
    "cosine after whitened PCA",
    "LDA and cosine",
    "Joint Bayes, moments",
    "Joint Bayes, full EM",
    "Joint Bayes, approximate EM",
    "Joint Bayes, full EM, nobody with one image",
    "length-normalised: moments",
    "length-normalised: full EM",
)
MIRRORED = "length-normalised: full EM, {} with mirror images"
FUSED = "length-normalised: full EM, sum of the {} above"
_BATCH = 1024  # images in memory as pixels


class Fold(NamedTuple):
    """Training images, of all other folds, and the pairs to score."""

    train_rows: np.ndarray  # rows of the listing
    pairs: Pairs


class Coordinates(NamedTuple):
    """Training rows and the rows of the pairs: whitened principal coordinates, or embeddings as they are."""

    train: jax.Array  # [n, r]
    labels: np.ndarray  # [n]
    tested: jax.Array  # [t, r], the images that occur in the pairs
    first: np.ndarray  # [pairs], rows of `tested`
    second: np.ndarray  # [pairs]
    people: np.ndarray  # [t], who the tested images show, dense


class Models(NamedTuple):
    """Joint Bayes models of one fold, and how the log-likelihood of the second rose."""

    fitted: list[JointBayes]
    trace: np.ndarray  # [iterations], an image
    stats: joint_bayes.Stats  # of the training images


class Scored(NamedTuple):
    """The pairs of one fold, by all methods and by truncations of the Joint Bayes model after EM."""

    scores: np.ndarray  # [methods, pairs]
    ranks: np.ndarray  # int [ranks]
    of_rank: np.ndarray  # [ranks, pairs]
    bounds: np.ndarray  # [ranks], nats: on the mean |LLR - truncated LLR| of pairs from the model
    trace: np.ndarray  # [iterations], log-likelihood an image at the parameters that each step starts from
    few_ranks: np.ndarray  # int [few], numbers of directions that were fitted; the last is all
    of_few: np.ndarray  # [few, pairs]
    likelihoods: np.ndarray  # [2, few], log-likelihood of a training image and of one of the test fold


def folds(config: ConfigDict, listing: Listing | None = None) -> tuple[Listing, list[Fold]]:
    """The folds of View 2, or the one split of View 1; `listing` names the rows of embeddings."""
    if config.view == 1:
        view = lfw.view1(config.data.root, listing=listing)
        rows = np.flatnonzero(np.isin(view.listing.ids, view.train_people))
        return view.listing, [Fold(rows, view.test_pairs)]
    whole = lfw.view2(config.data.root, listing=listing)
    pairs_of_folds = [np.flatnonzero(whole.pair_fold == fold) for fold in np.unique(whole.pair_fold)]
    parts = [Pairs(*(np.asarray(field)[chosen] for field in whole.pairs)) for chosen in pairs_of_folds]
    return whole.listing, [Fold(lfw.unrestricted_rows(whole, k), part) for k, part in enumerate(parts)]


def methods(config: ConfigDict) -> tuple[str, ...]:
    """The methods on the main features, the best of them on all kinds with mirror images, and the sum of the latter."""
    if not config.fused_features:
        return METHODS
    mirrored = tuple(MIRRORED.format(name) for name, _, _ in config.fused_features)
    return (*METHODS, *mirrored, FUSED.format(len(mirrored)))


def features(
    listing: Listing, crop: tuple[int, int, int, int], image_steps: tuple, what: str, *, mirrored: bool
) -> np.ndarray:
    """Encoded images `[n, d]` of the whole listing; pixels are read batch by batch.

    With `mirrored` the mean over an image and its mirror image, which does not depend on the side of the light.
    """
    kinds = [pipeline.build(image_steps)]
    if mirrored:
        kinds.append(pipeline.build((("flip", {}), *image_steps)))
    starts = range(0, len(listing.files), _BATCH)
    parts = []
    for start in progress(starts, f"encoding images, {what}"):
        rows = np.arange(start, min(start + _BATCH, len(listing.files)))
        images = folders.read(listing, rows=rows, crop=crop).images
        padded = np.pad(images, [(0, _BATCH - len(rows)), (0, 0), (0, 0)])  # one program for every batch
        encoded = [pipeline.encode_batch(steps, jnp.asarray(padded), block_size=inputs.BLOCK) for steps in kinds]
        parts.append(np.mean(encoded, axis=0)[: len(rows)])
    return np.concatenate(parts)


def fold_scores(config: ConfigDict, x: np.ndarray, ids: np.ndarray, fold: Fold) -> Scored:
    """The methods on images."""
    whitened = _whitened(config, x, ids, fold)
    tested, first, second = whitened.tested, whitened.first, whitened.second
    raw = x[np.unique(np.concatenate([fold.pairs.first, fold.pairs.second]))]
    scores = [cosines(jnp.asarray(raw[first]), jnp.asarray(raw[second])), cosines(tested[first], tested[second])]
    scores.append(discriminant_cosines(config, whitened, num_axes=config.num_components))
    models = joint_bayes_models(config, whitened, variants=True)
    scores += pair_scores(models, whitened)
    of_one_length = _length_normalized(whitened)
    scores += pair_scores(joint_bayes_models(config, of_one_length, variants=False), of_one_length)
    return scored(config, scores, models, whitened)


def scored(config: ConfigDict, scores: list[Any], models: Models, known: Coordinates) -> Scored:
    """The scores of all methods, and what the model after EM says at each rank."""
    fitted = models.fitted[1]
    ranks = ranks_of(config.ranks, known.train.shape[1])
    of_rank = np.stack([_truncated_llr(fitted, known, rank) for rank in ranks])
    bounds = np.asarray(joint_bayes.truncation_bounds(fitted))[ranks]
    every = np.stack([np.asarray(each, np.float64) for each in scores])
    few = few_factors.fit(
        ranks_of(config.fitted_ranks, known.train.shape[1])[:-1],
        full=fitted,
        stats=models.stats,
        tested=known.tested,
        people=known.people,
        pairs=np.stack([known.first, known.second]),
    )
    likelihoods = np.stack([few.of_known, few.of_new])
    return Scored(every, np.array(ranks), of_rank, bounds, models.trace, few.ranks, few.scores, likelihoods)


def ranks_of(ranks: Sequence[int], most: int) -> list[int]:
    """The ranks below the number of dimensions, and that number."""
    return sorted({*(rank for rank in ranks if rank < most), most})


def _truncated_llr(model: JointBayes, known: Coordinates, rank: int) -> np.ndarray:
    """Log-likelihood ratios `[pairs]` of thin factors: `constant - (|a1|^2 + |a2|^2) / 2 + b1'b2 / 2`."""
    thin = joint_bayes.low_rank(model, rank=rank)
    centered = known.tested - model.mean[None, :]
    squares, b = ((centered @ thin.factor_a) ** 2).sum(axis=1), centered @ thin.factor_b
    products = (b[known.first] * b[known.second]).sum(axis=1)
    return np.asarray(thin.constant + (products - squares[known.first] - squares[known.second]) / 2, np.float64)


def best_scores(config: ConfigDict, x: np.ndarray, ids: np.ndarray, fold: Fold) -> np.ndarray:
    """Scores `[pairs]` of length-normalised features and full EM alone."""
    whitened = _length_normalized(_whitened(config, x, ids, fold))
    return np.asarray(pair_scores(joint_bayes_models(config, whitened, variants=False), whitened)[-1], np.float64)


def _whitened(config: ConfigDict, x: np.ndarray, ids: np.ndarray, fold: Fold) -> Coordinates:
    key = prng.stream(jax.random.key(config.seed), "pca")
    train = jnp.asarray(x[fold.train_rows])
    whitening, info = pca.fit_randomized(key, train, num_components=config.num_components, whiten=True)
    raise_if_failed(info, "PCA")
    needed, place = np.unique(np.concatenate([fold.pairs.first, fold.pairs.second]), return_inverse=True)
    first, second = place.reshape(2, -1)
    labels = dense(ids[fold.train_rows]).ids
    rows = [_projected(whitening, each) for each in (train, jnp.asarray(x[needed]))]
    return Coordinates(rows[0], labels, rows[1], first, second, dense(ids[needed]).ids)


def _length_normalized(whitened: Coordinates) -> Coordinates:
    train, tested = verifier.normalize_length(whitened.train), verifier.normalize_length(whitened.tested)
    return whitened._replace(train=train, tested=tested)


def discriminant_cosines(config: ConfigDict, known: Coordinates, *, num_axes: int) -> jax.Array:
    """Cosines `[pairs]` after LDA on `num_axes` axes."""
    fisher, info = lda.fit(
        known.train,
        jnp.asarray(known.labels),
        num_classes=int(known.labels.max()) + 1,
        num_components=min(config.lda_components, num_axes),
        pca_components=num_axes,
    )
    raise_if_failed(info, "LDA")
    projected = _projected(fisher, known.tested)
    return cosines(projected[known.first], projected[known.second])


def joint_bayes_models(config: ConfigDict, known: Coordinates, *, variants: bool) -> Models:
    """Moments and EM; with `variants` also approximate EM and a fit without single-image people."""
    z, labels = known.train, known.labels
    num_people, mean = int(labels.max()) + 1, z.mean(axis=0)
    stats = joint_bayes.collect(z, labels, num_people=num_people, shift=mean)
    start = joint_bayes.init(stats)
    fitted, trace = _fitted(config, stats, start, config.e_step)
    models = [start, fitted]
    if variants:
        several = np.bincount(labels, minlength=num_people)[labels] > 1
        kept = dense(labels[several]).ids
        fewer = joint_bayes.collect(z[several], kept, num_people=int(kept.max()) + 1, shift=mean)
        models += [_fitted(config, stats, start, "approximate")[0], _fitted(config, fewer, start, config.e_step)[0]]
    return Models(models, trace / len(z), stats)


def pair_scores(models: Models, known: Coordinates) -> list[Any]:
    """Log-likelihood ratios `[pairs]` of each model."""
    first, second = known.tested[known.first], known.tested[known.second]
    return [_pair_llr(model, first, second) for model in models.fitted]


def _fitted(
    config: ConfigDict, stats: joint_bayes.Stats, start: JointBayes, e_step: str
) -> tuple[JointBayes, np.ndarray]:
    model, info = joint_bayes.fit(stats, start, num_iters=config.num_iters, e_step=joint_bayes.E_STEPS[e_step])
    raise_if_failed(info, f"Joint Bayes, {e_step} EM")
    return model, np.asarray(info.objective, np.float64)


@jax.jit
def _projected(linear_map: LinearMap, x: jax.Array) -> jax.Array:
    return each_row(transform, linear_map, x)


@jax.jit
def _pair_llr(model: JointBayes, first: jax.Array, second: jax.Array) -> jax.Array:
    return each_row(joint_bayes.llr, model, first, second)


@jax.jit
def cosines(first: jax.Array, second: jax.Array) -> jax.Array:
    """Cosines `[p]` of rows `[p, d]`."""
    return jax.vmap(distances.cosine)(first, second)


def summary(config: ConfigDict, folds: Sequence[Mapping[str, np.ndarray]]) -> dict[str, np.ndarray]:
    """Scores `[methods, pairs]`, truth, people and folds of all folds together; the fused score is the last.

    `largest share` is the largest part of one person in the genuine pairs.
    """
    scores = np.concatenate([fold["scores"] for fold in folds], axis=1)
    if config.fused_features:
        fused = scores[len(METHODS) :].sum(axis=0)
        scores = np.concatenate([scores, fused[None, :]])
    first, second, is_same = (
        np.concatenate([fold[name] for fold in folds]) for name in ("people", "others", "is_same")
    )
    return {
        "scores": scores,
        "is_same": is_same,
        "people": first,
        "others": second,
        "of rank": np.concatenate([fold["of rank"] for fold in folds], axis=1),
        "of few": np.concatenate([fold["of few"] for fold in folds], axis=1),
        "few ranks": folds[0]["few ranks"],
        "likelihoods": np.stack([fold["likelihoods"] for fold in folds]),
        "ranks": folds[0]["ranks"],
        "bounds": np.mean([fold["bounds"] for fold in folds], axis=0),
        "traces": np.stack([fold["trace"] for fold in folds]),
        "largest share": np.asarray(np.unique(first[is_same], return_counts=True)[1].max() / is_same.sum()),
        "fold": np.concatenate([np.full(len(fold["is_same"]), k) for k, fold in enumerate(folds)]),
    }
