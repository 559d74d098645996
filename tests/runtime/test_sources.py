"""Results belong to their data: what is taken for the same data, what is refused, and in which words."""

import os
import shutil
import time

import pytest
from ml_collections import ConfigDict

from jaxface.runtime import launch, sources
from jaxface.runtime.workdir import Workdir


@pytest.fixture
def photos(tmp_path):
    """Two people with two photos each, written some time ago."""
    root = tmp_path / "photos"
    for person in ("ann", "bob"):
        (root / person).mkdir(parents=True)
        for shot in range(2):
            (root / person / f"{shot}.png").write_bytes(f"{person} {shot}".encode())
    settle(root)
    return root


def settle(root):
    """Gives every file a time long past: it is too old to change within one tick of the clock."""
    for file in root.rglob("*.png"):
        os.utime(file, ns=(10**18, 10**18))


def study(config, work):
    work.uses(data=config.root, pairs=None)
    work.stage("read", lambda: {"size": sum(file.stat().st_size for file in config.root.rglob("*.png"))})
    if config.root.name == "fails":
        raise KeyboardInterrupt
    return {"n": 1}


def executed(photos, folder, fn=study):
    """A study whose config names no root, so that the data decide and not the config."""
    return launch.execute(lambda _, work: fn(ConfigDict({"root": photos}), work), ConfigDict({"seed": 0}), folder)


def test_the_same_data_do_nothing_and_changed_data_are_refused_by_name(photos, tmp_path, caplog):
    run = tmp_path / "run"
    executed(photos, run)
    with caplog.at_level("INFO", logger="absl"):
        executed(photos, run)
    assert "nothing to do" in caplog.text
    old = (photos / "ann" / "1.png").read_bytes()
    (photos / "ann" / "1.png").write_bytes(b"noise")
    with pytest.raises(
        ValueError,
        match=r"run holds a run made from other data: of data .*photos, 1 changed \(ann/1\.png\)\. Put the old data "
        r"back, or choose another --workdir",
    ):
        executed(photos, run)
    (photos / "ann" / "1.png").write_bytes(old)
    assert executed(photos, run) == {"n": 1}


def replaced_by_as_many_bytes(photos):
    (photos / "bob" / "0.png").write_bytes(b"noise")
    settle(photos)


def with_two_names_exchanged(photos):
    (photos / "ann").rename(photos / "x")
    (photos / "bob").rename(photos / "ann")
    (photos / "x").rename(photos / "bob")


def with_one_more(photos):
    (photos / "bob" / "2.png").write_bytes(b"bob 2")


def with_one_less(photos):
    (photos / "ann" / "0.png").unlink()


def with_a_longer_one(photos):
    (photos / "ann" / "0.png").write_bytes(b"ann 0 and more")


CHANGES = {
    replaced_by_as_many_bytes: r"1 changed \(bob/0\.png\)",
    with_two_names_exchanged: r"4 changed \(ann/0\.png, ann/1\.png, bob/0\.png, \.\.\.\)",
    with_one_more: r"1 new \(bob/2\.png\)",
    with_one_less: r"1 missing \(ann/0\.png\)",
    with_a_longer_one: r"1 changed \(ann/0\.png\)",
}


@pytest.mark.parametrize("change", CHANGES)
@pytest.mark.parametrize("is_finished", [True, False])
def test_every_change_is_seen_by_a_finished_run_and_by_a_stage(photos, tmp_path, change, is_finished):
    def ends(config, work):
        study(config, work)
        if not is_finished:
            raise ValueError("after the stage")
        return {"n": 1}

    if is_finished:
        executed(photos, tmp_path / "run", ends)
    else:
        with pytest.raises(ValueError, match="after the stage"):
            executed(photos, tmp_path / "run", ends)
    change(photos)
    with pytest.raises(ValueError, match=f"made from other data: .*{CHANGES[change]}"):
        executed(photos, tmp_path / "run")


def test_a_copy_of_the_data_is_the_same_data(photos, tmp_path):
    executed(photos, tmp_path / "run")
    shutil.copytree(photos, tmp_path / "copy")
    shutil.rmtree(photos)
    (tmp_path / "copy").rename(photos)
    assert executed(photos, tmp_path / "run") == {"n": 1}


def test_without_a_digest_the_time_decides(photos, tmp_path, monkeypatch):
    monkeypatch.setattr(sources, "DIGESTED_BYTES", 3)
    before = sources.survey([photos])
    assert {file.digest for file in before.files.values()} == {None}
    shutil.copytree(photos, tmp_path / "copy")  # keeps the times
    assert sources.differences(before, [tmp_path / "copy"]) == ""
    os.utime(photos / "ann" / "0.png")
    assert sources.differences(before, [photos]) == "1 changed (ann/0.png)"


def test_data_that_are_gone_let_a_finished_run_be_with_a_warning(photos, tmp_path, caplog):
    executed(photos, tmp_path / "run")
    shutil.rmtree(photos)
    with caplog.at_level("INFO", logger="absl"):
        assert executed(photos, tmp_path / "run") == {"n": 1}
    assert "photos is gone" in caplog.text
    assert "nothing to do" in caplog.text


def test_a_run_that_never_said_its_data_is_said_so(tmp_path, caplog):
    for _ in range(2):
        executed(tmp_path, tmp_path / "run", lambda config, work: {"n": 1})
    assert "did not record its data" in caplog.text


def test_before_the_first_stage_the_data_may_be_mended(photos, tmp_path):
    def stumbles(config, work):
        work.uses(data=config.root)
        raise ValueError("ann/0.png is damaged")

    with pytest.raises(ValueError, match="is damaged"):
        executed(photos, tmp_path / "run", stumbles)
    (photos / "ann" / "0.png").write_bytes(b"mended")
    executed(photos, tmp_path / "run")


def test_several_paths_single_files_none_and_relative_ones(photos, tmp_path, monkeypatch):
    files = [photos / "ann" / "0.png", photos / "bob" / "0.png"]
    assert list(sources.survey(files).files) == ["ann/0.png", "bob/0.png"]
    assert list(sources.survey([files[0]]).files) == ["0.png"]
    assert sources.survey([]).files == {}
    monkeypatch.chdir(tmp_path)
    work = Workdir("run", {})
    work.uses(pairs=None, empty="", several=[None, "photos/ann"], data="photos")
    work.close()
    record = (tmp_path / "run" / "data.json").read_text()
    assert '"photos/ann"' in record
    assert str(tmp_path) not in record
    assert "pairs" not in record
    assert "empty" not in record


def test_links_hidden_files_and_other_runs_are_no_trouble(photos, tmp_path):
    (photos / "ann" / "self").symlink_to(photos)
    (photos / "ann" / "loop").symlink_to(photos / "ann" / "loop")
    (photos / "nowhere").symlink_to(photos / "absent")
    (photos / "again").symlink_to(tmp_path / "elsewhere")
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "elsewhere" / "2.png").write_bytes(b"linked")
    (photos / ".DS_Store").write_bytes(b"hidden")
    (photos / ".cache").mkdir()
    (photos / ".cache" / "x").write_bytes(b"hidden")
    os.mkfifo(photos / "pipe")
    Workdir(photos / "runs" / "a", {}).close()
    found = sources.survey([photos])
    assert list(found.files) == ["again/2.png", "ann/0.png", "ann/1.png", "bob/0.png", "bob/1.png"]
    assert sources.from_json(sources.to_json(found)) == found


def test_a_name_that_is_not_utf8_is_recorded_and_printed(photos, tmp_path):
    (photos / "ann" / os.fsdecode(b"caf\xe9.png")).write_bytes(b"x")
    executed(photos, tmp_path / "run")
    executed(photos, tmp_path / "run")
    (photos / "ann" / os.fsdecode(b"caf\xe9.png")).write_bytes(b"y")
    with pytest.raises(ValueError, match=r"1 changed \(ann/caf\\xe9\.png\)"):
        executed(photos, tmp_path / "run")


def test_files_of_this_moment_are_compared_by_their_bytes(tmp_path):
    """Within one tick of a coarse clock a file can change and keep its time."""
    file = tmp_path / "a"
    file.write_bytes(b"old")
    assert sources.survey([tmp_path]).files["a"].stamp is None
    long_ago = time.time() - 100
    os.utime(file, (long_ago, long_ago))
    assert sources.survey([tmp_path]).files["a"].stamp is None  # the inode has changed just now
