"""The process that a study runs in: precision, resources, the compilation cache, and the record of them."""

import hashlib
import importlib.metadata
import io
import logging
import os
import pathlib
import platform
import subprocess
import sys
from typing import Any

import jax
from absl import logging as absl_logging

from jaxface.core import messages
from jaxface.runtime import resources

__all__ = ["configure", "provenance"]

_RECORDED_PACKAGES = ("jaxface", "jax", "jaxlib", "numpy", "optax", "chex", "ml_collections", "orbax-checkpoint")


def configure(*, x64: bool, quick_compile: bool = False) -> None:
    """Sets up a process before its first array: precision, threads, memory, the persistent compilation cache.

    On accelerators fits run with full float32 products. quick_compile: see `resources.compile_quickly`.
    """
    if quick_compile:
        resources.compile_quickly()
    jax.config.update("jax_enable_x64", x64)
    jax.config.update("jax_default_matmul_precision", "highest")
    resources.widen_thread_pool()
    resources.limit_blas_threads()
    resources.keep_freed_memory()
    resources.freeze_imports()
    use_compilation_cache()
    quiet_libraries()
    protect_terminal()


def quiet_libraries() -> None:
    """Keeps news of JAX and orbax out of the log; their warnings stay."""
    for module in ("xla_bridge", "distributed"):
        logging.getLogger(f"jax._src.{module}").setLevel(logging.WARNING)
    absl_logging.get_absl_handler().addFilter(_is_for_a_reader)


def protect_terminal() -> None:
    """Shows control characters of file names as escapes, in the log and where the terminal lacks a character."""
    handler = absl_logging.get_absl_handler()
    if not isinstance(handler.formatter, _Printable):
        handler.setFormatter(_Printable(handler.formatter))
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")


class _Printable(logging.Formatter):
    """Another formatter's lines without control characters."""

    def __init__(self, inner: logging.Formatter | None):
        super().__init__()
        self._inner = inner or logging.Formatter()

    def format(self, record: logging.LogRecord) -> str:
        return messages.printable_lines(self._inner.format(record))


def _is_for_a_reader(record: logging.LogRecord) -> bool:
    """Orbax writes some thirty lines a checkpoint by our logger, and tracebacks of errors that `checkpoint` names."""
    is_news = record.levelno >= logging.WARNING and record.exc_info is None
    return is_news or "orbax" not in pathlib.Path(record.pathname).parts


def use_compilation_cache(folder: pathlib.Path | None = None) -> None:
    """Keeps compiled programs in the user's cache folder, one folder per JAX version and kind of CPU."""
    folder = folder or cache_folder() / f"xla-{jax.__version__}-{_cpu_fingerprint()}"
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError:
        return  # a read-only home costs compile time and nothing else
    jax.config.update("jax_compilation_cache_dir", str(folder))
    jax.config.update("jax_persistent_cache_min_compile_time_secs", 0.2)


def cache_folder() -> pathlib.Path:
    """The user's cache folder for jaxface."""
    return pathlib.Path(os.environ.get("XDG_CACHE_HOME") or pathlib.Path.home() / ".cache") / "jaxface"


def provenance() -> dict[str, Any]:
    """The record that a reader needs to repeat a run: command, versions, devices, source revision."""
    return {
        "command": command(),
        "python": platform.python_version(),
        "platform": platform.platform(),
        "packages": _package_versions(),
        "devices": [f"{device.platform}:{device.device_kind}" for device in jax.devices()],
        "processes": jax.process_count(),
        "x64": bool(jax.config.read("jax_enable_x64")),
        "git": git_revision(),
    }


def command() -> list[str]:
    """The words after `python -m` that started this process."""
    spec = getattr(sys.modules["__main__"], "__spec__", None)
    name = sys.argv[0] if spec is None else spec.name.removesuffix(".__main__")  # of a package, as it was typed
    return [name, *sys.argv[1:]]


def git_revision() -> str | None:
    """The checkout's commit, with `+changes` when tracked files differ from it; None outside a checkout."""
    root = pathlib.Path(__file__).resolve().parents[2]

    def git(*arguments: str) -> str:
        done = subprocess.run(
            ["git", "-C", str(root), *arguments], capture_output=True, text=True, check=True, timeout=10
        )
        return done.stdout.strip()

    try:
        if pathlib.Path(git("rev-parse", "--show-toplevel")) != root:
            return None
        return git("rev-parse", "HEAD") + ("+changes" if git("status", "--porcelain", "--untracked-files=no") else "")
    except (OSError, subprocess.SubprocessError):
        return None


def _package_versions() -> dict[str, str]:
    versions = {}
    for name in _RECORDED_PACKAGES:
        try:
            versions[name] = importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            continue
    return versions


def _cpu_fingerprint() -> str:
    """Compiled CPU programs hold instructions of one kind of CPU, and home folders are shared between machines."""
    try:
        info = pathlib.Path("/proc/cpuinfo").read_text()
        features = next((line for line in info.splitlines() if line.startswith(("flags", "Features"))), "")
    except OSError:
        features = ""
    return hashlib.sha256(f"{platform.machine()} {platform.processor()} {features}".encode()).hexdigest()[:12]
