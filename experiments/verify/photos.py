"""Photos as files."""

import io

import numpy as np


def rounded(images: np.ndarray) -> np.ndarray:
    """Images in [0, 1] as they come back from a file of 8 bits."""
    return np.round(np.clip(images, 0, 1) * 255).astype(np.float32) / np.float32(255)


def to_png(image: np.ndarray) -> bytes:
    """An image `[h, w]` or `[h, w, 3]` in [0, 1] as PNG, rounded to 8 bits."""
    from PIL import Image

    buffer = io.BytesIO()
    Image.fromarray(np.round(np.clip(image, 0, 1) * 255).astype(np.uint8)).save(buffer, format="PNG")
    return buffer.getvalue()
