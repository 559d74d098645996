"""The same command again: nothing is done with the same data, and other data are refused by name."""

import json
import re

import pytest

from jaxface.runtime import launch


def check(run, config, folder, results, file, name):
    """Of a finished run in `folder`; `file` is one of its data, which messages call `name`. The file stays changed."""
    stamps = {path: path.stat().st_mtime_ns for path in folder.rglob("*") if path.is_file()}

    def must_not_run(*_):
        raise AssertionError("a finished run was started again")

    assert launch.execute(must_not_run, config, folder) == json.loads(json.dumps(results))
    assert {path: path.stat().st_mtime_ns for path in folder.rglob("*") if path.is_file()} == stamps

    content = bytearray(file.read_bytes())
    content[-1] ^= 1
    file.write_bytes(bytes(content))
    message = re.escape(f"1 changed ({name})")
    with pytest.raises(ValueError, match=message):
        launch.execute(must_not_run, config, folder)
    (folder / "results.json").unlink()  # as if the run had not come to its end
    with pytest.raises(ValueError, match=message):
        launch.execute(run, config, folder)
