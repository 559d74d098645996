"""One process a folder, on file systems with locks and without, and on Windows."""

import errno
import json
import os
import socket
import subprocess
import sys
import textwrap

import pytest

from jaxface.runtime import lock
from jaxface.runtime.lock import FolderLock


@pytest.fixture(params=[errno.ENOLCK, errno.ENOTSUP, errno.EOPNOTSUPP, errno.ENOSYS, errno.EINVAL])
def without_locks(request, monkeypatch):
    def refuse(file):
        raise OSError(request.param, os.strerror(request.param))

    monkeypatch.setattr(lock, "_lock", refuse)


def test_without_locks_a_file_keeps_the_second_out(tmp_path, without_locks, caplog):
    with caplog.at_level("WARNING", logger="absl"):
        first = FolderLock(tmp_path)
    assert "has no locks" in caplog.text
    with pytest.raises(ValueError, match=rf"\.owner says that process {os.getpid()} on .* is running there\. Wait for"):
        FolderLock(tmp_path)
    first.close()
    FolderLock(tmp_path).close()
    assert not (tmp_path / ".owner").exists()


def test_without_locks_a_process_that_ended_does_not_keep_the_folder(tmp_path, without_locks):
    ended = subprocess.Popen([sys.executable, "-c", ""])
    ended.wait()
    (tmp_path / ".owner").write_text(json.dumps({"pid": ended.pid, "host": socket.gethostname()}))
    FolderLock(tmp_path).close()


@pytest.mark.parametrize(
    "content", ['{"pid": 1, "host": "else\\u001bwhere"}', "", "[]", '{"pid": "x", "host": "elsewhere"}', "nonsense"]
)
def test_an_owner_of_whom_nothing_is_known_is_named_with_the_remedy(tmp_path, without_locks, content):
    (tmp_path / ".owner").write_text(content)
    with pytest.raises(ValueError, match=r"if it has ended, delete that file") as caught:
        FolderLock(tmp_path)
    assert "\x1b" not in str(caught.value)


def test_a_folder_that_cannot_be_written_is_named(tmp_path):
    with pytest.raises(OSError, match=r"absent/\.lock could not be written: No such file"):
        FolderLock(tmp_path / "absent")


WINDOWS = textwrap.dedent("""
    import ctypes, errno, os, sys, types
    import absl.logging, jax, ml_collections, numpy, orbax.checkpoint, pathlib, subprocess, scipy.linalg, threadpoolctl

    held = set()
    def locking(handle, mode, count):
        key = os.fstat(handle).st_ino
        if mode != 2 or key in held:
            raise OSError(errno.EACCES, "Permission denied")
        held.add(key)

    plain_fsync, plain_open = os.fsync, os.open
    def fsync(handle):
        import stat
        assert not stat.S_ISDIR(os.fstat(handle).st_mode), "Windows cannot flush folders"
        plain_fsync(handle)

    sys.platform = "win32"
    sys.modules["fcntl"] = sys.modules["resource"] = None
    sys.modules["msvcrt"] = types.SimpleNamespace(locking=locking, LK_NBLCK=2)
    os.fsync = fsync
    plain_library = ctypes.CDLL
    def library(name, *rest, **words):
        if name is None:
            raise TypeError("Windows has no library of the process itself")
        return plain_library(name, *rest, **words)
    ctypes.CDLL = library
    from jaxface.runtime import checkpoint, environment, launch, params_io, sections, sources
    environment.configure(x64=False)
    from jaxface.runtime.workdir import Workdir

    def run(config, work):
        work.uses(data=sys.argv[1])
        try:
            Workdir(work.path, {})
        except ValueError as error:
            print(error)
        work.stage('a:b?"con', lambda: {"x": 1})
        work.stage("con", lambda: {"x": 2})
        return {"n": 1}

    folder = sys.argv[1] + "/run"
    launch.execute(run, ml_collections.ConfigDict({"seed": 0}), folder)
    held.clear()
    print(launch.execute(run, ml_collections.ConfigDict({"seed": 0}), folder))
    print(*sorted(os.listdir(folder + "/stages")))
""")


def test_a_run_on_windows(tmp_path):
    """Without fcntl and resource, with msvcrt's locks, without a way to flush folders, with its reserved names."""
    done = subprocess.run([sys.executable, "-c", WINDOWS, str(tmp_path)], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    second, results, stages = done.stdout.splitlines()
    assert second.startswith("another process is running in ")
    assert results == "{'n': 1}"
    assert not set(stages) & set('<>:"\\|?*')
    assert "con.npz" not in stages.split()
