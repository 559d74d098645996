import numpy as np
import pytest
import scipy.io

from jaxface.data import matlab
from tests.datasets import real
from tests.tolerances import assert_close


@pytest.fixture
def faces(rng):
    return rng.integers(0, 256, (6, 5, 4), dtype=np.uint8)


def column_major(images):
    """What MATLAB's image(:)' writes."""
    return np.stack([image.flatten(order="F") for image in images])


def write(path, **variables):
    scipy.io.savemat(path, variables)
    return path


def test_column_major_images_come_back_upright(tmp_path, faces):
    labels = np.array([[1], [1], [2], [2], [7], [7]], np.uint8)
    data = matlab.load(write(tmp_path / "x.mat", fea=column_major(faces), gnd=labels), shape=(5, 4))
    assert_close(data.images, faces.astype(np.float32) / 255)
    assert data.ids.tolist() == [0, 0, 1, 1, 2, 2]
    assert data.names == (1, 2, 7)


@pytest.mark.parametrize("scale", [1.0, 255.0])
def test_square_images_of_doubles(tmp_path, rng, scale):
    images = np.round(rng.random((4, 3, 3)) * 255) / 255 * scale
    path = write(tmp_path / "x.mat", fea=column_major(images), gnd=np.array([1.0, 2, 1, 2]))
    assert_close(matlab.load(path).images, (images / scale).astype(np.float32))


def test_other_names_of_the_variables(tmp_path, faces):
    path = write(tmp_path / "x.mat", pixels=column_major(faces), who=np.arange(1, 7))
    assert matlab.load(path, shape=(5, 4), images="pixels", labels="who").images.shape == (6, 5, 4)


def test_a_missing_variable_lists_what_exists(tmp_path, faces):
    path = write(tmp_path / "x.mat", feat=column_major(faces), gnd=np.arange(6))
    with pytest.raises(ValueError, match=r"x\.mat must hold 'fea'; it holds feat, gnd\. Did you mean 'feat'\?"):
        matlab.load(path)


def test_errors_of_content(tmp_path, faces):
    flat = column_major(faces)
    with pytest.raises(
        ValueError, match=r"'gnd' of .*x\.mat must hold one label for each of the 6 rows of 'fea'; got 5"
    ):
        matlab.load(write(tmp_path / "x.mat", fea=flat, gnd=np.arange(5)))
    with pytest.raises(ValueError, match=r"has 20 pixels an image, not a square\. Pass shape="):
        matlab.load(write(tmp_path / "x.mat", fea=flat, gnd=np.arange(6)))
    with pytest.raises(ValueError, match="has 20 pixels an image, not 5 x 5"):
        matlab.load(tmp_path / "x.mat", shape=(5, 5))
    with pytest.raises(ValueError, match=r"whole numbers in \[0, 255\] or floats in \[0, 1\]; got float64 from"):
        matlab.load(write(tmp_path / "x.mat", fea=flat * 1.5, gnd=np.arange(6)), shape=(5, 4))
    for gnd in (np.arange(6) + 0.5, np.where(np.arange(6) == 2, np.inf, 1.0), np.where(np.arange(6) == 2, 1e300, 1.0)):
        with pytest.raises(ValueError, match="must hold whole numbers; got fractions, NaN or infinity among them"):
            matlab.load(write(tmp_path / "x.mat", fea=flat, gnd=gnd), shape=(5, 4))
    with pytest.raises(ValueError, match="'fea' has no readable data: it is text; only real numbers"):
        matlab.load(write(tmp_path / "x.mat", fea=np.array(["a", "b"]), gnd=np.arange(2)))
    bad = flat / 255
    bad[2, 3] = np.nan
    with pytest.raises(ValueError, match="must be finite; 1 of 120 values"):
        matlab.load(write(tmp_path / "x.mat", fea=bad, gnd=np.arange(6)), shape=(5, 4))


def test_damaged_and_modern_files(tmp_path):
    (tmp_path / "x.mat").write_bytes(b"MATLAB 5.0 MAT-file".ljust(124) + b"\x00\x01IM" + b"\x0e" * 40)
    with pytest.raises(ValueError, match=r"x\.mat does not read as a MATLAB file"):
        matlab.load(tmp_path / "x.mat")
    (tmp_path / "y.mat").write_bytes(b"MATLAB 7.3 MAT-file".ljust(124) + b"\x00\x02IM" + b"\x00" * 40)
    with pytest.raises(ValueError, match=r"y\.mat is a MATLAB 7\.3 \(HDF5\) file.*-v7"):
        matlab.load(tmp_path / "y.mat")
    with pytest.raises(FileNotFoundError, match="does not exist"):
        matlab.load(tmp_path / "z.mat")


def cells(*arrays):
    out = np.empty((1, len(arrays)), object)
    out[0, :] = arrays
    return out


@pytest.mark.parametrize("samples_in", ["rows", "columns"])
def test_views_in_rows_or_columns(tmp_path, rng, samples_in):
    x, y = rng.normal(size=(6, 3)), rng.normal(size=(6, 6))  # the square view alone would not tell
    stored = (x, y) if samples_in == "rows" else (x.T, y.T)
    path = write(tmp_path / "x.mat", data=cells(*stored), truth=np.repeat([3, 5], 3)[:, None])
    found = matlab.load_views(path, views="data", labels="truth")
    assert_close(found.views, (x, y))
    assert found.ids.tolist() == [0, 0, 0, 1, 1, 1]
    assert found.names == (3, 5)


def test_errors_of_views(tmp_path, rng):
    path = write(tmp_path / "x.mat", X=cells(rng.normal(size=(6, 3)), rng.normal(size=(5, 3))), Y=np.arange(1, 7))
    with pytest.raises(
        ValueError, match=r"each \[n, d\] or each \[d, n\] with n = 6.*float64 \(6, 3\), float64 \(5, 3\)"
    ):
        matlab.load_views(path)
    with pytest.raises(ValueError, match="must hold 'data'; it holds X, Y"):
        matlab.load_views(path, views="data")
    bad = rng.normal(size=(3, 2))
    bad[1, 1] = np.inf
    with pytest.raises(ValueError, match=r"view 0 of .*x\.mat must be finite; 1 of 6"):
        matlab.load_views(write(tmp_path / "x.mat", X=cells(bad), Y=np.arange(3)))
    with pytest.raises(ValueError, match=r"'gnd' of .*x\.mat must label every sample; 2 are -1, of 4"):
        matlab.load(write(tmp_path / "x.mat", fea=rng.random((4, 9)), gnd=np.array([-1, 1, 2, -1])))
    with pytest.raises(ValueError, match="must label every sample; 1 are -1"):
        matlab.load_views(write(tmp_path / "x.mat", X=cells(rng.normal(size=(3, 2))), Y=np.array([-1, 1, 2])))


@pytest.mark.parametrize(
    ("name", "shape", "people"),
    [("yale/Yale_64x64.mat", (165, 64, 64), 15), ("yaleb/YaleB_32x32_ori.mat", (2414, 32, 32), 38)],
)
def test_the_yale_files(name, shape, people):
    data = matlab.load(real(name))
    assert data.images.shape == shape
    assert len(data.names) == people
    # Upright faces: the left half resembles the mirrored right half more than the top half resembles the bottom.
    mean = data.images.mean(0)
    assert np.abs(mean - mean[:, ::-1]).mean() < np.abs(mean - mean[::-1]).mean()


def test_the_two_view_files():
    two = matlab.load_views(real("two_view/buaaRnSp.mat"), views="data", labels="truth")
    assert [view.shape for view in two.views] == [(1350, 100), (1350, 100)]
    assert np.bincount(two.ids).tolist() == [9] * 150
    four = matlab.load_views(real("two_view/orl_four_views.mat"))
    assert [view.shape for view in four.views] == [(400, 512), (400, 59), (400, 864), (400, 254)]
    assert len(four.names) == 40
