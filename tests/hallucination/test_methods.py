import inspect

import jax.numpy as jnp
import pytest

from jaxface import hallucination
from jaxface.core.fitinfo import Status
from jaxface.hallucination import METHODS
from jaxface.linalg import gram
from tests.hallucination.fits import FASTFOOD, KEY, MASK
from tests.sparse import draws
from tests.tolerances import assert_close

FIRST = ("key", "kernel")


@pytest.mark.parametrize("name", METHODS)
def test_a_method_needs_what_its_fit_takes(name):
    method = METHODS[name]
    parameters = inspect.signature(method.fit).parameters
    first = list(parameters)[: list(parameters).index("x")]
    assert first == [word for word in method.needs if word in FIRST]
    for word in ("bandwidth", "optimizer"):
        assert (word in parameters) == (word in method.needs)
    assert all(word in parameters for word in method.needs)


def test_a_key_and_a_kernel_reach_the_methods_that_need_them(rng):
    x = draws.faces(rng)
    options = {"key": KEY, "kernel": gram.linear(), "ridge": 0.1}
    fitted = hallucination.fit(METHODS["kernel_ridge"], x, MASK, **options)
    expected, _ = hallucination.fit_kernel_ridge(gram.linear(), x, MASK, ridge=0.1)
    assert_close(fitted.model.coefficients, expected.coefficients)
    fitted = hallucination.fit(METHODS["ridge"], x, MASK, **options)
    assert_close(fitted.model.matrix, hallucination.fit_ridge(x, MASK, ridge=0.1)[0].matrix)
    for name, word in (("kernel_ridge", "kernel"), ("ksvd", "key")):
        with pytest.raises(ValueError, match=f"{word} must be given for .*; got None"):
            hallucination.fit(METHODS[name], x, MASK)


def test_the_validity_of_inverted_atoms_is_kept_and_is_part_of_the_status(rng):
    x = draws.faces(rng)
    method = METHODS["fastfood_dw_ksvd_dekernelized"]
    fitted = hallucination.fit(method, x, MASK, key=KEY, **FASTFOOD)
    assert fitted.validity.residual.shape == (10,)
    assert int(fitted.info.status) == Status.OK

    def failing(model, x):
        inverted, validity = method.invert(model, x)
        status = jnp.full_like(validity.status, Status.RANK_DEFICIENT)
        return inverted, validity._replace(status=status)

    failed = hallucination.fit(method._replace(invert=failing), x, MASK, key=KEY, **FASTFOOD)
    assert int(failed.info.status) == Status.RANK_DEFICIENT
    assert hallucination.fit(METHODS["ridge"], x, MASK, ridge=0.1).validity is None


def test_titles_name_settings_of_their_fits():
    for method in METHODS.values():
        known = inspect.signature(method.fit).parameters
        method.title.format(**dict.fromkeys(known, 1))
