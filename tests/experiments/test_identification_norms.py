"""The best of a gallery by every rule, against the definitions written out."""

import jax
import numpy as np

from experiments.common import identification_norms as norms
from jaxface import joint_bayes, verifier
from jaxface.data import synthetic
from tests.tolerances import assert_close


def test_the_best_by_every_rule(rng):
    made = synthetic.gaussian_identities(rng, num_people=20, images_per_person=3, dim=4)
    x, ids = made.features, made.ids
    model, _ = verifier.fit(
        jax.random.key(0), x, ids, num_people=20, num_components=4, num_iters=3, length_normalize=False
    )
    z = np.asarray(verifier.encode_vectors(model, x))
    of_gallery = ids < 5
    gallery = verifier.enroll(z[of_gallery], ids[of_gallery], num_people=5)
    probes, cohort = z[(ids >= 4) & (ids < 10)], z[ids >= 10]
    found = norms.best(model, gallery, probes, cohort, num_best=7)
    basis = joint_bayes.diagonalize(model.model)
    sums, values = np.asarray(gallery.sums), np.asarray(basis.values)

    def g(total, m):
        return ((values * total**2 / (1 + m * values)) - np.log(1 + m * values)).sum(axis=-1) / 2

    def ratio(total, m, other):
        return g(total + other, m + 1) - g(total, m) - g(other, 1)

    raw = np.array([[ratio(total, 3, probe) for probe in probes] for total in sums])
    best_seven = [
        np.sort([[ratio(total, m, other) for other in cohort] for total in rows], axis=1)[:, -7:]
        for rows, m in ((sums, 3), (probes, 1))
    ]
    strangers = rng.normal(size=(40_000, 4)) * np.sqrt(1 + values)
    everybody = [np.array([ratio(total, m, strangers) for total in rows]) for rows, m in ((sums, 3), (probes, 1))]
    for rule, sides, factor in ((norms.ADAPTIVE, best_seven, 1e3), (norms.CLOSED, everybody, 1e8)):
        left, right = ((each.mean(axis=1), each.std(axis=1)) for each in sides)
        normed = (raw - left[0][:, None]) / left[1][:, None] + (raw - right[0][None, :]) / right[1][None, :]
        assert_close(found[rule].score, normed.max(axis=0) / 2, factor=factor)
        np.testing.assert_array_equal(found[rule].person, normed.argmax(axis=0))
    assert_close(found[norms.RATIO].score, raw.max(axis=0), factor=1e3)
    np.testing.assert_array_equal(found[norms.EVIDENCE].person, raw.argmax(axis=0))
