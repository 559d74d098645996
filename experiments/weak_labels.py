"""Recognition from training images that come in small groups: error against the size of the groups.

    python -m experiments.weak_labels --config=configs/weak_labels.py --workdir=runs/weak_labels

Each method gets the same random groups, 100 draws of every size in one vmapped call, and its error is that of the
nearest neighbour after its projection.
"""

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from ml_collections import ConfigDict

from experiments import inputs, recognition
from experiments.publish import publish
from jaxface.core import checks
from jaxface.core.fitinfo import FitInfo, raise_if_failed
from jaxface.data import LabelledImages, groups, splits
from jaxface.reports import figures
from jaxface.reports.figures import Curve
from jaxface.reports.html import Picture, Section
from jaxface.reports.tables import Table
from jaxface.runtime import launch, select
from jaxface.runtime.workdir import Workdir
from jaxface.subspace import LinearMap, lda, pca

Method = Callable[..., tuple[LinearMap, FitInfo]]


def eigenfaces(
    x: jax.Array, ids: jax.Array, group_ids: jax.Array, *, num_people: int, num_components: int
) -> tuple[LinearMap, FitInfo]:
    """Uses neither names nor groups."""
    del ids, group_ids, num_people
    return pca.fit(x, num_components=num_components)


def fisherfaces(
    x: jax.Array, ids: jax.Array, group_ids: jax.Array, *, num_people: int, num_components: int, ridge: float
) -> tuple[LinearMap, FitInfo]:
    """Uses all names: what full labels would give."""
    del group_ids
    return lda.fit(
        x, ids, num_classes=num_people, num_components=num_components, pca_components=len(x) - 1, ridge=ridge
    )


METHODS: dict[str, Method] = {"eigenfaces": eigenfaces, "fisherfaces": fisherfaces}
TITLES = {"eigenfaces": "Eigenfaces (no labels)", "fisherfaces": "Fisherfaces, ridge (all names)"}


def run(config: ConfigDict, workdir: Workdir) -> dict[str, Any]:
    """One stage for each group size, then the report."""
    faces = inputs.load_faces(config.data)
    checks.one_of("config.gallery", config.gallery, ("grouped", "all"))
    arrays = {
        size: workdir.stage(f"groups-of-{size}", partial(group_errors, config, faces, size))
        for size in config.group_sizes
    }
    names = [name for name in METHODS if name in config.methods]
    mean = {name: np.array([100 * arrays[s][name].mean() for s in config.group_sizes]) for name in names}
    deviation = {name: np.array([100 * arrays[s][name].std(ddof=1) for s in config.group_sizes]) for name in names}
    _publish(config, workdir, faces, mean, deviation)
    return {
        f"error %, {name}, groups of {size}": float(mean[name][k])
        for name in names
        for k, size in enumerate(config.group_sizes)
    }


def group_errors(config: ConfigDict, faces: LabelledImages, size: int) -> dict[str, np.ndarray]:
    """Errors `[draws]` of every method at one group size."""
    x = inputs.encode(jnp.asarray(faces.images, inputs.working_dtype()), config.image_steps)
    rng = np.random.default_rng((config.seed, size))
    part = splits.k_shot(faces.ids, num_train=config.num_train, rng=np.random.default_rng(config.seed))[0]
    train, probes = np.flatnonzero(part == 0), np.flatnonzero(part == 1)
    draws = groups.random_groups(faces.ids[train], group_size=size, rng=rng, num_draws=config.num_draws)
    kept, group_ids = groups.kept_rows(draws)
    rows = train[kept]
    gallery = rows if config.gallery == "grouped" else np.broadcast_to(train, (len(rows), len(train)))
    errors = {}
    for name, section in config.methods.items():
        method = select.one("config.methods", name, METHODS)
        settings = select.arguments(section, method)
        error, info = _all_draws(
            x, faces.ids, rows, group_ids, gallery, probes,
            method=method, num_people=len(faces.names), settings=tuple(sorted(settings.items())),
        )  # fmt: skip
        raise_if_failed(info, f"{name} at groups of {size}")
        errors[name] = np.asarray(error)
    return errors


@partial(jax.jit, static_argnames=("method", "num_people", "settings"))
def _all_draws(
    x: jax.Array,
    ids: jax.Array,
    rows: jax.Array,
    group_ids: jax.Array,
    gallery: jax.Array,
    probes: jax.Array,
    *,
    method: Method,
    num_people: int,
    settings: tuple[tuple[str, Any], ...],
) -> tuple[jax.Array, FitInfo]:
    """Error `[draws]` of one method on every draw of groups, in one program."""

    def of_draw(chosen: jax.Array, group: jax.Array, known: jax.Array) -> tuple[jax.Array, FitInfo]:
        fitted, info = method(x[chosen], ids[chosen], group, num_people=num_people, **dict(settings))
        return recognition.error_of_map(fitted, x, ids, known, probes), info

    return jax.vmap(of_draw)(rows, group_ids, gallery)


def _publish(
    config: ConfigDict,
    workdir: Workdir,
    faces: LabelledImages,
    mean: Mapping[str, np.ndarray],
    deviation: Mapping[str, np.ndarray],
) -> None:
    sizes = list(config.group_sizes)
    lines = [Curve(TITLES[n], sizes, mean[n], mean[n] - deviation[n], mean[n] + deviation[n]) for n in mean]
    figure = figures.curves(
        lines, x_label="images in a group", y_label="identification error %", title="Error against group size"
    )
    table = Table(
        ("method", *(f"groups of {size}" for size in sizes)),
        [
            (TITLES[name], *(f"{m:.1f} ± {s:.1f}" for m, s in zip(mean[name], deviation[name], strict=True)))
            for name in mean
        ],
        f"Identification error %, mean ± standard deviation over {config.num_draws} random groupings",
    )
    gallery = "the grouped images" if config.gallery == "grouped" else "all training images"
    publish(
        workdir,
        title="Learning from weak labels",
        lead=f"{len(faces.names)} people, {config.num_train} training images each, drawn into groups without names. "
        f"The gallery is {gallery}.",
        headline=table,
        sections=[
            Section(
                "Error against group size",
                (
                    "A group is a handful of images known to show one person; two groups may show the same one. "
                    "Eigenfaces use no labels and Fisherfaces all names, so they frame what groups can give. Both see "
                    "only grouped images, which is why they change with the size of the groups at all.",
                    Picture("error.svg", figures.to_svg(figure), "Band: one standard deviation over the groupings."),
                ),
            )
        ],
        credits=(faces.credit,),
    )


if __name__ == "__main__":
    launch.main(run)
