"""A gallery of faces, each reconstructed from its eye region."""

from collections.abc import Mapping

import numpy as np
from ml_collections import ConfigDict

from experiments.hallucinate import faces as parts
from experiments.hallucinate import methods
from experiments.tour.part import Part
from jaxface.data import LabeledImages
from jaxface.metrics import bootstrap
from jaxface.reports import sheets
from jaxface.reports.html import Section
from jaxface.reports.tables import Cell, Table, with_interval


def run(config: ConfigDict, faces: LabeledImages, rng: np.random.Generator) -> dict[str, np.ndarray]:
    """Reconstructions of people whom no model saw: PSNR `[methods, q]`, and pictures `[3 + methods, people, h, w]`."""
    data = parts.select(config, faces)
    mask = parts.rectangle(data.shape, config.visible)
    (fold,) = parts.folds(config, data)
    images = {name: methods.of_fold(config, name, fold, mask)["images"] for name in config.methods}
    rows = np.unique(fold.test_ids, return_index=True)[1]
    together = np.where(mask[None, :], fold.test, images[config.methods[-1]])
    stack = np.stack([fold.test, np.where(mask[None, :], fold.test, 1.0), *images.values(), together])[:, rows]
    return {
        "names": np.array(config.methods),
        "labels": np.array(list(methods.names(config).labels.values())),
        "psnr": np.stack([methods.psnr(each, fold.test) for each in images.values()]),
        "ids": fold.test_ids,
        "pictures": stack.reshape(*stack.shape[:2], *data.shape),
        "share": np.asarray(mask.mean()),
    }


def render(arrays: Mapping[str, np.ndarray], faces: LabeledImages) -> Part:
    """The gallery and the table."""
    titles = [str(label) for label in arrays["labels"]]
    reached: dict[str, Cell] = {
        title: with_interval(bootstrap.mean_interval(values, arrays["ids"], rng=np.random.default_rng(0)))
        for title, values in zip(titles, arrays["psnr"], strict=True)
    }
    labels = ("original", "what is seen", *titles, "the same with what is seen")
    section = Section(
        "A face from its eyes",
        (
            f"Every method sees {100 * float(arrays['share']):.0f} % of the pixels of somebody who was not in training "
            "and makes the rest: by a code on a dictionary of faces, by one in the feature space of a kernel, or by "
            "regression. They agree on light, pose and shape; a beard or a smile cannot be known from the eyes.",
            sheets.sheet(
                "gallery.png", arrays["pictures"], row_labels=labels, caption="People of the test part.", cell=0.82
            ),
            Table(
                ("method", "PSNR, dB"),
                list(reached.items()),
                "95 % intervals over people; all methods: experiments.hallucinate",
            ),
        ),
    )
    best = titles[int(np.argmax(arrays["psnr"].mean(axis=1)))]
    headline: list[tuple[Cell, ...]] = [("sparse", f"face from its eyes, {best}: PSNR, dB", reached[best])]
    results = {f"PSNR, {title}": float(v.mean()) for title, v in zip(titles, arrays["psnr"], strict=True)}
    return Part(section, headline, results)
