"""Verification sets in a pickle: read without loading it, whatever it holds."""

import io
import os
import pickle
import struct

import numpy as np
import pytest
from PIL import Image

from jaxface.data import face_bin, pairs, trials


def jpeg(grey):
    stream = io.BytesIO()
    Image.fromarray(np.full((6, 4), grey, np.uint8)).save(stream, format="PNG")
    return stream.getvalue()


IMAGES = [jpeg(grey) for grey in (10, 20, 30, 10, 40, 50)]
SAME = [True, False, True]


@pytest.mark.parametrize("protocol", [3, 4, 5])
def test_images_and_pairs(tmp_path, protocol):
    content = [*IMAGES[:3], IMAGES[0], *IMAGES[4:]]  # one image twice: the pickle refers to the first
    (tmp_path / "x.bin").write_bytes(pickle.dumps((content, SAME), protocol=protocol))
    faces = face_bin.scan(tmp_path / "x.bin")
    assert faces.is_same.tolist() == SAME
    assert face_bin.names(faces)[::5] == ("00001.jpg", "00006.jpg")
    greys = [255 * face_bin.image(faces, k)[0, 0] for k in range(6)]
    np.testing.assert_allclose(greys, [10, 20, 30, 10, 40, 50], rtol=1e-6)
    assert face_bin.image(faces, 1, color=True).shape == (6, 4, 3)
    found = trials.read(tmp_path / "x.bin")
    assert (found.first[1], found.second[1], found.is_same.tolist()) == ("00003.jpg", "00004.jpg", SAME)
    (tmp_path / "mine.txt").write_text("0.5\n-1\n2\n")  # scores of another system, one a pair
    assert trials.with_scores(found, tmp_path / "mine.txt", name="mine").scores["mine"].tolist() == [0.5, -1, 2]


def test_as_python_2_wrote_it(tmp_path):
    """Its strings are bytes: SHORT_BINSTRING and BINSTRING."""
    parts = b"".join(b"T" + struct.pack("<i", len(each)) + each + b"q%c" % (k + 5) for k, each in enumerate(IMAGES))
    content = b"\x80\x02]q\x01(" + parts + b"e]q\x02(\x88\x89\x88e\x86q\x03."
    assert pickle.loads(content, encoding="bytes") == (IMAGES, SAME)
    (tmp_path / "x.bin").write_bytes(content)
    assert face_bin.scan(tmp_path / "x.bin").sizes.tolist() == [len(each) for each in IMAGES]
    short = b"\x80\x02](U\x01aU\x01be]\x88a\x86."
    (tmp_path / "x.bin").write_bytes(short)
    assert face_bin.scan(tmp_path / "x.bin").sizes.tolist() == [1, 1]


def test_unpacked(tmp_path):
    (tmp_path / "x.bin").write_bytes(pickle.dumps((IMAGES, SAME)))
    assert face_bin.unpack(tmp_path / "x.bin", tmp_path / "out") == 6
    assert (tmp_path / "out" / "00003.jpg").read_bytes() == IMAGES[2]
    found = pairs.load(tmp_path / "out" / "pairs.csv", [f"{k:05d}.jpg" for k in range(1, 7)])
    assert (found.first.tolist(), found.second.tolist(), found.is_same.tolist()) == ([0, 2, 4], [1, 3, 5], SAME)
    with pytest.raises(FileExistsError, match="must not exist yet"):
        face_bin.unpack(tmp_path / "x.bin", tmp_path / "out")


class Harmful:
    def __init__(self, path):
        self.path = path

    def __reduce__(self):
        return os.system, (f"touch {self.path}",)


def test_a_pickle_that_would_run_a_command(tmp_path):
    for protocol in (2, 4):
        content = pickle.dumps(([True], [Harmful(tmp_path / "ran")]), protocol=protocol)
        (tmp_path / "x.bin").write_bytes(content)
        with pytest.raises(ValueError, match=r"asks at byte \d+ for (GLOBAL posix\.system|SHORT_BINUNICODE .*posix)"):
            face_bin.scan(tmp_path / "x.bin")
    pickle.loads(content)
    assert (tmp_path / "ran").exists()  # the pickle is what it claims to be


def nested(depth):
    return b"\x80\x02" + b"](" * depth + b"e" * depth + b"."


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (pickle.dumps((IMAGES, [np.bool_(True)] * 3)), "SHORT_BINUNICODE .*numpy.*protocol=4"),
        (pickle.dumps(np.zeros(3)), "SHORT_BINUNICODE .*numpy"),
        (pickle.dumps({1: IMAGES}), "EMPTY_DICT"),
        (pickle.dumps((IMAGES, [1, 0, 1])), "BININT1"),
        (pickle.dumps(("a" * 6, SAME)), "SHORT_BINUNICODE"),
        (pickle.dumps((IMAGES, SAME), protocol=0), "does not begin like a pickle of protocol 2 to 5"),
        (b"\x80\x04cos\nsystem\n(\x88tR.", r"GLOBAL os\.system"),
        (b"\x80\x02cposix\nsystem\nq\x00.", r"GLOBAL posix\.system"),
        (b"\x80\x04\x82\x01.", "EXT1"),
        (b"\x80\x04P1\n.", "PERSID"),
        (b"\x80\x04\x97.", "NEXT_BUFFER"),
        (b"\x80\x04\xff", "the unknown instruction"),
        (b"\x80\x09].", "unknown protocol"),
        (nested(10_000), "puts something else than bytes and booleans into a list"),
        (b"\x80\x02]q\x00h\x00a.", "puts something else than bytes and booleans into a list"),
        (b"\x80\x02]]\x86]\x86.", "a tuple of something else than lists"),
        (b"\x80\x04\x8e" + struct.pack("<Q", 2**62) + b"abc", r"announces 4,611,686,018,427,387,904 bytes"),
        (b"\x80\x04B" + struct.pack("<I", 2**32 - 1) + b"abc", "announces 4,294,967,295 bytes at byte 7 and holds 3"),
        (b"\x80\x04T" + struct.pack("<i", -1) + b"abc", "announces -1 bytes"),
        (b"\x80\x04\x95" + struct.pack("<Q", 2**62) + b"].", "announces"),
        (b"\x80\x04h\x07.", "recalls the value 7, which it did not keep"),
        (b"\x80\x04", "ends too early"),
        (b"\x80\x04]", "ends too early"),
        (b"\x80\x04.", "ends without one value"),
        (b"\x80\x04(.", "ends without one value"),
        (b"\x80\x04]].", "ends without one value"),
        (b"\x80\x04a", "takes a value that is not there"),
        (b"\x80\x04]e", "a mark that is not there"),
        (b"\x80\x04(q\x00.", "takes a value that is not there"),
        (pickle.dumps((IMAGES[:5], SAME)), r"it holds a tuple of a list of 5, a list of 3\."),
        (pickle.dumps((SAME, IMAGES)), "it holds a tuple"),
        (pickle.dumps(([], [])), "it holds a tuple of a list of 0, a list of 0"),
        (pickle.dumps(IMAGES), "it holds a list of 6"),
        (pickle.dumps(True), "it holds something else"),
        (b"", "is empty"),
    ],
)
def test_what_is_refused(tmp_path, content, message):
    (tmp_path / "x.bin").write_bytes(content)
    with pytest.raises(ValueError, match=message):
        face_bin.scan(tmp_path / "x.bin")


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"\x80\x02]" + b"".join(b"r" + struct.pack("<I", k) for k in range(60)) + b".", "remembers more than 50"),
        (b"\x80\x02](" + 200 * b"\x88" + b"e.", "holds more than 50 values"),
        (b"\x80\x02" + 200 * b"(", "holds more than 50 values"),
        (b"\x80\x02]q\x00" + 200 * b"h\x00", "holds more than 50 values"),
    ],
)
def test_a_huge_memo_and_other_floods(tmp_path, content, message, monkeypatch):
    monkeypatch.setattr(face_bin, "MOST", 50)
    (tmp_path / "x.bin").write_bytes(content)
    with pytest.raises(ValueError, match=message):
        face_bin.scan(tmp_path / "x.bin")


def test_an_image_that_does_not_decode(tmp_path):
    (tmp_path / "x.bin").write_bytes(pickle.dumps(([IMAGES[0], b"no image"], [True])))
    faces = face_bin.scan(tmp_path / "x.bin")
    with pytest.raises(ValueError, match=r"image 00002\.jpg of .*x\.bin does not decode"):
        face_bin.image(faces, 1)
