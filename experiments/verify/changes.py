"""Which adaptation without labels helps against which change of the camera: simulated models, whose change is known."""

import dataclasses
from collections.abc import Callable, Mapping
from functools import partial

import jax.numpy as jnp
import numpy as np
import scipy.linalg
from ml_collections import ConfigDict

from experiments.common import fields
from experiments.verify import transfer
from jaxface.core.fitinfo import raise_if_failed
from jaxface.data import pairs, synthetic
from jaxface.joint_bayes import JointBayes, adaptation
from jaxface.joint_bayes.adaptation import Target
from jaxface.metrics import calibration, intervals, verification
from jaxface.reports.html import Section
from jaxface.reports.tables import Cell, Estimate, Table, intervals_over, percent_interval, with_interval
from jaxface.runtime.log import progress

_IDENTITY, _NOISE = (0.05, 6.0), (0.3, 3.0)  # least and largest variance of the source's people and of its noise
_TURN = 0.05  # entries of the generator of a small rotation
_NEW_DIRECTIONS, _NEW_VARIANCE = 5, 15.0

Change = Callable[[JointBayes, np.random.Generator], JointBayes]


def _same(model: JointBayes, rng: np.random.Generator) -> JointBayes:
    return model


def _shifted(model: JointBayes, rng: np.random.Generator) -> JointBayes:
    """Every axis of the mean by half a standard deviation or so."""
    deviation = np.sqrt(np.diagonal(model.identity_cov + model.noise_cov))
    return dataclasses.replace(model, mean=model.mean + 0.5 * deviation * rng.normal(size=deviation.shape))


def _stretched(model: JointBayes, rng: np.random.Generator) -> JointBayes:
    return _mapped(model, np.diag(np.exp(np.linspace(-1, 1, len(model.mean)))))


def _turned(model: JointBayes, rng: np.random.Generator) -> JointBayes:
    generator = _TURN * rng.normal(size=model.noise_cov.shape)
    return _mapped(model, scipy.linalg.expm(generator - generator.T))


def _with_more(field: str, model: JointBayes, rng: np.random.Generator) -> JointBayes:
    """Variance in some directions, which only a few of the source's axes share."""
    axes = np.linalg.qr(rng.normal(size=(len(model.mean), _NEW_DIRECTIONS)))[0]
    return dataclasses.replace(model, **{field: getattr(model, field) + _NEW_VARIANCE * axes @ axes.T})


CHANGES: Mapping[str, Change] = {
    "none": _same,
    "another mean": _shifted,
    "axes stretched by 1/e to e": _stretched,
    "a small rotation": _turned,
    f"more noise in {_NEW_DIRECTIONS} directions": partial(_with_more, "noise_cov"),
    f"people differ more in {_NEW_DIRECTIONS} directions": partial(_with_more, "identity_cov"),
}
METHODS: Mapping[str, adaptation.Adapt] = {
    "mean alone": adaptation.mean_shift,
    "CORAL, printed": partial(adaptation.coral, root=adaptation.printed_root),
    "CORAL": adaptation.coral,
    "CORAL+, half": partial(adaptation.coral_plus, gamma_identity=0.5, gamma_noise=0.5),
    "Kaldi, .7 and .3": partial(adaptation.kaldi, to_identity=0.7, to_noise=0.3),
    "Kaldi, all to noise": partial(adaptation.kaldi, to_identity=0.0, to_noise=1.0),
}


def check(config: ConfigDict) -> None:
    """Refuses values of `config.changes` that no draw can have."""
    fields.counts(config, "num_draws", minimum=0, section="changes")
    fields.counts(config, "dim", "num_people", "num_images", minimum=_NEW_DIRECTIONS, section="changes")


def measure(config: ConfigDict, seed: int) -> dict[str, np.ndarray]:
    """EER and raw Cllr `[changes, methods, draws]`; the source model comes first, the target's own model last."""
    found = np.empty((2, len(CHANGES), len(METHODS) + 2, config.num_draws))
    for draw in progress(range(config.num_draws), "simulated changes"):
        for k, change in enumerate(CHANGES.values()):
            found[:, k, :, draw] = of_change(config, change, np.random.default_rng((seed, draw))).T
    return {"changes/eer": found[0], "changes/cllr": found[1]}


def of_change(config: ConfigDict, change: Change, rng: np.random.Generator) -> np.ndarray:
    """EER and raw Cllr `[methods, 2]` after one change."""
    source = simulated(config.dim, rng)
    target = change(source, rng)
    unlabelled, _ = images(target, -(-config.num_images // 2), 2, rng)
    x, ids = images(target, config.num_people, 4, rng)
    trial, seen = pairs.all_pairs(ids), adaptation.target_of(unlabelled)
    models = (source, *(_adapted(adapt, source, seen) for adapt in METHODS.values()), target)
    scores = [transfer.pair_scores(model, jnp.asarray(x), trial) for model in models]
    return np.array(
        [
            (verification.eer(verification.roc(each, trial.is_same)), calibration.cllr(each, trial.is_same))
            for each in scores
        ]
    )


def simulated(dim: int, rng: np.random.Generator) -> JointBayes:
    """A source whose covariances have no axis in common."""
    variances = (np.geomspace(*limits, dim) for limits in (_IDENTITY, _NOISE))
    axes = (np.linalg.qr(rng.normal(size=(dim, dim)))[0] for _ in range(2))
    identity_cov, noise_cov = ((q * values) @ q.T for q, values in zip(axes, variances, strict=True))
    return JointBayes(mean=jnp.asarray(rng.normal(size=dim)), identity_cov=identity_cov, noise_cov=noise_cov)


def images(
    model: JointBayes, num_people: int, num_images: int, rng: np.random.Generator
) -> tuple[np.ndarray, np.ndarray]:
    """Images `[num_people * num_images, d]` of the model, and whose they are."""
    parts = dataclasses.asdict(model)
    made = synthetic.gaussian_identities(
        rng, num_people=num_people, images_per_person=num_images, dim=len(model.mean), **parts
    )
    return made.features, made.ids


def section(config: ConfigDict, arrays: Mapping[str, np.ndarray]) -> Section:
    """A table for each measure: a row for each change, a column for each method."""
    count = config.num_draws
    columns = ("change", "source", *METHODS, "the target's own model")
    tables = []
    for measure, cell, within in (
        ("eer", percent_interval, intervals.RATE),
        ("cllr", with_interval, intervals.POSITIVE),
    ):
        rows: list[tuple[Cell, ...]] = []
        for change, methods in zip(CHANGES, arrays[f"changes/{measure}"], strict=True):
            means: list[Estimate] = [
                cell(intervals.split_interval(m, test_to_train=0.0, within=within)) for m in methods
            ]
            rows.append((change, *means))
        what = {"eer": "EER %", "cllr": "Raw Cllr, bits"}[measure]
        tables.append(Table(columns, rows, f"{what}; {intervals_over(count, 'simulated models')}"))
    return Section(
        "Which change an adaptation undoes",
        (
            f"{count} simulated source models of {config.dim} dimensions, each changed in a known way; every method "
            f"sees {config.num_images:,} images of the changed camera without labels. New variance looks the same in "
            "such images whether noise or people brought it, so a method that wins in one row may lose in another. "
            "The last column is the model that made the images.",
            *tables,
        ),
    )


def _adapted(adapt: adaptation.Adapt, source: JointBayes, seen: Target) -> JointBayes:
    model, info = adapt(source, seen)
    raise_if_failed(info, "adaptation")
    return model


def _mapped(model: JointBayes, a: np.ndarray) -> JointBayes:
    """The covariances of A x; the mean stays."""
    return dataclasses.replace(model, identity_cov=a @ model.identity_cov @ a.T, noise_cov=a @ model.noise_cov @ a.T)
