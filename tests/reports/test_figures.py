import io

import numpy as np
from PIL import Image

from jaxface.reports import figures
from jaxface.reports.figures import Curve


def lines():
    x = np.arange(5)
    return [Curve("one", x, x**2.0, x**2.0 - 1, x**2.0 + 1), Curve("two", x, 2.0 * x)]


def test_equal_figures_are_equal_bytes():
    made = [figures.to_svg(figures.curves(lines(), x_label="x", y_label="y", title="t")) for _ in range(2)]
    assert made[0] == made[1]
    assert made[0].startswith(b"<?xml")


def test_curves_carry_bands_labels_and_reference():
    figure = figures.curves(lines(), x_label="x", y_label="y", reference=3.0, log_x=True, y_range=(0, 9))
    (axes,) = figure.axes
    assert [text.get_text() for text in axes.get_legend().get_texts()] == ["one", "two"]
    assert len(axes.collections) == 1  # the band of the first line
    assert len(axes.lines) == 3
    assert axes.get_xscale() == "log"
    assert axes.get_ylim() == (0, 9)


def test_roc_starts_at_the_lowest_rate_shown():
    figure = figures.roc([Curve("a", [0.0, 0.5, 1.0], [0.1, 0.9, 1.0])], min_far=1e-2)
    assert figure.axes[0].lines[0].get_xdata()[0] == 1e-2
    assert figure.axes[0].get_xlim() == (1e-2, 1.0)


def test_intervals_put_the_first_method_on_top():
    figure = figures.intervals(["first", "second"], [1, 2], [0.5, 1.5], [1.5, 2.5], x_label="error")
    ticks = {t.get_text(): t.get_position()[1] for t in figure.axes[0].get_yticklabels()}
    assert ticks["first"] > ticks["second"]


def test_absent_intervals_leave_the_values_alone():
    nothing = [np.nan] * 2
    figure = figures.intervals(["a", "b"], [1, 2], [np.nan, 1.5], [np.nan, 2.5], x_label="error")
    assert figures.to_svg(figure)
    assert figures.to_svg(figures.intervals(["a", "b"], [1, 2], nothing, nothing, x_label="error"))
    figure = figures.curves([Curve("a", [1, 2], [3, 4], nothing, nothing)], x_label="x", y_label="y")
    assert figures.to_svg(figure)
    assert (
        figure.axes[0].get_ylim()
        == figures.curves([Curve("a", [1, 2], [3, 4])], x_label="x", y_label="y").axes[0].get_ylim()
    )


def test_bands_below_zero_do_not_fill_a_log_axis():
    """The axis ends at what is drawn, one decade below the line at most here."""
    lines = [Curve("a", [1, 2, 3], [1.0, 0.5, 0.2], [0.8, -0.1, 0.0], [1.2, 1.1, np.nan])]
    figure = figures.curves(lines, x_label="x", y_label="y", log_y=True)
    assert figures.to_svg(figure)
    low, _ = figure.axes[0].get_ylim()
    assert 0.15 < low < 0.2
    (band,) = figure.axes[0].collections
    heights = np.concatenate([path.vertices[:, 1] for path in band.get_paths()])
    assert heights.min() >= 0.2


def test_grid_shows_grey_colour_and_signed_images():
    grey = np.linspace(0, 1, 2 * 3 * 8 * 6).reshape(2, 3, 8, 6)
    figure = figures.image_grid(grey, row_labels=("a", "b"), column_labels=("x", "y", "z"), title="faces")
    assert len(figure.axes) == 6
    picture = Image.open(io.BytesIO(figures.to_png(figure)))
    assert picture.size[0] > 200
    signed = figures.image_grid(grey - 0.5, symmetric=True).axes[0].images[0]
    assert signed.norm.vmin == -signed.norm.vmax
    color = figures.image_grid(np.ones((1, 1, 4, 4, 3)))
    assert color.axes[0].images[0].get_array().shape == (4, 4, 3)
    assert figures.to_png(figures.image_grid(np.zeros((1, 1, 4, 4)), symmetric=True))


def test_names_are_drawn_as_they_are():
    """Dollars are no mathematics, and what begins with an underscore has its place in the legend."""
    lines = [Curve("a $x_{$", [0, 1], [0, 1]), Curve("_mine", [0, 1], [1, 0])]
    figure = figures.curves(lines, x_label="x", y_label="y")
    assert len(figure.axes[0].get_legend().get_texts()) == 2
    assert figures.to_svg(figure)
    assert figures.to_svg(figures.intervals(["cost $", "_b"], [0, 1], [0, 1], [0, 1], x_label="x"))


def test_names_with_control_characters_are_drawn_as_escapes():
    name = "a\x1b\t\udcff"
    assert figures.to_svg(figures.curves([Curve(name, [0, 1], [0, 1])], x_label="x", y_label="y"))
    grid = figures.image_grid(np.zeros((1, 1, 4, 4)), row_labels=(name,), column_labels=(name,))
    assert grid.axes[0].texts[0].get_text() == "a\\x1b\\t\\xff"
    assert figures.to_png(grid)
