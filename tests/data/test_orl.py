"""The ORL faces: a copy, an incomplete copy, none, and the faces themselves."""

import numpy as np
import pytest

from jaxface.data import orl


def orl_copy(root, write_image, people=40, shots=10):
    for person in range(1, people + 1):
        for shot in range(1, shots + 1):
            write_image(root / f"s{person}" / f"{shot}.pgm")
    return root


def test_orl_from_a_copy(tmp_path, write_image):
    write_image(orl_copy(tmp_path, write_image) / "s10" / "target.png")
    listing = orl.scan(tmp_path)
    assert listing.names == tuple(f"s{person}" for person in range(1, 41))
    assert listing.files[:10] == tuple(f"s1/{shot}.pgm" for shot in range(1, 11))
    assert listing.ignored == ("s10/target.png",)
    assert "AT&T Laboratories Cambridge" in listing.credit


def test_an_incomplete_copy_of_orl(tmp_path, write_image):
    with pytest.raises(ValueError, match="40 people with 10 images each; got 3 people with 2 to 2 images"):
        orl.scan(orl_copy(tmp_path, write_image, people=3, shots=2))


def test_orl_not_installed(monkeypatch):
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.raises(FileNotFoundError, match=r"pip install 'jaxface\[faces\]'"):
        orl.load()


def test_the_orl_faces():
    try:
        orl.find()
    except FileNotFoundError as error:
        pytest.skip(str(error))
    data = orl.load()
    assert data.images.shape == (400, 112, 92)
    assert np.bincount(data.ids).tolist() == [10] * 40
    assert data.ignored == ("s10/target.jpg",)
    assert data.images.std() > 0.1
    assert orl.load(size=(56, 46)).images.shape == (400, 56, 46)
