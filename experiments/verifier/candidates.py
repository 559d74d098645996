"""How every kind of verifier does on the people who test, and which kind is chosen without them.

Among the kinds the people that do not test choose: they are cut into folds of their own, each is scored by verifiers of
the others, and the kind with the lowest mean of min Cllr is chosen.
"""

from collections.abc import Callable, Sequence
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from ml_collections import ConfigDict

from experiments.common import fields
from experiments.common.inputs import Vectors
from experiments.verifier import elsewhere, graded
from experiments.verifier.sides import Sides
from experiments.verify.transfer import Source
from jaxface import metrics, verifier
from jaxface.core import checks, prng
from jaxface.core.fitinfo import FitInfo, Status
from jaxface.core.labels import dense
from jaxface.data import pairs, splits
from jaxface.data.splits import Split
from jaxface.faces.pipeline import ImagePipeline
from jaxface.runtime import params_io
from jaxface.verifier import Verifier, kinds, presence


class Scored(NamedTuple):
    """All pairs of some rows."""

    scores: np.ndarray  # [p]
    is_same: np.ndarray  # bool [p]


def check(config: ConfigDict) -> None:
    """Refuses fields that no split can have."""
    fields.counts(config, "num_components", "num_iters", "num_resamples")
    fields.counts(config, "num_folds", "num_choice_folds", "max_images", minimum=2)
    fields.shares(config, "share_calibrate", above_zero=True)
    checks.between("config.share_calibrate", config.share_calibrate, 0, 0.9)
    fields.shares(config, "far", above_zero=True)
    fields.words(config, "kinds", kinds.KINDS)
    fields.counts(config, "num_quality_bins", minimum=2)
    fields.not_negative(config, "quality_exponents")
    if config.quality is not None and config.data.loader == "stream":
        raise ValueError("config.quality needs vectors in memory: take another loader than stream.")
    if config.source.root is not None and config.data.loader == "stream":
        raise ValueError("config.source needs vectors in memory: take another loader than stream.")
    fields.shares(config, "source.weights")
    if config.data.root is None and config.data.loader != "orl":
        raise ValueError("--config.data.root is missing: name your embeddings, images or photos.")
    for name in ("prior", "presence_prior"):
        checks.between(f"config.{name}", config[name], 0.0, 1.0, closed_low=False, closed_high=False)


def measure(
    config: ConfigDict,
    vectors: Vectors,
    steps: ImagePipeline,
    side: Sides,
    number: int,
    levels: np.ndarray | None = None,
    source: Callable[[], Source] | None = None,
) -> dict[str, np.ndarray]:
    """The arrays of a fold's stage: calibrated ratios of every kind, the choice, and the chosen verifier.

    A kind whose fit failed has NaN ratios. With the quality `levels` `[n]` of the vectors also those by quality, and
    with a `source` those of its model.
    """
    split, rows, trial = side
    key = prng.stream(jax.random.fold_in(jax.random.key(config.seed), number), "verifier")
    held_out = _choice(config, vectors, split, key)
    fitted = [_calibrated(config, vectors, steps, split, kind, key) for kind in config.kinds]
    usable = [k for k, model in enumerate(fitted) if model is not None and np.isfinite(held_out[k])]
    if not usable:
        raise ValueError("no kind of verifier could be fitted to these people: bring people with several photos each.")
    chosen = min(usable, key=lambda k: held_out[k])
    model = fitted[chosen]
    assert model is not None
    model = with_presence(config, model, vectors, _limited(config, vectors, split.held_out))
    nothing = np.full(len(trial.first), np.nan)
    scores = [nothing if each is None else _scores(each, vectors, rows, trial) for each in fitted]
    by_quality = {} if levels is None else graded.measure(config, vectors, levels, side, fitted)
    of_source = {} if source is None else elsewhere.measure(config, source(), vectors, side)
    return (
        by_quality
        | of_source
        | {
            "held out": held_out,
            "chosen": np.asarray(chosen),
            "model": np.frombuffer(params_io.to_bytes(model, notes={"kind": config.kinds[chosen]}), np.uint8),
            "scores": np.stack(scores),
        }
    )


def _choice(config: ConfigDict, vectors: Vectors, split: Split, key: jax.Array) -> np.ndarray:
    """Mean of min Cllr over folds of the people that do not test, `[kinds]`; infinite where a fit failed."""
    rows = np.concatenate([split.train, split.held_out])
    rng = np.random.default_rng((config.seed, 2))
    fold = splits.identity_folds(dense(vectors.ids[rows]).ids, num_folds=config.num_choice_folds, rng=rng)[0]
    found = np.zeros(len(config.kinds))
    for k, kind in enumerate(config.kinds):
        for number in range(config.num_choice_folds):
            model, info = _fitted(config, vectors, rows[fold != number], kind, None, key)
            tested = _limited(config, vectors, with_mates(vectors.ids, rows[fold == number]))
            trial = pairs.all_pairs(vectors.ids[tested])
            scores = _scores(model, vectors, tested, trial)
            is_usable = int(info.status) < Status.NON_FINITE and np.isfinite(scores).all()
            found[k] += metrics.min_cllr(metrics.roc(scores, trial.is_same)) if is_usable else np.inf
    return found / config.num_choice_folds


def with_mates(ids: np.ndarray, rows: np.ndarray) -> np.ndarray:
    """The rows of people with two images or more; the others would only add impostors, by their square."""
    counts = np.bincount(ids[rows])
    if np.count_nonzero(counts > 1) < 2:
        raise ValueError(
            f"a part of the people that chooses or calibrates holds {np.count_nonzero(counts > 1)} people with two "
            f"images or more, of {np.count_nonzero(counts)}; it needs two. Bring more people with several images, or "
            "give fewer parts with config.num_folds and config.num_choice_folds, or a larger config.share_calibrate."
        )
    return rows[counts[ids[rows]] > 1]


def _fitted(
    config: ConfigDict, vectors: Vectors, rows: np.ndarray, kind: str, steps: ImagePipeline | None, key: jax.Array
) -> tuple[Verifier, FitInfo]:
    _, ids, names = dense(vectors.ids[rows])
    settings = {"num_iters": config.num_iters, "num_components": config.num_components, "steps": steps}
    return verifier.fit_kind(
        key, kinds.KINDS[kind], jnp.asarray(vectors.x[rows]), ids, num_people=len(names), **settings
    )


def _calibrated(
    config: ConfigDict, vectors: Vectors, steps: ImagePipeline, split: Split, kind: str, key: jax.Array
) -> Verifier | None:
    """The verifier of a fold, or None if its fit failed."""
    raw, info = _fitted(config, vectors, split.train, kind, steps, key)
    if int(info.status) >= Status.NON_FINITE:
        return None
    rows = _limited(config, vectors, with_mates(vectors.ids, split.held_out))
    trial = pairs.all_pairs(vectors.ids[rows])
    z = verifier.encode_vectors(raw, jnp.asarray(vectors.x[rows]))
    made, of_calibration = verifier.calibrate(raw, z, *trial)
    return made if int(of_calibration.status) < Status.NON_FINITE else None


def with_presence(config: ConfigDict, model: Verifier, vectors: Vectors, rows: np.ndarray) -> Verifier:
    """The verifier calibrated for identification too, if the calibration people suffice."""
    if np.count_nonzero(np.bincount(vectors.ids[rows]) > 1) < presence.FEWEST:
        return model
    z = verifier.encode_vectors(model, jnp.asarray(vectors.x[rows]))
    rng = np.random.default_rng((config.seed, 5))
    made, info = verifier.fit_presence(model, z, vectors.ids[rows], rng=rng)
    return made if int(info.status) < Status.NON_FINITE else model


def _limited(config: ConfigDict, vectors: Vectors, rows: np.ndarray) -> np.ndarray:
    return rows[pairs.limited(vectors.ids[rows], max_rows=config.max_images)]


def _scores(model: Verifier, vectors: Vectors, rows: np.ndarray, trial: pairs.Pairs) -> np.ndarray:
    """Ratios `[p]` of pairs of some rows."""
    z = verifier.encode_vectors(model, jnp.asarray(vectors.x[rows]))
    return np.asarray(verifier.score_matrix(model, z, z))[trial.first, trial.second]


def people_with_one(ids: np.ndarray) -> int:
    """How many people have one photo."""
    return int((np.bincount(ids) == 1).sum())


def names_of(kinds_of: Sequence[str], chosen: np.ndarray) -> str:
    """How often each kind was chosen, in words."""
    counts = np.bincount(chosen, minlength=len(kinds_of))
    order = np.argsort(-counts, kind="stable")
    return ", ".join(f"{kinds_of[k]} ({counts[k]} of {len(chosen)})" for k in order if counts[k])
