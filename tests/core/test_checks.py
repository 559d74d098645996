import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxface.core import checks


def test_shapes_return_the_named_sizes():
    sizes = checks.shapes(x=(np.zeros((3, 2)), "n d"), labels=(np.zeros(3), "n"), images=(np.zeros((4, 5, 6)), "... 6"))
    assert sizes == {"n": 3, "d": 2}


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"x": (np.zeros(3), "n d")}, r"x must have shape \[n, d\]; got shape \(3,\)\."),
        ({"x": (np.zeros((3, 2)), "n 3")}, r"x must have shape \[n, 3\]; got shape \(3, 2\)"),
        ({"x": (np.zeros((3, 2)), "d d")}, r"x must have shape \[d, d\] with d = 3; got shape \(3, 2\)"),
        (
            {"x": (np.zeros((3, 2)), "n d"), "labels": (np.zeros(4), "n")},
            r"labels must have shape \[n\] with n = 3; got shape \(4,\) \(n = 3 comes from x\)",
        ),
        ({"x": (np.zeros(3), "... h w")}, r"x must have shape \[\.\.\., h, w\]; got shape \(3,\)"),
    ],
)
def test_shape_errors(arguments, message):
    with pytest.raises(ValueError, match=message):
        checks.shapes(**arguments)


def test_finite_says_how_many_and_where():
    x = np.ones((4, 3))
    x[2, 1], x[3, 0] = np.nan, np.inf
    with pytest.raises(ValueError, match=r"x must be finite; 2 of 12 values .* first at index \(2, 1\)"):
        checks.finite(x=x)


def test_samples_are_checked_for_shape_then_type_then_nan():
    x, labels = np.ones((3, 2)), np.zeros(3, int)
    assert checks.samples(x=(x, "n d"), beside={"labels": (labels, "n")}) == {"n": 3, "d": 2}
    wrong = np.full((3, 2), np.nan, np.float16)
    with pytest.raises(ValueError, match=r"labels must have shape \[n\] with n = 3"):
        checks.samples(x=(wrong, "n d"), beside={"labels": (labels[:2], "n")})
    with pytest.raises(ValueError, match="x must be a floating point array"):
        checks.samples(x=(wrong, "n d"), beside={"labels": (labels, "n")})
    with pytest.raises(ValueError, match="y must be finite"):
        checks.samples(x=(x, "n d"), y=(wrong.astype(float), "n d"))


def test_floating_takes_float32_and_float64_only():
    checks.floating(a=jnp.zeros(3, jnp.float32), b=np.zeros(3), c=1.0, d=np.float32(1))
    with pytest.raises(ValueError, match=r"image must be a floating point array; got dtype uint8\. Convert"):
        checks.floating(image=np.zeros(3, np.uint8))
    with pytest.raises(ValueError, match=r"x must be .*; got dtype complex64\. Convert"):
        checks.floating(x=jnp.zeros(3, jnp.complex64))
    with pytest.raises(ValueError, match=r"x must be .*; got dtype int64"):  # as it came, not as a device would keep it
        checks.floating(x=np.zeros(3, np.int64))


@pytest.mark.parametrize("dtype", [jnp.float16, jnp.bfloat16])
def test_floating_refuses_narrow_numbers_also_under_jit(dtype):
    message = rf"x must be .* of 32 or 64 bits; got dtype {jnp.dtype(dtype)}, .*x\.astype\('float32'\)"
    for x in (np.zeros(3, dtype), jnp.zeros(3, dtype)):
        with pytest.raises(ValueError, match=message):
            checks.floating(x=x)
    with pytest.raises(ValueError, match=message):
        jax.eval_shape(lambda x: checks.floating(x=x), jnp.zeros(3, dtype))


def test_none_and_text_are_no_numbers():
    for fn in (checks.floating, checks.finite):
        with pytest.raises(ValueError, match=r"x must be an array of numbers; got .*None"):
            fn(x=None)
        with pytest.raises(ValueError, match=r"x must be an array of numbers; got .*str"):
            fn(x="0.5")


def test_lists_and_names_are_no_arrays_of_numbers():
    with pytest.raises(ValueError, match=r"x must be an array of numbers; got a list\. Convert it first, e\.g\. numpy"):
        checks.floating(x=[1.0, 2.0])
    with pytest.raises(ValueError, match=r"labels must be an array of numbers; .* dtype <U3 .*core\.labels\.dense"):
        checks.dense_labels("labels", np.array(["ann", "ben"]), 2)


def test_values_are_not_looked_at_inside_transformations():
    def fn(x, labels, scale):
        checks.finite(x=x)
        checks.dense_labels("labels", labels, 2)
        checks.positive("scale", scale)
        return x * scale

    bad = (jnp.array([jnp.nan]), jnp.array([7]), jnp.array(-1.0))
    assert jnp.isnan(jax.jit(fn)(*bad)).all()
    with pytest.raises(ValueError, match="x must be finite"):
        fn(*bad)


def test_labels():
    checks.dense_labels("ids", np.array([0, -1, 2]), 3, padding=True)
    with pytest.raises(ValueError, match=r"ids must be in \[0, 2\); got values from 0 to 2"):
        checks.dense_labels("ids", np.array([0, 2]), 2)
    with pytest.raises(ValueError, match=r"ids must be in \[0, 3\); got values from -1 to 2\. Make them dense"):
        checks.dense_labels("ids", np.array([0, -1, 2]), 3)
    with pytest.raises(ValueError, match="ids must be dense integers; got dtype float64"):
        checks.dense_labels("ids", np.array([0.0]), 3)


@pytest.mark.parametrize("dtype", [np.uint8, np.uint32, np.int16, np.int32])
def test_labels_come_back_as_signed_integers_of_the_same_library(dtype):
    for fn in (lambda labels: checks.dense_labels("ids", labels, 3), lambda labels: checks.fits_int32("ids", labels)):
        host = fn(np.array([0, 2], dtype))
        assert isinstance(host, np.ndarray)
        assert (host.dtype, host.tolist()) == (np.int32, [0, 2])
        device = fn(jnp.array([0, 2], dtype))
        assert isinstance(device, jax.Array)
        assert (device.dtype, device.tolist()) == (jnp.int32, [0, 2])
        traced = jax.eval_shape(fn, jax.ShapeDtypeStruct((2,), jnp.dtype(dtype)))
        assert traced.dtype == jnp.int32


def test_intervals_and_counts():
    checks.between("weight", np.array([0.0, 1.0]), 0, 1)
    with pytest.raises(ValueError, match=r"weight must lie in \[0, 1\); got 1 values outside, the first 1.0"):
        checks.between("weight", np.array([0.0, 1.0]), 0, 1, closed_high=False)
    with pytest.raises(ValueError, match=r"weight must lie in \[0, 1\]; got nan"):
        checks.between("weight", float("nan"), 0, 1)
    with pytest.raises(ValueError, match=r"sigma must lie in \(0, inf\); got 0.0"):
        checks.positive("sigma", 0.0)
    with pytest.raises(ValueError, match=r"k must be an integer; got 2.0 of type float"):
        checks.at_least("k", 2.0, 1)
    with pytest.raises(ValueError, match="k must be an integer; got True of type bool"):
        checks.at_least("k", True, 1)
    with pytest.raises(ValueError, match=r"k must be at most 3 \(the rank\); got 4"):
        checks.at_most("k", 4, 3, "the rank")


@pytest.mark.parametrize("value", ["0.5", None, 1 + 1j, [0.5, None]])
def test_what_is_no_number_lies_in_no_interval(value):
    with pytest.raises(ValueError, match="weight must be a number; got "):
        checks.between("weight", value, 0, 1)
    with pytest.raises(ValueError, match="k must be an integer; got "):
        checks.at_most("k", value, 3)


def test_words_suggest_the_nearest():
    with pytest.raises(
        ValueError,
        match=r"kernel must be one of 'gaussian', 'linear'; got 'gausian'\. Did you mean 'gaussian'",
    ):
        checks.one_of("kernel", "gausian", ["gaussian", "linear"])
    with pytest.raises(ValueError, match=r"got 'zzz'\.$"):
        checks.one_of("kernel", "zzz", ["gaussian", "linear"])
    with pytest.raises(ValueError, match=r"kernel must be one of .*; got \['linear'\]"):
        checks.one_of("kernel", ["linear"], {"gaussian": 1, "linear": 2})


def test_keys():
    checks.typed_key(jax.random.key(0))
    with pytest.raises(ValueError, match=r"typed PRNG key such as jax.random.key"):
        checks.typed_key(0)
    with pytest.raises(ValueError, match=r"typed PRNG key .* got an array of dtype uint32 and shape \(2,\)"):
        checks.typed_key(jnp.zeros(2, jnp.uint32))
    with pytest.raises(ValueError, match=r"single key; got an array of keys of shape \(3,\)"):
        checks.typed_key(jax.random.split(jax.random.key(0), 3))


def test_real_numbers_of_any_width_for_the_host():
    for value in (np.float16(2), [1, 2], np.array([1, 2], ">i2"), True, jnp.ones(2, jnp.bfloat16), []):
        assert isinstance(checks.real("x", value), np.ndarray)
    for value in (["1", "2"], [None, 1.0], 1j, np.array(["2020-01-01"], "datetime64[D]")):
        with pytest.raises(ValueError, match=r"x must be real numbers; got an array of dtype .*x\.astype"):
            checks.real("x", value)


def test_arrays_of_the_other_byte_order_are_refused_with_the_right_remedy():
    """JAX has no such types; some arrays of files and of networks have."""
    labels, x = np.array([0, 1], ">i4"), np.ones(3, ">f4")
    for call, name in (
        (lambda: checks.dense_labels("labels", labels, 2), "labels"),
        (lambda: checks.fits_int32("labels", labels), "labels"),
        (lambda: checks.floating(x=x), "x"),
    ):
        with pytest.raises(ValueError, match=rf"{name} must have the byte order of this machine.*newbyteorder\('='\)"):
            call()
