"""The reader of MATLAB files against SciPy's, and files that no writer makes by mistake."""

import struct
import tracemalloc
import zlib

import numpy as np
import pytest
import scipy.io

from jaxface.data import mat5, matlab
from tests.datasets import real


def element(kind, data, order="<"):
    return struct.pack(order + "II", kind, len(data)) + data + bytes(-len(data) % 8)


def matrix(name, shape, numbers, *, kind=9, cls=6, order="<"):
    """A variable; numbers are the bytes of its last element, or whole elements in a list."""
    sizes = struct.pack(f"{order}{len(shape)}i", *shape)
    body = element(6, struct.pack(order + "II", cls, 0), order) + element(5, sizes, order)
    body += element(1, name.encode(), order)
    return element(
        14, body + (b"".join(numbers) if isinstance(numbers, list) else element(kind, numbers, order)), order
    )


def packed(variable):
    data = zlib.compress(variable, 9)
    return struct.pack("<II", 15, len(data)) + data


def file(path, *variables, order="<"):
    version, mark = (b"\x00\x01", b"IM") if order == "<" else (b"\x01\x00", b"MI")
    path.write_bytes(b"MATLAB 5.0 MAT-file".ljust(124) + version + mark + b"".join(variables))
    return path


def doubles(*numbers, order="<"):
    return np.array(numbers, order + "f8").tobytes()


def read(path):
    found = mat5.variables(memoryview(path.read_bytes()))
    return {name: mat5.value(each) for name, each in found.items()}


@pytest.mark.parametrize("is_packed", [False, True])
def test_the_same_as_scipy(tmp_path, rng, is_packed):
    cells = np.empty((2, 3), object)
    for place in np.ndindex(2, 3):
        cells[place] = rng.normal(size=rng.integers(0, 4, 2)).astype(rng.choice(["f4", "f8", "u1"]))
    given = {
        "a_long_name_of_a_variable": rng.normal(size=(3, 4)), "b": np.float32(2.5), "c": rng.integers(0, 9, (2, 3, 4)),
        "d": np.zeros((0, 5)), "e": np.array([[True, False]]), "cells": cells, "f": np.arange(5, dtype=np.uint16),
        "g": np.array([[2**63 - 1, -5]]), "h": np.uint8(7),
    }  # fmt: skip
    scipy.io.savemat(tmp_path / "x.mat", given, do_compression=is_packed)
    expected, found = scipy.io.loadmat(tmp_path / "x.mat"), read(tmp_path / "x.mat")
    assert set(found) == set(given)
    for name in set(given) - {"cells"}:
        np.testing.assert_array_equal(found[name], expected[name])
        assert found[name].dtype == expected[name].dtype
    assert found["cells"].shape == (2, 3)
    for place in np.ndindex(2, 3):
        np.testing.assert_array_equal(found["cells"][place], expected["cells"][place])


@pytest.mark.parametrize(
    "name", ["yale/Yale_64x64.mat", "yaleb/YaleB_32x32_ori.mat", "two_view/buaaRnSp.mat", "two_view/orl_four_views.mat"]
)
def test_the_same_as_scipy_on_real_files(name):
    expected, found = scipy.io.loadmat(real(name)), read(real(name))
    for key, value in found.items():
        pairs = [(value, expected[key])]
        if value.dtype == object:
            pairs = list(zip(value.ravel(), expected[key].ravel(), strict=True))
        for ours, theirs in pairs:
            np.testing.assert_array_equal(ours, theirs)


def test_files_of_the_other_byte_order(tmp_path):
    """As a workstation of old wrote them: big-endian in the file, of this machine in the arrays."""
    pixels, labels = np.arange(24.0).reshape(6, 4), np.array([1, 1, 2, 2, 300, 300])
    variables = (
        matrix("fea", (6, 4), pixels.T.astype(">f8").tobytes(), order=">"),
        matrix("gnd", (6, 1), labels.astype(">u2").tobytes(), kind=4, order=">"),
    )
    data = matlab.load(file(tmp_path / "x.mat", *variables, order=">"))
    assert data.images.dtype.isnative
    np.testing.assert_array_equal(data.images, np.swapaxes(pixels.reshape(6, 2, 2), 1, 2).astype(np.float32) / 255)
    assert data.names == (1, 2, 300)
    views = matrix("X", (1, 1), [matrix("", (6, 4), pixels.T.astype(">f8").tobytes(), order=">")], cls=1, order=">")
    both = matlab.load_views(file(tmp_path / "x.mat", views, variables[1], order=">"), labels="gnd")
    assert both.views[0].dtype.isnative
    np.testing.assert_array_equal(both.views[0], pixels)


def test_files_of_version_4(tmp_path, rng):
    pixels = rng.integers(0, 256, (4, 9))
    scipy.io.savemat(tmp_path / "x.mat", {"fea": pixels.astype(float), "gnd": np.array([1.0, 2, 1, 2])}, format="4")
    found = matlab.load(tmp_path / "x.mat")
    np.testing.assert_allclose(found.images[1], pixels[1].reshape(3, 3).T / 255, rtol=1e-6)


def test_cells_nested_without_end_do_not_crash_the_process(tmp_path):
    """SciPy's reader overflows the stack of the process on these 240 kB."""
    inner = matrix("", (1, 1), doubles(1.0))
    headers, size = [], len(inner)
    for level in range(5000):
        start = matrix("X" if level == 4999 else "", (1, 1), [], cls=1)[8:]
        headers.append(struct.pack("<II", 14, len(start) + size) + start)
        size += len(headers[-1])
    nested = b"".join(reversed(headers)) + inner
    path = file(tmp_path / "x.mat", nested, matrix("Y", (1, 1), doubles(1.0)))
    with pytest.raises(ValueError, match=r"x\.mat does not read .* 'X' has no readable data: .* cells within cells"):
        matlab.load_views(path)
    path = file(tmp_path / "x.mat", packed(nested), matrix("Y", (1, 1), doubles(1.0)))
    with pytest.raises(ValueError, match="cells within cells"):
        matlab.load_views(path)


def test_large_variables_are_named_before_they_are_unpacked(tmp_path):
    """30 MB of zeros are packed into 30 kB; other variables of the file stay packed."""
    zeros = packed(matrix("fea", (3_000_000, 10), bytes(30_000_000), kind=2))
    path = file(
        tmp_path / "x.mat", zeros, matrix("gnd", (2, 1), doubles(1, 2)), matrix("few", (2, 4), doubles(*[0] * 8))
    )
    tracemalloc.start()
    message = r"x\.mat, a file of .* unpacks to 30,000,.* bytes \(fea, gnd\); the limit is 1,000,000\. Raise max_bytes"
    with pytest.raises(ValueError, match=message):
        matlab.load(path, max_bytes=1_000_000)
    assert matlab.load(path, images="few", max_bytes=1).images.shape == (2, 2, 2)
    assert tracemalloc.get_traced_memory()[1] < 2_000_000
    tracemalloc.stop()


GOOD = matrix("gnd", (4, 1), doubles(1, 2, 1, 2))


@pytest.mark.parametrize(
    ("variable", "message"),
    [
        (matrix("fea", (4, 4), doubles(*range(15))), r"sizes \(4, 4\) need 128 bytes; it has 120"),
        (matrix("fea", (10**9, 10**9), doubles(1.0)), "need 8000000000000000000 bytes; it has 8"),
        (matrix("fea", (-4, -4), doubles(*range(16))), r"a matrix has the sizes \(-4, -4\)"),
        (matrix("fea", (4, 4), doubles(*range(16)), kind=99), "of the unknown kind 99"),
        (matrix("fea", (4, 4), doubles(*range(16)), cls=4), "it is text"),
        (matrix("fea", (4, 4), doubles(*range(16)), cls=2), "it is a structure"),
        (matrix("fea", (4, 4), doubles(*range(16)), cls=5), "it is a sparse matrix"),
        (matrix("fea", (4, 4), doubles(*range(16)), cls=6 | 0x0800), "it is complex numbers"),
        (matrix("fea", (2**31 - 1, 2**31 - 1), [], cls=1), "an array of 4611686014132420609 cells has 0 bytes|has"),
        (matrix("fea", (2, 1), [element(9, doubles(1.0))], cls=1), "a cell is of kind 9|cells has"),
        (matrix("fea", (4, 4), doubles(*range(16)))[:100], "it ends within an element"),
        (packed(matrix("fea", (4, 4), doubles(*range(16))))[:40], "it ends within an element"),
        (packed(matrix("fea", (4, 4), doubles(*range(16))) + b"more"), "not of the 176 bytes that it says|not of the"),
        (packed(matrix("fea", (4, 4), doubles(*range(16)))[:120]), "not of the"),
        (packed(element(9, doubles(1.0))), "a packed element is of kind 9"),
        (element(15, b"nothing packed"), "a packed variable is damaged"),
        (element(15, b""), "a packed variable is empty"),
        (struct.pack("<HH", 9, 400) + b"....", "a small element is larger than its tag"),
    ],
)
def test_variables_of_another_form_are_named(tmp_path, variable, message):
    path = file(tmp_path / "x.mat", GOOD, variable)
    with pytest.raises(ValueError, match=message) as caught:
        matlab.load(path)
    assert caught.match(r"x\.mat does not read as a MATLAB file: ")


def test_arrays_of_other_axes_are_refused(tmp_path):
    many = matrix("fea", (2, 2, 4), doubles(*range(16)))
    with pytest.raises(ValueError, match=r"'fea' of .*x\.mat must be numbers \[n, h w\]; got dtype float64 and shape"):
        matlab.load(file(tmp_path / "x.mat", GOOD, many))
    cells = matrix("X", (0, 0), [], cls=1)
    with pytest.raises(ValueError, match=r"'X' of .*x\.mat must be a cell array .* got none"):
        matlab.load_views(file(tmp_path / "x.mat", GOOD, cells), labels="gnd")
    labels = matrix("gnd", (1, 1), [matrix("", (4, 1), doubles(1, 2, 1, 2))], cls=1)
    square = matrix("fea", (4, 4), doubles(*range(16)))
    with pytest.raises(ValueError, match=r"'gnd' of .*x\.mat must hold"):
        matlab.load(file(tmp_path / "x.mat", labels, square))


def test_damaged_bytes_never_give_another_kind_of_error(tmp_path, rng):
    """300 files with one byte changed or cut: a message that names the file, or an array."""
    scipy.io.savemat(tmp_path / "x.mat", {"fea": rng.random((4, 4)), "gnd": np.arange(4)}, do_compression=True)
    whole = (tmp_path / "x.mat").read_bytes()
    messages = []
    for _ in range(300):
        at = int(rng.integers(len(whole)))
        changed = whole[:at] + (b"" if rng.random() < 0.3 else bytes([rng.integers(256)]) + whole[at + 1 :])
        (tmp_path / "x.mat").write_bytes(changed)
        try:
            assert np.isfinite(matlab.load(tmp_path / "x.mat").images).all()
        except ValueError as error:
            messages.append(str(error))
    assert len(messages) > 100
    assert all("x.mat" in message for message in messages)
