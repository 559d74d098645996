"""One pass over a stream against K-SVD in memory: the same faces, the same first dictionary."""

from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
from ml_collections import ConfigDict

from experiments.hallucinate.faces import Faces
from jaxface.core import checks, prng
from jaxface.core.blocks import each_row
from jaxface.core.fitinfo import raise_if_failed
from jaxface.data import stream
from jaxface.runtime.checkpoint import run_in_segments
from jaxface.sparse import decode, ksvd, omp, online
from jaxface.sparse.dictionary import Dictionary


def of_faces(config: ConfigDict, faces: Faces, folder: Path) -> dict[str, np.ndarray]:
    """Relative errors `|Y - D X|^2 / |Y|^2` of all faces by both dictionaries, and the bytes that each keeps in memory.

    The pass saves its state after every segment; a killed pass continues from the last one. It ends with the last whole
    segment.
    """
    x = faces.x - faces.x.mean(axis=0)
    segment = config.batch_size * config.batches_a_segment
    checks.at_most("config.streaming.batch_size * batches_a_segment", segment, len(x), "the faces there are")
    order = np.random.default_rng(config.seed).permutation(len(x))[: len(x) // segment * segment]
    key = prng.stream(jax.random.key(config.seed), "stream")
    first = jnp.asarray(x[order[: config.num_first]])
    start, _ = ksvd.fit(
        first,
        ksvd.init(key, first, num_atoms=config.num_atoms),
        sparsity=config.sparsity,
        num_iters=config.num_first_iters,
    )
    source = stream.from_array(x)

    def advance(state: online.State, begin: int) -> online.State:
        batches = stream.batches(source, batch_size=config.batch_size, rows=order, start=begin)
        some = (batch.features for _, batch in zip(range(config.batches_a_segment), batches, strict=False))
        state, info = online.fit_stream(state, some, sparsity=config.sparsity)
        raise_if_failed(info, "stream")
        return state

    state = run_in_segments(
        folder, advance, online.init(start), num_steps=len(order) // config.batch_size, every=config.batches_a_segment
    )
    in_memory, info = ksvd.fit(jnp.asarray(x), start, sparsity=config.sparsity, num_iters=config.num_iters)
    raise_if_failed(info, "K-SVD in memory")
    return {
        "num_faces": np.asarray(len(order)),
        "first": relative_error(start, x, config.sparsity),
        "in memory": relative_error(in_memory, x, config.sparsity),
        "stream": relative_error(state.dictionary, x, config.sparsity),
        "state bytes": np.asarray(sum(leaf.nbytes for leaf in jax.tree.leaves(state))),
        "data bytes": np.asarray(x.nbytes),
    }


def relative_error(dictionary: Dictionary, x: np.ndarray, sparsity: int) -> np.ndarray:
    """`|Y - D X|^2 / |Y|^2` with codes by OMP."""
    codes = omp.encode_batch(dictionary, x, sparsity=sparsity)
    rebuilt = np.asarray(each_row(decode, dictionary, codes))
    return np.asarray(((x - rebuilt) ** 2).sum() / (x**2).sum())
