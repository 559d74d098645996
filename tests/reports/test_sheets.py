import io

import numpy as np
from PIL import Image

from jaxface.reports import figures, sheets


def test_grid_shows_grey_colour_and_signed_images():
    grey = np.linspace(0, 1, 2 * 3 * 8 * 6).reshape(2, 3, 8, 6)
    figure = sheets.image_grid(grey, row_labels=("a", "b"), column_labels=("x", "y", "z"), title="faces")
    (axes,) = figure.axes
    for image, shown in zip(grey.reshape(6, 8, 6), axes.images, strict=True):
        np.testing.assert_array_equal(shown.get_array(), image)
    places = np.array([shown.get_extent() for shown in axes.images]).reshape(2, 3, 4)
    assert (np.diff(places[..., :2].reshape(2, 6), axis=1) > 0).all()  # left and right ends, of one after the other
    assert (places[0, :, 2] < places[1, :, 3]).all()  # inches from the top
    picture = Image.open(io.BytesIO(figures.to_png(figure)))
    assert picture.size[0] > 200
    signed = sheets.image_grid(np.array([[[[-2.0, 0.0, 1.0]]]]), symmetric=True).axes[0].images[0]
    np.testing.assert_allclose(signed.get_array(), [[0, 0.5, 0.75]])
    assert signed.get_clim() == (0, 1)
    color = sheets.image_grid(np.ones((1, 1, 4, 4, 3)))
    assert color.axes[0].images[0].get_array().shape == (4, 4, 3)
    assert figures.to_png(sheets.image_grid(np.zeros((1, 1, 4, 4)), symmetric=True))


def test_a_title_wider_than_the_images_is_not_cut():
    title = "One face each of the first people, and $3 descriptors"
    figure = sheets.image_grid(np.zeros((1, 1, 4, 4)), title=title)
    (text,) = figure.texts
    figures.to_png(figure)
    assert text.get_window_extent().x1 <= figure.bbox.x1


def test_labels_with_control_characters_are_drawn_as_escapes():
    name = "a\x1b\t\udcff"
    grid = sheets.image_grid(np.zeros((1, 1, 4, 4)), row_labels=(name,), column_labels=(name,))
    assert grid.axes[0].texts[0].get_text() == "a\\x1b\\t\\xff"
    assert figures.to_png(grid)


def test_every_row_of_a_sheet_is_a_picture_of_its_own():
    """The page scales rows; labels are text of the page, not pixels of a picture that shrinks."""
    images = np.linspace(0, 1, 2 * 3 * 8 * 6).reshape(2, 3, 8, 6)
    sheet = sheets.sheet("faces.png", images, caption="Some", row_labels=("a", "b"), column_labels=("x", "y", "z"))
    assert [label for label, _ in sheet.rows] == ["a", "b"]
    for (_, data), row in zip(sheet.rows, images, strict=True):
        pixels = np.asarray(Image.open(io.BytesIO(data)).convert("L")) / 255
        height, width = (pixels.shape[0] // 8, (pixels.shape[1] - 2 * 4) // 3 // 6)
        for place, image in enumerate(row):
            left = place * (6 * width + 4)
            shown = pixels[::height, left : left + 6 * width : width]
            np.testing.assert_allclose(shown, image, atol=0.5 / 255 + 1e-6)
    again = sheets.sheet("faces.png", images, caption="Some", row_labels=("a", "b"), column_labels=("x", "y", "z"))
    assert again == sheet


def test_signed_rows_show_zero_as_the_middle_grey():
    signed = np.array([[[[-2.0, 0.0], [1.0, 2.0]]]])
    ((_, data),) = sheets.sheet("axes.png", signed, caption="", symmetric=True).rows
    pixels = np.asarray(Image.open(io.BytesIO(data)).convert("L"))
    corners = pixels[[0, 0, -1, -1], [0, -1, 0, -1]]
    assert abs(int(corners[1]) - 128) <= 1
    assert corners[0] == 0
    assert corners[3] == 255
    color = sheets.sheet("c.png", np.ones((1, 2, 4, 4, 3)) * [1.0, 0.0, 0.0], caption="").rows[0][1]
    assert Image.open(io.BytesIO(color)).convert("RGB").getpixel((0, 0)) == (255, 0, 0)
