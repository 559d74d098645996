import numpy as np
import pytest

from jaxface import hallucination
from jaxface.core.fitinfo import Status
from jaxface.hallucination import measurement
from jaxface.runtime import params_io
from tests.hallucination.fits import FASTFOOD, KEY, MASK, mean_square
from tests.reference import sparse_reference as reference
from tests.sparse import draws
from tests.tolerances import assert_close

METHODS = hallucination.METHODS


def halved(size=30):
    """Means of neighbours, two by two."""
    return np.kron(np.eye(size // 2), np.full((1, 2), 0.5))


def test_ridge_is_the_regression_on_the_measurement(rng):
    x, y, m = draws.faces(rng), draws.faces(rng, n=1)[0], halved()
    model, info, _ = hallucination.fit_measured(METHODS["ridge"], x, m, ridge=0.1)
    assert int(info.status) == Status.OK
    mean = x.mean(axis=0)
    seen = (x - mean) @ m.T
    penalty = 0.1 * (seen**2).sum() / 15
    rows = np.concatenate([seen, np.sqrt(penalty) * np.eye(15)])
    matrix = np.linalg.lstsq(rows, np.concatenate([x - mean, np.zeros((15, 30))]), rcond=None)[0]
    found = hallucination.reconstruct(model, m @ y)
    assert_close(found, mean + (m @ (y - mean)) @ matrix, factor=100)
    assert_close(model.mean, mean)


def test_a_dictionary_codes_the_measurement_on_measured_atoms(rng):
    """The rows of the atoms for the measurement are the operator times those for the face."""
    x, y, m = draws.faces(rng), draws.faces(rng, n=1)[0], halved()
    settings = {"num_atoms": 10, "sparsity": 3, "num_iters": 2, "beta": 4.0}
    model, _, _ = hallucination.fit_measured(METHODS["dw_ksvd"], x, m, key=KEY, **settings)
    atoms, mean = np.asarray(model.stacked.atoms), x.mean(axis=0)
    assert_close(atoms[30:], m @ atoms[:30], factor=1e3)
    support, values = reference.omp(m @ atoms[:30], m @ (y - mean), 3)
    assert_close(hallucination.reconstruct(model, m @ y), mean + atoms[:30, support] @ values, factor=1e3)


def test_single_pixels_as_a_measurement_are_the_visible_pixels(rng):
    x, y = draws.faces(rng), draws.faces(rng, n=1)[0]
    plain, _ = hallucination.fit_ridge(x, MASK, ridge=0.1)
    model, _, _ = hallucination.fit_measured(METHODS["ridge"], x, np.eye(30)[MASK], ridge=0.1)
    image = hallucination.reconstruct(model, y[MASK])
    assert_close(image, hallucination.reconstruct(plain, y[MASK]), factor=100)
    back = hallucination.with_measurement(model, image, y[MASK])
    assert_close(back, hallucination.with_visible(plain, image, y[MASK]), factor=10)
    with pytest.raises(ValueError, match="model must see pixels; this one sees a measurement"):
        hallucination.with_visible(model, image, y[MASK])


def test_the_nearest_image_with_a_measurement(rng):
    image, m = rng.normal(size=30), halved()
    measured = rng.normal(size=15)
    model = measurement.MeasuredHallucinator(operator=m, stacked=None)
    found = np.asarray(hallucination.with_measurement(model, image, measured))
    assert_close(m @ found, measured, factor=10)
    assert_close(found, image + np.linalg.lstsq(m, measured - m @ image, rcond=None)[0], factor=10)


def test_features_of_faces_over_their_measurements_beat_the_mean_face_and_are_saved(rng, tmp_path):
    x, tests, m = draws.faces(rng), draws.faces(rng), halved()
    model, info, _ = hallucination.fit_measured(METHODS["fastfood_dw_ksvd"], x, m, key=KEY, **FASTFOOD)
    assert int(info.status) == Status.OK
    rebuilt = hallucination.reconstruct_matrix(model, tests @ m.T)
    assert mean_square(rebuilt, tests) < 0.7 * mean_square(x.mean(axis=0)[None, :], tests)
    file = tmp_path / "model.safetensors"
    file.write_bytes(params_io.to_bytes(model))
    again = params_io.load(file, measurement.MeasuredHallucinator)
    np.testing.assert_array_equal(hallucination.reconstruct_matrix(again, tests @ m.T), rebuilt)


def test_wrong_operators_are_refused(rng):
    x = draws.faces(rng)
    with pytest.raises(ValueError, match=r"operator must have shape \[v, d\] with d = 30"):
        hallucination.fit_measured(METHODS["ridge"], x, halved(28), ridge=0.1)
    with pytest.raises(ValueError, match="operator"):
        hallucination.fit_measured(METHODS["ridge"], x, np.full((3, 30), np.nan), ridge=0.1)
    with pytest.raises(ValueError, match="key must be given for K-SVD"):
        hallucination.fit_measured(METHODS["ksvd"], x, halved(), num_atoms=10, sparsity=3, num_iters=1)
