import json
import pathlib

import jax.numpy as jnp
import numpy as np
import pytest

from jaxface.runtime import files, serial


def test_equal_content_is_equal_bytes():
    value = {"b": np.float32(0.5), "a": (1, jnp.arange(2)), "c": pathlib.Path("x")}
    text = serial.to_json(value)
    assert text == serial.to_json(dict(reversed(value.items())))
    assert json.loads(text) == {"a": [1, [0, 1]], "b": 0.5, "c": "x"}
    with pytest.raises(TypeError, match="cannot be written as JSON"):
        serial.to_json({"a": object()})


def test_nan_becomes_null():
    assert serial.without_nan({"a": [1.0, float("nan")], "b": {"c": float("inf")}}) == {
        "a": [1.0, None],
        "b": {"c": None},
    }


def test_changes_name_keys_and_values():
    assert serial.changes({"a": {"b": 1}, "c": 2}, {"a": {"b": 1}, "c": 2}) == ""
    assert (
        serial.changes({"a": {"b": 1}, "c": 2}, {"a": {"b": 3}, "d": {}})
        == "a.b: 1 -> 3; c: 2 -> 'absent'; d: 'absent' -> {}"
    )


def test_arrays_and_texts_come_back():
    arrays = {"x": np.arange(3.0), "name": np.asarray("face")}
    back = files.parse_arrays(pathlib.Path("x.npz"), serial.npz(arrays))
    assert set(back) == set(arrays)
    np.testing.assert_array_equal(back["x"], arrays["x"])
    assert serial.utf8("é\udcff") == "é\\xff".encode()
