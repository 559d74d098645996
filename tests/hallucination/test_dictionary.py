import numpy as np

from jaxface import hallucination
from jaxface.hallucination import dictionary as by_dictionary
from jaxface.sparse import ksvd
from tests.hallucination.fits import DICTIONARY, FITS, KEY, MASK
from tests.reference import sparse_reference as reference
from tests.sparse import draws
from tests.tolerances import assert_close


def test_a_dictionary_codes_what_is_seen(rng):
    x, y = draws.faces(rng), draws.faces(rng, n=1)[0]
    model, _ = FITS["dw_ksvd"](x, MASK)
    atoms, mean = np.asarray(model.atoms), x.mean(axis=0)
    support, values = reference.omp(atoms[MASK], y[MASK] - mean[MASK], 3)
    expected = mean + atoms[:, support] @ values
    assert_close(hallucination.reconstruct(model, y[MASK]), expected, factor=100)


def test_dw_ksvd_is_ksvd_with_weighted_rows(rng):
    x = draws.faces(rng)
    model, info = FITS["dw_ksvd"](x, MASK)
    weights = np.where(MASK, np.sqrt(5.0), 1.0)
    weighted = (x - x.mean(axis=0)) * weights
    found, expected = ksvd.fit(weighted, ksvd.init(KEY, weighted, num_atoms=10), sparsity=3, num_iters=2)
    assert_close(model.atoms, np.asarray(found.atoms) / weights[:, None])
    assert_close(info.objective, expected.objective)
    plain, _ = FITS["ksvd"](x, MASK)
    none, _ = by_dictionary.fit_dw_ksvd(KEY, x, MASK, beta=0.0, **DICTIONARY)
    assert_close(plain.atoms, none.atoms)
