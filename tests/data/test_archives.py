"""Archives that no writer makes by mistake: every one is refused with its name, or read as what it says."""

import struct
import tracemalloc
import zipfile

import numpy as np
import pytest

from jaxface.data import archives, embeddings, storage, stream


@pytest.fixture
def arrays(rng):
    return {"features": rng.normal(size=(6, 3)), "labels": np.array(list("aabbcc"))}


def header(shape, descr="<f8"):
    text = f"{{'descr': {descr!r}, 'fortran_order': False, 'shape': {shape}, }}".encode()
    text += b" " * (-(len(text) + 11) % 64) + b"\n"
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(text)) + text


def replaced(path, name, content, method=zipfile.ZIP_STORED, **arrays):
    """An archive whose member `name` has this content."""
    np.savez(path, **{key: value for key, value in arrays.items() if key != name})
    with zipfile.ZipFile(path, "a", method) as archive, archive.open(f"{name}.npy", "w", force_zip64=True) as member:
        for part in content:
            member.write(part)
    return path


def test_large_archives_are_named_before_they_are_unpacked(tmp_path, arrays):
    """48 MB of zeros are packed into 50 kB; the limit is stated and can be raised."""
    zeros = [header((6_000_000, 1)), *[bytes(1 << 20)] * 45, bytes(48_000_000 - 45 * 2**20)]
    path = replaced(tmp_path / "x.npz", "features", zeros, zipfile.ZIP_DEFLATED, **arrays)
    assert path.stat().st_size < 100_000
    tracemalloc.start()
    message = r"x\.npz, a file of .* unpacks to 48,000,024 bytes .*; the limit is 1,000,000\. Raise max_bytes"
    with pytest.raises(ValueError, match=message):
        embeddings.load(path, max_bytes=1_000_000)
    assert tracemalloc.get_traced_memory()[1] < 2_000_000
    tracemalloc.stop()
    with pytest.raises(ValueError, match=r"'features' of .* is compressed, so it cannot be read in parts"):
        stream.from_npz(path)
    with pytest.raises(ValueError, match="each of the 6000000 rows; got 6 labels"):
        embeddings.load(path, max_bytes=50_000_000)


def test_the_limit_counts_only_what_is_read(tmp_path, arrays):
    np.savez_compressed(tmp_path / "x.npz", more=np.zeros(100_000), **arrays)
    assert embeddings.load(tmp_path / "x.npz", max_bytes=1).features.shape == (6, 3)
    np.savez_compressed(tmp_path / "x.npz", **(arrays | {"features": np.zeros((100_000, 1))}))
    with pytest.raises(ValueError, match="the limit is 1"):
        embeddings.load(tmp_path / "x.npz", max_bytes=1)
    np.savez(tmp_path / "x.npz", **arrays)  # a file as large as its arrays
    assert embeddings.load(tmp_path / "x.npz", max_bytes=1).features.shape == (6, 3)
    assert storage.MAX_BYTES == 2**31  # docs/your_data.md says so


@pytest.mark.parametrize("method", [zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED])
@pytest.mark.parametrize(
    ("content", "message"),
    [
        ([header((10**12, 3))], r"'features' of shape \(1000000000000, 3\) needs 24000000000000 bytes"),
        ([header((2**62, 2**62)), bytes(16)], "bytes, not what it has"),
        ([header((5, 3)), bytes(144)], "needs 120 bytes, not what it has"),
        ([header((-6, -3)), bytes(144)], "is negative"),
        ([header((0, 10**30))], "must hold at least one value|has no readable data"),
        ([header((6, 3), "<q9"), bytes(144)], "'features' has no readable data"),
        ([b"\x93NUMPY\x02\x00" + struct.pack("<I", 2**31), b" " * 10], "'features' has no readable data"),
        ([b"\x93NUMPY\x01\x00\xff\xff" + b"(" * 65535], "'features' has no readable data"),
        ([b"hello"], "'features' has no readable data"),
        ([], "'features' has no readable data"),
    ],
)
def test_headers_that_lie(tmp_path, arrays, content, message, method):
    path = replaced(tmp_path / "x.npz", "features", content, method, **arrays)
    readers = [embeddings.load] + [stream.from_npz] * (method == zipfile.ZIP_STORED)
    for read in readers:
        with pytest.raises(ValueError, match=message) as caught:
            read(path)
        assert caught.match(r"x\.npz")


def test_directories_that_lie(tmp_path, arrays):
    """The directory says 3 GB where there are some bytes, encryption where there is none, another packing."""
    path = replaced(tmp_path / "x.npz", "features", [header((6, 3)), bytes(144)], zipfile.ZIP_DEFLATED, **arrays)
    raw = path.read_bytes()
    entry = raw.rindex(b"PK\x01\x02")  # of the member that came last
    for place, value, message in (
        (24, struct.pack("<I", 3_000_000_000), "needs 144 bytes, not what it has"),
        (24, struct.pack("<I", 0), "no readable data|not what it has"),
        (8, b"\x01\x00", "'features' of .* is encrypted"),
        (10, struct.pack("<H", 14), "'features' of .* is packed in a way that numpy does not write"),
        (10, struct.pack("<H", 97), "'features' of .* is packed in a way that numpy does not write"),
        (16, b"\x00\x00\x00\x01", "'features' has no readable data: BadZipFile"),
        (42, struct.pack("<I", 2**31 - 1), "damaged"),
    ):
        path.write_bytes(raw[: entry + place] + value + raw[entry + place + len(value) :])
        for read in (embeddings.load, stream.from_npz):
            with pytest.raises(ValueError, match=r"x\.npz") as caught:
                read(path)
            assert caught.match(message + "|is compressed")
    end = raw.rindex(b"PK\x05\x06")
    for cut in (raw[:entry] + raw[end:], raw[: end - 30] + raw[end:], raw[:end] + raw[end : end + 10]):
        path.write_bytes(cut)
        for read in (embeddings.load, stream.from_npz):
            with pytest.raises(ValueError, match=r"x\.npz (is damaged|is not an|must hold)"):
                read(path)


def test_members_with_odd_names(tmp_path, arrays):
    path = tmp_path / "x.npz"
    np.savez(path, **arrays)
    with zipfile.ZipFile(path, "a") as archive:
        for name in ("../../etc/passwd.npy", "/a.npy", "README.txt", "a\x1b[2J.npy", ".npy", "labels"):
            archive.writestr(name, b"hello")
    for read in (embeddings.load, stream.from_npz):
        assert read(path).names == ("a", "b", "c")
    assert [file.name for file in tmp_path.iterdir()] == ["x.npz"]
    with pytest.raises(ValueError, match=r"must hold 'people'; it holds .*a\\x1b\[2J") as caught:
        archives.mapped(path, "people")
    assert "\x1b" not in str(caught.value)
    with pytest.warns(UserWarning, match="Duplicate"), zipfile.ZipFile(path, "a") as archive:
        archive.writestr("labels.npy", b"hello")
    for read in (embeddings.load, stream.from_npz):
        with pytest.raises(ValueError, match=r"x\.npz holds two members 'labels\.npy'"):
            read(path)


@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("dtype", [">f2", ">f4", ">f8", "<f8"])
def test_loaded_arrays_have_the_byte_order_of_this_machine(tmp_path, arrays, dtype, order):
    x = np.array(arrays["features"], dtype, order=order)
    labels = np.array([3, 300, 3, 300, 70000, 3])
    for save in (np.savez, np.savez_compressed):
        save(tmp_path / "x.npz", features=x, labels=labels.astype(">u4"), files=np.array(list("abcdef"), ">U2"))
        found = embeddings.load(tmp_path / "x.npz")
        assert found.features.dtype.isnative
        np.testing.assert_array_equal(found.features, x.astype(float))
        assert [found.names[i] for i in found.ids] == labels.tolist()
        assert found.files == tuple("abcdef")
    assert embeddings.from_arrays(x, labels).features.dtype.isnative


def test_longer_floats_are_refused(arrays):
    with pytest.raises(ValueError, match=r"must be floating point \[n, d\] .* Convert them to float32 or float64"):
        embeddings.from_arrays(arrays["features"].astype(np.longdouble), arrays["labels"])
