"""The study of vectors that stay on a disk, such as millions of them.

The file is read once for the sums of the people who fit, and once more for each kind with vectors of one length; memory
holds the sums of each person, and the vectors of those who calibrate and test. Pairs are too many to keep: the people
who test stand in groups, pairs stay within a group, and a group keeps the counts of its scores. So the intervals are
over groups of people. The chosen kind and the plain cosine are counted over all pairs as well.
"""

from collections.abc import Callable, Mapping, Sequence
from functools import cache, partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from ml_collections import ConfigDict

from experiments.common import fields, inputs
from experiments.common.inputs import Vectors
from experiments.common.publish import publish
from experiments.verifier import candidates, evidence, sides, strangers, streamed_report
from experiments.verifier.evidence import Evidence
from jaxface import joint_bayes, metrics, verifier
from jaxface.core import pair_counts
from jaxface.core.fitinfo import Status
from jaxface.core.labels import dense
from jaxface.data import pairs
from jaxface.data.pairs import Pairs
from jaxface.data.splits import Split
from jaxface.data.stream import Source
from jaxface.joint_bayes import ScoringBasis
from jaxface.linalg.class_stats import Stats
from jaxface.losses import calibration
from jaxface.losses.calibration import Affine
from jaxface.metrics import group_draws
from jaxface.metrics.group_draws import GroupCounts
from jaxface.runtime import params_io
from jaxface.runtime.workdir import Workdir
from jaxface.verifier import Verifier, kinds

_NUM_BINS = 4096
_MARGIN = 0.25  # of the range of the genuine scores, beyond it on either side


Scorer = tuple[ScoringBasis, Affine]


class Kept(NamedTuple):
    """The people whose vectors are in memory: those who calibrate and those who test."""

    vectors: Vectors
    split: Split  # rows of these vectors that calibrate and test
    groups: list[np.ndarray]  # rows of each group of people who test
    calibration: Pairs  # pairs of those who calibrate, within groups as well


def check(config: ConfigDict) -> None:
    """Refuses fields that a stream cannot have."""
    fields.counts(config, "batch_size", section="stream")
    fields.counts(config, "num_groups", "calibrate_people", minimum=2, section="stream")
    for name in ("pairs", "trials"):
        if config[name] is not None:
            raise ValueError(
                f"config.{name} names files, and a stream has no names of files. Score them afterwards: "
                "experiments.score with the saved verifier."
            )


def run(config: ConfigDict, workdir: Workdir) -> dict[str, Any]:
    """Fits and counts every kind, saves the chosen verifier, and reports."""
    check(config)
    source = inputs.load_stream(config.data)
    part = deal(config, source)
    kept = keep(config, source, part)
    fitting = source._replace(ids=_ids_of(source.ids, part == sides.FIT))
    stats = cache(partial(_sums, config, fitting))
    measured = [
        workdir.stage(f"kind-{k}", partial(measure, config, kind, fitting, stats, kept))
        for k, kind in enumerate(config.kinds)
    ]
    stats.cache_clear()
    held_out = np.array([arrays["held out"] for arrays in measured])
    # Kinds may be one model in other coordinates: of those that differ by rounding only, the first.
    chosen = int(np.argmax(held_out <= held_out.min() * (1 + 1e-4)))
    if np.isinf(measured[chosen]["held out"]):
        raise ValueError("no kind of verifier could be fitted to these people: bring people with several photos each.")
    for k, kind in enumerate(config.kinds):
        if "model" in measured[k]:
            workdir.write_bytes(_file_of(kind), measured[k]["model"].tobytes())
    workdir.wait()
    finished = workdir.stage("chosen", partial(_chosen, config, workdir, config.kinds[chosen], kept))
    workdir.write_bytes("params/verifier.safetensors", finished["model"].tobytes())
    inputs.write_vectors(workdir, "test/test.npz", kept.vectors, kept.split.test)
    workdir.wait()
    model = params_io.load(workdir.path / "params" / "verifier.safetensors", Verifier)
    found = evidence_of(config, measured)
    publish(
        workdir,
        title="A verifier and its evidence, from a stream",
        lead=streamed_report.lead(config, source.num_rows, _numbers_of_people(part), len(kept.groups)),
        headline=streamed_report.headline(config, found, config.kinds[chosen]),
        sections=streamed_report.sections(
            config, workdir, found, config.kinds[chosen], finished,
            strangers.section(config, model, kept.vectors, kept.split),
        ),
    )  # fmt: skip
    results = {
        f"{kind}: {name}": value
        for kind, each in found.items()
        for name, value in evidence.numbers(config, each).items()
    }
    return results | {"saved verifier": config.kinds[chosen]}


def deal(config: ConfigDict, source: Source) -> np.ndarray:
    """Who does what, a part for each person `[c]`: by lists, or at random."""
    if sides.is_listed(config):
        return sides.listed(config, source.names)
    number = len(source.names)
    num_test = number // config.num_folds
    num_calibrate = min(round(config.share_calibrate * (number - num_test)), config.stream.calibrate_people)
    num_fit = number - num_test - num_calibrate
    if min(num_test, num_calibrate, num_fit) < 2:
        raise ValueError(
            f"the {number} people of {config.data.root} cannot fit, calibrate and test with two people or more each: "
            f"{num_fit}, {num_calibrate} and {num_test}. Bring more people, name their labels with "
            "--config.data.options.labels, or change config.num_folds and config.share_calibrate."
        )
    part = np.full(number, sides.FIT, np.int32)
    drawn = np.random.default_rng((config.seed, 1)).permutation(number)
    part[drawn[:num_test]] = sides.TEST
    part[drawn[num_test : num_test + num_calibrate]] = sides.CALIBRATE
    return part


def keep(config: ConfigDict, source: Source, part: np.ndarray) -> Kept:
    """The vectors of those who calibrate and test, at most `max_images` of each, in groups of people."""
    known = np.flatnonzero(source.ids >= 0)
    of_row = part[source.ids[known]]
    rows = [known[of_row == number] for number in (sides.CALIBRATE, sides.TEST)]
    rows = [each[pairs.limited(source.ids[each], max_rows=config.max_images)] for each in rows]
    ids = source.ids[np.concatenate(rows)]
    x = np.asarray(source.read(np.concatenate(rows)), inputs.working_dtype())
    vectors = Vectors(x=x, ids=dense(ids).ids, names=tuple(source.names[person] for person in np.unique(ids)))
    first = len(rows[0])
    split = Split(np.zeros(0, int), np.arange(first, len(ids)), np.arange(first))
    number = config.stream.num_groups
    calibrate = _groups(vectors.ids, candidates.with_mates(vectors.ids, split.held_out), number)
    return Kept(vectors, split, _groups(vectors.ids, split.test, number), _pairs_within(vectors.ids, calibrate))


def _numbers_of_people(part: np.ndarray) -> dict[str, int]:
    counts = np.bincount(part, minlength=3).tolist()
    return dict(zip(("fit", "calibrate", "test"), counts, strict=True)) | {"all": len(part)}


def measure(config: ConfigDict, name: str, source: Source, stats: Callable[[], Stats], kept: Kept) -> dict[str, Any]:
    """The arrays of a kind's stage: the calibrated verifier, its min Cllr, and the counts of the groups.

    The min Cllr is of those who calibrate, who are in no fit of the kind; it is infinite if the fit failed.
    """
    settings = {"num_iters": config.num_iters, "num_components": config.num_components}
    raw, info = verifier.fit_stream(
        kinds.KINDS[name],
        source,
        num_people=int(source.ids.max()) + 1,
        batch_size=config.stream.batch_size,
        stats=stats(),
        **settings,
    )
    z = verifier.encode_vectors(raw, jnp.asarray(kept.vectors.x))
    model, of_calibration = verifier.calibrate(raw, z, *kept.calibration)
    ratios = np.asarray(verifier.score_pairs(model, z, kept.calibration.first, kept.calibration.second))
    is_usable = max(int(info.status), int(of_calibration.status)) < Status.NON_FINITE and np.isfinite(ratios).all()
    if not is_usable:
        return {"held out": np.asarray(np.inf)}
    low, high = (float(end(ratios[kept.calibration.is_same])) for end in (np.min, np.max))
    margin = _MARGIN * (high - low) + 1e-6
    edges = np.linspace(low - margin, high + margin, _NUM_BINS + 1)
    scorer, points = _scorer(model), np.asarray(z)
    counts = [_count(scorer, points, kept.vectors.ids, rows, kept.groups, edges) for rows in kept.groups]
    genuine, impostor, losses = (np.stack(each) for each in zip(*counts, strict=True))
    return {
        "held out": np.asarray(metrics.min_cllr(metrics.roc(ratios, kept.calibration.is_same))),
        "model": np.frombuffer(params_io.to_bytes(model, notes={"kind": name}), np.uint8),
        "edges": edges,
        "genuine": genuine,
        "impostor": impostor,
        "losses": losses,
    }


def evidence_of(config: ConfigDict, measured: Sequence[Mapping[str, np.ndarray]]) -> dict[str, Evidence]:
    """Every kind whose fit succeeded, on the pairs within all groups."""
    return {
        kind: _evidence(config, arrays)
        for kind, arrays in zip(config.kinds, measured, strict=True)
        if np.isfinite(arrays["held out"])
    }


def _evidence(config: ConfigDict, arrays: Mapping[str, np.ndarray]) -> Evidence:
    counts = GroupCounts(arrays["genuine"], arrays["impostor"], arrays["losses"])
    curve = metrics.streaming.roc(arrays["edges"], counts.genuine.sum(axis=0), counts.impostor.sum(axis=0))
    drawn = group_draws.resample_groups(
        counts,
        rng=np.random.default_rng((config.seed, 3)),
        num_resamples=config.num_resamples,
        far=config.far,
        band_far=(),
    )
    return Evidence(curve, float(drawn.whole.cllr[0]), float(drawn.whole.min_cllr[0]), drawn)


def _chosen(config: ConfigDict, workdir: Workdir, chosen: str, kept: Kept) -> dict[str, np.ndarray]:
    """The chosen verifier with its presence, and the counts of all pairs of test people, beside the plain cosine's."""
    test = kept.split.test
    arrays: dict[str, np.ndarray] = {}
    for kind in dict.fromkeys((chosen, evidence.REFERENCE)):
        if not (workdir.path / _file_of(kind)).exists():
            continue  # not asked for, or its fit failed
        model = params_io.load(workdir.path / _file_of(kind), Verifier)
        z = verifier.encode_vectors(model, jnp.asarray(kept.vectors.x[test]))
        ids = dense(kept.vectors.ids[test]).ids
        counted = pair_counts.count_all_pairs(_ratios, _scorer(model), z, ids, num_bins=_NUM_BINS)
        arrays |= {f"{kind}: {field}": getattr(counted, field) for field in counted._fields}
        if kind == chosen:
            final = candidates.with_presence(config, model, kept.vectors, kept.split.held_out)
            arrays["model"] = np.frombuffer(params_io.to_bytes(final, notes={"kind": kind}), np.uint8)
    return arrays


def _file_of(kind: str) -> str:
    """Where a kind is saved."""
    return f"params/kinds/{kind.replace(', ', '-').replace(' ', '-').lower()}.safetensors"


def _scorer(model: Verifier) -> Scorer:
    return joint_bayes.diagonalize(model.model), model.calibration


@jax.jit
def _ratios(scorer: Scorer, gallery: jax.Array, probes: jax.Array) -> jax.Array:
    """`verifier.score_matrix`, with the basis made once for all blocks of pairs."""
    basis, affine = scorer
    return calibration.calibrate(affine, joint_bayes.score_projections(basis, gallery, probes))


def _count(
    scorer: Scorer, z: np.ndarray, ids: np.ndarray, rows: np.ndarray, groups: list[np.ndarray], edges: np.ndarray
) -> GroupCounts:
    """The counts of a group, whose rows are filled up so that one program serves all groups."""
    filled = np.zeros((max(map(len, groups)), z.shape[1]), z.dtype)
    filled[: len(rows)] = z[rows]
    trial = pairs.all_pairs(ids[rows])
    ratios = np.asarray(_ratios(scorer, filled, filled))[trial.first, trial.second]
    return group_draws.count_group(ratios, trial.is_same, edges)


def _sums(config: ConfigDict, source: Source) -> Stats:
    num_people = int(source.ids.max()) + 1
    return joint_bayes.collect_stream(source, num_people=num_people, batch_size=config.stream.batch_size)


def _ids_of(ids: np.ndarray, is_kept: np.ndarray) -> np.ndarray:
    """Dense ids of some of the people `[c]`, -1 for the rows of all others."""
    new = np.where(is_kept, np.cumsum(is_kept) - 1, -1).astype(np.int32)
    return np.where(ids >= 0, new[ids], -1)


def _groups(ids: np.ndarray, rows: np.ndarray, number: int) -> list[np.ndarray]:
    """Rows of so many groups of people, fewer where a group would have a single person."""
    person = dense(ids[rows]).ids
    number = max(1, min(number, (int(person.max()) + 1) // 2))
    return [rows[person % number == group] for group in range(number)]


def _pairs_within(ids: np.ndarray, groups: list[np.ndarray]) -> Pairs:
    """All pairs of rows of one group."""
    trials = [pairs.all_pairs(ids[rows]) for rows in groups]
    first, second = (
        np.concatenate([rows[trial[side]] for rows, trial in zip(groups, trials, strict=True)]) for side in (0, 1)
    )
    return Pairs(first.astype(np.int32), second.astype(np.int32), np.concatenate([trial.is_same for trial in trials]))
