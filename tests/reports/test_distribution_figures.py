"""Markers of subjects in one order, and Gaussians that have the mean and the deviation of the values."""

import numpy as np
import pytest

from jaxface.reports import distribution_figures, figures


def named(figure):
    return [text.get_text() for text in figure.legends[0].get_texts()]


def test_subjects_have_a_marker_for_each_method_in_one_order():
    values = {"one": np.array([3.0, 1.0, 2.0]), "other": np.array([3.5, 2.5, 2.0])}
    figure = distribution_figures.subjects(values, x_label="person", y_label="dB")
    markers = [line.get_ydata().tolist() for line in figure.axes[0].lines if len(line.get_xdata()) == 3]
    assert markers == [[1.0, 2.0, 3.0], [2.5, 2.0, 3.5]]  # by the mean over methods: persons 2, 3, 1
    levels = [line.get_ydata()[0] for line in figure.axes[0].lines if len(line.get_xdata()) == 2]
    assert levels == pytest.approx([2.0, 8 / 3])
    assert named(figure) == ["one, mean 2.00", "other, mean 2.67"]
    assert figures.to_svg(figure).startswith(b"<?xml")
    with pytest.raises(ValueError, match="the values of other"):
        distribution_figures.subjects({"one": np.ones(3), "other": np.ones((3, 2))}, x_label="", y_label="")


def test_a_gaussian_has_the_mean_and_the_deviation_of_its_histogram(rng):
    values = {"wide": rng.normal(20, 2, size=4000), "constant": np.full(50, 21.0)}
    figure = distribution_figures.histograms(values, x_label="dB", y_label="%")
    mean, deviation = values["wide"].mean(), values["wide"].std()
    assert named(figure) == [f"wide: {mean:.2f} ± {deviation:.2f}", "constant: 21.00 ± 0.00"]
    x, density = figure.axes[0].lines[0].get_data()
    weights = density / density.sum()
    assert weights @ x == pytest.approx(mean, abs=0.01)
    assert weights @ (x - mean) ** 2 == pytest.approx(deviation**2, rel=0.02)
    (steps, _) = [patch.get_data() for patch in figure.axes[0].patches]
    assert steps.values.sum() == pytest.approx(100)
    assert density.max() == pytest.approx(steps.values.max(), rel=0.15)
    assert (figure.axes[0].lines[1].get_ydata() == 0).all()
