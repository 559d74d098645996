"""A dictionary from a stream: one pass over faces that are made when they are needed, and K-SVD in memory beside it."""

import itertools
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from ml_collections import ConfigDict

from experiments.common import fields
from experiments.hallucinate import methods
from experiments.hallucinate.faces import FoldFaces
from jaxface import hallucination
from jaxface.core import blocks, checks, fitinfo, prng
from jaxface.core.fitinfo import FitInfo, raise_if_failed
from jaxface.data import stream
from jaxface.data.stream import Source
from jaxface.faces import variation
from jaxface.hallucination import Hallucinator
from jaxface.runtime import params_io, resources
from jaxface.runtime.checkpoint import run_in_segments
from jaxface.runtime.log import progress
from jaxface.runtime.workdir import Workdir
from jaxface.sparse import decode, ksvd, omp, online
from jaxface.sparse.dictionary import Dictionary

STREAM = "one pass over a stream"
CHECKPOINTS = "checkpoints"
_BLOCK_SIZE = 256  # signals that are coded at a time to judge a dictionary


class Learner(NamedTuple):
    """What a method learns a dictionary from, and the model that it makes of one."""

    transform: Callable[[jax.Array], jax.Array]  # faces [n, d] -> signals [n, e]
    model: Callable[[Dictionary], Hallucinator]


def check(config: ConfigDict) -> None:
    """Refuses values of `config.streaming` that no pass can use."""
    fields.words(config, "method", METHODS, section="streaming")
    fields.words(config, "form", methods.FUNCTIONS["form"], section="streaming")
    fields.words(config, "inverse", methods.FUNCTIONS["inverse"], section="streaming")
    sizes = ("num_atoms", "sparsity", "batches_a_segment", "num_first", "expansion")
    fields.counts(config, *sizes, section="streaming")
    may_be_zero = ("num_faces", "batch_size", "num_first_iters", "num_seen_twice", "num_iters")
    fields.counts(config, *may_be_zero, minimum=0, section="streaming")
    fields.positive(config, "beta", section="streaming")
    fields.shares(config, "quantile", above_zero=True, section="streaming")
    fields.shares(config, "scale", "brightness", section="streaming")
    fields.not_negative(config, "shift", section="streaming")


def of_fold(config: ConfigDict, fold: FoldFaces, mask: np.ndarray, workdir: Workdir) -> dict[str, np.ndarray]:
    """Relative errors `|Y - D X|^2 / |Y|^2` of held-out signals, PSNR, and bytes, by dictionary; keeps the model.

    The pass saves its state after every segment; a killed pass continues from the last one.
    """
    faces = source(config, fold.train, fold.shape)
    size = config.batch_size or online.batch_size(config.num_atoms)
    rows = rows_of_pass(config, faces.num_rows, size)
    key = prng.stream(jax.random.key(config.seed), "stream")
    sample = jnp.asarray(faces.read(np.arange(config.num_first)))
    learner = METHODS[config.method](key, config, sample, mask)
    start = first_dictionary(key, config, learner.transform(sample))
    found = [judged("first dictionary", start, 0, config, learner, fold, mask)]
    if config.num_iters:
        best, num_bytes = in_memory(config, learner, start, fold)
        name = f"K-SVD in memory, {config.num_iters} sweeps"
        found.append(judged(name, best, num_bytes, config, learner, fold, mask))
        del best
    state = online.init(start)
    del start  # a dictionary may be a good part of the memory
    state = one_pass(config, faces, rows, learner.transform, state, size, workdir.path / CHECKPOINTS)
    num_bytes = sum(leaf.nbytes for leaf in jax.tree.leaves(state))
    found.append(judged(STREAM, state.dictionary, num_bytes, config, learner, fold, mask))
    workdir.write_bytes("params/stream.safetensors", params_io.to_bytes(learner.model(state.dictionary)))
    names, errors, psnr, sizes = (np.array(column) for column in zip(*found, strict=True))
    return {
        "names": names,
        "errors": errors,
        "psnr": psnr,
        "bytes": sizes,
        "num_faces": np.asarray(faces.num_rows),
        "num_seen_twice": np.asarray(len(rows) - faces.num_rows),
        "batch_size": np.asarray(size),
        "num_signals": np.asarray(state.atoms.shape[1]),
        "num_cut": np.asarray(state.num_cut),
        "num_replaced": np.asarray(state.num_replaced),
    }


def judged(
    name: str,
    dictionary: Dictionary,
    num_bytes: int,
    config: ConfigDict,
    learner: Learner,
    fold: FoldFaces,
    mask: np.ndarray,
) -> tuple[str, float, float, int]:
    """Name, relative error and PSNR on the people of the test, and the bytes kept in memory while learning."""
    resources.return_freed_memory()
    error = float(relative_error(dictionary, learner.transform(jnp.asarray(fold.test)), sparsity=config.sparsity))
    resources.return_freed_memory()
    images = methods.rebuilt(learner.model(dictionary), fold.test, mask)
    return name, error, float(methods.psnr(images, fold.test).mean()), num_bytes


def headline(streamed: Mapping[str, np.ndarray]) -> dict[str, float]:
    """The numbers of the pass for the results of a run."""
    (place,) = np.flatnonzero(streamed["names"] == STREAM)
    numbers = {"error": streamed["errors"][place], "psnr": streamed["psnr"][place], "faces": streamed["num_faces"]}
    return {name: float(value) for name, value in numbers.items()}


def source(config: ConfigDict, x: np.ndarray, shape: tuple[int, int]) -> Source:
    """The faces of the pass in random order: those of x `[n, d]`, each once, or `num_faces` variations of them.

    A variation depends on its number alone, so every batch can be made again; none is kept.
    """
    order = np.random.default_rng(config.seed).permutation(len(x))
    if not config.num_faces:
        return stream.from_array(x[order])
    key = prng.stream(jax.random.key(config.seed), "variations")
    images = x.reshape(-1, *shape)
    changes = {name: config[name] for name in ("flip", "shift", "scale", "brightness")}

    def read(numbers: np.ndarray) -> np.ndarray:
        some = images[order[numbers % len(order)]]
        return np.asarray(_varied(key, some, numbers.astype(np.uint32), changes)).reshape(len(numbers), -1)

    unknown = np.full(config.num_faces, -1, np.int32)
    return Source(
        config.num_faces,
        read,
        x.shape[1:],
        x.dtype,
        unknown,
        (),
        read_range=lambda start, stop: read(np.arange(start, stop)),
        name="the variations of the faces",
    )


@jax.jit
def _varied(key: jax.Array, images: jax.Array, numbers: jax.Array, changes: dict[str, Any]) -> jax.Array:
    def one(image: jax.Array, number: jax.Array) -> jax.Array:
        return variation.vary(jax.random.fold_in(key, number), image, **changes)

    return jax.vmap(one)(images, numbers)


def of_pixels(key: jax.Array, config: ConfigDict, sample: jax.Array, mask: np.ndarray) -> Learner:
    """DW-KSVD."""
    del key
    signals = hallucination.pixel_signals(sample, mask, beta=config.beta)
    return Learner(
        signals.transform,
        lambda found: hallucination.pixel_hallucinator(signals, found, sparsity=config.sparsity),
    )


def of_features(key: jax.Array, config: ConfigDict, sample: jax.Array, mask: np.ndarray) -> Learner:
    """Fastfood DW-KSVD."""
    words = methods.with_functions({"form": config.form, "inverse": config.inverse})
    numbers = {name: config[name] for name in ("beta", "expansion", "quantile")}
    signals = hallucination.feature_signals(key, sample, mask, form=words["form"], **numbers)
    settings = {"sparsity": config.sparsity, "inverse": words["inverse"]}
    return Learner(signals.transform, lambda found: hallucination.feature_hallucinator(signals, found, **settings))


METHODS = {"dw_ksvd": of_pixels, "fastfood_dw_ksvd": of_features}


def learn(
    config: ConfigDict,
    shape: tuple[int, int],
    folder: Path,
    key: jax.Array,
    x: jax.Array,
    features: Callable[[jax.Array], jax.Array],
    *,
    num_atoms: int,
    sparsity: int,
    num_faces: int,
) -> tuple[Dictionary, FitInfo]:
    """The dictionary of the features of variations of faces x `[n, d]` from one pass, resumed from the folder.

    `config`, the section `streaming`, says how variations differ. The first dictionary is of as many faces as there
    are atoms; they come again at the end of the pass, after as many others that were seen before.
    """
    sizes = {"num_atoms": num_atoms, "sparsity": sparsity, "num_faces": num_faces, "num_seen_twice": num_atoms}
    settings = ConfigDict({**config, **sizes, "num_first": num_atoms, "num_first_iters": 0})
    faces, size = source(settings, np.asarray(x), shape), online.batch_size(num_atoms)
    rows = rows_of_pass(settings, faces.num_rows, size)
    sample = jnp.asarray(faces.read(np.arange(num_atoms)))
    start = first_dictionary(prng.stream(key, "atoms"), settings, features(sample))
    state = one_pass(settings, faces, rows, features, online.init(start), size, folder)
    report = fitinfo.closed_form(dtype=state.atoms.dtype)
    return state.dictionary, report._replace(num_iters=state.num_batches, num_replaced=state.num_replaced)


def first_dictionary(key: jax.Array, config: ConfigDict, signals: jax.Array) -> Dictionary:
    """Different signals of a sample, after some sweeps of K-SVD on it."""
    start = ksvd.init(key, signals, num_atoms=config.num_atoms)
    if not config.num_first_iters:
        return start
    start, info = ksvd.fit(signals, start, sparsity=config.sparsity, num_iters=config.num_first_iters)
    raise_if_failed(info, "the first dictionary")
    return start


def rows_of_pass(config: ConfigDict, num_rows: int, size: int) -> np.ndarray:
    """The rows of a pass in its order, in whole batches of that size.

    The faces of the first dictionary come late: while they are its atoms, their errors are zero and teach nothing. Then
    the pass begins again, because what its first faces taught has faded: `num_seen_twice` faces, and more of them until
    the last batch is full.
    """
    counts = {"batch_size": size, "num_first": config.num_first, "num_seen_twice": config.num_seen_twice}
    for field, count in counts.items():
        checks.at_most(f"config.streaming.{field}", count, num_rows, "the faces of the pass")
    num_batches = blocks.num_blocks(num_rows + config.num_seen_twice, size)
    return np.resize(np.roll(np.arange(num_rows), -config.num_first), num_batches * size)


def one_pass(
    config: ConfigDict,
    faces: Source,
    rows: np.ndarray,
    features: Callable[[jax.Array], jax.Array],
    state: online.State,
    size: int,
    folder: Path,
) -> online.State:
    """The state after a pass over these rows, resumed from the last checkpoint if there is one.

    The state that came cannot be read afterwards: its memory is reused.
    """
    segment, num_batches = config.batches_a_segment, len(rows) // size
    batches: Iterator[Any] | None = None

    def advance(state: online.State, number: int) -> online.State:
        nonlocal batches
        if batches is None:
            begin = number * segment
            left = stream.batches(faces, batch_size=size, rows=rows, start=begin)
            batches = progress(left, "stream", total=num_batches, start=begin, each=size, unit="faces")
        some = (_after_freeing(batch.features) for batch in itertools.islice(batches, segment))
        state, info = online.fit_stream(state, some, sparsity=config.sparsity, features=features, donate=True)
        raise_if_failed(info, "stream")
        resources.return_freed_memory()  # of the last batch, before the checkpoint
        return state

    num_segments = blocks.num_blocks(num_batches, segment)
    return run_in_segments(folder, advance, state, num_steps=num_segments, every=1)


def _after_freeing(batch: np.ndarray) -> np.ndarray:
    """A batch, once the memory of the batches before is returned: its gaps would add up to gigabytes."""
    resources.return_freed_memory()
    return batch


def in_memory(config: ConfigDict, learner: Learner, start: Dictionary, fold: FoldFaces) -> tuple[Dictionary, int]:
    """The dictionary of K-SVD on all faces that train, and the bytes of their signals."""
    signals = learner.transform(jnp.asarray(fold.train))
    found, info = ksvd.fit(signals, start, sparsity=config.sparsity, num_iters=config.num_iters)
    raise_if_failed(info, "K-SVD in memory")
    return found, signals.nbytes


@partial(jax.jit, static_argnames="sparsity")
def relative_error(dictionary: Dictionary, x: jax.Array, *, sparsity: int) -> jax.Array:
    """`|Y - D X|^2 / |Y|^2` with codes by OMP, for some signals at a time."""
    encode = omp.batch_encoder(dictionary, sparsity=sparsity)

    def squared_error(signal: jax.Array) -> jax.Array:
        return ((signal - decode(dictionary, encode(signal))) ** 2).sum()

    return blocks.map_rows(squared_error, x, block_size=_BLOCK_SIZE).sum() / (x**2).sum()
