"""What a run wrote is what it reads again: damaged, edited and exchanged files are named with their remedy."""

import errno
import json
import os
import stat

import numpy as np
import pytest

from jaxface.runtime import files
from jaxface.runtime.workdir import Workdir

CONFIG = {"seed": 0}


@pytest.fixture
def folder(tmp_path):
    """A finished run of two stages and a model."""
    run = Workdir(tmp_path / "run", CONFIG)
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "x").write_text("x")
    run.uses(data=tmp_path / "data")
    run.stage("a", lambda: {"x": np.arange(3.0)})
    run.stage("b", lambda: {"x": np.arange(4.0)})
    run.write_bytes("params/model.safetensors", b"model")
    run.write_text("scores.csv", "a,b\n")
    run.finish({"EER": 0.123})
    run.close()
    return run.path


def opened(folder):
    run = Workdir(folder, CONFIG)
    try:
        run.stage("a", dict)
        return run.finished()
    finally:
        run.close()


def test_an_untouched_folder_is_reused_and_what_users_edit_is_theirs(folder):
    (folder / "scores.csv").write_text("opened and saved again by a spreadsheet")
    (folder / "notes.txt").write_text("mine")
    (folder / "params" / "model.safetensors").unlink()
    assert opened(folder) == {"EER": 0.123}


def edited(name, old, new):
    def change(folder):
        content = (folder / name).read_bytes()
        assert old in content
        (folder / name).write_bytes(content.replace(old, new))

    return name, change


def replaced(name, content):
    return name, lambda folder: (folder / name).write_bytes(content)


def missing(name):
    return name, lambda folder: (folder / name).unlink()


EXCHANGED = "stages/a.npz", lambda folder: (folder / "stages" / "b.npz").replace(folder / "stages" / "a.npz")
CHANGED = "is damaged or was changed after the run wrote it"


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (edited("results.json", b"0.123", b"0.023"), f"{CHANGED}. Delete it and run the same command again: finished"),
        (replaced("results.json", b""), CHANGED),
        (EXCHANGED, f"{CHANGED}. Delete it and run the same command again"),
        (replaced("stages/a.npz", b"PK"), CHANGED),
        (replaced("params/model.safetensors", b"another"), f"{CHANGED}. Delete it and "),
        (edited("config.json", b"0", b"1"), f"{CHANGED}. Put the old file back, or choose another --workdir"),
        (edited("data.json", b"data", b"Data"), f"{CHANGED}. Put the old file back, or choose another --workdir"),
        (missing("config.json"), "is missing, and says what the stages were made from. Put the old file back"),
        (missing("data.json"), "is missing, and says what the stages were made from. Put the old file back"),
    ],
)  # fmt: skip
def test_a_changed_file_is_named_with_the_remedy(folder, change, message):
    name, work = change
    work(folder)
    with pytest.raises(ValueError, match=r"damaged|missing") as caught:
        opened(folder)
    assert f"{folder / name} {message}" in str(caught.value)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (replaced("results.json", b"{"), "is damaged ("),
        (replaced("stages/a.npz", b"{"), "is damaged ("),
        (replaced("config.json", b""), "is damaged (Expecting value: line 1 column 1 (char 0)). Put the old file"),
        (replaced("config.json", b"[]"), "is damaged (it holds [], no object). Put the old file back"),
        (replaced("config.json", b"\xff"), "is damaged ("),
        (replaced("config.json", b"[" * 100_000), "is damaged ("),
        (replaced("data.json", b"{"), "is damaged ("),
        (replaced("data.json", b'{"data": 3}'), "is damaged (TypeError"),
        (replaced("data.json", b'{"data": {"paths": [], "files": {"x": [1]}}}'), "is damaged (AttributeError"),
        (replaced("data.json", b'{"data": {"paths": [], "files": {"x": "1 2"}}}'), "is damaged (ValueError"),
        (replaced("data.json", b'{"data": {"paths": [3], "files": {}}}'), "is damaged (TypeError"),
    ],
)  # fmt: skip
def test_without_the_journal_a_damaged_file_is_still_named(folder, change, message):
    (folder / "digests.jsonl").unlink()
    name, work = change
    work(folder)
    with pytest.raises(ValueError, match="is damaged") as caught:
        opened(folder)
    assert f"{folder / name} {message}" in str(caught.value)
    assert str(caught.value).partition("). ")[2].startswith(("Delete it and run", "Put the old file back"))


def test_the_remedies_work(folder):
    (folder / "results.json").write_text("{}")
    (folder / "results.json").unlink()
    assert opened(folder) is None
    (folder / "stages" / "a.npz").unlink()
    run = Workdir(folder, CONFIG)
    np.testing.assert_array_equal(run.stage("a", lambda: {"x": np.arange(3.0)})["x"], np.arange(3.0))
    run.finish({"EER": 0.123})
    run.close()
    assert opened(folder) == {"EER": 0.123}


def test_a_kill_between_the_journal_and_the_file_leaves_the_old_one_valid(tmp_path):
    journal = files.Digests(tmp_path / "digests.jsonl")
    journal.add("x", b"old")
    journal.add("x", b"new")
    with open(tmp_path / "digests.jsonl", "ab") as file:
        file.write(b'{"file": "x", "blake2b": "' + b"0" * 200)
    again = files.Digests(tmp_path / "digests.jsonl")
    again.add("y", b"after the half line")
    again = files.Digests(tmp_path / "digests.jsonl")
    assert again.names() == ["x", "y"]
    for name, data, is_original in (
        ("x", b"old", 1),
        ("x", b"new", 1),
        ("x", b"else", 0),
        ("y", b"", 0),
        ("z", b"", 0),
    ):
        assert again.is_original(name, data) == bool(is_original)


def test_a_damaged_journal_is_named_before_it_blames_another_file(folder):
    file = folder / "digests.jsonl"
    whole = file.read_bytes()
    for position in range(0, len(whole) - 1, 37):
        file.write_bytes(whole[:position] + bytes([whole[position] ^ 1]) + whole[position + 1 :])
        with pytest.raises(ValueError, match=r"digests\.jsonl is damaged in line \d+\. Delete it and run the same"):
            opened(folder)
    file.unlink()
    for _ in range(2):
        assert opened(folder) == {"EER": 0.123}
    (folder / "stages" / "a.npz").write_bytes((folder / "stages" / "b.npz").read_bytes())
    with pytest.raises(ValueError, match=r"a\.npz is damaged or was changed"):
        opened(folder)


def test_a_file_of_another_run_is_refused(folder):
    (folder / "stages" / "c.npz").write_bytes((folder / "stages" / "a.npz").read_bytes())
    run = Workdir(folder, CONFIG)
    with pytest.raises(ValueError, match=r"c\.npz was not written by this run, as far as digests\.jsonl says\. Delete"):
        run.stage("c", dict)
    run.close()


def test_a_link_to_itself_is_replaced_by_the_file(tmp_path):
    run = Workdir(tmp_path / "run", CONFIG)
    (run.path / "x").symlink_to(run.path / "x")
    assert run.write_text("x", "text").read_text() == "text"
    (run.path / "out").symlink_to(tmp_path)
    with pytest.raises(ValueError, match="name must stay below"):
        run.write_text("out/x", "text")
    run.close()


def test_the_folder_is_flushed_after_the_rename(tmp_path, monkeypatch):
    order = []
    plain_fsync, plain_replace = os.fsync, os.replace

    def fsync(handle):
        order.append("folder" if stat.S_ISDIR(os.fstat(handle).st_mode) else "file")
        plain_fsync(handle)

    def replace(source, target):
        order.append("rename")
        plain_replace(source, target)

    monkeypatch.setattr(os, "fsync", fsync)
    monkeypatch.setattr(os, "replace", replace)
    files.write_atomically(tmp_path / "x", b"x")
    assert order == ["file", "rename", "folder"]


def test_a_file_system_that_cannot_flush_folders_is_no_trouble_and_a_broken_disk_is(tmp_path, monkeypatch):
    plain = os.fsync

    def failing(code):
        def fsync(handle):
            if stat.S_ISDIR(os.fstat(handle).st_mode):
                raise OSError(code, os.strerror(code))
            plain(handle)

        return fsync

    monkeypatch.setattr(os, "fsync", failing(errno.EINVAL))
    files.write_atomically(tmp_path / "x", b"x")
    monkeypatch.setattr(os, "fsync", failing(errno.EIO))
    with pytest.raises(OSError, match="x could not be written: Input/output error"):
        files.write_atomically(tmp_path / "x", b"y")


def test_names_of_stages_are_names_of_files_everywhere():
    plain = ("stages/fold-0-pairs.npz", "stages/ä ö.npz", "a/b/c.npz", "stages/console.npz")
    assert [files.portable(name) for name in plain] == list(plain)
    odd = ["a:b", "a?b", "con", "CON.npz", "lpt1.x", "trailing.", "trailing ", "a\nb", 'a"b', os.fsdecode(b"a\xff:")]
    made = [files.portable(name) for name in odd]
    assert len({name.lower() for name in made}) == len(odd)
    for name in made:
        assert not set(name) & set('<>:"\\|?*\n')
        assert name.partition(".")[0].lower() not in ("con", "lpt1")
        assert name == name.rstrip(". ")


def test_names_that_are_not_utf8_reach_texts_arrays_and_json(tmp_path):
    name = os.fsdecode(b"caf\xe9")
    run = Workdir(tmp_path / "run", CONFIG)
    assert run.write_text("x.csv", f"{name},ä\n").read_text(encoding="utf-8") == "caf\\xe9,ä\n"
    for _ in range(2):
        assert str(run.stage("names", lambda: {"names": np.array([name])})["names"][0]) == name
    assert json.loads(run.write_json("x.json", {"name": name}).read_text())["name"] == name
    run.close()
