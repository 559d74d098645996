"""A whole face from its eye region, by every method of the paper and by the baselines it leaves out.

python -m experiments.hallucinate --config=configs/hallucinate.py --workdir=runs/hallucinate
"""

from collections.abc import Mapping
from functools import partial
from typing import Any

import jax
import numpy as np
from ml_collections import ConfigDict

from experiments.common import fields, inputs, models
from experiments.common.publish import publish
from experiments.hallucinate import (
    bandwidths,
    faces,
    kernels,
    matching,
    measurements,
    methods,
    neutral,
    pairs_report,
    report,
    streaming,
)
from experiments.hallucinate.faces import Faces, FoldFaces
from experiments.hallucinate.found import Found, Others
from experiments.hallucinate.matching import ORIGINAL
from jaxface.core import checks
from jaxface.runtime import resources
from jaxface.runtime.workdir import Workdir


def run(config: ConfigDict, workdir: Workdir) -> dict[str, Any]:
    """A stage for each fold and method, one for the verification of each fold, then the report."""
    check(config)
    workdir.uses(data=inputs.path_of(config.data))
    loaded = inputs.load_faces(config.data)
    data = faces.select(config, loaded)
    mask = faces.rectangle(data.shape, config.visible)
    folds = list(faces.folds(config, data))
    made = [
        {name: reconstructed(config, workdir, name, k, fold, mask) for name in config.methods}
        for k, fold in enumerate(folds)
    ]
    pairs = [
        workdir.stage(
            f"fold-{k}-pairs", partial(matching.of_fold, config.kcfa, fold, _images(made[k]), seed=config.seed)
        )
        for k, fold in enumerate(folds)
    ]
    others = Others(
        measured=workdir.stage("measurements", partial(measurements.of_fold, config, folds[0])),
        narrow=bandwidths.stages(config, folds[0], mask, workdir),
        burden=workdir.stage("kernel-burden", partial(kernels.burden, config, folds[0], mask)),
        named=workdir.stage("kernel-classes", partial(kernels.classified, config, data)),
    )
    jax.clear_caches()  # the programs of the fits hold 200 MB
    resources.return_freed_memory()
    streamed = workdir.stage("stream", partial(streaming.of_fold, config.streaming, folds[0], mask, workdir))
    resources.return_freed_memory()
    found = together(config, data, mask, folds, made, pairs)
    results = pairs_report.matched(config, found)
    publish(
        workdir,
        title="A face from its eye region",
        lead=f"{len(found.ids)} faces of {data.shape[0]} x {data.shape[1]} pixels; "
        "none of these people trained a model or chose its settings.",
        headline=report.headline(config, found, results),
        sections=report.sections(config, found, results, others, streamed),
        credits=(loaded.credit,),
    )
    recognised = {
        name: {
            "vr": float(each.rate.estimate),
            "eer": float(each.eer.estimate),
            "calibrated cllr": float(each.cllr.estimate),
            "min cllr": each.min_cllr,
        }
        for name, each in results.items()
    }
    neutrality = neutral.headline(found, num_resamples=config.num_resamples, seed=config.seed)
    return {
        name: {"psnr": float(values.mean()), "deviation": float(values.std())}
        | recognised[name]
        | ({"neutral": neutrality[name]} if name in neutrality else {})
        | ({"validity": _means(found.validity[name])} if name in found.validity else {})
        for name, values in found.psnr.items()
    } | {
        ORIGINAL: recognised[ORIGINAL],
        "stream": streaming.headline(streamed),
        "measurements": methods.means(others.measured),
        "bandwidths": methods.means(others.narrow),
        "kernels": kernels.headline(others.burden, others.named),
    }


def reconstructed(
    config: ConfigDict, workdir: Workdir, name: str, k: int, fold: FoldFaces, mask: np.ndarray
) -> dict[str, np.ndarray]:
    """The stage of a method in fold k; the model of the first fold is written to its file."""
    stage = f"fold-{k}-{name}"
    folder = workdir.path / streaming.CHECKPOINTS / stage
    learn = partial(streaming.learn, config.streaming, fold.shape, folder)
    of_method = workdir.stage(stage, partial(methods.of_fold, config, name, fold, mask, is_kept=k == 0, learn=learn))
    models.write(workdir, of_method)
    resources.return_freed_memory()
    return models.without(of_method)


def check(config: ConfigDict) -> None:
    """Refuses values of fields that no stage can use."""
    methods.check(config)
    fields.counts(config, "max_images", "num_folds", "kcfa.min_images", "kcfa.num_bins", "kcfa.max_kept", minimum=2)
    fields.counts(config, "num_tests", "num_resamples", "num_shown", "kcfa.num_resamples")
    checks.at_most("config.num_tests", config.num_tests, config.num_folds, "config.num_folds")
    fields.shares(config, "tuning_part", above_zero=True)
    fields.positive(config, "kcfa.ridge")
    for part in (streaming, bandwidths, measurements, kernels):
        part.check(config)


def together(
    config: ConfigDict,
    data: Faces,
    mask: np.ndarray,
    folds: list[FoldFaces],
    made: list[dict[str, dict[str, np.ndarray]]],
    pairs: list[dict[str, np.ndarray]],
) -> Found:
    """The folds one after the other; counts of pairs add."""
    names = tuple(made[0])
    return Found(
        shape=data.shape,
        mask=mask,
        ids=np.concatenate([fold.test_ids for fold in folds]),
        fold=np.concatenate([np.full(len(fold.test_ids), k) for k, fold in enumerate(folds)]),
        originals=np.concatenate([fold.test for fold in folds]),
        images={name: np.concatenate([each[name]["images"] for each in made]) for name in names},
        names=methods.names(config),
        settings={name: _in_words([each[name] for each in made]) for name in names},
        validity={name: report for name in names if (report := _validity([each[name] for each in made]))},
        counts={
            name: np.stack([sum(each[f"{kind}/{name}"] for each in pairs) for kind in ("genuine", "impostor")])
            for name in (ORIGINAL, *names)
        },
        scores={name: [each[f"scores/{name}"] for each in pairs] for name in (ORIGINAL, *names)},
        kept=[each["kept"] for each in pairs],
        num_filters=[int(each["num_filters"]) for each in pairs],
        num_train=len(folds[0].train),
        atoms={
            name: (each["atoms/face"], each["atoms/seen"]) for name, each in made[0].items() if "atoms/face" in each
        },
    )


def _images(made: Mapping[str, Mapping[str, np.ndarray]]) -> dict[str, np.ndarray]:
    return {name: each["images"] for name, each in made.items()}


def _validity(folds: list[dict[str, np.ndarray]]) -> dict[str, np.ndarray]:
    """The report on all inverses of a method, by field; empty for a method without inverses."""
    fields_of_report = [name for name in folds[0] if name.startswith("validity/")]
    return {
        name.removeprefix("validity/"): np.concatenate([np.atleast_1d(each[name]) for each in folds])
        for name in fields_of_report
    }


def _means(report: Mapping[str, np.ndarray]) -> dict[str, float]:
    return {name: float(values.mean()) for name, values in report.items() if name not in ("status", "num_iters")}


def _in_words(folds: list[dict[str, np.ndarray]]) -> str:
    """The settings of all folds; values that differ between folds are listed."""
    names = [name for name in folds[0] if name.startswith("setting/")]
    values = {name: dict.fromkeys(_word(each[name]) for each in folds) for name in names}
    return ", ".join(f"{name.removeprefix('setting/')} {' or '.join(each)}" for name, each in values.items())


def _word(value: np.ndarray) -> str:
    return str(value) if value.dtype.kind == "U" else f"{float(value):.4g}"
