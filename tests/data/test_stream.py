import json
import os
import pathlib
import re
import tracemalloc

import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from jaxface.data import embeddings, stream


def equal(left, right):
    return all(np.array_equal(a, b) for a, b in zip(left, right, strict=True))


@pytest.fixture
def table(rng):
    return rng.normal(size=(11, 3)).astype(np.float32), [
        "b",
        "a",
        None,
        "b",
        "c",
        "a",
        "a",
        "b",
        None,
        "c",
        "c",
    ]


@given(st.integers(1, 20), st.integers(1, 7), st.integers(1, 4), st.booleans())
@settings(max_examples=80, deadline=None)
def test_every_row_comes_once_in_batches_of_one_size(num_rows, batch_size, process_count, shuffled):
    x = np.arange(1, num_rows + 1, dtype=np.float64)[:, None] * [1, 10]
    source = stream.from_array(x, np.arange(num_rows))
    order = np.random.default_rng(0).permutation(num_rows) if shuffled else None
    seen = []
    for process in range(process_count):
        passed = list(
            stream.batches(
                source, batch_size=batch_size, rows=order, process_index=process, process_count=process_count
            )
        )
        assert len(passed) == stream.num_batches(num_rows, batch_size=batch_size, process_count=process_count)
        for batch in passed:
            assert batch.features.shape == (batch_size, 2)
            assert (batch.features[~batch.valid] == 0).all()
            assert (batch.ids[~batch.valid] == -1).all()
            np.testing.assert_array_equal(batch.features[batch.valid], x[batch.ids[batch.valid]])
            seen += batch.ids[batch.valid].tolist()
    assert seen == (list(range(num_rows)) if order is None else order.tolist())


def test_unknown_people_have_no_id(table):
    source = stream.from_array(*table)
    assert source.ids.tolist() == [1, 0, -1, 1, 2, 0, 0, 1, -1, 2, 2]
    assert source.names == ("a", "b", "c")
    batch = next(stream.batches(source, batch_size=3))
    assert batch.ids.tolist() == [1, 0, -1]
    assert batch.valid.all()
    assert (stream.from_array(table[0]).ids == -1).all()


def test_a_pass_resumes_where_it_stopped(table):
    source = stream.from_array(*table)
    whole = list(stream.batches(source, batch_size=4))
    rest = list(stream.batches(source, batch_size=4, start=2))
    assert len(rest) == 1
    assert equal(rest[0], whole[2])
    assert list(stream.batches(source, batch_size=4, start=3)) == []


def test_a_fold_is_a_choice_of_rows(table):
    source = stream.from_array(*table)
    batch = next(stream.batches(source, batch_size=2, rows=[9, 0]))
    np.testing.assert_array_equal(batch.features, table[0][[9, 0]])


@pytest.mark.parametrize("order", ["C", "F"])
def test_an_archive_is_read_in_parts(tmp_path, table, order):
    features, labels = np.asarray(table[0], order=order), np.array([label or "d" for label in table[1]])
    np.savez(tmp_path / "x.npz", labels=labels, features=features)
    source = stream.from_npz(tmp_path / "x.npz")
    assert source.names == ("a", "b", "c", "d")
    expected = list(stream.batches(stream.from_array(features, labels), batch_size=4))
    assert all(equal(*both) for both in zip(stream.batches(source, batch_size=4), expected, strict=True))
    assert (stream.from_npz(tmp_path / "x.npz", labels=None).ids == -1).all()


@pytest.mark.parametrize("dtype", [">f4", ">f8", ">f2", "<f2", "<f4"])
def test_batches_have_the_byte_order_of_this_machine(tmp_path, rng, dtype):
    """JAX takes big-endian bytes for other numbers; float16 is too narrow to compute with."""
    x = rng.normal(size=(7, 3)).astype(dtype)
    np.savez(tmp_path / "x.npz", features=np.asfortranarray(x), labels=np.arange(7).astype(">i8"))
    expected = x.astype(float)
    for source in (stream.from_npz(tmp_path / "x.npz"), stream.from_array(x, np.arange(7).astype(">i8"))):
        assert source.dtype.isnative
        assert source.dtype == (np.float64 if "8" in dtype else np.float32)
        for batch in stream.batches(source, batch_size=4):
            assert batch.features.dtype == source.dtype
            np.testing.assert_array_equal(batch.features[batch.valid], expected[batch.ids[batch.valid]])
            np.testing.assert_array_equal(jnp.asarray(batch.features) + 0.0, batch.features)
    assert stream.from_array(np.zeros((2, 3), np.uint8)).dtype == np.uint8
    for other in (np.zeros((2, 3), complex), np.zeros((2, 3), "U3"), np.zeros((2, 3), object)):
        with pytest.raises(ValueError, match="features must be numbers of at most 64 bits; got dtype"):
            stream.from_array(other)


def test_saved_embeddings_are_read_in_parts(tmp_path, rng):
    features = rng.normal(size=(5, 2))
    embeddings.save(tmp_path / "x.npz", features, [5, 3, 5, 3, 3])
    batch = next(stream.batches(stream.from_npz(tmp_path / "x.npz"), batch_size=5))
    np.testing.assert_array_equal(batch.features, features)
    assert batch.ids.tolist() == [1, 0, 1, 0, 0]


def test_an_archive_is_never_in_memory_as_a_whole(tmp_path):
    features = np.ones((40_000, 50))  # 16 MB
    np.savez(tmp_path / "x.npz", features=features)
    del features
    tracemalloc.start()
    total = sum(
        batch.features.sum()
        for batch in stream.batches(stream.from_npz(tmp_path / "x.npz", labels=None), batch_size=500)
    )
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert total == 2_000_000
    assert peak < 2_000_000


@pytest.mark.parametrize("process", [0, 1])
def test_grain_gives_the_same_pass_and_resumes(table, process):
    pytest.importorskip("grain")
    source = stream.from_array(*table)
    order = np.random.default_rng(5).permutation(11)
    arguments = {"batch_size": 2, "rows": order, "process_index": process, "process_count": 2}
    expected = list(stream.batches(source, **arguments))
    dataset = stream.grain_batches(source, **arguments)
    assert all(equal(*both) for both in zip(dataset, expected, strict=True))
    iterator = iter(dataset)
    next(iterator)
    state = json.loads(json.dumps(iterator.get_state()))  # what a checkpoint stores
    resumed = iter(dataset)
    resumed.set_state(state)
    assert all(equal(*both) for both in zip(resumed, expected[1:], strict=True))


def test_grain_not_installed(table, monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "grain", None)
    with pytest.raises(ImportError, match=r"pip install 'jaxface\[stream\]'"):
        stream.grain_batches(stream.from_array(*table), batch_size=2)


def test_errors_of_arguments(table):
    source = stream.from_array(*table)
    with pytest.raises(ValueError, match="batch_size must be at least 1; got 0"):
        stream.batches(source, batch_size=0)
    with pytest.raises(ValueError, match=r"process_index must be at most 1 \(process_count - 1\); got 2"):
        stream.batches(source, batch_size=2, process_index=2, process_count=2)
    with pytest.raises(ValueError, match=r"rows must be in \[0, 11\)"):
        stream.batches(source, batch_size=2, rows=[0, 11])
    with pytest.raises(ValueError, match=r"start must be at most 3 \(the batches of a pass\); got 4"):
        stream.batches(source, batch_size=4, start=4)
    with pytest.raises(ValueError, match=r"features must have shape \[n, \.\.\.\] with n > 0; got shape \(3,\)"):
        stream.from_array(np.zeros(3))
    with pytest.raises(ValueError, match="each of the 11 rows; got 2 labels"):
        stream.from_array(table[0], [1, 2])


def test_errors_of_archives(tmp_path, table):
    path = tmp_path / "x.npz"
    features = table[0].copy()
    np.savez_compressed(path, features=features)
    with pytest.raises(ValueError, match=r"'features' of .*x\.npz is compressed, so it cannot be read in parts"):
        stream.from_npz(path, labels=None)
    np.savez(path, features=features)
    with pytest.raises(ValueError, match=r"x\.npz must hold 'labels'; it holds features"):
        stream.from_npz(path)
    np.savez(path, features=features, labels=np.array(table[1], object))
    with pytest.raises(ValueError, match=r"'labels' of .*x\.npz is an object array, which is a pickle"):
        stream.from_npz(path)
    np.savez(path, features=np.zeros((0, 3)))
    with pytest.raises(ValueError, match=r"'features' of .*x\.npz must hold at least one value; got shape \(0, 3\)"):
        stream.from_npz(path, labels=None)
    features[7, 2] = np.nan
    np.savez(path, features=features)
    with pytest.raises(ValueError, match=r"features of .*x\.npz, in rows 4 to 7, must be finite; 1 of 12 values"):
        list(stream.batches(stream.from_npz(path, labels=None), batch_size=4))
    np.savez(path, features=np.zeros((3, 2), int))
    with pytest.raises(ValueError, match=r"'features' of .*x\.npz must be floating point .* got dtype int64"):
        stream.from_npz(path, labels=None)
    np.savez(path, features=np.zeros((3, 2)), labels=np.arange(2))
    with pytest.raises(ValueError, match=r"x\.npz: labels must name the person of each of the 3 rows; got 2"):
        stream.from_npz(path)
    path.write_bytes(b"not a zip")
    with pytest.raises(ValueError, match=r"x\.npz is not an \.npz archive"):
        stream.from_npz(path)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (b"(11, 3)", b"(13, 3)"),
        (b"(11, 3)", b"(99, 3)"),
        (b"\x93NUMPY\x01", b"\x93NUMPY\x07"),
        (b"'shape'", b"'shope'"),
    ],
)
def test_damaged_archives(tmp_path, table, old, new):
    np.savez(tmp_path / "x.npz", features=table[0])
    whole = (tmp_path / "x.npz").read_bytes()
    assert old in whole
    (tmp_path / "x.npz").write_bytes(whole.replace(old, new))
    with pytest.raises(ValueError, match=r"x\.npz is damaged: 'features'"):
        stream.from_npz(tmp_path / "x.npz", labels=None)


def test_labels_are_read_with_their_checksum(tmp_path, rng):
    np.savez(tmp_path / "x.npz", features=rng.normal(size=(3, 2)), labels=np.array(["ann", "ben", "cem"]))
    raw = (tmp_path / "x.npz").read_bytes()
    at = raw.index("ben".encode("utf-32-le"))
    (tmp_path / "x.npz").write_bytes(raw[:at] + b"x" + raw[at + 1 :])
    with pytest.raises(ValueError, match=r"x\.npz is damaged: 'labels' has no readable data: BadZipFile: Bad CRC-32"):
        stream.from_npz(tmp_path / "x.npz")
    np.savez(tmp_path / "x.npz", features=rng.normal(size=(3, 2)), labels=np.array("ann"))
    with pytest.raises(ValueError, match=r"x\.npz: labels must name the person of each of the 3 rows; got 1 labels"):
        stream.from_npz(tmp_path / "x.npz")


@pytest.mark.parametrize("dtype", ["<f2", ">f4", "<f8"])
@pytest.mark.parametrize("form", ["npy", "npz", "columns", "memory", "slice"])
def test_ranges_are_the_rows_as_stored(tmp_path, rng, dtype, form):
    """Whole files are read, not mapped; a slice of a map, columns or an array in memory give the same."""
    x = rng.normal(size=(9, 2, 3)).astype(dtype)
    if form == "npz":
        np.savez(tmp_path / "x.npz", labels=np.arange(9), features=x)
        source = stream.from_npz(tmp_path / "x.npz")
    elif form == "memory":
        source = stream.from_array(x)
    elif form == "slice":
        np.save(tmp_path / "x.npy", np.concatenate([x[:1], x]))
        source = stream.from_array(np.load(tmp_path / "x.npy", mmap_mode="r")[1:])
    else:
        np.save(tmp_path / "x.npy", np.asfortranarray(x) if form == "columns" else x)
        source = stream.from_npy(tmp_path / "x.npy", np.arange(9))
        assert source.name == str(tmp_path / "x.npy")
        assert source.names == tuple(range(9))
    for start, stop in ((0, 9), (2, 5), (8, 9), (3, 3)):
        rows = source.read_range(start, stop)
        assert rows.dtype.isnative
        assert rows.dtype.itemsize == x.dtype.itemsize
        np.testing.assert_array_equal(rows, x[start:stop])


def test_ranges_of_a_file_are_not_mapped(tmp_path):
    """What is mapped stays in the memory of the process for as long as the map is open."""
    np.save(tmp_path / "x.npy", np.ones((50_000, 50)))  # 20 MB

    def resident():
        """Of the maps of the file, in kB."""
        parts = pathlib.Path("/proc/self/smaps").read_text().split("x.npy\n")[1:]
        return sum(int(re.search(r"Rss: +(\d+) kB", part)[1]) for part in parts)

    source = stream.from_npy(tmp_path / "x.npy")
    if not os.path.exists("/proc/self/smaps"):
        pytest.skip("no list of what is mapped")
    total = sum(source.read_range(start, start + 500).sum() for start in range(0, 50_000, 500))
    assert total == 2_500_000
    assert resident() < 1000
    mapped = np.load(tmp_path / "x.npy", mmap_mode="r")
    assert mapped.sum() == total
    assert resident() > 10_000


def test_errors_of_npy_files(tmp_path):
    path = tmp_path / "x.npy"
    with pytest.raises(FileNotFoundError, match="Embeddings must be a file"):
        stream.from_npy(path)
    np.save(path, np.ones((4, 3)))
    with pytest.raises(ValueError, match=r"x\.npy: labels must name the person of each of the 4 rows; got 2"):
        stream.from_npy(path, [1, 2])
    whole = path.read_bytes()
    path.write_bytes(whole[:-8])
    with pytest.raises(ValueError, match=r"x\.npy is damaged"):
        stream.from_npy(path)
    path.write_bytes(b"not an array")
    with pytest.raises(ValueError, match=r"x\.npy is damaged"):
        stream.from_npy(path)
    np.save(path, np.zeros((0, 3)))
    with pytest.raises(ValueError, match=r"x\.npy"):
        stream.from_npy(path)
    np.save(path, np.array([None, 1]))
    with pytest.raises(ValueError, match=r"x\.npy is damaged: Array can't be memory-mapped"):
        stream.from_npy(path)
    np.save(path, np.ones(4))
    with pytest.raises(
        ValueError, match=r"x\.npy: features must have shape \[n, \.\.\.\] with n > 0; got shape \(4,\)"
    ):
        stream.from_npy(path)


def test_the_file_tells_its_reader(tmp_path, rng):
    x = rng.normal(size=(6, 3)).astype(np.float32)
    names = ["ann", "ann", "bob", "bob", "cec", "cec"]
    np.save(tmp_path / "x.npy", x.astype(np.float16))
    (tmp_path / "people.txt").write_text("\n".join(names) + "\n")
    np.savez(tmp_path / "odd.npz", vectors=x, who=np.array(names))
    np.savez(tmp_path / "bare.npz", features=x)
    labels = str(tmp_path / "people.txt")
    sources = [
        stream.from_file(tmp_path / "x.npy", labels=labels),
        stream.from_file(tmp_path / "odd.npz"),
        stream.from_file(tmp_path / "odd.npz", features="vectors", labels="who"),
        stream.from_file(tmp_path / "bare.npz", labels=labels),
    ]
    for source in sources:
        assert [source.names[k] for k in source.ids] == names
        np.testing.assert_allclose(source.read(np.array([4, 1])), x[[4, 1]], rtol=1e-3)
    assert (stream.from_file(tmp_path / "x.npy").ids == -1).all()
    (tmp_path / "x.csv").write_text("1,2\n")
    with pytest.raises(ValueError, match=r"x\.csv cannot be read in parts: .* Convert it once"):
        stream.from_file(tmp_path / "x.csv")
    with pytest.raises(ValueError, match="features='x' has no meaning"):
        stream.from_file(tmp_path / "x.npy", features="x")
    with pytest.raises(FileNotFoundError):
        stream.from_file(tmp_path / "none.npy")
