"""MATLAB files: the `fea`/`gnd` face files that circulate for Yale, Extended Yale B, PIE, and two-view files.

load        fea [n, h w] (each row a column-major image), gnd [n] -> LabeledImages
load_views  a cell array of views, each [n, d_v] or each [d_v, n], and labels [n] -> Views
"""

import math
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import numpy as np

from jaxface.core import checks, messages
from jaxface.core.labels import dense
from jaxface.data import archives, datasets, mat5, storage

__all__ = ["load", "load_views"]

_NOT_READ = "does not read as a MATLAB file"


class Views(NamedTuple):
    """Several descriptions of the same n samples of known people."""

    views: tuple[np.ndarray, ...]  # each floating [n, d_v]
    ids: np.ndarray  # int32 [n], dense
    names: tuple[datasets.Name, ...]  # [c]


def load(
    path: str | Path,
    *,
    shape: tuple[int, int] | None = None,
    images: str = "fea",
    labels: str = "gnd",
    credit: str = "",
    max_bytes: int = storage.MAX_BYTES,
) -> datasets.LabeledImages:
    """Images `[n, h, w]` of a `fea`/`gnd` file: MATLAB's image(:) is column-major, so `fea[i]` is read as `[w, h]`.

    shape: (height, width); without it the images must be square.
    images, labels: the names of the two variables. Values are uint8 or whole numbers up to 255, which become
    [0, 1], or lie in [0, 1] already.
    max_bytes: a file that unpacks to more, and to more than four times its size, is refused before it is unpacked.
    """
    path = storage.existing_file(path, "A MATLAB file")
    variables = _variables(path, images, labels, max_bytes=max_bytes)
    pixels, owner = variables[images], variables[labels].ravel()
    if pixels.dtype.kind not in "uif" or pixels.ndim != 2 or 0 in pixels.shape:
        raise ValueError(
            f"{images!r} of {path} must be numbers [n, h w]; got dtype {pixels.dtype} and shape {pixels.shape}."
        )
    if owner.size != len(pixels):
        raise ValueError(
            f"{labels!r} of {path} must hold one label for each of the {len(pixels)} rows of {images!r}; "
            f"got {owner.size}."
        )
    height, width = _image_shape(pixels.shape[1], shape, f"{images!r} of {path}")
    unit = _unit_range(pixels, f"{images!r} of {path}")
    upright = np.ascontiguousarray(unit.reshape(-1, width, height).transpose(0, 2, 1))
    return datasets.from_arrays(upright, _every_label(owner, f"{labels!r} of {path}"), credit=credit)


def load_views(path: str | Path, *, views: str = "X", labels: str = "Y", max_bytes: int = storage.MAX_BYTES) -> Views:
    """Views `[n, d_v]` in a cell array named `views`, with labels `[n]`.

    Samples may stand in rows or in columns, the same way in every view: the number of labels decides, and rows
    are taken where both would do. Integers become float32; floats stay as they are.
    """
    path = storage.existing_file(path, "A MATLAB file")
    variables = _variables(path, views, labels, max_bytes=max_bytes)
    owner, cells = variables[labels].ravel(), variables[views]
    arrays = list(cells.ravel()) if cells.dtype == object else [cells]
    rows = all(view.ndim == 2 and view.shape[0] == owner.size for view in arrays)
    columns = all(view.ndim == 2 and view.shape[1] == owner.size for view in arrays)
    if not arrays or not (rows or columns) or any(view.dtype.kind not in "uif" for view in arrays):
        raise ValueError(
            f"{views!r} of {path} must be a cell array of numbers, each [n, d] or each [d, n] with n = {owner.size}, "
            f"the size of {labels!r}; got {', '.join(f'{view.dtype} {view.shape}' for view in arrays[:9]) or 'none'}."
        )
    _, ids, names = dense(_every_label(owner, f"{labels!r} of {path}"))
    oriented = tuple(_floating(view if rows else view.T) for view in arrays)
    checks.finite(**{f"view {i} of {path}": view for i, view in enumerate(oriented)})
    return Views(oriented, ids, names)


def _variables(path: Path, *names: str, max_bytes: int) -> dict[str, np.ndarray]:
    """Variables of a file of MATLAB 4 to 7 by name, in native byte order; an error for a missing one lists all."""
    with path.open("rb") as stream:
        header = stream.read(mat5.HEADER_BYTES)
    if mat5.is_hdf5(header):
        raise ValueError(f"{path} is a MATLAB 7.3 (HDF5) file, which is not read. Save it in MATLAB with -v7.")
    with storage.naming_damage(path, says=_NOT_READ):
        sizes, read = _opened(path, header)
    missing = [name for name in names if name not in sizes]
    if missing:
        listed = ", ".join(messages.printable(name) for name in list(sizes)[:20]) or "nothing"
        near = messages.did_you_mean(missing[0], sizes)
        raise ValueError(f"{path} must hold {missing[0]!r}; it holds {listed}.{near}")
    storage.check_unpacked(path, sum(sizes[name] for name in names), names, max_bytes=max_bytes)
    variables = {}
    for name in names:
        with storage.naming_damage(path, name, says=_NOT_READ):
            variables[name] = read(name)
    return variables


def _opened(path: Path, header: bytes) -> tuple[dict[str, int], Callable[[str], np.ndarray]]:
    """How many bytes every variable unpacks to, and a function that reads one."""
    if header[126:128] in mat5.ORDERS and 0 not in header[:4]:
        variables = mat5.variables(memoryview(np.memmap(path, np.uint8, "r").data))
        sizes = {name: variable.num_bytes for name, variable in variables.items()}
        return sizes, lambda name: mat5.value(variables[name])
    if 0 not in header[:4]:  # a file of version 4 begins with a small number
        raise ValueError("it does not begin as a MATLAB file")
    import scipy.io

    def read(name: str) -> np.ndarray:
        return archives.native(np.asarray(scipy.io.loadmat(path, variable_names=[name])[name]))

    return {name: 8 * math.prod(shape) for name, shape, _ in scipy.io.whosmat(path)}, read


def _image_shape(num_pixels: int, shape: tuple[int, int] | None, what: str) -> tuple[int, int]:
    height, width = shape if shape is not None else (math.isqrt(num_pixels),) * 2
    if height * width != num_pixels:
        expected = f"{height} x {width}" if shape is not None else "a square"
        raise ValueError(f"{what} has {num_pixels} pixels an image, not {expected}. Pass shape=(height, width).")
    return height, width


def _unit_range(pixels: np.ndarray, what: str) -> np.ndarray:
    """Float32 in [0, 1] from 0..255 or from [0, 1]; anything else is not guessed."""
    checks.finite(**{what: pixels})
    low, high = pixels.min(), pixels.max()
    if low >= 0 and high <= 1 and pixels.dtype.kind == "f":
        return pixels.astype(np.float32)
    if low >= 0 and high <= 255 and (pixels == np.floor(pixels)).all():
        return pixels.astype(np.float32) / np.float32(255)
    raise ValueError(
        f"{what} must hold whole numbers in [0, 255] or floats in [0, 1]; got {pixels.dtype} from {low} to {high}."
    )


def _every_label(values: np.ndarray, what: str) -> np.ndarray:
    """Labels as integers, one for every sample."""
    labels = _whole(values, what)
    if (missing := int((labels == -1).sum())) or not labels.size:
        raise ValueError(f"{what} must label every sample; {missing} are -1, of {labels.size}.")
    return labels


def _whole(values: np.ndarray, what: str) -> np.ndarray:
    """Labels as int64: MATLAB stores whole numbers as doubles."""
    if values.dtype.kind in "iu":
        return values
    if values.dtype.kind != "f" or not ((values == np.floor(values)) & (np.abs(values) < 2**53)).all():
        wrong = f"dtype {values.dtype}" if values.dtype.kind != "f" else "fractions, NaN or infinity among them"
        raise ValueError(f"{what} must hold whole numbers; got {wrong}.")
    return values.astype(np.int64)


def _floating(view: np.ndarray) -> np.ndarray:
    return np.ascontiguousarray(view if view.dtype.kind == "f" else view.astype(np.float32))
