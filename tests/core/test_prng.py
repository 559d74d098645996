import jax
import numpy as np
import pytest

from jaxface.core import prng

# Pinned: a change of hash would change every published number.
PINNED = [1648507704, 902201515]


def test_streams_differ_by_name_and_are_the_same_every_time():
    key = jax.random.key(0)
    a, b = prng.stream(key, "split"), prng.stream(key, "init")
    assert not np.array_equal(jax.random.key_data(a), jax.random.key_data(b))
    assert np.array_equal(jax.random.key_data(a), jax.random.key_data(prng.stream(key, "split")))
    assert jax.random.key_data(a).tolist() == PINNED


def test_member_keys_do_not_depend_on_their_number():
    key = jax.random.key(1)
    few, many = prng.member_keys(key, 10), prng.member_keys(key, 100)
    np.testing.assert_array_equal(jax.random.key_data(few), jax.random.key_data(many[:10]))
    assert len(np.unique(jax.random.key_data(many), axis=0)) == 100


def test_errors():
    with pytest.raises(ValueError, match="num must be at least 1; got 0"):
        prng.member_keys(jax.random.key(0), 0)
