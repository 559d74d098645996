import warnings

import numpy as np
import pytest

from jaxface.reports import figures
from jaxface.reports.figures import Curve


def lines():
    x = np.arange(5)
    return [Curve("one", x, x**2.0, x**2.0 - 1, x**2.0 + 1), Curve("two", x, 2.0 * x)]


def names_of(figure):
    return [text.get_text() for text in figure.legends[0].get_texts()]


def test_equal_figures_are_equal_bytes():
    made = [figures.to_svg(figures.curves(lines(), x_label="x", y_label="y", title="t")) for _ in range(2)]
    assert made[0] == made[1]
    assert made[0].startswith(b"<?xml")


def test_curves_carry_bands_labels_and_reference():
    figure = figures.curves(lines(), x_label="x", y_label="y", reference=3.0, log_x=True, y_range=(0, 9))
    (axes,) = figure.axes
    assert names_of(figure) == ["one", "two"]
    assert len(axes.collections) == 1  # the band of the first line
    assert len(axes.lines) == 3
    assert axes.get_xscale() == "log"
    assert axes.get_ylim() == (0, 9)


def test_legends_stand_below_the_axes_without_a_frame():
    """The names never cover a curve, and a large set of points needs no search for a free corner."""
    for count in (2, 7):
        curves = [Curve(f"a method of a long name, number {k}", [0, 1], [k, k]) for k in range(count)]
        figure = figures.curves(curves, x_label="x", y_label="y")
        (legend,) = figure.legends
        assert not legend.get_frame_on()
        assert figures.to_svg(figure)  # lays the figure out
        assert legend.get_window_extent().y1 <= figure.axes[0].get_window_extent().y0
        assert legend.get_window_extent().x1 <= figure.bbox.x1


def test_lines_that_coincide_can_be_told_apart():
    curves = [Curve(name, [0, 1, 2], [5, 4, 4]) for name in ("sum", "product", "min", "max", "vote", "median")]
    drawn = figures.curves(curves, x_label="x", y_label="y", markers=False).axes[0].lines
    looks = {(line.get_color(), str(line._unscaled_dash_pattern)) for line in drawn}
    assert len(looks) == len(curves)
    assert len({str(line._unscaled_dash_pattern) for line in drawn}) == len(curves)
    widths = [line.get_linewidth() for line in drawn]
    assert widths == sorted(set(widths), reverse=True)


def test_an_axis_of_whole_numbers_has_whole_ticks_also_for_one_point():
    for x in ([2], [2, 3], [1, 50]):
        axes = figures.curves([Curve("a", x, x)], x_label="images in a group", y_label="y").axes[0]
        ticks = axes.get_xticks()
        assert len(ticks) >= 1
        assert (ticks % 1 == 0).all()


def test_roc_starts_at_the_lowest_rate_shown():
    figure = figures.roc([Curve("a", [0.0, 0.5, 1.0], [0.1, 0.9, 1.0])], min_far=1e-2)
    x, y = figure.axes[0].lines[0].get_data()
    assert x[0] == 1e-2
    assert figure.axes[0].get_xlim() == (1e-2, 1.0)
    assert (y[x < 0.5] == 0.1).all()
    assert (y[(x >= 0.5) & (x < 1)] == 0.9).all()


def test_roc_is_cut_at_the_lowest_rate_without_a_line_along_the_axis():
    """Rates below the axis were drawn on it, on top of each other."""
    far = np.array([0.0, 1e-4, 1e-4, 1e-3, 1e-2, 1.0])
    vr = np.array([0.0, 0.1, 0.3, 0.5, 0.8, 1.0])
    x, y = figures.roc([Curve("a", far, vr)], min_far=1e-3).axes[0].lines[0].get_data()
    assert (np.diff(x) > 0).all()
    assert y[0] == 0.5
    sampled = figures.roc([Curve("a", far[1:], vr[1:], vr[1:] - 0.05, vr[1:] + 0.05)], min_far=5e-4).axes[0]
    np.testing.assert_array_equal(sampled.lines[0].get_data(), [[5e-4, 1e-3, 1e-2, 1.0], [0.3, 0.5, 0.8, 1.0]])
    assert sampled.get_ylim()[0] < 0.25  # the band


@pytest.mark.parametrize(("vr", "lowest", "left", "right"), [
    ([0.0, 0.991, 0.998, 1.0, 1.0], 0.97, 1e-4, 0.01),  # an EER of some tenths of a per cent
    ([0.0, 0.0, 0.2, 0.5, 1.0], 0.0, 1e-4, 1.0),
    ([1.0, 1.0, 1.0, 1.0, 1.0], 0.99, 1e-4, 1e-3),  # no error at all
])  # fmt: skip
def test_axes_of_a_roc_fit_its_range(vr, lowest, left, right):
    axes = figures.roc([Curve("a", [0.0, 1e-4, 1e-3, 1e-2, 1.0], vr)]).axes[0]
    low, high = axes.get_ylim()
    assert lowest <= low <= min(vr[1:])
    assert 1 < high < 1.03
    np.testing.assert_allclose(axes.get_xlim(), (left, right))
    assert axes.xaxis.get_major_formatter()(1e-3, 0) == "0.1 %"


def test_curves_of_a_million_scores_reach_the_terminal_without_a_warning(rng):
    far = np.sort(np.append(rng.random(1_000_000), [0.0, 1.0]))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        picture = figures.to_svg(figures.roc([Curve("a", far, far), Curve("北京", far, far)]))
    assert len(picture) < 200_000


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


@pytest.mark.parametrize(
    ("y", "shown"), [([1.1, 2.4], {"2"}), ([0.003, 0.05], {"0.01"}), ([1.0, 1e5], {"$\\mathdefault{10^{2}}$"})]
)
def test_short_log_axes_have_plain_numbers(y, shown):
    """1.2 and 2, not 1.2 x 10^0; powers of ten where there are several."""
    figure = figures.curves([Curve("a", [1, 2], y)], x_label="x", y_label="y", log_y=True)
    assert figures.to_svg(figure)
    labels = {label.get_text() for label in figure.axes[0].get_yticklabels(which="both")}
    assert shown <= labels
    assert y[1] > 100 or not any("$" in label for label in labels)


def test_a_log_axis_keeps_to_the_lines():
    """An interval of a few splits ends at hundreds of thousands, or next to zero; a value of zero has no logarithm."""
    line = Curve("a", [1, 2, 3], [3.0, 0.0, 2.0], [1e-9, 1.0, 1.0], [4.0, 4.0, 3e5])
    axes = figures.curves([line], x_label="x", y_label="y", log_y=True).axes[0]
    low, high = axes.get_ylim()
    assert 0.1 < low < 0.2
    assert 30 < high < 60
    assert axes.yaxis.get_transform().transform_non_affine(np.zeros(1)) == -np.inf  # a gap, no line out of the page


def test_names_are_drawn_as_they_are():
    """Dollars are no mathematics, and what begins with an underscore has its place in the legend."""
    lines = [Curve("a $x_{$", [0, 1], [0, 1]), Curve("_mine", [0, 1], [1, 0])]
    figure = figures.curves(lines, x_label="x", y_label="y")
    assert len(names_of(figure)) == 2
    assert figures.to_svg(figure)
    assert figures.to_svg(figures.intervals(["cost $", "_b"], [0, 1], [0, 1], [0, 1], x_label="x"))
    assert figures.to_svg(figures.curves(lines, x_label="$x_{$", y_label="$", title="a ${"))


def test_names_with_control_characters_are_drawn_as_escapes():
    name = "a\x1b\t\udcff"
    figure = figures.curves([Curve(name, [0, 1], [0, 1])], x_label="x", y_label="y")
    assert figures.to_svg(figure)
    assert names_of(figure) == ["a\\x1b\\t\\xff"]
