"""Small folders of images to read back."""

import numpy as np
import pytest
from PIL import Image


@pytest.fixture
def write_image():
    """Writes an array (uint8, [h, w] or [h, w, 3]) and makes the folders on the way."""

    def write(path, pixels=None, **options):
        path.parent.mkdir(parents=True, exist_ok=True)
        pixels = np.full((6, 4), 128, np.uint8) if pixels is None else pixels
        Image.fromarray(pixels).save(path, **options)
        return path

    return write


@pytest.fixture
def people(tmp_path, write_image):
    """anna with 3 images, ben with 2, s2 and s10 with 1; the grey level tells the image."""
    level = 0
    for name, count in {"anna": 3, "ben": 2, "s2": 1, "s10": 1}.items():
        for shot in range(1, count + 1):
            level += 10
            write_image(tmp_path / "faces" / name / f"{shot}.png", np.full((6, 4), level, np.uint8))
    return tmp_path / "faces"
