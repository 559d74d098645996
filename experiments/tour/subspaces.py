"""Eigenfaces and Fisherfaces: identification over random splits, verification of people never seen in training."""

from collections.abc import Mapping
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from ml_collections import ConfigDict

from experiments.common import inputs, recognition, trials
from experiments.tour import unseen_people
from experiments.tour.part import Part
from jaxface.core import checks
from jaxface.core.blocks import each_row
from jaxface.data import LabeledImages, splits
from jaxface.ensembles import lda_member
from jaxface.linalg import scatter, spectral
from jaxface.metrics import intervals
from jaxface.reports import figures, sheets
from jaxface.reports.figures import Curve
from jaxface.reports.html import Picture, Section, Sheet
from jaxface.reports.tables import Estimate, Table, percent_interval
from jaxface.subspace import lda, leading, pca, transform

_SHOWN = 9  # eigenfaces on the page
_METHODS = {
    "raw": "raw pixels",
    "eigen": "Eigenfaces",
    "width": "Fisherfaces, PCA width chosen",
    "ridge": "Fisherfaces, ridge chosen",
}


def run(config: ConfigDict, faces: LabeledImages, rng: np.random.Generator) -> dict[str, np.ndarray]:
    """Errors of every setting on held-out and on test images, verification scores, and pictures."""
    x = jnp.asarray(faces.images, inputs.working_dtype()).reshape(len(faces.images), -1)
    folds = splits.image_folds(
        faces.ids, num_folds=int(np.bincount(faces.ids).min()), num_splits=config.num_splits, rng=rng
    )
    _check(config, np.bincount(faces.ids))
    inner = splits.of_parts(folds, train=range(config.num_train - 1), test=config.num_train - 1)
    outer = splits.of_parts(folds, train=range(config.num_train), test=range(config.num_train, folds.max() + 1))
    arrays: dict[str, Any] = {"test_to_train": outer.test_to_train, "inner_images": inner.train.shape[1]}
    rotated = _rotated(x)
    for part, drawn in (("held_out", inner), ("test", outer)):
        for name, errors in _errors(config, rotated, faces.ids, drawn.train, drawn.test).items():
            arrays[f"{part}_{name}"] = errors
    arrays |= {"components": config.components, "pca_widths": config.pca_widths, "ridges": config.ridges}
    ridge = config.ridges[int(np.argmin(np.mean(arrays["held_out_ridge"], axis=0)))]
    arrays |= unseen_people.verified(config, x, faces, ridge, rng)
    arrays |= _pictures(x, faces, int(max(config.components)), ridge)
    return {name: np.asarray(value) for name, value in arrays.items()}


def render(arrays: Mapping[str, np.ndarray], faces: LabeledImages) -> Part:
    """Pictures of the bases, error curves, the ROC, and the two tables."""
    chosen = {kind: _chosen(arrays, kind) for kind in _METHODS}
    over_splits: dict[str, Any] = {"test_to_train": float(arrays["test_to_train"]), "within": intervals.RATE}
    mean = {kind: intervals.split_interval(errors, **over_splits) for kind, errors in chosen.items()}
    gain = intervals.paired_interval(chosen["eigen"], chosen["ridge"], **over_splits)
    eer = {kind: Estimate(*(100 * arrays["eer"][k])) for k, kind in enumerate(_METHODS)}
    rate = {kind: Estimate(*(100 * arrays["rate"][k])) for k, kind in enumerate(_METHODS)}
    low, high = 100 * arrays["counted_eer"]
    section = Section(
        "Eigenfaces and Fisherfaces",
        (
            "Eigenfaces are the directions in which faces vary most; Fisherfaces those that tell people apart: they "
            "maximise the scatter between people over the scatter within.",
            *_sheets(arrays),
            "Identification: every setting is chosen on one held-out training image a person and then used with all of "
            "them, so the table below is an honest test error. Keeping all N - C axes, as textbooks say, leaves a "
            f"within-person scatter that is barely invertible: {_near_full_width(arrays)}.",
            Picture("identification.svg", figures.to_svg(_error_curves(arrays)), "Test error, mean over the splits."),
            Table(
                ("method", "identification error %, 95 % interval", "EER %, 95 % interval", "VR % at 1 % FAR"),
                [(name, percent_interval(mean[kind]), eer[kind], rate[kind]) for kind, name in _METHODS.items()],
                "Identification of known people, and verification of people never seen in training",
            ),
            f"On the same splits, Fisherfaces with a ridge make {percent_interval(gain)} points fewer errors "
            "than Eigenfaces.",
            "Verification: half of the people train, the others are tested by the cosine. "
            f"{trials.rule(int(arrays['max_images']), float(arrays['largest share']))} The bands "
            "resample people, not pairs: pairs of one person are not independent, and resampling them gives "
            "intervals that are far too narrow.",
            Picture("roc.svg", figures.to_svg(_roc(arrays)), "ROC with 95 % bands over people."),
            f"Counted into bins on the device instead of kept, the scores of the last method give an EER between "
            f"{low:.2f} and {high:.2f} %: the same number from two histograms, at any number of pairs.",
        ),
    )
    headline = [
        ("subspaces", f"{name}: identification error %", percent_interval(mean[kind]))
        for kind, name in _METHODS.items()
        if kind != "raw"
    ] + [("subspaces", f"{_METHODS['ridge']}: EER % on unseen people", eer["ridge"])]
    results = {f"identification error, {name}": mean[kind].estimate for kind, name in _METHODS.items()}
    results |= {f"EER, {name}": float(arrays["eer"][k][0]) for k, name in enumerate(_METHODS.values())}
    for part in ("held_out", "test"):
        for kind, settings in (("width", "pca_widths"), ("ridge", "ridges")):
            means = zip(arrays[settings], arrays[f"{part}_{kind}"].mean(axis=0), strict=True)
            results |= {f"{part} error, {kind} {setting:g}": float(error) for setting, error in means}
    return Part(section, headline, results)


def _sheets(arrays: Mapping[str, np.ndarray]) -> tuple[Sheet, Sheet]:
    """The axes of both subspaces, and faces rebuilt from few of them."""
    axes = sheets.sheet(
        "axes.png",
        arrays["bases"],
        row_labels=("Eigenfaces", "Fisherfaces"),
        symmetric=True,
        title="Axes of the two subspaces",
        caption="The first axes; grey is zero.",
    )
    rebuilt = sheets.sheet(
        "reconstructions.png",
        arrays["rebuilt"],
        row_labels=("original", *(f"{k} axes" for k in arrays["rebuilt_with"])),
        title="Reconstructions",
        caption="Faces rebuilt from their coordinates on few axes.",
    )
    return axes, rebuilt


def _check(config: ConfigDict, count: np.ndarray) -> None:
    """Whether the smallest training set spans as many axes as the config asks for; count: images of each person."""
    to_choose, half = len(count) * (config.num_train - 1), int(np.sort(count)[: len(count) // 2].sum())
    images = min(to_choose, half)
    why = f"settings are chosen with {to_choose} images, half of the people have {half}, and their mean is taken away"
    for name in ("components", "pca_widths"):
        checks.at_most(f"config.subspaces.{name}", max(config[name]), images - 1, why)


def _rotated(x: jax.Array) -> jax.Array:
    """The same points in coordinates of their own span `[n, min(n, d)]`.

    No distance changes and every method here is invariant to rotations, but n images of d >> n pixels get n columns.
    """
    svd = spectral.thin_svd(scatter.total_factor(x))
    return svd.left * svd.values[None, :]


def _errors(
    config: ConfigDict, x: jax.Array, ids: np.ndarray, gallery: np.ndarray, probes: np.ndarray
) -> dict[str, np.ndarray]:
    """Errors `[splits, settings]` of the four methods."""
    people = int(ids.max()) + 1
    all_axes = min(gallery.shape[1] - 1, x.shape[1])
    ridges = jnp.asarray(config.ridges, x.dtype)
    return {
        "raw": np.asarray(_raw_errors(x, ids, gallery, probes))[:, None],
        "eigen": np.asarray(
            _eigen_errors(x, ids, gallery, probes, jnp.asarray(config.components), most=max(config.components))
        ),
        "width": np.asarray(
            _width_errors(x, ids, gallery, probes, widths=tuple(config.pca_widths), num_classes=people)
        ),
        "ridge": np.asarray(
            _ridge_errors(x, ids, gallery, probes, ridges, pca_components=all_axes, num_classes=people)
        ),
    }


_raw_errors = jax.jit(
    jax.vmap(lambda x, ids, g, p: recognition.error(x[g], ids[g], x[p], ids[p]), in_axes=(None, None, 0, 0))
)


@partial(jax.jit, static_argnames="most")
def _eigen_errors(
    x: jax.Array, ids: jax.Array, gallery: jax.Array, probes: jax.Array, components: jax.Array, *, most: int
) -> jax.Array:
    """Eigenfaces are nested: one fit a split serves every number of components."""

    def of_split(rows: jax.Array, queries: jax.Array) -> jax.Array:
        fitted, _ = pca.fit(x[rows], num_components=most)
        kept = each_row(leading, fitted, components)
        return jax.vmap(recognition.error_of_map, in_axes=(0, None, None, None, None))(kept, x, ids, rows, queries)

    return jax.vmap(of_split)(gallery, probes)


@partial(jax.jit, static_argnames=("widths", "num_classes"))
def _width_errors(
    x: jax.Array, ids: jax.Array, gallery: jax.Array, probes: jax.Array, *, widths: tuple[int, ...], num_classes: int
) -> jax.Array:
    """Fisherfaces after PCA to every width: one PCA a split, a member of a committee on its leading axes a width."""
    places = jnp.arange(max(widths))[None, :]
    axes = jnp.where(places < jnp.asarray(widths)[:, None], places, -1)

    def of_split(rows: jax.Array, queries: jax.Array) -> jax.Array:
        fitted, _ = pca.fit(x[rows], num_components=max(widths))
        y = each_row(transform, fitted, x)
        members, _ = lda_member.fit(y[rows], ids[rows], axes, num_classes=num_classes)
        z = jax.vmap(each_row, in_axes=(None, 0, None))(lda_member.transform, members, y)
        return jax.vmap(lambda z: recognition.error(z[rows], ids[rows], z[queries], ids[queries]))(z)

    return jax.vmap(of_split)(gallery, probes)


@partial(jax.jit, static_argnames=("pca_components", "num_classes"))
def _ridge_errors(
    x: jax.Array,
    ids: jax.Array,
    gallery: jax.Array,
    probes: jax.Array,
    ridges: jax.Array,
    *,
    pca_components: int,
    num_classes: int,
) -> jax.Array:
    """Fisherfaces of every split and ridge in one program."""

    def of_ridge(rows: jax.Array, queries: jax.Array, ridge: jax.Array) -> jax.Array:
        fitted, _ = lda.fit(
            x[rows],
            ids[rows],
            num_classes=num_classes,
            num_components=num_classes - 1,
            pca_components=pca_components,
            ridge=ridge,
        )
        return recognition.error_of_map(fitted, x, ids, rows, queries)

    of_split = jax.vmap(of_ridge, in_axes=(None, None, 0))
    return jax.vmap(of_split, in_axes=(0, 0, None))(gallery, probes, ridges)


def _chosen(arrays: Mapping[str, np.ndarray], kind: str) -> np.ndarray:
    """Test error of each split at the setting that was best on its held-out images; the first among equals."""
    best = np.argmin(arrays[f"held_out_{kind}"], axis=1)
    return np.take_along_axis(arrays[f"test_{kind}"], best[:, None], axis=1)[:, 0]


def _pictures(x: jax.Array, faces: LabeledImages, width: int, ridge: float) -> dict[str, Any]:
    """The first axes of both subspaces, and faces rebuilt from few coordinates."""
    shape = faces.images.shape[1:3]
    people = len(faces.names)
    shown = min(_SHOWN, people - 1)
    eigen, _ = pca.fit(x, num_components=width)
    fisher, _ = lda.fit(
        x,
        jnp.asarray(faces.ids),
        num_classes=people,
        num_components=shown,
        pca_components=width,
        ridge=ridge,
    )
    bases = np.stack([np.asarray(m.basis[:, :shown]).T.reshape(-1, *shape) for m in (eigen, fisher)])
    rows = np.array([np.flatnonzero(faces.ids == person)[0] for person in range(min(_SHOWN, people))])
    kept = [k for k in (10, 40, 100) if k <= width]
    rebuilt = [np.asarray(x[rows]).reshape(-1, *shape)]
    for k in kept:
        z = (x[rows] - eigen.mean[None, :]) @ eigen.basis[:, :k]
        back = np.asarray(eigen.mean[None, :] + z @ eigen.basis[:, :k].T)
        rebuilt.append(back.reshape(-1, *shape).clip(0, 1))
    return {"bases": bases, "rebuilt": np.stack(rebuilt), "rebuilt_with": np.array(kept)}


def _near_full_width(arrays: Mapping[str, np.ndarray]) -> str:
    width, error = int(arrays["pca_widths"][-1]), 100 * float(arrays["held_out_width"][:, -1].mean())
    images = int(arrays["inner_images"])
    return f"with {images} training images in all and {width} axes, {error:.0f} % of the held-out images are misnamed"


def _error_curves(arrays: Mapping[str, np.ndarray]) -> Any:
    def line(label: str, x: np.ndarray, kind: str) -> Curve:
        errors = 100 * arrays[f"test_{kind}"]
        mean, deviation = errors.mean(axis=0), errors.std(axis=0, ddof=min(1, len(errors) - 1))
        return Curve(label, x, mean, np.maximum(mean - deviation, 0), np.minimum(mean + deviation, 100))

    lines = (
        line("Eigenfaces, by number of axes", arrays["components"], "eigen"),
        line("Fisherfaces, by PCA width", arrays["pca_widths"], "width"),
    )
    raw = 100 * float(arrays["test_raw"].mean())
    return figures.curves(
        lines, x_label="dimensions", y_label="identification error %", reference=raw,
        title="Identification (band: one standard deviation; dots: raw pixels)",
    )  # fmt: skip


def _roc(arrays: Mapping[str, np.ndarray]) -> Any:
    lines = [
        Curve(name, arrays["band_far"], *arrays["band"][k])
        for k, (kind, name) in enumerate(_METHODS.items())
        if kind != "width"
    ]
    return figures.roc(lines, title="Verification of unseen people")
