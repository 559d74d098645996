import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxface.core.fitinfo import Status
from jaxface.ensembles import diagnose, fusion, growth, lda_member, log_posteriors, sampling, sweep
from tests.ensembles import draws
from tests.tolerances import assert_close

KEY = jax.random.key(5)
GRID = {"num_fixed": np.array([2, 0, 4]), "num_random": np.array([5, 3, 2]), "num_components": np.array([5, 2, 3])}


def problem(rng):
    y, labels, variances = draws.coordinates(rng)
    probes = y + rng.normal(size=y.shape) * np.sqrt(variances)
    return y, labels, probes, labels


@pytest.mark.parametrize(("ridge", "unbiased"), [(0.0, True), (0.5, False)])
def test_every_setting_equals_a_committee_of_its_own(ridge, unbiased, rng):
    y, labels, probes, probe_labels = problem(rng)
    settings = {"num_members": 4, "num_classes": 6, "ridge": ridge, "unbiased": unbiased}
    found = sweep(KEY, y, labels, probes, probe_labels, **GRID, **settings, rule=fusion.vote)
    for place in range(3):
        fixed, drawn, width = (int(GRID[name][place]) for name in ("num_fixed", "num_random", "num_components"))
        axes = sampling.feature_subspaces(KEY, (y**2).mean(axis=0), num_members=4, num_fixed=fixed, num_random=drawn)
        members, _ = lda_member.fit(
            y, labels, axes, num_classes=6, num_components=min(width, fixed + drawn), ridge=ridge, unbiased=unbiased
        )
        log_p = log_posteriors(members, probes, posterior=lda_member.gaussian)
        at = functools.partial(jax.tree.map, lambda leaf, place=place: leaf[place])
        assert_close(at(found.growth), growth(log_p, probe_labels, rule=fusion.vote), factor=1000)
        assert_close(at(found.diagnosis), diagnose(log_p, probe_labels), factor=1000)
        np.testing.assert_array_equal(found.info.status[place], np.full(4, Status.OK))
        np.testing.assert_array_equal(found.info.rank[place], np.full(4, fixed + drawn))


def test_another_grid_of_the_same_shape_compiles_nothing(rng):
    arguments = [jnp.asarray(each) for each in problem(rng)]
    run = functools.partial(sweep, KEY, *arguments, num_members=4, num_classes=6)
    run(**GRID)
    with jax.no_tracing():
        run(num_fixed=np.array([1, 3, 2]), num_random=np.array([4, 4, 2]), num_components=np.array([1, 4, 2]))
