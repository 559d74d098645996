"""A verifier as one file."""

import dataclasses

import jax.numpy as jnp
import pytest

from jaxface import verifier
from jaxface.runtime import params_io
from jaxface.verifier import Verifier
from tests.tolerances import assert_close


def test_it_is_saved_and_loaded_whole(fitted, tmp_path):
    found, x, _ = fitted
    file = tmp_path / "verifier.safetensors"
    file.write_bytes(params_io.to_bytes(found))
    again = params_io.load(file, Verifier)
    assert_close(verifier.encode_vectors(again, x), verifier.encode_vectors(found, x))
    assert again.length_normalize is found.length_normalize


def test_parts_that_do_not_fit_together_are_refused(fitted):
    found, _, _ = fitted
    with pytest.raises(ValueError, match=r"mean must have shape \[r\] with r = 6; got shape \(5,\)"):
        dataclasses.replace(found, model=dataclasses.replace(found.model, mean=jnp.zeros(5))).check()
