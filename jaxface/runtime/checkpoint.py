"""Checkpoints of iterative runs by orbax: the newest whole one is resumed, a damaged one is named and skipped.

Of several processes, process 0 alone reads and writes: the others send it their parts of a state and get the arrays.
Orbax restores some flipped bits without an error, so every checkpoint has a digest of all its files beside it.
"""

import errno
import hashlib
import io
import json
import os
import pathlib
import re
import shutil
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import jax
import numpy as np
from absl import logging
from jax.experimental import multihost_utils

from jaxface.core import checks, processes
from jaxface.runtime import files, serial

__all__ = ["Checkpoints", "run_in_segments"]

T = TypeVar("T")

_KEPT = 2
_UNFINISHED = ".orbax-checkpoint-tmp"  # the suffix of unfinished folders, by orbax
_PIECE = 1 << 20  # bytes of a file that are read at a time for its digest
_ROOT = "state"  # a branch above the state, because orbax refuses a single array


class Checkpoints:
    """Numbered checkpoints of one pytree in a folder; the last two are kept."""

    def __init__(self, folder: str | os.PathLike[str]):
        import orbax.checkpoint

        self.folder = pathlib.Path(folder).resolve()
        if processes.index():
            return
        files.make_folder(self.folder)
        self._remove_unfinished()
        alone = {"active_processes": {0}, "barrier_sync_key_prefix": "jaxface"} if processes.count() > 1 else {}
        options = orbax.checkpoint.options.MultiprocessingOptions(**alone)
        self._handler = orbax.checkpoint.StandardCheckpointer(multiprocessing_options=options)

    def save(self, step: int, tree: Any) -> None:
        """Writes a checkpoint; it appears under its name only when it is whole. Every process must call this."""
        if processes.count() > 1:
            tree = jax.tree.map(_on_host, tree)
        processes.from_first(lambda: self._save(step, tree))

    def _save(self, step: int, tree: Any) -> None:
        target = self.folder / _name(step)
        try:
            _digest_file(target).unlink(missing_ok=True)
            self._handler.save(target, {_ROOT: tree}, force=True)
            self._handler.wait_until_finished()
            digest = _digest(target)
        except (OSError, ValueError) as error:  # tensorstore raises ValueError, with the code of the system in its text
            self._remove_unfinished()
            raise _storage_error(target, error) from error
        files.write_atomically(_digest_file(target), digest.encode())
        for old in self._steps()[:-_KEPT]:
            self._remove(self.folder / _name(old))

    def steps(self) -> list[int]:
        """Steps with a checkpoint, oldest first."""
        return list(json.loads(processes.from_first(lambda: json.dumps(self._steps()).encode()) or b"[]"))

    def _steps(self) -> list[int]:
        names = (entry.name for entry in self.folder.iterdir() if entry.is_dir())
        return sorted(int(name.removeprefix("step-")) for name in names if _is_step(name))

    def latest(self, like: T) -> tuple[int, T] | None:
        """Step and contents of the newest checkpoint that can be read, with the structure and dtypes of `like`.

        A whole checkpoint of another structure is refused; otherwise the run would start again without a word.
        """
        if processes.count() == 1:
            return self._latest(like)
        leaves, structure = jax.tree.flatten(like)
        found: list[tuple[int, T]] = []

        def read() -> bytes | None:
            found.extend(filter(None, [self._latest(jax.tree.map(_host_shape, like))]))
            return _packed(found[0][0], jax.tree.leaves(found[0][1])) if found else None

        if (content := processes.from_first(read)) is None:
            return None
        step, arrays = _unpacked(content)
        return step, jax.tree.unflatten(structure, map(_placed_like, arrays, leaves))

    def _latest(self, like: T) -> tuple[int, T] | None:
        shapes = {_ROOT: jax.tree.map(_abstract, like)}
        for step in reversed(self._steps()):
            if not _is_whole(self.folder / _name(step)):
                logging.warning("checkpoint %s is damaged; trying the one before it", _name(step))
                continue
            self._check(step, shapes)
            try:
                return step, self._handler.restore(self.folder / _name(step), shapes)[_ROOT]
            except Exception as error:  # orbax and tensorstore raise many kinds for a damaged file
                logging.warning("checkpoint %s is damaged (%s); trying the one before it", _name(step), _head(error))
        return None

    def _check(self, step: int, shapes: Any) -> None:
        folder = self.folder / _name(step)
        try:
            leaves = jax.tree.leaves(self._handler.metadata(folder).item_metadata.tree)
            stored = _arrays({leaf.name: leaf for leaf in leaves})
        except Exception:  # damaged: `restore` reports it
            return
        expected = _arrays({_path(path): leaf for path, leaf in jax.tree_util.tree_leaves_with_path(shapes)})
        if stored != expected:
            names = stored.keys() | expected.keys()
            differing = sorted(name for name in names if stored.get(name) != expected.get(name))
            changes = "; ".join(f"{name}: {stored.get(name)} -> {expected.get(name)}" for name in differing)
            raise ValueError(f"{folder} holds another state ({changes}). Choose another --workdir, or delete it.")

    def _remove(self, folder: pathlib.Path) -> None:
        """Renames first: a kill while files are deleted then leaves nothing that looks like a checkpoint."""
        doomed = folder.with_name(f"{folder.name}{_UNFINISHED}")
        try:
            folder.rename(doomed)
            _digest_file(folder).unlink(missing_ok=True)
            shutil.rmtree(doomed)
        except OSError as error:  # costs space only
            logging.warning("%s was not deleted: %s", folder, error.strerror)

    def _remove_unfinished(self) -> None:
        """Deletes the remains of a checkpoint that a kill or a full disk interrupted."""
        for entry in self.folder.iterdir():
            if entry.is_dir() and _is_step(entry.name.removesuffix(_UNFINISHED)) and not _is_step(entry.name):
                shutil.rmtree(entry, ignore_errors=True)

    def close(self) -> None:
        """Waits for writes and ends the threads; an error of a thread is reported like one of `save`."""
        if processes.index():
            return
        try:
            self._handler.close()
        except (OSError, ValueError) as error:
            raise _storage_error(self.folder, error) from error


def run_in_segments(
    folder: str | os.PathLike[str],
    advance: Callable[[T, int], T],
    state: T,
    *,
    num_steps: int,
    every: int,
    on_segment: Callable[[int, T], None] | None = None,
) -> T:
    """Advances `state` to `num_steps` in segments of `every`, with a checkpoint after each; resumes when it can.

    `advance(state, start)` does `every` steps (the last segment does them too: `every` must divide `num_steps`, so
    one compiled program serves all). A killed run that is started again ends with the same bits.
    """
    checks.at_least("every", every, 1)
    if num_steps % every:
        raise ValueError(f"every must divide num_steps; got every={every}, num_steps={num_steps}.")
    checkpoints = Checkpoints(folder)
    try:
        start, state = checkpoints.latest(state) or (0, state)
        if start % every or start > num_steps:
            raise ValueError(
                f"{folder} holds step {start}, which segments of {every} up to {num_steps} do not pass. "
                "Repeat the old settings, or choose another --workdir."
            )
        if start:
            logging.info("resumed at step %d of %d", start, num_steps)
        for begin in range(start, num_steps, every):
            state = advance(state, begin)
            checkpoints.save(begin + every, state)
            if on_segment is not None:
                on_segment(begin + every, state)
        return state
    finally:
        checkpoints.close()


def _storage_error(path: pathlib.Path, error: Exception) -> OSError:
    """A failed write in words; tensorstore reports the code of the operating system in its text."""
    code = re.search(r"os_error_code='(\d+)'", str(error))
    if isinstance(error, OSError) and error.errno:
        return files.storage_error(path, error)
    if code:
        return files.storage_error(path, OSError(int(code[1]), os.strerror(int(code[1]))))
    return files.storage_error(path, OSError(errno.EIO, _head(error)))


def _digest_file(folder: pathlib.Path) -> pathlib.Path:
    return folder.with_name(f"{folder.name}.digest")


def _digest(folder: pathlib.Path) -> str:
    """A digest of the names and contents of all files below a folder."""
    digest = hashlib.blake2b(digest_size=16)
    for file in sorted(path for path in folder.rglob("*") if path.is_file()):
        digest.update(f"{file.relative_to(folder).as_posix()} {file.stat().st_size}\n".encode())
        with open(file, "rb") as content:
            while piece := content.read(_PIECE):
                digest.update(piece)
    return digest.hexdigest()


def _is_whole(folder: pathlib.Path) -> bool:
    """Whether the files are unchanged; a checkpoint that was killed before its digest was written has none."""
    file = _digest_file(folder)
    try:
        return not file.exists() or file.read_text(errors="replace") == _digest(folder)
    except OSError:
        return False


def _abstract(leaf: Any) -> Any:
    if isinstance(leaf, jax.Array):
        return jax.ShapeDtypeStruct(leaf.shape, leaf.dtype, sharding=leaf.sharding)
    return np.asarray(leaf)


def _on_host(leaf: Any) -> np.ndarray:
    """The whole of an array that may lie on the devices of several processes, in each of them."""
    if not isinstance(leaf, jax.Array) or leaf.is_fully_addressable:
        return np.asarray(leaf)
    if leaf.is_fully_replicated:
        return np.asarray(leaf.addressable_data(0))
    return np.asarray(multihost_utils.process_allgather(leaf, tiled=True))


def _host_shape(leaf: Any) -> np.ndarray:
    """An array of the dtype and shape to read, without memory of its own."""
    return np.broadcast_to(np.zeros((), _dtype(leaf)), np.shape(leaf))


def _placed_like(array: np.ndarray, leaf: Any) -> Any:
    array = array.view(_dtype(leaf))  # an `.npz` does not know bfloat16
    if not isinstance(leaf, jax.Array):
        return array
    return jax.make_array_from_callback(array.shape, leaf.sharding, lambda part: array[part])


def _dtype(leaf: Any) -> np.dtype[Any]:
    return np.dtype(leaf.dtype) if hasattr(leaf, "dtype") else np.asarray(leaf).dtype


def _packed(step: int, arrays: Sequence[np.ndarray]) -> bytes:
    return serial.npz({"step": np.asarray(step)} | {str(k): array for k, array in enumerate(arrays)})


def _unpacked(content: bytes) -> tuple[int, list[np.ndarray]]:
    with np.load(io.BytesIO(content), allow_pickle=False) as archive:
        return int(archive["step"]), [archive[str(k)] for k in range(len(archive.files) - 1)]


def _arrays(leaves: dict[str, Any]) -> dict[str, str]:
    """Dtype and shape of each leaf by its name."""
    return {name: f"{np.dtype(leaf.dtype)}{list(leaf.shape)}" for name, leaf in leaves.items()}


def _path(path: Any) -> str:
    return jax.tree_util.keystr(path, simple=True, separator=".")


def _name(step: int) -> str:
    return f"step-{step:08d}"


def _is_step(name: str) -> bool:
    return name.startswith("step-") and name.removeprefix("step-").isdigit()


def _head(error: Exception) -> str:
    return str(error).splitlines()[0][:200] if str(error) else type(error).__name__
