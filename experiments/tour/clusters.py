"""k-means on faces without names: how pure the clusters are, by two kinds of start."""

from collections.abc import Mapping

import jax
import jax.numpy as jnp
import numpy as np
from ml_collections import ConfigDict

from experiments.common import inputs
from experiments.tour.part import Part
from jaxface.cluster import kmeans
from jaxface.core import prng
from jaxface.core.blocks import each_row
from jaxface.data import LabeledImages
from jaxface.metrics import clustering
from jaxface.reports import sheets
from jaxface.reports.html import Section
from jaxface.reports.tables import Cell, Table, percent, percent_spread
from jaxface.subspace import pca, transform

_STARTS = {"k-means++": kmeans.init_plus_plus, "random": kmeans.init_random}
_SHOWN_CLUSTERS, _SHOWN_FACES = 4, 10


def run(config: ConfigDict, faces: LabeledImages, rng: np.random.Generator) -> dict[str, np.ndarray]:
    """Labels of every restart from both kinds of start, with their inertia."""
    x = jnp.asarray(faces.images, inputs.working_dtype()).reshape(len(faces.images), -1)
    fitted, _ = pca.fit(x, num_components=config.num_components)
    z = each_row(transform, fitted, x)
    key = jax.random.key(int(rng.integers(2**31)))
    arrays: dict[str, np.ndarray] = {}
    for name, init in _STARTS.items():
        keys = prng.member_keys(prng.stream(key, name), config.num_restarts)
        restarts = jax.vmap(lambda k, start=init: _clustered(k, z, start, len(faces.names), config.num_iters))(keys)
        arrays[f"labels {name}"], arrays[f"inertia {name}"] = map(np.asarray, restarts)
    return arrays


def render(arrays: Mapping[str, np.ndarray], faces: LabeledImages) -> Part:
    """The table of purity and accuracy, and images of some clusters."""
    rows: list[tuple[Cell, ...]] = []
    purity_of_best: dict[str, float] = {}
    for name in _STARTS:
        labels, inertia = arrays[f"labels {name}"], arrays[f"inertia {name}"]
        purity = np.array([clustering.purity(faces.ids, restart) for restart in labels])
        accuracy = np.array([clustering.cluster_accuracy(faces.ids, restart) for restart in labels])
        best = int(np.argmin(inertia))
        rows.append(
            (
                name,
                percent_spread(purity),
                percent_spread(accuracy),
                percent(purity[best]),
                percent(accuracy[best]),
                float(inertia[best]),
            )
        )
        purity_of_best[name] = float(purity[best])
    best_labels = arrays["labels k-means++"][int(np.argmin(arrays["inertia k-means++"]))]
    section = Section(
        "Faces without names",
        (
            f"k-means with as many clusters as people ({len(faces.names)}), on Eigenface coordinates. Purity is the "
            "share of images that belong to the largest person of their cluster, accuracy the share that lies in the "
            "largest cluster of their person. All restarts run in one vmapped call.",
            Table(
                (
                    "start",
                    "purity %",
                    "accuracy %",
                    "best: purity %",
                    "best: accuracy %",
                    "inertia",
                ),
                rows,
                "Mean ± standard deviation over restarts; the best is the one of least inertia, which needs no names",
            ),
            sheets.sheet(
                "clusters.png",
                _members(best_labels, faces),
                title="Four clusters",
                caption="Each row shows images of one cluster, largest clusters first.",
                cell=0.8,
            ),
        ),
    )
    headline = [("clusters", "k-means++: purity % of the best restart", percent(purity_of_best["k-means++"]))]
    return Part(section, headline, {f"purity of best, {name}": value for name, value in purity_of_best.items()})


def _clustered(
    key: jax.Array, z: jax.Array, init: kmeans.Init, num_clusters: int, num_iters: int
) -> tuple[jax.Array, jax.Array]:
    fitted, _ = kmeans.fit(z, init(key, z, num_clusters=num_clusters), num_iters=num_iters)
    assignment = kmeans.assign(fitted, z)
    return assignment.labels, assignment.squared.sum()


def _members(labels: np.ndarray, faces: LabeledImages) -> np.ndarray:
    """Images `[clusters, faces, h, w]` of the largest clusters; missing places are white."""
    largest = np.argsort(-np.bincount(labels), kind="stable")[:_SHOWN_CLUSTERS]
    sheet = np.ones((len(largest), _SHOWN_FACES, *faces.images.shape[1:3]), np.float32)
    for i, cluster in enumerate(largest):
        members = faces.images[labels == cluster][:_SHOWN_FACES]
        sheet[i, : len(members)] = members
    return sheet
