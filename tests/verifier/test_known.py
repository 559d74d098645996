"""The two forms of known people say the same."""

import jax
import jax.numpy as jnp
import numpy as np

from jaxface import joint_bayes
from jaxface.verifier import known
from tests.tolerances import assert_close


def test_sums_know_what_rows_know(rng):
    ids = np.repeat(np.arange(9), 4)
    x = rng.normal(size=(9, 5))[ids] * 2 + rng.normal(size=(36, 5)) + 3.0
    stats = joint_bayes.collect(x, ids, num_people=10, shift=jnp.ones(5))  # nobody is the tenth person
    rows, sums = known.Rows(jax.random.key(0), jnp.asarray(x), jnp.asarray(ids), 9, 4), known.Sums(stats, 4)
    assert_close(sums.mean(), rows.mean(), factor=10)
    assert_close(sums.mean(), x.mean(axis=0), factor=10)
    for one, other in (
        (sums.principal(whiten=True), rows.principal(whiten=True)),
        (sums.discriminant(), rows.discriminant()),
    ):
        assert one[0].basis.shape == other[0].basis.shape == (5, 4)
        maps = [each.basis @ each.basis.T for each, _ in (one, other)]
        assert_close(*maps, factor=1e3)
        assert int(one[1].status) == int(other[1].status)
