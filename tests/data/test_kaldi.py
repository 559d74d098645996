"""Vectors of Kaldi, in files that are written here by its format."""

import struct

import numpy as np
import pytest

from jaxface.data import embeddings

KEYS = ("a-1", "b-1", "a-2")
SPEAKERS = "a-1 ann\nb-1 bob\nb-9 bob\na-2 ann\n"


@pytest.fixture
def x(rng):
    return rng.normal(size=(3, 4))


def binary(vector):
    kind = b"FV " if vector.dtype == np.float32 else b"DV "
    return b"\0B" + kind + b"\4" + struct.pack("<i", vector.size) + vector.tobytes()


def archive(path, x, keys=KEYS):
    """Writes a binary archive; returns the offset of each vector, as an `.scp` has it."""
    content, offsets = b"", []
    for key, vector in zip(keys, x, strict=True):
        content += key.encode() + b" "
        offsets.append(len(content))
        content += binary(vector)
    path.write_bytes(content)
    return offsets


def check(found, x):
    np.testing.assert_array_equal(found.features, x)
    assert found.files == KEYS
    assert [found.names[k] for k in found.ids] == ["ann", "bob", "ann"]


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_binary_archives_and_lists(tmp_path, x, dtype):
    (tmp_path / "utt2spk").write_text(SPEAKERS)
    x = x.astype(dtype)
    offsets = archive(tmp_path / "x.ark", x)
    found = embeddings.load(tmp_path / "x.ark", labels="utt2spk")
    assert found.features.dtype == dtype
    check(found, x)
    lines = [f"{key} /elsewhere/exp/x.ark:{offset}" for key, offset in zip(KEYS, offsets, strict=True)]
    (tmp_path / "x.scp").write_text("\n".join(lines[:1] + lines[2:] + lines[1:2]) + "\n\n")
    listed = embeddings.load(tmp_path / "x.scp", labels="utt2spk")
    np.testing.assert_array_equal(listed.features, x[[0, 2, 1]])
    assert listed.files == (KEYS[0], KEYS[2], KEYS[1])
    assert embeddings.load(tmp_path / "x.scp", min_people=0).ids.tolist() == [-1] * 3
    read = embeddings.sources(tmp_path / "x.scp", labels="utt2spk")
    assert [path.name for path in read] == ["x.scp", "x.ark", "utt2spk"]


def test_text_archives(tmp_path, x):
    text = "".join(f"{key}  [ {' '.join(map(str, row))} ]\n" for key, row in zip(KEYS, x.tolist(), strict=True))
    (tmp_path / "utt2spk").write_text(SPEAKERS)
    for name in ("x.ark", "x.txt"):
        (tmp_path / name).write_text(text)
        check(embeddings.load(tmp_path / name, labels="utt2spk"), x)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "holds no vectors"),
        (b"key", "no key before a space"),
        (b"\xff\xfe 1", "a key is not text"),
        (b"k \0BFM \4\1\0\0\0\4\1\0\0\0", r"'k' is a matrix of float.*matrix-sum-rows --do-average=true"),
        (b"k \0BCM2 \4\1\0\0\0", "compressed matrix.*matrix-sum-rows"),
        (b"k \0B\4\1\0\0\0", "float or double vectors are read"),
        (b"k \0BFV \4", "the number of its values is missing"),
        (b"k \0BFV \4" + struct.pack("<i", 2**31 - 1) + bytes(8), "says 2147483647 values, and the file ends"),
        (b"k \0BFV \4" + struct.pack("<i", -1), "is damaged: it says -1 values"),
        (b"k [ 1 2 x ]\n", r"expected numbers between \[ and \]"),
        (b"k [ 1 2_0 ]\n", r"expected numbers between \[ and \]"),
        (b"k [ 1 2\n 3 ]\n", r"in one line; got '\[ 1 2'"),
        (b"k [ 1 2 ]\nl [ 1 ]\n", "'l' has 1 numbers, the vectors before have 2"),
        (b"k [ 1 2 ]\nk [ 1 3 ]\n", "two vectors 'k'"),
        (b"k [ 1 nan ]\n", "must be finite"),
    ],
)
def test_archives_that_are_refused(tmp_path, content, message):
    (tmp_path / "x.ark").write_bytes(content)
    with pytest.raises(ValueError, match=message):
        embeddings.load(tmp_path / "x.ark", min_people=0)


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("k gunzip -c x.ark.gz |", "Commands and ranges are not read"),
        ("k x.ark:5[0:2]", "Commands and ranges are not read"),
        ("k x.ark", "expected `key FILE.ark:OFFSET`"),
        ("k ../y.ark:5", "y.ark is not in the folder of the list"),
        ("k x.ark:999", r"expected numbers between \[ and \]"),
        ("", "holds no vectors"),
    ],
)
def test_lists_that_are_refused(tmp_path, x, line, message):
    (tmp_path / "in").mkdir()
    archive(tmp_path / "y.ark", x)
    archive(tmp_path / "in" / "x.ark", x)
    (tmp_path / "in" / "x.scp").write_text(line)
    with pytest.raises((ValueError, FileNotFoundError), match=message):
        embeddings.load(tmp_path / "in" / "x.scp", min_people=0)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a-1 ann\n", r"lacks the label of 2 of the 3 vectors of .*x\.ark, the first 'b-1'; it has 'a-1'"),
        ("a-1 ann\na-1 bob\n", "'a-1' has a second label, 'bob'"),
        ("a-1\n", "expected a key and a label"),
    ],
)
def test_speakers_that_do_not_fit(tmp_path, x, text, message):
    archive(tmp_path / "x.ark", x)
    (tmp_path / "utt2spk").write_text(text)
    with pytest.raises(ValueError, match=message):
        embeddings.load(tmp_path / "x.ark", labels="utt2spk")
