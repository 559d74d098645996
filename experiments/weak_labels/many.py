"""Many groups: a kernel of all images with all images against random features, whose sums take groups as they come."""

import time
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from ml_collections import ConfigDict

from experiments.common import inputs, recognition
from jaxface.core.blocks import each_row
from jaxface.core.fitinfo import FitInfo, raise_if_failed
from jaxface.data import synthetic
from jaxface.features import FeatureMap, feature_matrix, forms, kitchen_sinks, median_distance
from jaxface.linalg import gram
from jaxface.reports import figures
from jaxface.reports.figures import Curve
from jaxface.reports.html import Picture, Section
from jaxface.reports.tables import Cell, Table
from jaxface.subspace import LinearMap, group_sums, kernel_np_per, kernel_rca, np_per, rca, transform
from jaxface.subspace.group_sums import GroupSums

_BATCH = 500  # groups that come together
_SIZE = (24, 20)  # pixels of a drawn face


def errors(config: ConfigDict) -> dict[str, np.ndarray]:
    """Error on new people and seconds of a fit `[sizes]` of each method; NaN where it would take too long."""
    study = config.many
    rng = np.random.default_rng((config.seed, 7))
    most = max(study.sizes) // study.group_size
    x, _ = _faces(rng, most, study.group_size)
    tests = _faces(rng, study.num_people, study.num_images)
    bandwidth = study.bandwidth * median_distance(jax.random.key(config.seed), x[:1000])
    found: dict[str, list[float]] = {}
    for size in study.sizes:
        for name, fit in _fits(config, x.shape[1], bandwidth).items():
            can_be_made = size <= study.kernel_most or not name.startswith("kernel")
            error, seconds = _measured(fit, x[:size], tests) if can_be_made else (np.nan, np.nan)
            found.setdefault(f"{name}/error", []).append(error)
            found.setdefault(f"{name}/seconds", []).append(seconds)
        found.setdefault("as they are/error", []).append(_error(*tests))
    return {"sizes": np.array(study.sizes)} | {name: np.array(values) for name, values in found.items()}


def titles(config: ConfigDict) -> dict[str, str]:
    """What the report calls the methods."""
    features = {
        f"features {count}": f"NP-PER from sums, {2 * count:,} random features" for count in config.many.num_features
    }
    return {
        "kernel_np_per": "kernel NP-PER, RKHS lengths",
        "kernel_ridge_rca": "kernel RCA with a ridge",
        **features,
        "pixels": "NP-PER from sums, pixels",
        "ridge_rca": "RCA with a ridge, pixels",
        "as they are": "the pixels themselves",
    }


def _faces(rng: np.random.Generator, num_people: int, images_per_person: int) -> tuple[jax.Array, np.ndarray]:
    """Drawn faces `[n, d]` and whom they show."""
    made = synthetic.rendered_faces(rng, num_people=num_people, images_per_person=images_per_person, size=_SIZE).data
    return jnp.asarray(made.images, inputs.working_dtype()).reshape(len(made.ids), -1), made.ids


Fit = Callable[[jax.Array], Callable[[jax.Array], jax.Array]]  # images of groups -> (images -> coordinates)


def _fits(config: ConfigDict, dim: int, bandwidth: jax.Array) -> Mapping[str, Fit]:
    """Every method as a function of the images, whose groups are `group_size` consecutive rows."""
    ridge, kernel = config.many.ridge, gram.gaussian(bandwidth=bandwidth)
    null = partial(np_per.from_sums, num_components=config.many.num_components, ridge=ridge)
    key, size = jax.random.key(config.seed), config.many.group_size
    maps = {
        f"features {count}": kitchen_sinks.init(
            key, input_dim=dim, num_features=count, bandwidth=bandwidth, dtype=bandwidth.dtype
        )
        for count in config.many.num_features
    }
    return {
        "kernel_np_per": _of_kernel(partial(kernel_np_per.fit, kernel, rkhs_orthonormal=True), size),
        "kernel_ridge_rca": _of_kernel(partial(kernel_rca.fit_ridge, kernel, ridge=ridge), size),
        **{name: _of_sums(null, partial(_features, drawn), size) for name, drawn in maps.items()},
        "pixels": _of_sums(null, lambda x: x, size),
        "ridge_rca": _of_sums(partial(rca.from_sums, ridge=ridge), lambda x: x, size),
    }


def _of_kernel(fit: Callable[..., tuple[Any, FitInfo]], group_size: int) -> Fit:
    """By a matrix of all images with all images."""

    def fitted(x: jax.Array) -> Callable[[jax.Array], jax.Array]:
        ids = np.arange(len(x), dtype=np.int32) // group_size
        found, info = fit(x, ids, num_groups=len(x) // group_size)
        raise_if_failed(info, "many groups")
        return lambda rows: each_row(transform, found, rows)

    return fitted


def _of_sums(
    fit: Callable[[GroupSums], tuple[LinearMap, FitInfo]], encode: Callable[[jax.Array], jax.Array], group_size: int
) -> Fit:
    """By sums of vectors that are made a batch at a time: no matrix has more rows than a batch."""

    def fitted(x: jax.Array) -> Callable[[jax.Array], jax.Array]:
        step = _BATCH * group_size
        sums = group_sums.zero(encode(x[:step]).mean(axis=0))
        for start in range(0, len(x), step):
            z = encode(x[start : start + step])
            ids = np.arange(len(z), dtype=np.int32) // group_size
            sums = group_sums.add(sums, z, ids, num_groups=_BATCH)
        found, info = fit(sums)
        raise_if_failed(info, "many groups")
        return lambda rows: each_row(transform, found, encode(rows))

    return fitted


def _features(drawn: FeatureMap, x: jax.Array) -> jax.Array:
    return feature_matrix(drawn, x, form=forms.cos_sin)


def _measured(fit: Fit, x: jax.Array, tests: tuple[jax.Array, np.ndarray]) -> tuple[float, float]:
    """Error on new people, and the seconds of a second fit: the first one compiles."""
    fit(x)
    start = time.perf_counter()
    fitted = fit(x)
    seconds = time.perf_counter() - start
    return _error(fitted(tests[0]), tests[1]), seconds


def _error(z: jax.Array, ids: np.ndarray) -> float:
    """Share of images whose nearest one in a gallery of one image of each person shows somebody else."""
    is_first = np.diff(ids, prepend=-1) > 0
    gallery, probes = np.flatnonzero(is_first), np.flatnonzero(~is_first)
    known, asked = (jnp.asarray(ids[rows]) for rows in (gallery, probes))
    return float(recognition.error(z[gallery], known, z[probes], asked))


def section(config: ConfigDict, found: Mapping[str, np.ndarray]) -> Section:
    """Error and time against the number of images."""
    study, sizes, names = config.many, found["sizes"], titles(config)
    of_error = [Curve(title, sizes, 100 * found[f"{name}/error"]) for name, title in names.items()]
    of_time = [
        Curve(title, sizes, found[f"{name}/seconds"]) for name, title in names.items() if f"{name}/seconds" in found
    ]
    options: dict[str, Any] = {"x_label": "training images", "log_x": True}
    by_error = figures.curves(of_error, y_label="error on new people %", title="Error", **options)
    by_time = figures.curves(of_time, y_label="seconds of a fit", title="Time", log_y=True, **options)
    return Section(
        "Many groups",
        (
            f"Drawn faces in groups of {study.group_size}. A kernel method holds a matrix of all images with all "
            f"images, and its time grows with their third power: it stops at {study.kernel_most:,}. The inner products "
            "of random features estimate the kernel; their scatter within groups is a sum over groups, which come in "
            "batches. With more images than features no direction is constant within all groups: NP-PER from sums "
            f"takes the {study.num_components} directions in which groups vary least beside the whole. The test asks "
            f"for the nearest of {study.num_people:,} new people with one image each.",
            Picture("many_error.svg", figures.to_svg(by_error), "One draw of people."),
            Picture("many_time.svg", figures.to_svg(by_time), "The second fit; the first one compiles."),
            table(config, found),
        ),
    )


def table(config: ConfigDict, found: Mapping[str, np.ndarray]) -> Table:
    """Error of every method against the number of images."""
    rows: list[tuple[Cell, ...]] = [
        (title, *(100 * float(value) for value in found[f"{name}/error"])) for name, title in titles(config).items()
    ]
    columns = ("method", *(f"{size:,} images" for size in config.many.sizes))
    return Table(columns, rows, "Identification error on new people %")
