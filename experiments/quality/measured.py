"""Qualities that a user can measure on a photo; larger is better."""

import numpy as np

MEASURED = ("sharpness", "contrast")
_LEAST = 1e-6  # of a variance: a step of 256 has 1.5e-5


def qualities(images: np.ndarray) -> np.ndarray:
    """`MEASURED` of images `[n, h, w]` or `[n, h, w, 3]`: `[2, n]`.

    Sharpness is the logarithm of the mean squared difference of neighbouring pixels, contrast that of the variance.
    Neighbours are two pixels apart, which the noise of single pixels disturbs less.
    """
    return np.array([_of_one(image.mean(axis=-1) if image.ndim == 3 else image) for image in images]).T


def _of_one(gray: np.ndarray) -> tuple[float, float]:
    smooth = (gray[:-1, :-1] + gray[1:, :-1] + gray[:-1, 1:] + gray[1:, 1:]) / 4
    squares = ((smooth[2:] - smooth[:-2]) ** 2).mean() + ((smooth[:, 2:] - smooth[:, :-2]) ** 2).mean()
    return float(np.log(squares + _LEAST)), float(np.log(smooth.var() + _LEAST))
