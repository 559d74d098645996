"""Multinomial logistic regression against scikit-learn; labels, NaN and messages."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression

from jaxface.core.blocks import each_row
from jaxface.core.fitinfo import Status
from jaxface.losses import logistic
from jaxface.losses.logistic import Logistic


def problem(rng, *, n=90, d=4, c=3):
    labels = np.arange(n) % c
    return rng.normal(size=(c, d))[labels] + rng.normal(size=(n, d)), labels


def test_the_minimum_is_that_of_scikit_learn(rng):
    x, labels = problem(rng)
    ridge = 0.05
    model, info = logistic.fit(x, labels, num_classes=3, ridge=ridge, num_iters=100)
    reference = LogisticRegression(C=1 / (ridge * len(x)), tol=1e-10, max_iter=1000).fit(x, labels)
    assert int(info.status) == Status.OK
    np.testing.assert_allclose(model.coefficients.T, reference.coef_, atol=1e-5)
    found = jax.nn.softmax(each_row(logistic.logits, model, jnp.asarray(x)))
    np.testing.assert_allclose(found, reference.predict_proba(x), atol=1e-5)
    np.testing.assert_array_equal(each_row(logistic.predict, model, jnp.asarray(x)), reference.predict(x))


def test_a_class_without_samples_is_never_predicted(rng):
    x, labels = problem(rng)
    model, info = logistic.fit(x.astype(np.float32), labels, num_classes=5, ridge=0.01, num_iters=50)
    assert model.coefficients.dtype == info.objective.dtype == jnp.float32
    assert set(np.asarray(each_row(logistic.predict, model, jnp.asarray(x, jnp.float32)))) == {0, 1, 2}


def test_nan_has_no_class():
    model = Logistic(coefficients=jnp.ones((2, 3)), offset=jnp.zeros(3))
    assert int(logistic.predict(model, jnp.array([jnp.nan, 1.0]))) == -1


def test_errors(rng):
    x, labels = problem(rng)
    with pytest.raises(ValueError, match="labels"):
        logistic.fit(x, labels + 1, num_classes=3, ridge=0.1, num_iters=5)
    with pytest.raises(ValueError, match=r"ridge must lie in \[0, inf\); got -1.0"):
        logistic.fit(x, labels, num_classes=3, ridge=-1.0, num_iters=5)
    with pytest.raises(ValueError, match="x must be finite"):
        logistic.fit(np.where(x > 1, np.nan, x), labels, num_classes=3, ridge=0.1, num_iters=5)
