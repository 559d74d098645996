"""How the values of several methods are distributed: over subjects, and over all samples."""

import math
from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np

from jaxface.core import checks
from jaxface.reports import figures

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["histograms", "subjects"]

_NUM_BINS = 30


def subjects(values: Mapping[str, np.ndarray], *, x_label: str, y_label: str, title: str = "") -> "Figure":
    """A marker for the value of every subject `[c]`, and a line at the mean of a method.

    Subjects stand in one order for all methods: that of their mean over the methods.
    """
    checks.shapes(**{f"the values of {name}": (each, "c") for name, each in values.items()})
    order = np.argsort(np.mean([np.asarray(each, float) for each in values.values()], axis=0), kind="stable")
    places, size = np.arange(1, order.size + 1), float(np.clip(150 / order.size, 2.2, 5))
    figure, axes = figures.one_axes(title, x_label, y_label, legend_rows=len(values))
    with figures.style():
        handles = []
        for index, (name, each) in enumerate(values.items()):
            color, mark = (choices[index % len(choices)] for choices in (figures.COLORS, figures.MARKS))
            mean = float(np.mean(each))
            axes.plot(places, np.asarray(each, float)[order], mark, color=color, markersize=size, alpha=0.55, mew=0)
            axes.axhline(mean, color=color, linewidth=2.0)
            label = figures.plain(f"{name}, mean {mean:.2f}")
            handles += axes.plot([], [], mark, color=color, linestyle="-", linewidth=2.0, markersize=4.5, label=label)
        figure.legend(handles=handles, loc="outside lower left", ncols=1, fontsize=9, frameon=False)
    return figure


def histograms(values: Mapping[str, np.ndarray], *, x_label: str, y_label: str, title: str = "") -> "Figure":
    """Steps of the histogram of all values `[n]` of every method, in per cent, and the fitted Gaussian as a line."""
    everything = np.concatenate([np.ravel(np.asarray(each, float)) for each in values.values()])
    edges = np.linspace(everything.min(), everything.max(), _NUM_BINS + 1)
    fine = np.linspace(edges[0], edges[-1], 200)
    figure, axes = figures.one_axes(title, x_label, y_label, legend_rows=len(values))
    with figures.style():
        handles = []
        for index, (name, each) in enumerate(values.items()):
            color, dash = (choices[index % len(choices)] for choices in (figures.COLORS, figures.DASHES))
            mean, deviation = float(np.mean(each)), float(np.std(each))
            share = 100 * np.histogram(each, edges)[0] / np.size(each)
            axes.stairs(share, edges, color=color, linewidth=0.8, alpha=0.7)
            label = figures.plain(f"{name}: {mean:.2f} ± {deviation:.2f}")
            curve = 100 * (edges[1] - edges[0]) * _gaussian_density(fine, mean, deviation)
            handles += axes.plot(fine, curve, color=color, linestyle=dash, linewidth=1.6, label=label)
        figure.legend(handles=handles, loc="outside lower left", ncols=1, fontsize=9, frameon=False)
    return figure


def _gaussian_density(x: np.ndarray, mean: float, deviation: float) -> np.ndarray:
    """The density of a Gaussian at x `[k]`; zero everywhere for a deviation of zero, which has none."""
    if deviation == 0:
        return np.zeros_like(x)
    return np.asarray(np.exp(-0.5 * ((x - mean) / deviation) ** 2) / (deviation * math.sqrt(2 * math.pi)))
