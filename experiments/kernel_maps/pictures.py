"""Figures of feature maps that the study and the tour share."""

from collections.abc import Mapping

import numpy as np

from experiments.kernel_maps import inverse
from jaxface.features import MAPS
from jaxface.metrics import intervals
from jaxface.metrics.intervals import Interval
from jaxface.reports import figures, sheets
from jaxface.reports.figures import Curve
from jaxface.reports.html import Picture, Sheet

Arrays = Mapping[str, np.ndarray]
NAMES = {"kitchen_sinks": "kitchen sinks", "orthogonal": "orthogonal", "fastfood": "Fastfood", "sorf": "SORF"}


def over_draws(values: np.ndarray) -> Interval:
    """The mean of errors over independent draws."""
    return intervals.split_interval(values, test_to_train=0.0, within=intervals.POSITIVE)


def of_maps(found: Arrays, *, prefix: str, title: str, name: str) -> Picture:
    """The error of the kernel by every map against the number of frequencies, and the theory of independent ones."""
    lines = {NAMES[kind]: found[prefix + kind] for kind in MAPS}
    return error_curves(found["sizes"], lines, title=title, name=name, theory=found[prefix + "theory"])


def error_curves(
    sizes: np.ndarray,
    lines: Mapping[str, np.ndarray],
    *,
    title: str,
    name: str,
    theory: np.ndarray | None = None,
) -> Picture:
    """Means of errors `[draws, sizes]` against the number of frequencies, with their intervals."""
    curves = []
    for label, values in lines.items():
        estimate, low, high = np.transpose([over_draws(column) for column in values.T])
        curves.append(Curve(label, sizes, estimate, low, high))
    if theory is not None:
        curves.append(Curve("independent, in theory", sizes, theory))
    figure = figures.curves(
        curves, x_label="frequencies", y_label="root mean square error", title=title, log_x=True, log_y=True
    )
    return Picture(name, figures.to_svg(figure), "Bands: 95 % of the mean over the draws.")


def of_round_trips(found: Arrays, expansion: int) -> Picture:
    """The error of the image against |x| / sigma, by every method."""
    lines = []
    for name in inverse.METHODS:
        low, middle, high = np.quantile(found[f"error/{name}/{expansion}"], (0.1, 0.5, 0.9), axis=1)
        lines.append(Curve(name, found["ratios"], middle, low, high))
    figure = figures.curves(
        lines, x_label="|x| / sigma", y_label="relative error of the image", log_y=True,
        title=f"{expansion} times as many frequencies as dimensions",
    )  # fmt: skip
    return Picture(f"inverse_{expansion}.svg", figures.to_svg(figure), "Median; bands hold 80 % of the images.")


def there_and_back(found: Arrays) -> Sheet:
    """One face by every method at some ratios, beside itself."""
    ratios = found["shown ratios"]
    places = [int(np.flatnonzero(found["ratios"] == ratio)[0]) for ratio in ratios]
    rows = [np.concatenate([found["faces"][:1], found[f"back/{name}"][places]]) for name in inverse.METHODS]
    return sheets.sheet(
        "inverse_faces.png",
        np.clip(np.stack(rows), 0, 1),
        row_labels=tuple(inverse.METHODS),
        column_labels=("the image", *(f"{ratio:g}" for ratio in ratios)),
        title="One face there and back, for some |x| / sigma",
        caption="Pixels beyond black and white are clipped.",
    )


def reach(found: Arrays, name: str, expansion: int) -> str:
    """The largest |x| / sigma up to which nine images in ten come back to 1e-3."""
    errors = np.quantile(found[f"error/{name}/{expansion}"], 0.9, axis=1)
    right = np.flatnonzero(np.cumprod(errors < 1e-3))
    if not len(right):
        return "none tried"
    limit = f"{found['ratios'][right[-1]]:g}"
    return f"{limit}, the largest tried" if len(right) == len(errors) else limit
