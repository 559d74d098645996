"""An encoder trained through the ratio, on people of which others test it.

    python -m experiments.encoder --config=configs/encoder.py --workdir=runs/encoder

Some people train, some choose after which segment to stop and calibrate, and some test. The start is PCA and Joint
Bayes by EM on the people who train.
"""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from ml_collections import ConfigDict

from experiments.common import fields, inputs
from experiments.encoder import network, report, saliency, training
from experiments.encoder.training import Parameters
from experiments.verify import measures
from jaxface import joint_bayes
from jaxface.core import prng
from jaxface.core.fitinfo import raise_if_failed
from jaxface.core.labels import dense
from jaxface.data import LabeledImages, pairs, splits
from jaxface.losses import calibration
from jaxface.runtime import log
from jaxface.runtime.workdir import Workdir
from jaxface.subspace import pca


class Part(NamedTuple):
    """The photos of some people."""

    images: np.ndarray  # [n, h, w]
    ids: np.ndarray  # dense int [n]


def run(config: ConfigDict, workdir: Workdir) -> dict[str, Any]:
    """Trains and measures every split, then the report."""
    check(config)
    workdir.uses(data=inputs.path_of(config.data))
    faces = inputs.load_faces(config.data)

    def measured() -> dict[str, np.ndarray]:
        found = [
            of_split(config, *split) for split in log.progress(draws(config, faces), "splits", total=config.num_splits)
        ]
        names = ("measures", "held-out loss", "training loss")
        return {name: np.stack([each[name] for each in found], axis=-1) for name in names} | {
            name: value for name, value in found[0].items() if name not in names
        }

    arrays = workdir.stage("encoder", measured)
    weights = {name: value for name, value in arrays.items() if name.startswith(("encoder ", "model "))}
    workdir.write_arrays("params/encoder.npz", weights)
    report.page(config, workdir, arrays, faces)
    return {
        f"{measure}, {version}": float(arrays["measures"][i, v].mean())
        for i, measure in enumerate(measures.MEASURES)
        for v, version in enumerate(report.VERSIONS)
    }


def check(config: ConfigDict) -> None:
    """Refuses values that no split can have."""
    fields.counts(config, "num_splits", "num_components", "num_hidden", "rank", "num_iters", "num_segments",
                  "steps_a_segment")  # fmt: skip
    fields.counts(config, "train_people", "held_out_people", "test_people", "people_a_batch", minimum=2)
    fields.counts(config, "images_a_person", "max_images", minimum=2)
    fields.positive(config, "learning_rate")
    if config.people_a_batch > config.train_people:
        raise ValueError(
            f"config.people_a_batch must be at most config.train_people, {config.train_people}; got "
            f"{config.people_a_batch}."
        )


def draws(config: ConfigDict, faces: LabeledImages) -> list[tuple[int, list[Part]]]:
    """The photos of the people who train, choose and test, for every split."""
    number = (config.train_people, config.held_out_people, config.test_people)
    rng = np.random.default_rng((config.seed, 1))
    parts = splits.identity_disjoint(faces.ids, num_people=number, rng=rng, num_splits=config.num_splits)
    images = np.asarray(faces.images, inputs.working_dtype())
    found = []
    for k, part in enumerate(parts):
        rows = [np.flatnonzero(part == side) for side in range(3)]
        rows[1:] = [each[pairs.limited(faces.ids[each], max_rows=config.max_images)] for each in rows[1:]]
        found.append((k, [Part(images[each], dense(faces.ids[each]).ids) for each in rows]))
    return found


def of_split(config: ConfigDict, number: int, parts: list[Part]) -> dict[str, np.ndarray]:
    """Measures `[measures, versions]`, losses along the way, and the chosen weights of encoder and model."""
    train, held_out, test = parts
    key = prng.stream(jax.random.fold_in(jax.random.key(config.seed), number), "encoder")
    start = initial(config, key, train)
    path, trace = training.train(
        config, start, train.images, train.ids, np.random.default_rng((config.seed, 2, number))
    )
    scores = [np.asarray(_ratios(each, jnp.asarray(held_out.images))) for each in path]
    trial = pairs.all_pairs(held_out.ids)
    costs = np.array([_cost(each[trial.first, trial.second], trial.is_same) for each in scores])
    best = int(costs.argmin())
    shown = (path[0], path[best], path[-1])
    found = [_measured(each, held_out, test) for each in shown]
    model = joint_bayes.constrained(path[best].model)
    kept = {f"encoder {name}": value for name, value in vars(path[best].encoder).items()}
    kept |= {f"model {name}": value for name, value in vars(model).items()}
    return {
        "measures": np.array(found).T,
        "held-out loss": costs,
        "training loss": trace,
        **(saliency.shown(path[best], test.images, test.ids) if number == 0 else {}),
        **kept,
    }


def initial(config: ConfigDict, key: jax.Array, train: Part) -> Parameters:
    """PCA whitened, and Joint Bayes by EM on its coordinates."""
    x = jnp.asarray(train.images).reshape(len(train.images), -1)
    reduction, info = pca.fit(x, num_components=min(config.num_components, len(x) - 1), whiten=True)
    raise_if_failed(info, "PCA")
    encoder = network.init(key, reduction, num_hidden=config.num_hidden)
    z = jax.vmap(network.encode, in_axes=(None, 0))(encoder, jnp.asarray(train.images))
    stats = joint_bayes.collect(z, train.ids, num_people=int(train.ids.max()) + 1, shift=z.mean(axis=0))
    model, info = joint_bayes.fit(stats, joint_bayes.init(stats), num_iters=config.num_iters)
    raise_if_failed(info, "Joint Bayes")
    return Parameters(encoder, joint_bayes.free(model, rank=min(config.rank, z.shape[1])))


_ratios = jax.jit(training.ratios)


def _cost(scores: np.ndarray, is_same: np.ndarray) -> float:
    """The loss of pairs of people who do not train, after the affine calibration of these pairs."""
    affine, info = calibration.fit(scores, is_same)
    raise_if_failed(info, "calibration")
    return measures.measures_of(scores, np.asarray(calibration.calibrate(affine, scores)), is_same)[2]


def _measured(parameters: Parameters, held_out: Part, test: Part) -> tuple[float, ...]:
    """`measures.MEASURES` of the test people, calibrated on those held out."""
    found = []
    for part in (held_out, test):
        trial = pairs.all_pairs(part.ids)
        scores = np.asarray(_ratios(parameters, jnp.asarray(part.images)))
        found.append((scores[trial.first, trial.second], trial.is_same))
    (held, held_same), (tested, is_same) = found
    affine = measures.calibrated_on(held, held_same)
    return measures.measures_of(tested, np.asarray(calibration.calibrate(affine, tested)), is_same)
