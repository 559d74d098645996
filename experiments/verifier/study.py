"""A verifier of one's own and its evidence, from one set of known people.

    python -m experiments.verifier --config=configs/verifier.py:embeddings --config.data.root=FILE.npz --workdir=runs/v

Everybody is tested once, by verifiers that have never seen him, of every kind and always beside the plain cosine. The
verifier of the first fold is saved, with the numbers that it has on its own test people.
"""

from functools import partial
from typing import Any

import jax.numpy as jnp
from ml_collections import ConfigDict

from experiments.common import inputs
from experiments.common.inputs import Vectors
from experiments.common.publish import publish
from experiments.embed import study as embed
from experiments.score import verification as scoring
from experiments.verifier import candidates, elsewhere, evidence, graded, report, sides, strangers, streamed, tail
from jaxface import verifier
from jaxface.faces import pipeline
from jaxface.runtime import params_io
from jaxface.runtime.workdir import Workdir
from jaxface.verifier import Verifier

SAVED = "params/verifier.safetensors"


def run(config: ConfigDict, workdir: Workdir) -> dict[str, Any]:
    """Measures every kind over the folds, saves the verifier of the first, and decides on the pairs of a file."""
    candidates.check(config)
    files = {"pairs": config.pairs, "trials": config.trials, "quality": graded.path_of(config)}
    workdir.uses(data=inputs.path_of(config.data), source=config.source.root, **files, **config.people)
    if config.data.loader == "stream":
        return streamed.run(config, workdir)
    steps = pipeline.build(config.image_steps)
    is_photos = config.data.loader == "photos"
    vectors = embed.vectors_of_photos(config, workdir) if is_photos else inputs.load_vectors(config.data, steps)
    steps = steps if vectors.images is not None else pipeline.build(())
    levels = graded.read(config, vectors)
    source = elsewhere.read(config, vectors, steps)
    drawn = sides.deal(config, vectors)
    measured = [
        workdir.stage(f"fold-{k}", partial(candidates.measure, config, vectors, steps, side, k, levels, source))
        for k, side in enumerate(drawn)
    ]
    workdir.write_bytes(SAVED, measured[0]["model"].tobytes())
    inputs.write_vectors(workdir, "test/test.npz", vectors, drawn[0].rows)
    workdir.wait()
    model = params_io.load(workdir.path / SAVED, Verifier)
    decided = _decide(config, workdir, vectors, model) if config.pairs is not None else None
    pooled = evidence.pool(config, vectors, drawn, measured)
    found = evidence.measure(config, pooled)
    by_quality, of_quality = graded.section(config, measured, pooled, found) if levels is not None else (None, {})
    from_source, of_source = elsewhere.section(config, measured, pooled, found) if source is not None else (None, {})
    normed, of_norms = None, dict[str, float]()
    if config.norms and (games := strangers.draws(config, model, vectors, drawn[0].split)):
        normed, of_norms = tail.section(config, model, games)
    publish(
        workdir,
        title="A verifier and its evidence",
        lead=report.lead(config, vectors, drawn[0], pooled),
        headline=report.headline(config, measured, found),
        sections=report.sections(
            config,
            workdir,
            drawn[0],
            measured,
            found,
            (by_quality, from_source),
            (strangers.section(config, model, vectors, drawn[0].split), normed),
            decided,
        ),
        credits=(vectors.credit,),
    )
    results: dict[str, Any] = {
        f"{'chosen' if kind == evidence.CHOSEN else kind}: {name}": value
        for kind, each in found.items()
        for name, value in evidence.numbers(config, each).items()
    }
    return results | of_quality | of_source | of_norms | {"saved verifier": config.kinds[int(measured[0]["chosen"])]}


def _decide(config: ConfigDict, workdir: Workdir, vectors: Vectors, model: Verifier) -> scoring.Decisions:
    """The decisions on the pairs of a file, in `decisions.csv`."""
    if not vectors.files:
        raise ValueError("config.pairs names files, and these data have no names of files.")
    z = verifier.encode_vectors(model, jnp.asarray(vectors.x))
    return scoring.decide(workdir, "decisions.csv", model, z, vectors.files, config.pairs, prior=config.prior)
