"""Decision regions: lines and points by name, and grids that fit."""

import numpy as np
import pytest

from jaxface.reports import figures, region_figures


def test_regions_have_a_line_for_each_member_and_both_classes():
    x, y = np.linspace(-1, 1, 9), np.linspace(-2, 2, 7)
    tilted = x[None, :] + 0.3 * y[:, None]
    points = {"one person": np.array([[0.5, 0.1]]), "the other": np.array([[-0.5, 0.0], [-0.2, 1.0]])}
    levels = {"member 1": tilted, "committee": np.broadcast_to(x, (7, 9))}
    figure = region_figures.boundaries(levels, x, y, points, x_label="across", y_label="along")
    named = [text.get_text() for text in figure.legends[0].get_texts()]
    assert named == ["member 1", "committee", "one person", "the other"]
    assert figures.to_svg(figure).startswith(b"<?xml")
    with pytest.raises(ValueError, match="the grid of committee"):
        region_figures.boundaries({"committee": tilted.T}, x, y, points, x_label="", y_label="")
