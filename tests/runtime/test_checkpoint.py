import errno
import subprocess
import sys

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxface.runtime import checkpoint
from jaxface.runtime.checkpoint import Checkpoints


def state(value=1.0):
    return {"x": jnp.full(3, value), "count": jnp.asarray(2, jnp.int32), "host": np.arange(2.0)}


def test_the_newest_is_restored_with_dtypes_and_old_ones_are_dropped(tmp_path):
    store = Checkpoints(tmp_path)
    assert store.latest(state()) is None
    for step in (10, 20, 30):
        store.save(step, state(float(step)))
    assert store.steps() == [20, 30]
    step, restored = store.latest(state())
    assert step == 30
    assert restored["count"].dtype == jnp.int32
    np.testing.assert_array_equal(restored["x"], [30.0, 30.0, 30.0])
    store.close()


def test_a_damaged_checkpoint_is_named_and_the_one_before_it_taken(tmp_path, caplog):
    store = Checkpoints(tmp_path)
    store.save(10, state(10.0))
    store.save(20, state(20.0))
    damaged = 0
    for file in (tmp_path / "step-00000020").rglob("*"):
        if file.is_file():
            file.write_bytes(file.read_bytes()[: file.stat().st_size // 3])
            damaged += 1
    assert damaged
    with caplog.at_level("WARNING", logger="absl"):
        step, restored = store.latest(state())
    assert step == 10
    assert float(restored["x"][0]) == 10.0
    assert "checkpoint step-00000020 is damaged" in caplog.text
    store.close()


def advance(x, start):
    for step in range(start, start + 5):
        x = jnp.sin(x) + 0.1 * step
    return x


def test_killed_and_resumed_has_the_same_bits(tmp_path):
    begin = jnp.linspace(0, 1, 7)
    whole = checkpoint.run_in_segments(tmp_path / "whole", advance, begin, num_steps=20, every=5)

    def dies(x, start):
        if start == 10:
            raise KeyboardInterrupt
        return advance(x, start)

    with pytest.raises(KeyboardInterrupt):
        checkpoint.run_in_segments(tmp_path / "killed", dies, begin, num_steps=20, every=5)
    seen = []
    resumed = checkpoint.run_in_segments(
        tmp_path / "killed", advance, begin, num_steps=20, every=5, on_segment=lambda step, _: seen.append(step)
    )
    assert seen == [15, 20]
    assert np.asarray(resumed).tobytes() == np.asarray(whole).tobytes()
    again = checkpoint.run_in_segments(tmp_path / "killed", dies, begin, num_steps=20, every=5)
    assert np.asarray(again).tobytes() == np.asarray(whole).tobytes()


def test_sharded_state_keeps_its_placement(tmp_path):
    from jaxface.core import mesh

    placed = mesh.replicate(state(), mesh.create("data", num_devices=1))
    store = Checkpoints(tmp_path)
    store.save(1, placed)
    _, restored = store.latest(placed)
    assert restored["x"].sharding == placed["x"].sharding
    assert isinstance(restored["x"], jax.Array)
    store.close()


def test_segments_must_divide(tmp_path):
    with pytest.raises(ValueError, match="every must divide num_steps; got every=3, num_steps=20"):
        checkpoint.run_in_segments(tmp_path, advance, jnp.zeros(1), num_steps=20, every=3)


def test_other_settings_and_another_state_are_refused(tmp_path):
    checkpoint.run_in_segments(tmp_path, advance, jnp.zeros(2), num_steps=15, every=5)
    with pytest.raises(ValueError, match="holds step 15, which segments of 10 up to 30 do not pass"):
        checkpoint.run_in_segments(tmp_path, advance, jnp.zeros(2), num_steps=30, every=10)
    with pytest.raises(ValueError, match="holds step 15, which segments of 5 up to 10 do not pass"):
        checkpoint.run_in_segments(tmp_path, advance, jnp.zeros(2), num_steps=10, every=5)
    with pytest.raises(ValueError, match="every must be at least 1; got 0"):
        checkpoint.run_in_segments(tmp_path, advance, jnp.zeros(2), num_steps=10, every=0)
    for other, change in (
        (jnp.zeros(3), r"state: float64\[2\] -> float64\[3\]"),
        (jnp.zeros(2, jnp.int32), r"state: float64\[2\] -> int32\[2\]"),
        ({"x": jnp.zeros(2)}, r"state: float64\[2\] -> None; state.x: None -> float64\[2\]"),
    ):
        with pytest.raises(ValueError, match=rf"step-00000015 holds another state \({change}\). Choose another"):
            checkpoint.run_in_segments(tmp_path, advance, other, num_steps=15, every=5)


@pytest.mark.parametrize(
    ("error", "message"),
    [
        (ValueError("Failed to write [os_error_code='28']"), "the disk is full: .* Free some space"),
        (OSError(errno.ENOSPC, "No space left on device"), "the disk is full: .*step-00000002 was not written"),
        (ValueError("Failed to write [os_error_code='30']"), "could not be written: Read-only file system"),
        (ValueError("something else\nin two lines"), r"step-00000002 could not be written: something else\."),
    ],
)  # fmt: skip
def test_a_checkpoint_that_cannot_be_written_is_named_and_the_one_before_it_stays(
    tmp_path, monkeypatch, error, message
):
    store = Checkpoints(tmp_path)
    store.save(1, state(1.0))

    def fails(path, *_, **__):
        (tmp_path / f"{path.name}.orbax-checkpoint-tmp").mkdir()
        raise error

    monkeypatch.setattr(store._handler, "save", fails)
    with pytest.raises(OSError, match=message):
        store.save(2, state(2.0))
    assert sorted(entry.name for entry in tmp_path.iterdir()) == ["step-00000001", "step-00000001.digest"]
    assert store.latest(state())[0] == 1
    store.close()


def test_a_full_disk_that_shows_when_a_run_closes_is_named(tmp_path, monkeypatch):
    """Orbax writes in threads: what they could not say during `save` comes out at the end."""
    store = Checkpoints(tmp_path)
    store.save(1, state())

    def full(*_):
        raise OSError(errno.ENOSPC, "No space left on device")

    plain = store._handler.close
    monkeypatch.setattr(store._handler, "close", full)
    with pytest.raises(OSError, match=f"the disk is full: {tmp_path} was not written"):
        store.close()
    plain()


FULL = """
import resource, sys
import jax.numpy as jnp, numpy as np
from absl import logging
from jaxface.runtime import environment
from jaxface.runtime.checkpoint import Checkpoints
logging.use_absl_handler()
environment.quiet_libraries()
store = Checkpoints(sys.argv[1])
resource.setrlimit(resource.RLIMIT_FSIZE, (20_000, 20_000))
try:
    store.save(2, jnp.asarray(np.random.default_rng(0).normal(size=100_000)))
except OSError as error:
    print(error.errno, error.strerror)
store.close()
"""


def test_a_write_that_fails_inside_orbax_is_one_sentence(tmp_path):
    """The limit on a file's size stands for a full disk: the system refuses the write."""
    done = subprocess.run([sys.executable, "-c", FULL, str(tmp_path)], capture_output=True, text=True, check=True)
    assert done.stdout == f"{errno.EFBIG} {tmp_path}/step-00000002 could not be written: File too large.\n"
    assert "Traceback" not in done.stderr
    assert list(tmp_path.iterdir()) == []


def test_every_flipped_bit_is_noticed(tmp_path, caplog):
    store = Checkpoints(tmp_path)
    store.save(1, state())
    files = sorted(file for file in (tmp_path / "step-00000001").rglob("*") if file.is_file() and file.stat().st_size)
    for number, file in enumerate(files):
        whole = file.read_bytes()
        position = (7919 * (number + 1)) % len(whole)
        file.write_bytes(whole[:position] + bytes([whole[position] ^ 1]) + whole[position + 1 :])
        assert store.latest(state()) is None, file
        file.write_bytes(whole)
    (tmp_path / "step-00000001.digest").write_bytes(b"\xff")
    assert store.latest(state()) is None
    (tmp_path / "step-00000001.digest").unlink()  # as after a kill just before it was written
    assert store.latest(state())[0] == 1
    store.close()


def test_what_a_kill_left_of_a_checkpoint_is_removed(tmp_path):
    left = [tmp_path / "step-00000003.orbax-checkpoint-tmp", tmp_path / "step-00000001.orbax-checkpoint-tmp"]
    for folder in left:
        (folder / "ocdbt").mkdir(parents=True)
    (tmp_path / "other").mkdir()
    Checkpoints(tmp_path).close()
    assert [entry.name for entry in tmp_path.iterdir()] == ["other"]


def test_an_old_checkpoint_that_cannot_be_deleted_stops_nothing(tmp_path, monkeypatch, caplog):
    store = Checkpoints(tmp_path)

    def refuse(*_, **__):
        raise PermissionError(errno.EACCES, "Permission denied")

    for step in (1, 2):
        store.save(step, state(step))
    monkeypatch.setattr(checkpoint.shutil, "rmtree", refuse)
    with caplog.at_level("WARNING", logger="absl"):
        store.save(3, state(3.0))
    monkeypatch.undo()
    assert "step-00000001 was not deleted: Permission denied" in caplog.text
    assert store.latest(state())[0] == 3
    store.close()
