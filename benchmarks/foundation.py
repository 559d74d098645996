"""Rows F: what every system stands on. Imports, the scores of all pairs to a ROC, intervals by resampling subjects."""

import dataclasses
import importlib
import json
import os
import pathlib
import pkgutil
import subprocess
import sys
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

import jaxface
from benchmarks import all_pairs
from benchmarks.rows import Quantity, Row, Target, Timed, cost, seconds, speedup
from jaxface.metrics import bootstrap

_ROOT = pathlib.Path(__file__).resolve().parents[1]
_RESAMPLES = 1000
_SEED = 20260711


def _in_process(code: str, *arguments: str) -> Any:
    """What a fresh Python process prints as JSON; it may keep bytecode, as a user's does."""
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    command = [sys.executable, "-c", code, *arguments]
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=environment, cwd=_ROOT)
    if done.returncode:
        raise RuntimeError(done.stderr.strip().rpartition("\n")[2])
    return json.loads(done.stdout)


# F1: imports.

_IMPORT = """
import importlib, json, sys, time
begin = time.perf_counter()
for module in sys.argv[1].split(","):
    importlib.import_module(module)
middle = time.perf_counter()
before = set(sys.modules)
for module in sys.argv[2].split(","):
    importlib.import_module(module)
print(json.dumps([middle - begin, time.perf_counter() - middle, sorted(set(sys.modules) - before)]))
"""
# What is imported where it is used.
_HEAVY = {"matplotlib", "orbax", "PIL", "scipy", "optax", "grain"}
_BASE = {"data": ("numpy",)}
_PAIRS = "the product of every pair of images once, d = 128, looked at and not kept"


class Import(NamedTuple):
    """Modules of ours, and those that a program has imported before them."""

    base: tuple[str, ...]
    modules: tuple[str, ...]


def _seconds(what: Import) -> tuple[float, float, list[str]]:
    """Of the base, then of ours, in a fresh process; and the modules that ours brought."""
    base, ours, brought = _in_process(_IMPORT, ",".join(what.base), ",".join(what.modules))
    return base, ours, brought


def _import_ours(what: Import) -> Timed:
    _, ours, brought = _seconds(what)
    return Timed(brought, ours)


def _import_base(what: Import) -> Timed:
    return Timed(None, _seconds(what)[0])


def _brings_nothing_heavy(_: Import, brought: list[str], __: None) -> str:
    heavy = _HEAVY & {name.partition(".")[0] for name in brought}
    assert not heavy, f"the import brings {', '.join(sorted(heavy))}"
    return f"{len(brought)} modules, none of them of {', '.join(sorted(_HEAVY))}"


def _rooms() -> list[str]:
    return [module.name for module in pkgutil.iter_modules(jaxface.__path__) if module.ispkg]


def _modules(room: str) -> tuple[str, ...]:
    """Every module of a room: its `__init__` may import none of them."""
    package = importlib.import_module(f"jaxface.{room}")
    return (f"jaxface.{room}", *(f"jaxface.{room}.{module.name}" for module in pkgutil.iter_modules(package.__path__)))


def _import_row(name: str, work: str, base: tuple[str, ...], modules: Callable[[], tuple[str, ...]]) -> Row:
    return Row(
        name=name,
        work=f"{work}, on top of `import {', '.join(base)}`",
        peer=f"`import {', '.join(base)}` itself",
        dtype="–",
        data=lambda: Import(base, modules()),
        ours=_import_ours,
        theirs=_import_base,
        agree=_brings_nothing_heavy,
        target=seconds(0.050),
        is_weighed=False,
    )


def _metrics_row() -> Row:
    """What a user of scores alone waits for: no JAX."""
    row = _import_row("F1.metrics", "import of jaxface.metrics", ("numpy",), lambda: ("numpy", "jaxface.metrics"))
    return dataclasses.replace(row, ours=_import_both, target=cost(1.3))


def _import_both(what: Import) -> Timed:
    base, ours, brought = _seconds(what)
    assert "jax" not in brought, "the metrics import JAX"
    return Timed(brought, base + ours)


def _room_row(room: str) -> Row:
    base = _BASE.get(room, ("jax", "chex"))
    return _import_row(f"F1.{room}", f"import of every module of jaxface.{room}", base, lambda: _modules(room))


# F3: memory beside time.

_PEAK = """
import sys
from benchmarks import all_pairs
all_pairs.count_pairs(all_pairs.ragged_faces(int(sys.argv[1]), int(sys.argv[2])))
try:
    # The kernel's mark for this program; getrusage would also count what the parent held when it started this process.
    kilobytes = next(line for line in open("/proc/self/status") if line.startswith("VmHWM")).split()[1]
except OSError:
    import resource
    kilobytes = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
print(int(kilobytes))
"""


def _peak_megabytes(data: all_pairs.Faces) -> float:
    """Largest memory of a fresh process that makes the faces and counts their pairs."""
    return 1.024e-3 * _in_process(_PEAK, str(len(data.ids)), str(data.ids.max() + 1))


# F5: intervals by resampling subjects.


class Verification(NamedTuple):
    """All pairs of a small data set."""

    scores: np.ndarray  # [p]
    is_same: np.ndarray  # [p]
    first: np.ndarray  # [p]
    second: np.ndarray  # [p]


class Ends(NamedTuple):
    """Ends of the 95 % intervals of EER, AUC and VR@FAR=1%."""

    low: np.ndarray  # [3]
    high: np.ndarray  # [3]


def _pairs_of_forty() -> Verification:
    data = all_pairs.faces(np.full(40, 4), dim=32)
    u = all_pairs.factors(data.scorer, data.x)
    i, j = np.triu_indices(len(data.ids), 1)
    scores = np.asarray(all_pairs.llr_tile(data.scorer, u, u), np.float64)[i, j]
    return Verification(scores, data.ids[i] == data.ids[j], data.ids[i], data.ids[j])


def _bootstrap(data: Verification) -> Ends:
    drawn = bootstrap.subject_bootstrap(*data, rng=np.random.default_rng(_SEED), num_resamples=_RESAMPLES, far=(0.01,))
    three = (drawn.eer, drawn.auc, drawn.verification_rate)
    return Ends(*(np.hstack([getattr(one, end) for one in three]) for end in ("low", "high")))


def _bootstrap_loop(data: Verification) -> Ends:
    """The peer: `roc_curve` with the weights of each resample, one after the other."""
    metrics = importlib.import_module("sklearn.metrics")
    rng = np.random.default_rng(_SEED)
    drawn = []
    for times in rng.multinomial(40, np.full(40, 1 / 40), size=_RESAMPLES):
        weight = np.where(data.is_same, times[data.first], times[data.first] * times[data.second])
        far, vr, _ = metrics.roc_curve(data.is_same, data.scores, sample_weight=weight)
        drawn.append([all_pairs.operating_point(far, vr).eer, metrics.auc(far, vr), vr[far <= 0.01].max()])
    ordered, outside = np.sort(drawn, axis=0), int(0.025 * _RESAMPLES)
    return Ends(ordered[outside], ordered[-1 - outside])


def _sort_and_sums(data: Verification) -> np.ndarray:
    """The floor: the order of the scores, and for each resample the curve at its genuine scores."""
    turns = 2 * int(data.is_same.sum()) + 1
    weights = np.random.default_rng(_SEED).multinomial(40, np.full(40, 1 / 40), size=_RESAMPLES).astype(float)
    np.argsort(data.scores)
    impostors = (weights[:, :, None] * weights[:, None, :]).sum(axis=2)
    steps = np.broadcast_to(impostors[:, :1], (_RESAMPLES, turns))
    return np.cumsum(steps, axis=1)


def _same_ends(_: Verification, ours: Ends, theirs: Ends) -> str:
    np.testing.assert_allclose(ours, theirs, rtol=0.0, atol=1e-9)
    low, high = 100 * ours.low, 100 * ours.high
    return "the same resamples give the same intervals: " + ", ".join(
        f"{name} [{low[i]:.2f}, {high[i]:.2f}] %" for i, name in enumerate(("EER", "AUC", "VR@FAR=1%"))
    )


def _roc_row(name: str, work: str, peer: str, entries: Callable[[int], Any], target: Target) -> Row:
    return Row(
        name=name,
        work=work,
        peer=peer,
        dtype="f32",
        data=lambda: all_pairs.ragged_faces(4_008, 1_250),
        ours=all_pairs.count_pairs,
        theirs=all_pairs.plda_roc(entries),
        agree=all_pairs.operating_agrees,
        target=target,
        floor=all_pairs.pair_products,
        floor_work=_PAIRS,
        reason="each score is turned into a bin and counted, which costs as much as its product of 128 numbers",
        packages=("scikit-learn",),
    )


ROWS = (
    _import_row("F1", "`import jaxface`", ("jax", "chex"), lambda: ("jaxface",)),
    *(_metrics_row() if room == "metrics" else _room_row(room) for room in _rooms()),
    Row(
        name="F3",
        work="LLR of all 16,028 x 16,028 pairs (5,000 people, d = 128), ROC, EER, VR; scores are counted, not kept",
        peer="one product u u' of that size in JAX, kept",
        dtype="f32",
        data=lambda: all_pairs.ragged_faces(16_028, 5_000),
        ours=all_pairs.count_pairs,
        theirs=all_pairs.product,
        agree=all_pairs.counts_agree,
        target=cost(1.5),
        floor=all_pairs.pair_products,
        floor_work=_PAIRS,
        reason="each score is turned into a bin and counted, which costs as much as its product of 128 numbers",
        quantities=(Quantity("peak memory of the process", "MB", _peak_megabytes, 1000.0),),
    ),
    Row(
        name="F3.strict",
        work="the same",
        peer="the product in NumPy, over memory that has been written to before",
        dtype="f32",
        data=lambda: all_pairs.with_room(all_pairs.ragged_faces(16_028, 5_000)),
        ours=lambda data: all_pairs.count_pairs(data.faces),
        theirs=all_pairs.product_in_place,
        agree=lambda data, ours, theirs: all_pairs.counts_agree(data.faces, ours, theirs),
        target=cost(),
        floor=lambda data: all_pairs.pair_products(data.faces),
        floor_work=_PAIRS,
        reason="each score is turned into a bin and counted, which costs as much as its product of 128 numbers",
    ),
    _roc_row(
        "F4",
        "the same for 4,008 x 4,008 (1,250 people)",
        "NumPy PLDA formula, scikit-learn roc_curve of every entry off the diagonal",
        all_pairs.off_diagonal,
        speedup(100.0),
    ),
    _roc_row(
        "F4.once",
        "the same",
        "the same with every pair once: the entries above the diagonal",
        all_pairs.above_diagonal,
        speedup(),
    ),
    Row(
        name="F5",
        work=f"ROC intervals by resampling subjects: {_RESAMPLES:,} resamples of 40 people x 4 images, 12,720 pairs",
        peer="Python loop over scikit-learn roc_curve",
        dtype="f64",
        data=_pairs_of_forty,
        ours=_bootstrap,
        theirs=_bootstrap_loop,
        agree=_same_ends,
        target=speedup(20.0),
        floor=_sort_and_sums,
        floor_work="one sort of the scores, and the running sums of both kinds of pairs between genuine scores",
        reason="three quarters are the concave hull of every resample for min Cllr, which the peer does not compute",
        packages=("scikit-learn",),
    ),
)
