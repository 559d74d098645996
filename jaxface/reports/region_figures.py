"""Where classifiers of two classes change their mind, in a plane."""

from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np

from jaxface.core import checks
from jaxface.reports import figures

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["boundaries"]


def boundaries(
    levels: Mapping[str, np.ndarray],
    x: np.ndarray,
    y: np.ndarray,
    points: Mapping[str, np.ndarray],
    *,
    x_label: str,
    y_label: str,
    title: str = "",
) -> "Figure":
    """The zero line of every grid of `levels` `[len(y), len(x)]` by name, and `points` `[n, 2]` of either class.

    The last grid is drawn thick, with the side of the first class in grey.
    """
    for name, grid in levels.items():
        checks.shapes(**{"x": (x, "w"), "y": (y, "h"), f"the grid of {name}": (grid, "h w")})
    figure, axes = figures.one_axes(title, x_label, y_label, legend_rows=3)
    *others, last = levels
    with figures.style():
        axes.contourf(x, y, levels[last], levels=[0, np.inf], colors=["#e8e8e8"])
        handles = []
        for index, name in enumerate(others):
            axes.contour(x, y, levels[name], levels=[0], colors=[figures.COLORS[index]], linewidths=1.0)
            handles += axes.plot([], [], color=figures.COLORS[index], linewidth=1.0, label=figures.plain(name))
        axes.contour(x, y, levels[last], levels=[0], colors=["black"], linewidths=2.2)
        handles += axes.plot([], [], color="black", linewidth=2.2, label=figures.plain(last))
        for mark, (name, places) in zip("o^", points.items(), strict=True):
            handles += axes.plot(*np.asarray(places).T, mark, markersize=5, color="#333333", label=figures.plain(name))
        figure.legend(handles=handles, loc="outside lower left", ncols=3, frameon=False)
    return figure
