"""A verifier of made people, and others that it has not seen."""

import jax
import pytest

from jaxface import verifier
from jaxface.core.fitinfo import raise_if_failed
from jaxface.data import pairs, synthetic


@pytest.fixture(params=[False, True], ids=["plain", "length-normalised"])
def fitted(request, rng):
    made = synthetic.gaussian_identities(rng, num_people=24, images_per_person=5, dim=10)
    x, ids = made.features, made.ids
    found, info = verifier.fit(
        jax.random.key(0),
        x[:60],
        ids[:60],
        num_people=12,
        num_components=6,
        num_iters=5,
        length_normalize=request.param,
    )
    raise_if_failed(info)
    points = verifier.encode_vectors(found, x[60:90])
    found, info = verifier.calibrate(found, points, *pairs.all_pairs(ids[60:90]))
    raise_if_failed(info)
    return found, x[90:], ids[90:]
