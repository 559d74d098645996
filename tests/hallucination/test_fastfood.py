import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxface import hallucination
from jaxface.core.fitinfo import Status
from jaxface.features import FORMS, INVERSES, dekernelize, fastfood, forms, maps
from jaxface.hallucination import fastfood as by_fastfood
from jaxface.runtime import params_io
from jaxface.sparse import omp
from jaxface.sparse.dictionary import Dictionary, SparseCode, decode
from tests.hallucination.fits import FASTFOOD, FITS, KEY, MASK, dense, mean_square
from tests.reference import sparse_reference as reference
from tests.sparse import draws
from tests.tolerances import assert_close


@pytest.fixture
def quick_to_compile():
    """For types: what XLA makes of the programs is tested in float64."""
    jax.config.update("jax_disable_most_optimizations", True)
    yield
    jax.config.update("jax_disable_most_optimizations", False)


def test_faces_that_are_all_the_same_have_no_bandwidth(rng):
    x = np.tile(draws.faces(rng, n=1), (12, 1))
    with pytest.raises(ValueError, match=r"x must hold faces that differ; the face part is the same in all of them"):
        FITS["fastfood_dw_ksvd"](x, MASK)
    x[:, ~MASK] += rng.random((12, 15))
    with pytest.raises(ValueError, match="the visible part is the same in all of them"):
        FITS["fastfood_dw_ksvd_dekernelized"](x, MASK)


def sine_features(fast_map, row):
    v = dense(fast_map)
    return v, np.sin(v @ row) / np.sqrt(len(v))


def test_fastfood_dictionary_codes_features_and_inverts_them(rng):
    x, y = draws.faces(rng), draws.faces(rng, n=1)[0]
    model, _ = FITS["fastfood_dw_ksvd"](x, MASK)
    mean = x.mean(axis=0)
    _, seen = sine_features(model.signals.visible_map, (y - mean)[MASK])
    support, values = reference.omp(np.asarray(model.visible_atoms), seen, 3)
    found = np.asarray(model.face_atoms)[:, support] @ values
    v, _ = sine_features(model.signals.face_map, y - mean)
    angles = np.arcsin(np.clip(np.sqrt(len(v)) * found, -1, 1))
    expected = mean + np.linalg.lstsq(v, angles, rcond=None)[0]
    assert_close(hallucination.reconstruct(model, y[MASK]), expected, factor=1e3)
    assert_close(by_fastfood.feature_reconstruction(model)(jnp.asarray(y[MASK])), found, factor=100)
    share = (np.abs(found) > 1 / np.sqrt(len(found))).mean()
    report = hallucination.validity(model, y[None, MASK])
    assert_close(report.share_clipped, np.array([share]))
    residual = np.sin(v @ (expected - mean)) / np.sqrt(len(v)) - found
    assert_close(report.residual, np.array([np.linalg.norm(residual) / np.linalg.norm(found)]), factor=1e3)
    assert (model.signals.face_map.num_features, model.signals.visible_map.num_features) == (160, 80)


def test_features_of_the_data_are_in_range_and_the_dictionary_is_that_of_17(rng):
    x = draws.faces(rng)
    model, info = FITS["fastfood_dw_ksvd"](x, MASK)
    centered = x - x.mean(axis=0)
    v, _ = sine_features(model.signals.face_map, centered[0])
    assert np.abs(centered @ v.T).max() <= np.pi / 2
    assert np.abs(centered @ v.T).max() > 0.99 * np.pi / 2
    u, _ = sine_features(model.signals.visible_map, centered[0][MASK])
    stacked = np.concatenate(
        [np.sin(centered @ v.T) / np.sqrt(160), 2 * np.sin(centered[:, MASK] @ u.T) / np.sqrt(80)], 1
    )
    atoms = np.concatenate([model.face_atoms, 2 * np.asarray(model.visible_atoms)])
    assert_close(np.linalg.norm(atoms, axis=0), np.ones(10))
    found = Dictionary(atoms=jnp.asarray(atoms))
    codes = omp.encode_batch(found, stacked, sparsity=3)
    residual = stacked - np.asarray(jax.vmap(lambda code: decode(found, code))(codes))
    # The error of the dictionary that was found is near that of the dictionary before the last sweep.
    assert 0.5 < float((residual**2).sum() / info.objective[-1]) < 1.5


def test_effective_beta_is_the_ratio_of_squared_bandwidths(rng):
    """Measured: how much more `|phi_v(Y_v)|^2 / |Y_v|^2` is than `|phi(Y)|^2 / |Y|^2`, nearly linear as both are."""
    x = draws.faces(rng)
    drawn = hallucination.draw_maps(KEY, x, MASK, expansion=5, quantile=1.0)
    centered = x - x.mean(axis=0)
    energy = []
    for fast_map, part in ((drawn.visible, centered[:, MASK]), (drawn.face, centered)):
        v, _ = sine_features(fast_map, part[0])
        energy.append(((part @ v.T) ** 2).sum() / len(v) / (part**2).sum())
    found = float(by_fastfood.effective_beta(drawn, 4.0))
    assert abs(found / (4 * energy[0] / energy[1]) - 1) < 0.3
    assert_close(by_fastfood.effective_beta(drawn, 8.0), 2 * found)


def test_the_maps_are_those_of_the_fit(rng):
    x = draws.faces(rng)
    model, _ = FITS["fastfood_dw_ksvd"](x, MASK)
    drawn = hallucination.draw_maps(KEY, x, MASK, expansion=5, quantile=1.0)
    assert_close((model.signals.face_map, model.signals.visible_map), tuple(drawn))


def test_dekernelised_atoms_reproduce_features_of_their_size(rng):
    """In the nearly linear range images of atoms, coded on pixels, explain the training faces like the features."""
    x = draws.faces(rng)
    model, _ = FITS["fastfood_dw_ksvd_dekernelized"](x, MASK)
    in_features, _ = FITS["fastfood_dw_ksvd"](x, MASK)
    assert model.atoms.shape == (30, 10)
    both = [hallucination.reconstruct_matrix(m, x[:, MASK]) for m in (model, in_features)]
    assert mean_square(*both) < 0.2 * mean_square(both[0], x.mean(axis=0)[None, :])
    bound = 1 / np.sqrt(160)
    v, _ = sine_features(in_features.signals.face_map, x[0])
    angles = np.asarray(model.atoms).T @ v.T
    assert np.abs(np.sin(angles)).max() / np.sqrt(160) <= bound * (1 + 1e-6)


def test_both_parts_of_an_atom_have_images(rng):
    """Of the face as `invert_atoms` has them; of the visible pixels by the other map, at the size of the same codes."""
    x = draws.faces(rng)
    model, _ = FITS["fastfood_dw_ksvd"](x, MASK)
    faces, parts = hallucination.atom_images(model, x)
    assert_close(faces, hallucination.invert_atoms(model, x)[0].atoms)
    codes = omp.encode_batch(Dictionary(atoms=model.atoms), model.signals.transform(x), sparsity=3)
    v = dense(model.signals.visible_map)
    for j in range(10):
        used = np.asarray(codes.values)[(np.asarray(codes.indices) == j) & (np.asarray(codes.values) != 0)]
        usual = np.asarray(model.visible_atoms)[:, j] * (np.sqrt((used**2).mean()) if used.size else 1)
        usual *= min(1, 1 / np.sqrt(80) / np.abs(usual).max())
        assert_close(parts[:, j], np.linalg.lstsq(v, np.arcsin(np.sqrt(80) * usual), rcond=None)[0], factor=1e4)


def test_atoms_are_taken_back_at_their_usual_size(rng):
    """The root mean square of their coefficients, which decides how far arcsin bends them; no larger than a sine."""
    f, d, k = 40, 6, 5
    face_map = fastfood.init(KEY, input_dim=d, num_features=f, bandwidth=2.0, dtype=float)
    atoms = rng.uniform(-1, 1, size=(f + 7, k)) / f**0.5
    codes = SparseCode(jnp.asarray([[0, 1], [2, 0], [1, 3], [2, 3]]), jnp.asarray(rng.normal(size=(4, 2))))
    method = INVERSES["least_squares"]
    found, report = by_fastfood._atom_images(face_map, Dictionary(atoms=jnp.asarray(atoms)), codes, method)
    np.testing.assert_array_equal(report.status, np.full(k, Status.OK))
    np.testing.assert_array_equal(report.share_clipped, np.zeros(k))
    v = np.asarray(maps.dense_matrix(face_map))
    for j in range(k):
        used = np.asarray(codes.values)[np.asarray(codes.indices) == j]
        usual = atoms[:f, j] * (np.sqrt((used**2).mean()) if used.size else 1)
        usual *= min(1, 1 / f**0.5 / np.abs(usual).max())
        assert_close(found[:, j], np.linalg.lstsq(v, np.arcsin(f**0.5 * usual), rcond=None)[0], factor=1e4)


def test_float32_stays_float32(rng, quick_to_compile):
    """Where a fit runs on the host; the others are in the transformation table."""
    x = draws.faces(rng).astype(np.float32)
    model, info = FITS["fastfood_dw_ksvd_dekernelized"](x, MASK)
    image = hallucination.reconstruct(model, x[0][MASK])
    assert image.dtype == jnp.float32
    assert np.isfinite(image).all()
    leaves = [leaf for leaf in jax.tree.leaves((model, info)) if jnp.issubdtype(leaf.dtype, jnp.floating)]
    assert {leaf.dtype for leaf in leaves} == {np.dtype("float32")}


def test_atoms_that_are_inverted_make_the_dictionary_on_pixels(rng):
    x = draws.faces(rng)
    model, _ = hallucination.fit_fastfood_dw_ksvd(KEY, x, MASK, **FASTFOOD)
    inverted, report = hallucination.invert_atoms(model, x)
    expected, _ = FITS["fastfood_dw_ksvd_dekernelized"](x, MASK)
    assert_close(inverted.atoms, expected.atoms)
    assert report.residual.shape == (10,)
    assert (report.residual < 1).all()


@pytest.mark.parametrize(
    ("form", "inverse"),
    [("cos_sin", "gauss_newton"), ("cos_sin", "least_squares"), ("sin", "conjugate_gradient")],
)  # each form and each inverse; sines by least squares are the default of the other tests
def test_forms_and_inverses_reach_the_reconstruction(form, inverse, rng):
    x = draws.faces(rng)
    options = {"form": FORMS[form], "inverse": INVERSES[inverse]}
    model, _ = hallucination.fit_fastfood_dw_ksvd(KEY, x, MASK, **FASTFOOD, **options)
    images = hallucination.reconstruct_matrix(model, x[:5, MASK])
    assert mean_square(images, x[:5]) < mean_square(x[:5], x.mean(axis=0)[None, :])
    rebuild = by_fastfood.feature_reconstruction(model)
    features = np.stack([rebuild(row) for row in jnp.asarray(x[:5, MASK])])
    back, report = dekernelize.invert_matrix(
        model.signals.face_map, features, form=options["form"], method=options["inverse"]
    )
    assert_close(images - model.mean[None, :], back, factor=1e4)
    assert_close(hallucination.validity(model, x[:5, MASK]).residual, report.residual, factor=1e4)
    assert (int(report.num_iters.max()) > 0) == (inverse != "least_squares")


def test_pairs_need_half_the_bandwidth(rng):
    x = draws.faces(rng)
    settings = {"expansion": 5, "quantile": 0.99}
    sine, pairs = (hallucination.draw_maps(KEY, x, MASK, **settings, form=form) for form in (forms.sin, forms.cos_sin))
    assert_close(sine.face.scale * 2, pairs.face.scale, factor=10)


def test_gauss_newton_has_the_smaller_residual(rng):
    """With a tenth of the data out of range, clipped arcsines bend the features and Gauss-Newton fits them."""
    x = draws.faces(rng)
    settings = FASTFOOD | {"quantile": 0.9}
    residuals = []
    for inverse in (dekernelize.least_squares, dekernelize.gauss_newton):
        model, _ = hallucination.fit_fastfood_dw_ksvd(KEY, x, MASK, inverse=inverse, **settings)
        residuals.append(float(hallucination.validity(model, x[:, MASK]).residual.mean()))
    assert residuals[1] < residuals[0]


def test_options_of_the_inverse_are_those_of_the_tables(rng):
    x = draws.faces(rng)
    with pytest.raises(ValueError, match=r"form must be one of jaxface\.features, cos_sin, sin; got"):
        hallucination.fit_fastfood_dw_ksvd(KEY, x, MASK, **FASTFOOD, form=jnp.sin)
    with pytest.raises(ValueError, match=r"inverse must be one of jaxface\.features, least_squares, conj.*; got"):
        hallucination.fit_fastfood_dw_ksvd(KEY, x, MASK, **FASTFOOD, inverse=abs)
    model, _ = hallucination.fit_fastfood_dw_ksvd(KEY, x, MASK, **FASTFOOD, form=forms.cos_sin)
    with pytest.raises(ValueError, match="form of the model must be sin for its atoms to be inverted; got cos_sin"):
        hallucination.invert_atoms(model, x)
    with pytest.raises(ValueError, match=r"pixels must have shape \[n, v\] with v = 15; got shape \(2, 3\)"):
        hallucination.validity(model, x[:2, :3])


def test_a_model_with_options_is_saved(rng, tmp_path):
    x = draws.faces(rng)
    options = {"form": forms.cos_sin, "inverse": dekernelize.gauss_newton}
    model, _ = hallucination.fit_fastfood_dw_ksvd(KEY, x, MASK, **FASTFOOD, **options)
    file = tmp_path / "model.safetensors"
    file.write_bytes(params_io.to_bytes(model))
    loaded = params_io.load(file, type(model))
    assert (loaded.signals.form, loaded.inverse) == ("cos_sin", "gauss_newton")
    assert_close(hallucination.reconstruct(loaded, x[0, MASK]), hallucination.reconstruct(model, x[0, MASK]))
