"""Feature maps: kernels as inner products, and the way back to the image."""

from collections.abc import Mapping
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
from ml_collections import ConfigDict

from experiments.kernel_maps import estimates, inverse, pictures
from experiments.kernel_maps.pictures import NAMES, over_draws
from experiments.tour.part import Part
from jaxface.data import LabeledImages
from jaxface.faces import geometry
from jaxface.features import MAPS
from jaxface.reports.html import Section
from jaxface.reports.tables import Cell, Table, with_interval


def run(config: ConfigDict, faces: LabeledImages, rng: np.random.Generator) -> dict[str, np.ndarray]:
    """Errors of the kernel by every map, and faces through their features and back, in float32."""
    height, width = config.size
    resized = partial(geometry.resize, height=height, width=width, method="area")
    images = jax.vmap(resized)(jnp.asarray(faces.images, jnp.float32))
    points = estimates.points(config, images.reshape(len(images), -1))
    found = estimates.of_maps(config, points) | inverse.round_trips(config, images)
    return found | {"expansion": np.array(max(config.inverse.expansions))}


def render(arrays: Mapping[str, np.ndarray], faces: LabeledImages) -> Part:
    """Both sets of curves, and a face there and back."""
    expansion, largest = int(arrays["expansion"]), int(arrays["sizes"][-1])
    errors = {kind: over_draws(arrays[kind][:, -1]) for kind in MAPS}
    shown: dict[str, Cell] = {kind: with_interval(error, digits=4) for kind, error in errors.items()}
    rows: list[tuple[Cell, ...]] = [(NAMES[kind], error) for kind, error in shown.items()]
    limits = {name: pictures.reach(arrays, name, expansion) for name in inverse.METHODS}
    back: list[tuple[Cell, ...]] = list(limits.items())
    section = Section(
        "Kernels as features, and the way back",
        (
            "Inner products of random features estimate a Gaussian kernel. Fastfood makes its frequencies of four "
            "numbers each, and its features can be turned back into images as long as they are within range.",
            pictures.of_maps(arrays, prefix="", title="Error of the kernel", name="maps.svg"),
            Table(("map", "error"), rows, f"{largest} frequencies, 95 % interval; more by experiments.kernel_maps"),
            pictures.of_round_trips(arrays, expansion),
            pictures.there_and_back(arrays),
            Table(("method", "exact up to |x| / sigma"), back, "Nine faces in ten come back to 1e-3"),
        ),
    )
    headline: list[tuple[Cell, ...]] = [
        ("feature maps", f"error of the kernel by Fastfood, {largest} frequencies", shown["fastfood"]),
        ("feature maps", "pairs are inverted exactly up to |x| / sigma", limits["angles of pairs"]),
    ]
    return Part(section, headline, {f"error, {kind}": float(error.estimate) for kind, error in errors.items()})
