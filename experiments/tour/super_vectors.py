"""Super vectors: an image as a set of two kinds of descriptors, and the set as one vector."""

from collections.abc import Mapping

import jax
import numpy as np
from ml_collections import ConfigDict

from experiments.common import trials
from experiments.super_vector import codes, recognize, sets
from experiments.super_vector.codes import BASELINE, FISHER, METHODS, SUPER
from experiments.super_vector.recognize import CLASSIFIERS
from experiments.tour.part import Part
from jaxface.core import prng
from jaxface.data import LabeledImages, pairs
from jaxface.metrics import verification
from jaxface.reports import figures
from jaxface.reports.figures import Curve
from jaxface.reports.html import Picture, Section
from jaxface.reports.tables import Cell, Table, percent

_SHOWN = (FISHER[0], FISHER[1], BASELINE, SUPER[0], SUPER[2])


def run(config: ConfigDict, faces: LabeledImages, rng: np.random.Generator) -> dict[str, np.ndarray]:
    """Errors `[methods, classifiers, splits]`, and the cosines of all pairs of probes of the first split."""
    del rng  # draws follow the section's own seed, as in the study
    given = sets.of_faces(config, faces)
    (num_train,) = config.num_train
    errors, shown = [], {}
    for number, split in enumerate(sets.random_splits(config, given.ids, num_train)):
        key = prng.stream(jax.random.fold_in(jax.random.key(config.seed), number), "codes")
        descriptors = sets.descriptors_of(config, given, split, number)
        vectors = {
            **codes.fisher_vectors(config, key, descriptors, num_components=config.num_components),
            **codes.super_vectors(
                config, key, descriptors, num_components=config.num_components, latent_dim=config.latent_dim
            ),
        }
        longest = codes.longest(descriptors, config.num_components, config.latent_dim)
        errors.append(
            [recognize.evaluate(config, vectors[name], given.ids, split, longest=longest).errors for name in METHODS]
        )
        if number == 0:
            asked = split.test[pairs.limited(given.ids[split.test], max_rows=config.max_images)]
            trial = pairs.all_pairs(given.ids[asked])
            probes = {name: np.asarray(vectors[name][asked]) for name in _SHOWN}
            shown = {f"cosines {name}": (rows @ rows.T)[trial.first, trial.second] for name, rows in probes.items()}
            shown["is_same"] = trial.is_same
            shown["largest share"] = pairs.largest_share(given.ids[asked], trial)
            shown["max_images"] = config.max_images
    kept = {name: np.asarray(value) for name, value in shown.items()}
    return {"errors": np.stack(errors, axis=-1), "num_train": np.asarray(num_train), **kept}


def render(arrays: Mapping[str, np.ndarray], faces: LabeledImages) -> Part:
    """The table, and the ROC of the cosines."""
    mean = arrays["errors"].mean(axis=-1)
    rows: list[tuple[Cell, ...]] = [
        (name, *(percent(error) for error in errors)) for name, errors in zip(METHODS, mean, strict=True)
    ]
    curves = []
    for name in _SHOWN:
        roc = verification.roc(arrays[f"cosines {name}"], arrays["is_same"])
        curves.append(Curve(name, roc.far, roc.vr))
    section = Section(
        "Sets of local descriptors as vectors",
        (
            "Oriented gradients and binary patterns are taken at the same places of a face. A mixture of probabilistic "
            "CCA models what they share and what each has for itself; a super vector says how the pairs of an image "
            "differ from those of all images. Fisher vectors of Gaussian mixtures, one for each kind, are the rival.",
            Table(
                ("vector", *CLASSIFIERS),
                rows,
                f"Identification error %, {int(arrays['num_train'])} images a person, mean over "
                f"{arrays['errors'].shape[-1]} random splits, too few for intervals: experiments.super_vector has them",
            ),
            Picture(
                "super_vectors.svg",
                figures.to_svg(figures.roc(curves)),
                trials.rule(int(arrays["max_images"]), float(arrays["largest share"])),
            ),
        ),
    )
    nearest = mean[:, CLASSIFIERS.index("nearest neighbour")]
    headline: list[tuple[Cell, ...]] = [
        ("super vectors", f"{name}: error %, nearest neighbour", percent(nearest[METHODS.index(name)]))
        for name in (BASELINE, SUPER[2])
    ]
    results = {
        f"error, {name}, {classifier}": float(mean[m, c])
        for m, name in enumerate(METHODS)
        for c, classifier in enumerate(CLASSIFIERS)
    }
    return Part(section, headline, results)
