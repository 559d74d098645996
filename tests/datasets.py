"""Real data for tests that want it: found by JAXFACE_DATA or beside the repository, otherwise the test is skipped."""

import os
from pathlib import Path

import pytest

_BESIDE = Path(__file__).resolve().parents[2] / "shared" / "data"


def real(name: str) -> Path:
    """A file or folder of the real data; skips the calling test where there is none."""
    root = Path(os.environ.get("JAXFACE_DATA", _BESIDE))
    path = root / name
    if not path.exists():
        pytest.skip(f"real data {name!r} not found in {root}; set JAXFACE_DATA to the folder that holds it")
    return path
