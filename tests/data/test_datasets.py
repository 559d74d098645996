import numpy as np
import pytest

from jaxface import data
from jaxface.data import embeddings, folders


@pytest.fixture
def faces(rng):
    labels = ["zoe", "adam", "zoe", "ben", "adam", "zoe"]
    return data.from_arrays(rng.random((6, 3, 2)), labels, files=[f"{i}.png" for i in range(6)])


def test_from_arrays(faces):
    assert faces.images.dtype == np.float32
    assert faces.names == ("adam", "ben", "zoe")
    assert faces.ids.tolist() == [2, 0, 2, 1, 0, 2]
    assert faces.ids.dtype == np.int32


@pytest.mark.parametrize("rows", [[4, 0], np.array([4, 0]), np.array([True, False, False, False, True, False])])
def test_take_keeps_ids_and_names(faces, rows):
    part = data.take(faces, rows)
    order = [0, 4] if np.asarray(rows).dtype == bool else [4, 0]
    np.testing.assert_array_equal(part.images, faces.images[order])
    assert part.files == tuple(faces.files[i] for i in order)
    assert [part.names[i] for i in part.ids] == [faces.names[faces.ids[i]] for i in order]
    assert part.names == faces.names


def test_take_without_files(rng):
    assert data.take(data.from_arrays(rng.random((3, 2, 2)), [1, 2, 3]), [0, 2]).files == ()


def test_take_people_makes_ids_dense_in_the_order_asked_for(faces):
    part = data.take_people(faces, [2, 0])
    assert part.names == ("zoe", "adam")
    assert part.ids.tolist() == [0, 1, 0, 1, 0]
    np.testing.assert_array_equal(part.images, faces.images[[0, 1, 2, 4, 5]])
    assert [part.names[i] for i in part.ids] == ["zoe", "adam", "zoe", "adam", "zoe"]


def test_selecting_works_on_listings_and_embeddings(people, rng):
    listing = data.take_people(folders.scan(people), [1])
    assert listing.files == ("ben/1.png", "ben/2.png")
    table = embeddings.from_arrays(rng.normal(size=(4, 2)), ["a", "b", "a", "c"])
    assert data.take(table, [3, 1]).features.tolist() == table.features[[3, 1]].tolist()


def test_people_with(faces):
    assert data.people_with(faces.ids, min_rows=2).tolist() == [0, 2]
    assert data.people_with(faces.ids, min_rows=4).tolist() == []


def test_errors(faces, rng):
    pixels = rng.random((3, 2, 2))
    with pytest.raises(ValueError, match=r"images must have shape \[n, h, w\] or \[n, h, w, 3\]; got shape \(3, 4\)"):
        data.from_arrays(pixels.reshape(3, 4), [1, 2, 3])
    with pytest.raises(
        ValueError, match=r"images must be floating in \[0, 1\]; got dtype uint8\. Divide 8-bit grey values by 255"
    ):
        data.from_arrays(np.zeros((3, 2, 2), np.uint8), [1, 2, 3])
    with pytest.raises(ValueError, match=r"images must lie in \[0, 1\]"):
        data.from_arrays(pixels + 1, [1, 2, 3])
    with pytest.raises(ValueError, match="each of the 3 images; got 2 labels, 0 of them"):
        data.from_arrays(pixels, [1, 2])
    with pytest.raises(ValueError, match="got 3 labels, 1 of them None or -1"):
        data.from_arrays(pixels, ["a", None, "b"])
    with pytest.raises(ValueError, match="files must name each of the 3 rows or be empty; got 1"):
        data.from_arrays(pixels, [1, 2, 3], files=["x"])
    with pytest.raises(ValueError, match="people must be a list of different ids"):
        data.take_people(faces, [0, 0])
    with pytest.raises(ValueError, match=r"people must be in \[0, 3\)"):
        data.take_people(faces, [3])


def test_rows_of_another_form_are_refused(faces):
    for rows, found in (
        ([0.0, 1.0], "dtype float64"),
        (np.ones(5, bool), r"dtype bool and shape \(5,\)"),
        (np.zeros((2, 2), int), r"shape \(2, 2\)"),
        (["0"], "dtype <U1"),
    ):
        with pytest.raises(ValueError, match=rf"rows must be whole numbers \[r\] or a mask \[6\]; got .*{found}"):
            data.take(faces, rows)
    for rows in ([0, 6], [-7]):
        with pytest.raises(ValueError, match="rows must be below 6, the rows there are; got"):
            data.take(faces, rows)
    assert data.take(faces, []).ids.shape == (0,)


@pytest.mark.parametrize("dtype", [np.uint8, np.uint64, np.int64])
def test_ids_of_any_integer_type(faces, rng, dtype):
    """NumPy counts no uint64, and a device would not hold it."""
    ids = faces.ids.astype(dtype)
    assert data.people_with(ids, min_rows=2).tolist() == [0, 2]
    assert data.take_people(faces, np.array([2, 0], dtype)).names == ("zoe", "adam")
    folds = data.splits.k_shot(ids[[0, 1, 2, 4, 5]] // 2, num_train=1, rng=rng)
    assert folds.shape == (1, 5)
    batches = data.stream.batches(data.stream.from_array(np.eye(6), faces.ids), batch_size=2, rows=ids)
    assert len(list(batches)) == 3
    with pytest.raises(ValueError, match=r"ids must be in \[0, 2147483647\); got values from -1"):
        data.people_with([-1, 2], min_rows=1)


def test_half_precision_and_big_endian_images_become_float32(rng):
    for dtype in (np.float16, ">f4", ">f8"):
        images = data.from_arrays(rng.random((2, 3, 4)).astype(dtype), ["a", "b"]).images
        assert images.dtype == np.float32
        assert images.dtype.isnative
