import os

import numpy as np
import pytest

from jaxface.data import datasets, embeddings, images, lfw, matlab, pairs, storage, stream


@pytest.mark.parametrize("name", ["../x.png", "a/../../x.png", "/etc/passwd"])
def test_names_that_leave_the_root(tmp_path, name):
    with pytest.raises(ValueError, match=r"list\.txt, line 3: '.*' leads outside the data root"):
        storage.inside(tmp_path, name, source="list.txt, line 3")


def test_absolute_names_are_refused_even_inside_the_root(tmp_path):
    with pytest.raises(ValueError, match="leads outside"):
        storage.inside(tmp_path, str(tmp_path / "a.png"), source="list")
    assert storage.inside(tmp_path, "a/../b.png", source="list") == tmp_path / "a/../b.png"


def test_a_failed_write_leaves_the_old_file_and_nothing_else(tmp_path):
    (tmp_path / "x.txt").write_text("old")

    def write(text, fail):
        with storage.replacing(tmp_path / "x.txt") as temporary:
            temporary.write_text(text)
            if fail:
                raise RuntimeError("disk full")

    with pytest.raises(RuntimeError, match="disk full"):
        write("half", fail=True)
    assert [(path.name, path.read_text()) for path in tmp_path.iterdir()] == [("x.txt", "old")]
    write("new", fail=False)
    assert [(path.name, path.read_text()) for path in tmp_path.iterdir()] == [("x.txt", "new")]


def test_links_that_lead_back_to_themselves(tmp_path):
    (tmp_path / "loop").symlink_to("loop")
    (tmp_path / "nowhere").symlink_to("nothing")
    with pytest.raises(ValueError, match=r"list, line 2: .*loop cannot be opened: .*Remove it"):
        storage.inside(tmp_path, "loop", source="list, line 2")
    assert storage.inside(tmp_path, "nowhere", source="list") == tmp_path / "nowhere"
    for name in ("loop", "nowhere"):
        with pytest.raises(
            FileNotFoundError, match=rf"x must be a file; .*{name} is a symbolic link that leads nowhere"
        ):
            storage.existing_file(tmp_path / name, "x")
        with pytest.raises(FileNotFoundError, match=rf"x must be a folder; .*{name} is a symbolic link that leads"):
            storage.existing_folder(tmp_path / name, "x")


LOADERS = {
    "embeddings": embeddings.load,
    "stream": stream.from_npz,
    "matlab": matlab.load,
    "views": matlab.load_views,
    "image": images.read_image,
    "pairs": lambda path: pairs.load(path, ["a", "b"]),
    "truth": pairs.has_truth,
    "lfw pairs": lambda path: lfw.read_pairs(
        path, datasets.Listing(root=path, files=(), ids=np.zeros(0, int), names=())
    ),
}


@pytest.mark.parametrize("name", LOADERS)
def test_every_loader_names_a_file_that_cannot_be_read(tmp_path, monkeypatch, name):
    """A folder, nothing, a pipe, bytes of another kind, a name in another encoding, a file without permission."""
    load = LOADERS[name]
    (tmp_path / "folder").mkdir()
    os.mkfifo(tmp_path / "pipe")
    for file, kind in (("folder", "is a folder"), ("none", "does not exist"), ("pipe", "is a pipe or a device")):
        with pytest.raises(FileNotFoundError, match=rf"must be a file; .*{file} {kind}"):
            load(tmp_path / file)
    for content in (b"", b"\x00" * 3, b"\x93NUMPY\x01\x00", b"PK\x05\x06" + bytes(18), bytes(range(256)) * 4):
        (tmp_path / "bad").write_bytes(content)
        if name != "truth":
            with pytest.raises(ValueError, match="bad"):
                load(tmp_path / "bad")
    with pytest.raises(ValueError, match=r"must have a name in UTF-8; got .*caf\\xe9\. Rename it"):
        load(os.fsdecode(os.fsencode(tmp_path) + b"/caf\xe9"))
    with pytest.raises(FileNotFoundError, match=r"a\\x1b\[2J\\n does not exist"):
        load(tmp_path / "a\x1b[2J\n")
    with pytest.raises(ValueError, match=r"must be named by a path; got 3 of type int"):
        load(3)
    monkeypatch.setattr(os, "access", lambda path, mode: False)
    with pytest.raises(PermissionError, match=r"bad, may not be read by this user\. Change its permissions"):
        load(tmp_path / "bad")
