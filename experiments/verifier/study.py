"""A verifier of one's own and its evidence, from one set of known people.

    python -m experiments.verifier --config=configs/verifier.py:embeddings --config.data.root=FILE.npz --workdir=runs/v

Random splits by people say how well each kind of verifier does on people it has never seen, always beside the plain
cosine. The verifier of the first split is saved, with the numbers that it has on its own test people.
"""

from functools import partial
from typing import Any

import jax.numpy as jnp
import numpy as np
from ml_collections import ConfigDict

from experiments.common import inputs
from experiments.common.inputs import Vectors
from experiments.common.publish import publish
from experiments.embed import study as embed
from experiments.score import verification as scoring
from experiments.verifier import candidates, report
from jaxface import verifier
from jaxface.faces import pipeline
from jaxface.runtime import params_io
from jaxface.runtime.workdir import Workdir
from jaxface.verifier import Verifier

SAVED = "params/verifier.safetensors"


def run(config: ConfigDict, workdir: Workdir) -> dict[str, Any]:
    """Measures every kind over the splits, saves the verifier of the first, and decides on the pairs of a file."""
    candidates.check(config)
    workdir.uses(data=inputs.path_of(config.data), pairs=config.pairs)
    steps = pipeline.build(config.image_steps)
    is_photos = config.data.loader == "photos"
    vectors = embed.vectors_of_photos(config, workdir) if is_photos else inputs.load_vectors(config.data, steps)
    steps = steps if vectors.images is not None else pipeline.build(())
    splits = candidates.people_splits(config, vectors.ids)
    measured = [
        workdir.stage(f"split-{k}", partial(candidates.measure, config, vectors, steps, split, k))
        for k, split in enumerate(splits)
    ]
    workdir.write_bytes(SAVED, measured[0]["model"].tobytes())
    _write_test(workdir, vectors, measured[0]["rows"])
    decided = _decide(config, workdir, vectors) if config.pairs is not None else None
    test_to_train = splits[0].test_to_train
    publish(
        workdir,
        title="A verifier and its evidence",
        lead=report.lead(config, vectors, measured),
        headline=report.headline(config, measured, test_to_train),
        sections=report.sections(config, workdir, measured, test_to_train, decided),
        credits=(vectors.credit,),
    )
    means = np.mean([arrays["test"] for arrays in measured], axis=0)
    chosen = [int(arrays["chosen"]) for arrays in measured]
    of_choice = np.mean([arrays["test"][k] for arrays, k in zip(measured, chosen, strict=True)], axis=0)
    names = candidates.measures(config)
    results: dict[str, Any] = {
        f"{kind}: {name}": float(means[i, j]) for i, kind in enumerate(config.kinds) for j, name in enumerate(names)
    }
    results |= {f"chosen: {name}": float(of_choice[j]) for j, name in enumerate(names)}
    return results | {"saved verifier": config.kinds[chosen[0]]}


def _write_test(workdir: Workdir, vectors: Vectors, rows: np.ndarray) -> None:
    """The vectors of the test people of the saved verifier, for `experiments.score`."""
    files = [f"person-{vectors.ids[row]:05d}/{k:05d}" for k, row in enumerate(rows)]
    labels = [str(vectors.names[person]) for person in vectors.ids[rows]]
    arrays = {"features": vectors.x[rows], "labels": np.asarray(labels), "files": np.asarray(files)}
    workdir.write_arrays("test/test.npz", arrays)


def _decide(config: ConfigDict, workdir: Workdir, vectors: Vectors) -> scoring.Decisions:
    """The decisions on the pairs of a file, in `decisions.csv`."""
    if not vectors.files:
        raise ValueError("config.pairs names files, and these data have no names of files.")
    model = params_io.load(workdir.path / SAVED, Verifier)
    z = verifier.encode_vectors(model, jnp.asarray(vectors.x))
    return scoring.decide(workdir, "decisions.csv", model, z, vectors.files, config.pairs, prior=config.prior)
