"""How near EM and PX-EM come to the maximum, and what that does to scores: the table of docs/joint_bayes.md.

python -m benchmarks.convergence --lfw LFW                 LBP features, 200 axes; some minutes of one core a split
python -m benchmarks.convergence --vectors lfw_sface.npz   vectors as they are

Half of the people train, a sixth calibrates and a third is tested.
"""

import argparse
import time
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from jaxface import data, joint_bayes, metrics
from jaxface.core.fitinfo import FitInfo
from jaxface.core.labels import dense
from jaxface.data import pairs
from jaxface.faces import pipeline
from jaxface.joint_bayes import JointBayes, Stats, posterior
from jaxface.losses import calibration
from jaxface.runtime import environment
from jaxface.subspace import pca

_STEPS = (("lbp", {"radii": (1, 2), "cells": (8, 6), "root": True}),)
_AXES, _MOST, _FEW, _SHORT = 200, 5, 30, 1000  # axes; images of a person in pairs; steps


class Part(NamedTuple):
    """Some people: their images in coordinates, and who is on them."""

    x: Any  # [n, d]
    ids: np.ndarray

    def stats(self, shift: Any) -> Stats:
        """Their sums."""
        found = dense(self.ids)
        return joint_bayes.collect(self.x, found.ids, num_people=len(found.names), shift=shift)

    def pairs(self, model: JointBayes) -> tuple[np.ndarray, np.ndarray]:
        """The ratios of all pairs of at most `_MOST` images a person, and which show one person."""
        rows = pairs.limited(self.ids, max_rows=_MOST)
        trial = pairs.all_pairs(self.ids[rows])
        scores = joint_bayes.llr_matrix(joint_bayes.diagonalize(model), self.x[rows], self.x[rows])
        return np.asarray(scores, np.float64)[trial.first, trial.second], trial.is_same


def loaded(lfw: str, vectors: str) -> tuple[np.ndarray, np.ndarray]:
    """Features `[n, d]` and people `[n]`."""
    if vectors:
        found = data.embeddings.load(vectors)
        return found.features, found.ids
    faces = data.lfw.load(lfw, size=(64, 52), crop=(54, 72, 129, 106))
    images = jnp.asarray(faces.images, jnp.float32)
    return np.asarray(pipeline.encode_batch(pipeline.build(_STEPS), images, block_size=32)), faces.ids


def parts(x: np.ndarray, ids: np.ndarray, seed: int) -> tuple[Part, Part, Part]:
    """Training, calibration and test people, in principal coordinates of the first where x has more dimensions."""
    people = np.random.default_rng(seed).permutation(int(ids.max()) + 1)
    ends = len(people) // 2, len(people) // 2 + len(people) // 6
    rows = [np.flatnonzero(np.isin(ids, some)) for some in np.split(people, ends)]
    if x.shape[1] > _AXES:
        axes, _ = pca.fit_randomized(jax.random.key(seed), jnp.asarray(x[rows[0]]), num_components=_AXES)
        x = (x - np.asarray(axes.mean)) @ np.asarray(axes.basis)
    train, held, test = (Part(jnp.asarray(x[some], jnp.float64), ids[some]) for some in rows)
    return train, held, test


def fits(stats: Stats, steps: int) -> Iterator[tuple[str, JointBayes, np.ndarray]]:
    """Name, model and objective at every step of every fit."""
    start = joint_bayes.init(stats)
    kinds: list[tuple[str, int, Callable[..., tuple[JointBayes, FitInfo]], dict[str, Any]]] = [
        ("moments", 1, joint_bayes.fit, {}),
        ("EM", _FEW, joint_bayes.fit, {}),
        ("EM", steps, joint_bayes.fit, {}),
        ("PX-EM", _FEW, joint_bayes.fit, {"e_step": posterior.expanded}),
        ("PX-EM", _SHORT, joint_bayes.fit, {"e_step": posterior.expanded}),
        *(("PX-EM, rank", _FEW, joint_bayes.fit_low_rank, {"rank": rank}) for rank in (50, 20)),
    ]
    for name, count, fit, options in kinds:
        model, info = fit(stats, start, num_iters=count, **options)
        title = f"{name} {options['rank']}" if "rank" in options else name if count == 1 else f"{name}, {count} steps"
        yield title, start if count == 1 else model, np.asarray(info.objective)


def at(model: JointBayes, stats: Stats) -> float:
    """The log-likelihood of a model."""
    return float(joint_bayes.fit(stats, model, num_iters=1)[1].objective[0])


def report(x: np.ndarray, ids: np.ndarray, seed: int, steps: int) -> None:
    """Prints a row for each fit of one split."""
    train, held, test = parts(x, ids, seed)
    stats = train.stats(train.x.mean(axis=0))
    photos = test.stats(stats.shift)
    found = list(fits(stats, steps))
    most = max(trace.max() for _, _, trace in found)
    print(f"split {seed}: {len(train.x)} images train; fit | nats below | a new photo | EER % | Cllr raw | calibrated")
    for name, model, trace in found:
        scores, same = test.pairs(model)
        affine, _ = calibration.fit(*held.pairs(model))
        ratios = np.asarray(calibration.calibrate(affine, scores))
        eer = 100 * metrics.eer(metrics.roc(scores, same))
        of_photo = at(model, photos) / len(test.x)
        cells = (f"{most - at(model, stats):.1f}", f"{of_photo:.2f}", f"{eer:.2f}", f"{metrics.cllr(scores, same):.3f}")
        print(" | ".join((name, *cells, f"{metrics.cllr(ratios, same):.3f}")))
        within = [int(np.argmax(most - trace < gap)) if most - trace[-1] < gap else None for gap in (100, 0.1)]
        print(f"    steps until within 100 and 0.1 nats: {within[0]}, {within[1]}", flush=True)


def main() -> None:
    """Prints the tables of all splits."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--lfw", default="", help="the folder of photos")
    parser.add_argument("--vectors", default="", help="a file of vectors")
    parser.add_argument("--splits", type=int, default=3)
    parser.add_argument("--steps", type=int, default=3000, help="of the long EM")
    given = parser.parse_args()
    environment.configure(x64=True)
    x, ids = loaded(given.lfw, given.vectors)
    for seed in range(given.splits):
        begin = time.process_time()
        report(x, ids, seed, given.steps)
        print(f"{time.process_time() - begin:.0f} s of CPU time", flush=True)


if __name__ == "__main__":
    main()
