"""Who fits, calibrates and tests in a split, and how every kind of verifier does there.

The people that do not test are cut into folds: each fold is scored by verifiers of the other folds, and the kind with
the lowest mean of min Cllr is chosen. Then every kind is fitted to the training people and calibrated on the held-out
people, and the test people are scored once.
"""

from collections.abc import Sequence
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from ml_collections import ConfigDict

from experiments.common import fields
from experiments.common.inputs import Vectors
from jaxface import metrics, verifier
from jaxface.core import checks, prng
from jaxface.core.fitinfo import FitInfo, Status
from jaxface.core.labels import dense
from jaxface.data import pairs, splits
from jaxface.data.splits import Split
from jaxface.faces.pipeline import ImagePipeline
from jaxface.runtime import params_io
from jaxface.verifier import Verifier, kinds


class Scored(NamedTuple):
    """All pairs of some rows."""

    scores: np.ndarray  # [p]
    is_same: np.ndarray  # bool [p]


def check(config: ConfigDict) -> None:
    """Refuses fields that no split can have."""
    fields.counts(config, "num_splits", "num_components", "num_iters")
    fields.counts(config, "num_choice_folds", "max_images", minimum=2)
    fields.shares(config, "share_test", "share_calibrate", above_zero=True)
    checks.between("config.share_test + config.share_calibrate", config.share_test + config.share_calibrate, 0, 0.9)
    fields.shares(config, "far", above_zero=True)
    fields.words(config, "kinds", kinds.KINDS)
    if config.data.root is None and config.data.loader != "orl":
        raise ValueError("--config.data.root is missing: name your embeddings, images or photos.")
    checks.between("config.prior", config.prior, 0.0, 1.0, closed_low=False, closed_high=False)


def measures(config: ConfigDict) -> tuple[str, ...]:
    """What is measured of every kind."""
    return ("EER", *(f"VR at FAR {far:g}" for far in config.far), "Cllr", "min Cllr")


def people_splits(config: ConfigDict, ids: np.ndarray) -> list[Split]:
    """Random splits of the people; those with one photo fit, and give impostors."""
    number = int(ids.max()) + 1
    sizes = [round(share * number) for share in (config.share_calibrate, config.share_test)]
    train = number - sum(sizes)
    if min(train, *sizes) < 2:
        raise ValueError(
            f"the {number} people of this set cannot fit, calibrate and test with two people or more each; "
            f"got {train}, {sizes[0]} and {sizes[1]}. Bring more people, or change config.share_test and "
            "config.share_calibrate."
        )
    rng = np.random.default_rng((config.seed, 1))
    drawn = splits.identity_disjoint(ids, num_people=(train, *sizes), rng=rng, num_splits=config.num_splits)
    return [splits.of_parts(parts, train=0, held_out=1, test=2) for parts in drawn]


def measure(
    config: ConfigDict, vectors: Vectors, steps: ImagePipeline, split: Split, number: int
) -> dict[str, np.ndarray]:
    """The arrays of a split's stage: measures of every kind, the choice, and the chosen verifier."""
    key = prng.stream(jax.random.fold_in(jax.random.key(config.seed), number), "verifier")
    held_out = _choice(config, vectors, split, key)
    fitted = [_calibrated(config, vectors, steps, split, kind, key) for kind in config.kinds]
    tested = [None if each is None else _scored(config, each, vectors, split.test) for each in fitted]
    rows = [np.full(len(measures(config)), np.nan) if each is None else _measured(config, each) for each in tested]
    usable = [k for k, each in enumerate(tested) if each is not None and np.isfinite(held_out[k])]
    if not usable:
        raise ValueError("no kind of verifier could be fitted to these people: bring people with several photos each.")
    chosen = min(usable, key=lambda k: held_out[k])
    model, scored = fitted[chosen], tested[chosen]
    assert model is not None
    assert scored is not None
    return {
        "held out": held_out,
        "test": np.stack(rows),
        "chosen": np.asarray(chosen),
        "model": np.frombuffer(params_io.to_bytes(model, notes={"kind": config.kinds[chosen]}), np.uint8),
        "scores": scored.scores,
        "is_same": scored.is_same,
        "rows": _limited(config, vectors, split.test),
        "share": np.asarray(_largest_share(config, vectors, split.test)),
    }


def _choice(config: ConfigDict, vectors: Vectors, split: Split, key: jax.Array) -> np.ndarray:
    """Mean of min Cllr over folds of the people that do not test, `[kinds]`; infinite where a fit failed."""
    rows = np.concatenate([split.train, split.held_out])
    rng = np.random.default_rng((config.seed, 2))
    fold = splits.identity_folds(dense(vectors.ids[rows]).ids, num_folds=config.num_choice_folds, rng=rng)[0]
    found = np.zeros(len(config.kinds))
    for k, kind in enumerate(config.kinds):
        for number in range(config.num_choice_folds):
            model, info = _fitted(config, vectors, rows[fold != number], kind, None, key)
            scored = _scored(config, model, vectors, rows[fold == number])
            is_usable = int(info.status) < Status.NON_FINITE and np.isfinite(scored.scores).all()
            found[k] += metrics.min_cllr(metrics.roc(*scored)) if is_usable else np.inf
    return found / config.num_choice_folds


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
    """The verifier of a split, or None if its fit failed."""
    raw, info = _fitted(config, vectors, split.train, kind, steps, key)
    if int(info.status) >= Status.NON_FINITE:
        return None
    rows = _limited(config, vectors, split.held_out)
    trial = pairs.all_pairs(vectors.ids[rows])
    z = verifier.encode_vectors(raw, jnp.asarray(vectors.x[rows]))
    made, of_calibration = verifier.calibrate(raw, z, *trial)
    return made if int(of_calibration.status) < Status.NON_FINITE else None


def _limited(config: ConfigDict, vectors: Vectors, rows: np.ndarray) -> np.ndarray:
    return rows[pairs.limited(vectors.ids[rows], max_rows=config.max_images)]


def _scored(config: ConfigDict, model: Verifier, vectors: Vectors, rows: np.ndarray) -> Scored:
    """All pairs of at most `max_images` photos of each person."""
    rows = _limited(config, vectors, rows)
    z = verifier.encode_vectors(model, jnp.asarray(vectors.x[rows]))
    trial = pairs.all_pairs(vectors.ids[rows])
    return Scored(np.asarray(verifier.score_matrix(model, z, z))[trial.first, trial.second], trial.is_same)


def _measured(config: ConfigDict, scored: Scored) -> np.ndarray:
    curve = metrics.roc(*scored)
    rates = [metrics.verification_rate(curve, far) for far in config.far]
    return np.array([metrics.eer(curve), *rates, metrics.cllr(*scored), metrics.min_cllr(curve)])


def _largest_share(config: ConfigDict, vectors: Vectors, rows: np.ndarray) -> float:
    ids = vectors.ids[_limited(config, vectors, rows)]
    return pairs.largest_share(ids, pairs.all_pairs(ids))


def people_with_one(ids: np.ndarray) -> int:
    """How many people have one photo."""
    return int((np.bincount(ids) == 1).sum())


def names_of(kinds_of: Sequence[str], chosen: np.ndarray) -> str:
    """How often each kind was chosen, in words."""
    counts = np.bincount(chosen, minlength=len(kinds_of))
    order = np.argsort(-counts, kind="stable")
    return ", ".join(f"{kinds_of[k]} ({counts[k]} of {len(chosen)})" for k in order if counts[k])
