"""Random feature maps of kernels: accuracy, cost, the way back, identification, and maps that learn.

python -m experiments.kernel_maps --config=configs/kernel_maps.py --workdir=runs/kernel_maps
"""

from functools import partial
from typing import Any

import jax.numpy as jnp
from ml_collections import ConfigDict

from experiments.common import fields, inputs
from experiments.common.publish import publish
from experiments.kernel_maps import cost, estimates, inverse, learning, report, ridge
from jaxface.runtime.workdir import Workdir


def run(config: ConfigDict, workdir: Workdir) -> dict[str, Any]:
    """Five independent stages, then the report."""
    check(config)
    workdir.uses(data=inputs.path_of(config.data))
    faces = inputs.load_faces(config.data)
    images = jnp.asarray(faces.images, inputs.working_dtype())
    x = images.reshape(len(images), -1)
    found = {
        "estimates": workdir.stage("estimates", partial(estimates.errors, config, x)),
        "cost": workdir.stage("cost", partial(cost.against_dimension, config)),
        "inverse": workdir.stage("inverse", partial(inverse.round_trips, config, images)),
        "ridge": workdir.stage("ridge", partial(ridge.identification, config, x, faces.ids)),
        "learning": workdir.stage("learning", partial(learning.trained, config, x, faces.ids)),
    }
    publish(
        workdir,
        title="Random feature maps",
        lead=f"{len(faces.images)} images of {len(faces.names)} people, {x.shape[1]:,} pixels each. A map is a random "
        "matrix V of frequencies and a form; inner products of its features estimate a kernel.",
        headline=report.headline(config, found),
        sections=report.sections(config, found),
        credits=(faces.credit,),
    )
    return report.results(config, found)


def check(config: ConfigDict) -> None:
    """Refuses values of fields that no map can have."""
    fields.counts(config, "num_images", "num_draws", "sizes", "small_dim", section="estimates")
    fields.counts(config, "dims", "expansion", "num_vectors", "num_repeats", section="cost")
    fields.counts(config, "num_images", "expansions", section="inverse")
    fields.positive(config, "ratios", "shown", section="inverse")
    fields.counts(config, "num_splits", "num_train", "num_held_out", "sizes", section="ridge")
    fields.positive(config, "bandwidths", "ridges", section="ridge")
    fields.shares(config, "quantile", above_zero=True, section="ridge")
    fields.counts(config, "num_draws", "sizes", "num_iters", section="learning")
    fields.positive(config, "learning_rate", section="learning")
