"""One process a folder: a lock of the operating system, or a file with the owner's name if it has no locks."""

import errno
import json
import os
import pathlib
import socket
import sys
from typing import Any, BinaryIO

from absl import logging

from jaxface.core import messages
from jaxface.runtime.files import storage_error

__all__ = []

if sys.platform == "win32":
    import msvcrt

    def _lock(file: BinaryIO) -> None:
        file.seek(0)
        msvcrt.locking(file.fileno(), msvcrt.LK_NBLCK, 1)

    def _is_running(pid: int) -> bool:  # noqa: ARG001
        return True  # asking Windows by `os.kill` would end the process
else:
    import fcntl

    def _lock(file: BinaryIO) -> None:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)

    def _is_running(pid: int) -> bool:
        try:
            os.kill(pid, 0)
        except ProcessLookupError:
            return False
        except OSError:
            pass  # the process of another user
        return True


_HELD = (errno.EAGAIN, errno.EWOULDBLOCK, errno.EACCES, errno.EDEADLK)


class FolderLock:
    """Holds a folder from its creation to `close`; a second holder is refused."""

    def __init__(self, folder: pathlib.Path):
        self._owner: pathlib.Path | None = None
        self._file = _opened(folder / ".lock")
        try:
            _lock(self._file)
        except OSError as error:
            self._file.close()
            if error.errno in _HELD:
                raise ValueError(
                    f"another process is running in {folder}; wait for it or choose another --workdir."
                ) from None
            logging.warning("the file system of %s has no locks (%s); a file says who runs", folder, error.strerror)
            self._owner = _claimed(folder / ".owner")

    def close(self) -> None:
        """Lets another process use the folder."""
        self._file.close()
        if self._owner is not None:
            self._owner.unlink(missing_ok=True)
            self._owner = None


def _opened(file: pathlib.Path) -> BinaryIO:
    try:
        return open(file, "a+b")
    except OSError as error:
        raise storage_error(file, error) from error


def _claimed(file: pathlib.Path) -> pathlib.Path:
    """Creates the owner's file; one of a process that has ended is taken over."""
    try:
        with open(file, "x", encoding="utf-8") as target:
            json.dump({"pid": os.getpid(), "host": socket.gethostname()}, target)
    except FileExistsError:
        owner = _owner(file)
        if owner.get("host") != socket.gethostname() or _is_running(owner["pid"]):
            raise ValueError(
                f"{file} says that process {owner.get('pid', '?')} on {messages.printable(owner.get('host', '?'))} is "
                "running there. Wait for it; if it has ended, delete that file."
            ) from None
        file.unlink(missing_ok=True)
        return _claimed(file)
    except OSError as error:
        raise storage_error(file, error) from error
    return file


def _owner(file: pathlib.Path) -> dict[str, Any]:
    """Process and machine of the owner; nothing for a damaged file."""
    try:
        owner = json.loads(file.read_bytes())
        return owner if isinstance(owner["pid"], int) else {}
    except (OSError, ValueError, KeyError, TypeError):
        return {}
