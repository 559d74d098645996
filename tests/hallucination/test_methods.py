import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxface.core.fitinfo import Status
from jaxface.features import fastfood, maps
from jaxface.hallucination import dictionary as by_dictionary
from jaxface.hallucination import fastfood as by_fastfood
from jaxface.hallucination import kernel as by_kernel
from jaxface.hallucination import linear
from jaxface.hallucination import reconstruction as hallucination
from jaxface.linalg import gram
from jaxface.sparse import ksvd
from jaxface.sparse.dictionary import Dictionary, SparseCode
from tests.reference import sparse_reference as reference
from tests.sparse import draws
from tests.tolerances import assert_close

KEY = jax.random.key(0)
MASK = draws.top_mask()
DICTIONARY = {"num_atoms": 10, "sparsity": 3, "num_iters": 2}
FASTFOOD = DICTIONARY | {"beta": 4.0, "expansion": 5, "quantile": 1.0}

FITS = {
    "pca": lambda x, mask: linear.fit_pca(x, mask, num_components=3),
    "pca_prior": lambda x, mask: linear.fit_pca_prior(x, mask, num_components=5),
    "ridge": lambda x, mask: linear.fit_ridge(x, mask, ridge=1e-2),
    "kernel_ridge": lambda x, mask: by_kernel.fit_kernel_ridge(
        gram.gaussian(bandwidth=np.float32(2)), x, mask, ridge=1e-2
    ),
    "fastfood_ridge": lambda x, mask: by_kernel.fit_fastfood_ridge(
        KEY, x, mask, num_features=64, bandwidth=2.0, ridge=1e-2
    ),
    "ksvd": lambda x, mask: by_dictionary.fit_ksvd(KEY, x, mask, **DICTIONARY),
    "dw_ksvd": lambda x, mask: by_dictionary.fit_dw_ksvd(KEY, x, mask, beta=4.0, **DICTIONARY),
    "fastfood_dw_ksvd": lambda x, mask: by_fastfood.fit_fastfood_dw_ksvd(KEY, x, mask, **FASTFOOD),
    "fastfood_dw_ksvd_dekernelized": lambda x, mask: by_fastfood.fit_fastfood_dw_ksvd_dekernelized(
        KEY, x, mask, **FASTFOOD
    ),
}


@pytest.fixture
def quick_to_compile():
    """For types: what XLA makes of the programs is tested in float64."""
    jax.config.update("jax_disable_most_optimizations", True)
    yield
    jax.config.update("jax_disable_most_optimizations", False)


def mean_square(a, b):
    return float(((np.asarray(a) - np.asarray(b)) ** 2).mean())


@pytest.mark.parametrize("name", FITS)
def test_every_method_beats_the_mean_face(name, rng):
    faces = draws.faces(rng, n=48)
    train, test = faces[:40], faces[40:]
    model, info = FITS[name](train, MASK)
    images = hallucination.reconstruct_matrix(model, test[:, MASK], block_size=3)
    assert int(info.status) == Status.OK
    assert mean_square(images, test) < 0.5 * mean_square(np.tile(train.mean(axis=0), (8, 1)), test)
    assert_close(hallucination.reconstruct(model, test[0][MASK]), images[0], factor=1e4)


@pytest.mark.parametrize("name", ["ridge", "pca_prior", "kernel_ridge", "dw_ksvd"])
@pytest.mark.parametrize("mask", ["scattered", "one pixel", "all"])
def test_any_subset_of_the_pixels(name, mask, rng):
    chosen = {
        "scattered": rng.random(30) < 0.4,
        "one pixel": np.arange(30) == 17,
        "all": np.ones(30, bool),
    }[mask]
    x = draws.faces(rng)
    if name == "dw_ksvd":
        model, _ = by_dictionary.fit_dw_ksvd(KEY, x, chosen, beta=4.0, num_atoms=10, sparsity=1, num_iters=2)
    else:
        model, _ = FITS[name](x, chosen)
    np.testing.assert_array_equal(model.visible, np.flatnonzero(chosen))
    images = hallucination.reconstruct_matrix(model, x[:, chosen])
    assert np.isfinite(images).all()
    # An atom that hardly has the one visible pixel is taken at any length to explain it: dictionaries need more.
    if (name, mask) != ("dw_ksvd", "one pixel"):
        assert mean_square(images, x) < mean_square(np.tile(x.mean(axis=0), (len(x), 1)), x)


@pytest.mark.parametrize("name", [name for name in FITS if not name.startswith("fastfood_dw")])
def test_faces_that_are_all_the_same_are_returned(name, rng):
    face = draws.faces(rng, n=1)[0]
    model, _ = FITS[name](np.tile(face, (12, 1)), MASK)
    assert_close(hallucination.reconstruct(model, face[MASK]), face)
    other = hallucination.reconstruct(model, face[MASK] + 0.1)
    assert np.isfinite(other).all()


def test_nothing_to_learn_from_and_no_penalty_is_no_singular_matrix(rng):
    b = rng.normal(size=(3, 2))
    assert_close(linear.penalized_solve(jnp.zeros((3, 3)), b, jnp.asarray(0.0)), (b, np.float64(1)))


def test_faces_that_are_all_the_same_have_no_bandwidth(rng):
    x = np.tile(draws.faces(rng, n=1), (12, 1))
    with pytest.raises(ValueError, match=r"x must hold faces that differ; the face part is the same in all of them"):
        FITS["fastfood_dw_ksvd"](x, MASK)
    x[:, ~MASK] += rng.random((12, 15))
    with pytest.raises(ValueError, match="the visible part is the same in all of them"):
        FITS["fastfood_dw_ksvd_dekernelized"](x, MASK)


def test_bad_input(rng):
    x = draws.faces(rng)
    fit = FITS["ridge"]
    with pytest.raises(ValueError, match="mask must show at least one pixel; all of them are hidden"):
        fit(x, np.zeros(30, bool))
    with pytest.raises(ValueError, match="mask must be boolean, True where a pixel is visible; got dtype int"):
        fit(x, MASK.astype(int))
    with pytest.raises(ValueError, match="mask must be known outside jit"):
        jax.jit(fit)(x, MASK)
    with pytest.raises(ValueError, match="number of faces must be at least 2; got 1"):
        fit(x[:1], MASK)
    with pytest.raises(ValueError, match="x must be finite"):
        fit(np.where(x == x[3, 4], np.nan, x), MASK)
    with pytest.raises(ValueError, match=r"num_atoms must be at most 9 \(the number of signals\); got 10"):
        FITS["ksvd"](x[:9], MASK)
    with pytest.raises(ValueError, match=r"sparsity must be at most 15 \(the number of visible pixels\); got 16"):
        by_dictionary.fit_ksvd(KEY, x, MASK, num_atoms=20, sparsity=16, num_iters=1)
    with pytest.raises(ValueError, match=r"sparsity must be at most 10 \(the number of atoms\); got 11"):
        by_dictionary.fit_ksvd(KEY, x, MASK, num_atoms=10, sparsity=11, num_iters=1)
    with pytest.raises(ValueError, match=r"num_components must be at most 30 \(40 centred faces of 30 pixels\)"):
        linear.fit_pca(x, MASK, num_components=31)
    with pytest.raises(ValueError, match="beta must lie in"):
        by_dictionary.fit_dw_ksvd(KEY, x, MASK, beta=-1.0, **DICTIONARY)
    with pytest.raises(ValueError, match=r"beta must have shape \[\]; got shape \(30,\)"):
        by_dictionary.fit_dw_ksvd(KEY, x, MASK, beta=np.ones(30), **DICTIONARY)
    with pytest.raises(ValueError, match=r"ridge must have shape \[\]; got shape \(3,\)"):
        linear.fit_ridge(x, MASK, ridge=np.ones(3))
    with pytest.raises(ValueError, match=r"kernel must be one of jaxface.linalg.gram.*got 'gaussian' of type str"):
        by_kernel.fit_kernel_ridge("gaussian", x, MASK, ridge=1e-2)
    model, _ = fit(x, MASK)
    with pytest.raises(ValueError, match=r"pixels must have shape \[v\] with v = 15"):
        hallucination.reconstruct(model, x[0])
    with pytest.raises(ValueError, match=r"pixels must have shape \[v\] with v = 15; got shape \(1,\)"):
        hallucination.with_visible(model, x[0], x[0, :1])
    with pytest.raises(ValueError, match="image must be a floating point array; got dtype uint8"):
        hallucination.with_visible(model, x[0].astype(np.uint8), x[0, MASK])
    model, _ = FITS["fastfood_dw_ksvd"](x, MASK)
    with pytest.raises(ValueError, match=r"pixels must have shape \[v\] with v = 15; got shape \(3,\)"):
        by_fastfood.share_clipped(model, x[0, :3])


def test_a_ridge_below_the_rounding_says_so(rng):
    x = np.repeat(rng.random((8, 30)).astype(np.float32), 5, axis=0)  # 15 visible pixels of 8 faces
    for fit in (functools.partial(by_kernel.fit_kernel_ridge, gram.linear()), linear.fit_ridge):
        _, info = fit(x, MASK, ridge=1e-9)
        assert int(info.status) == Status.NOT_PSD


def test_a_plain_function_is_a_kernel(rng):
    x = draws.faces(rng)
    plain, _ = by_kernel.fit_kernel_ridge(inner, x, MASK, ridge=0.1)
    known, _ = by_kernel.fit_kernel_ridge(gram.linear(), x, MASK, ridge=0.1)
    assert_close(plain.coefficients, known.coefficients, factor=100)


def test_a_weight_of_zero_leaves_the_others_their_gradient(rng):
    x = draws.faces(rng)
    weights = jnp.ones(len(x)).at[3].set(0.0)

    def total(weights):
        return by_kernel.fit_kernel_ridge(gram.linear(), x, MASK, ridge=0.1, weights=weights)[0].coefficients[1, 2]

    found, step = jax.grad(total)(weights), 1e-5
    assert np.isfinite(found).all()
    move = jnp.zeros(len(x)).at[7].set(step)
    np.testing.assert_allclose(found[7], (total(weights + move) - total(weights - move)) / (2 * step), rtol=1e-4)


def inner(x, y):
    return x @ y.T


def test_pca_is_least_squares_on_the_visible_rows(rng):
    x, y = draws.faces(rng), draws.faces(rng, n=1)[0]
    model, _ = linear.fit_pca(x, MASK, num_components=4)
    mean = x.mean(axis=0)
    axes = np.linalg.svd(x - mean)[2][:4].T
    z = np.linalg.lstsq(axes[MASK], y[MASK] - mean[MASK], rcond=None)[0]
    assert_close(hallucination.reconstruct(model, y[MASK]), mean + axes @ z, factor=100)


def test_pca_with_a_prior_is_the_posterior_mean(rng):
    x, y = draws.faces(rng), draws.faces(rng, n=1)[0]
    model, info = linear.fit_pca_prior(x, MASK, num_components=4)
    mean = x.mean(axis=0)
    values, vectors = np.linalg.eigh(np.cov(x.T, bias=True))
    noise = values[:-4].mean()
    cov = (vectors[:, -4:] * values[-4:]) @ vectors[:, -4:].T + noise * np.eye(30)
    # N(0, W L W' + s I) of the seen; the image is W z without noise.
    seen = cov[np.ix_(MASK, MASK)]
    z_cov = (vectors[:, -4:] * values[-4:]) @ vectors[:, -4:].T
    expected = mean + z_cov[:, MASK] @ np.linalg.solve(seen, y[MASK] - mean[MASK])
    assert_close(hallucination.reconstruct(model, y[MASK]), expected, factor=100)
    assert float(info.jitter) == 0


def test_pca_with_a_prior_and_nothing_discarded_says_its_floor(rng):
    x = draws.faces(rng)
    model, info = linear.fit_pca_prior(x, MASK, num_components=30)
    assert float(info.jitter) > 0
    assert np.isfinite(model.matrix).all()


@pytest.mark.parametrize("num", [40, 9])
def test_ridge_is_penalised_least_squares(num, rng):
    """Also with fewer faces than visible pixels."""
    x, y = draws.faces(rng, n=num), draws.faces(rng, n=1)[0]
    weights = rng.uniform(0.5, 2, size=num)
    model, _ = linear.fit_ridge(x, MASK, ridge=0.1, weights=weights)
    mean = x.mean(axis=0)
    root = np.sqrt(weights / weights.mean())[:, None]
    seen, target = root * (x - mean)[:, MASK], root * (x - mean)
    penalty = 0.1 * (seen**2).sum() / 15
    rows = np.concatenate([seen, np.sqrt(penalty) * np.eye(15)])
    matrix = np.linalg.lstsq(rows, np.concatenate([target, np.zeros((15, 30))]), rcond=None)[0]
    assert_close(model.matrix, matrix, factor=100)
    assert_close(hallucination.reconstruct(model, y[MASK]), mean + (y[MASK] - mean[MASK]) @ matrix, factor=100)


def test_kernel_ridge_is_the_minimum_in_feature_space(rng):
    """`sum w |y - f(v)|^2 + r |f|^2` with `f = sum a_i k(v_i, .)`: its gradient in a vanishes."""
    x = draws.faces(rng, n=15)
    weights = rng.uniform(0.5, 2, size=15)
    kernel = gram.gaussian(bandwidth=1.0)
    model, _ = by_kernel.fit_kernel_ridge(kernel, x, MASK, ridge=0.05, weights=weights)
    centered = x - x.mean(axis=0)
    k = np.asarray(kernel(centered[:, MASK], centered[:, MASK]))
    w = np.diag(weights / weights.mean())
    a = np.asarray(model.coefficients)
    assert_close(k @ w @ (centered - k @ a), 0.05 * k @ a, factor=100)
    expected = x.mean(axis=0) + np.asarray(kernel(centered[:1, MASK], centered[:, MASK]))[0] @ a
    assert_close(hallucination.reconstruct(model, x[0][MASK]), expected, factor=100)


def test_a_weight_of_zero_leaves_a_face_out(rng):
    x = draws.faces(rng, n=15)
    x[0] = 1 - x[1]
    weights = np.ones(15)
    weights[0] = 0
    kernel = gram.gaussian(bandwidth=1.0)
    model, _ = by_kernel.fit_kernel_ridge(kernel, x, MASK, ridge=0.05, weights=weights)
    assert not np.asarray(model.coefficients[0]).any()


def test_fastfood_ridge_is_ridge_on_its_features(rng):
    x = draws.faces(rng)
    weights = rng.uniform(0.5, 2, size=40)
    model, _ = by_kernel.fit_fastfood_ridge(KEY, x, MASK, num_features=24, bandwidth=1.0, ridge=0.05, weights=weights)
    mean = x.mean(axis=0)
    angles = (x - mean)[:, MASK] @ dense(model.features).T
    z = np.concatenate([np.cos(angles), np.sin(angles)], axis=1) / np.sqrt(24)  # (10)-(13)
    w = (weights / weights.mean())[:, None]
    expected = np.linalg.solve(z.T @ (w * z) + 0.05 * np.eye(48), z.T @ (w * (x - mean)))
    assert_close(model.coefficients, expected, factor=1e3)


def dense(fast_map):
    """V `[f, d]`."""
    return np.asarray(jax.vmap(fast_map.project, out_axes=1)(jnp.eye(fast_map.input_dim)))


def test_fastfood_ridge_comes_near_the_exact_kernel(rng):
    faces = draws.faces(rng)
    train, test = faces[:32], faces[32:]
    exact, _ = by_kernel.fit_kernel_ridge(gram.gaussian(bandwidth=1.0), train, MASK, ridge=0.1)
    wanted = hallucination.reconstruct_matrix(exact, test[:, MASK])
    distances = []
    for num_features in (16, 1024):
        model, _ = by_kernel.fit_fastfood_ridge(KEY, train, MASK, num_features=num_features, bandwidth=1.0, ridge=0.1)
        distances.append(np.sqrt(mean_square(hallucination.reconstruct_matrix(model, test[:, MASK]), wanted)))
    assert distances[1] < 0.3 * distances[0]
    assert distances[1] < 0.2 * np.sqrt(mean_square(wanted, test.mean(axis=0)[None, :]))


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


def sine_features(fast_map, row):
    v = dense(fast_map)
    return v, np.sin(v @ row) / np.sqrt(len(v))


def test_fastfood_dictionary_codes_features_and_inverts_them(rng):
    x, y = draws.faces(rng), draws.faces(rng, n=1)[0]
    model, _ = FITS["fastfood_dw_ksvd"](x, MASK)
    mean = x.mean(axis=0)
    _, seen = sine_features(model.visible_map, (y - mean)[MASK])
    support, values = reference.omp(np.asarray(model.visible_atoms), seen, 3)
    found = np.asarray(model.face_atoms)[:, support] @ values
    v, _ = sine_features(model.face_map, y - mean)
    angles = np.arcsin(np.clip(np.sqrt(len(v)) * found, -1, 1))
    expected = mean + np.linalg.lstsq(v, angles, rcond=None)[0]
    assert_close(hallucination.reconstruct(model, y[MASK]), expected, factor=1e3)
    assert_close(by_fastfood.feature_reconstruction(model)(jnp.asarray(y[MASK])), found, factor=100)
    share = (np.abs(found) > 1 / np.sqrt(len(found))).mean()
    assert_close(by_fastfood.share_clipped(model, jnp.asarray(y[MASK])), share)
    assert (model.face_map.num_features, model.visible_map.num_features) == (160, 80)


def test_features_of_the_data_are_in_range_and_the_dictionary_is_that_of_17(rng):
    x = draws.faces(rng)
    model, info = FITS["fastfood_dw_ksvd"](x, MASK)
    centered = x - x.mean(axis=0)
    v, _ = sine_features(model.face_map, centered[0])
    assert np.abs(centered @ v.T).max() <= np.pi / 2
    assert np.abs(centered @ v.T).max() > 0.99 * np.pi / 2
    u, _ = sine_features(model.visible_map, centered[0][MASK])
    stacked = np.concatenate(
        [np.sin(centered @ v.T) / np.sqrt(160), 2 * np.sin(centered[:, MASK] @ u.T) / np.sqrt(80)], 1
    )
    atoms = np.concatenate([model.face_atoms, 2 * np.asarray(model.visible_atoms)])
    assert_close(np.linalg.norm(atoms, axis=0), np.ones(10))
    coded = ksvd.code_signals(Dictionary(atoms=jnp.asarray(atoms)), jnp.asarray(stacked), sparsity=3, block_size=64)
    # The error of the dictionary that was found is near that of the dictionary before the last sweep.
    assert 0.5 < float((coded.residual**2).sum() / info.objective[-1]) < 1.5


def test_effective_beta_is_the_ratio_of_squared_bandwidths(rng):
    """Measured: how much more `|phi_v(Y_v)|^2 / |Y_v|^2` is than `|phi(Y)|^2 / |Y|^2`, nearly linear as both are."""
    x = draws.faces(rng)
    maps = by_fastfood.draw_maps(KEY, x, MASK, expansion=5, quantile=1.0)
    centered = x - x.mean(axis=0)
    energy = []
    for fast_map, part in ((maps.visible, centered[:, MASK]), (maps.face, centered)):
        v, _ = sine_features(fast_map, part[0])
        energy.append(((part @ v.T) ** 2).sum() / len(v) / (part**2).sum())
    found = float(by_fastfood.effective_beta(maps, 4.0))
    assert abs(found / (4 * energy[0] / energy[1]) - 1) < 0.3
    assert_close(by_fastfood.effective_beta(maps, 8.0), 2 * found)


def test_the_maps_are_those_of_the_fit(rng):
    x = draws.faces(rng)
    model, _ = FITS["fastfood_dw_ksvd"](x, MASK)
    maps = by_fastfood.draw_maps(KEY, x, MASK, expansion=5, quantile=1.0)
    assert_close((model.face_map, model.visible_map), tuple(maps))


def test_dekernelised_atoms_reproduce_features_of_their_size(rng):
    """In the nearly linear range images of atoms, coded on pixels, explain the training faces like the features."""
    x = draws.faces(rng)
    model, _ = FITS["fastfood_dw_ksvd_dekernelized"](x, MASK)
    in_features, _ = FITS["fastfood_dw_ksvd"](x, MASK)
    assert model.atoms.shape == (30, 10)
    both = [hallucination.reconstruct_matrix(m, x[:, MASK]) for m in (model, in_features)]
    assert mean_square(*both) < 0.2 * mean_square(both[0], x.mean(axis=0)[None, :])
    bound = 1 / np.sqrt(160)
    v, _ = sine_features(in_features.face_map, x[0])
    angles = np.asarray(model.atoms).T @ v.T
    assert np.abs(np.sin(angles)).max() / np.sqrt(160) <= bound * (1 + 1e-6)


def test_atoms_are_taken_back_at_their_usual_size(rng):
    """The root mean square of their coefficients, which decides how far arcsin bends them; no larger than a sine."""
    f, d, k = 40, 6, 5
    face_map = fastfood.init(KEY, input_dim=d, num_features=f, bandwidth=2.0, dtype=float)
    atoms = rng.uniform(-1, 1, size=(f + 7, k)) / f**0.5
    codes = SparseCode(jnp.asarray([[0, 1], [2, 0], [1, 3], [2, 3]]), jnp.asarray(rng.normal(size=(4, 2))))
    found, status = by_fastfood._atom_images(face_map, Dictionary(atoms=jnp.asarray(atoms)), codes)
    assert int(status) == Status.OK
    v = np.asarray(maps.dense_matrix(face_map))
    for j in range(k):
        used = np.asarray(codes.values)[np.asarray(codes.indices) == j]
        usual = atoms[:f, j] * (np.sqrt((used**2).mean()) if used.size else 1)
        usual *= min(1, 1 / f**0.5 / np.abs(usual).max())
        assert_close(found[:, j], np.linalg.lstsq(v, np.arcsin(f**0.5 * usual), rcond=None)[0], factor=1e4)


def test_what_is_seen_is_put_back(rng):
    x = draws.faces(rng)
    model, _ = FITS["ridge"](x, MASK)
    image = hallucination.with_visible(model, hallucination.reconstruct(model, x[3][MASK]), x[3][MASK])
    assert_close(image[MASK], x[3][MASK])
    assert_close(image[~MASK], hallucination.reconstruct(model, x[3][MASK])[~MASK])


def test_rounds_for_the_psnr_raise_it(rng):
    """A few faces are noise: they no longer spoil the others."""
    x = draws.faces(rng, n=80)
    x[::5] = rng.random((16, 30))
    fit = functools.partial(linear.fit_ridge, ridge=1e-2)

    def mean_psnr(model):
        errors = ((np.asarray(hallucination.reconstruct_matrix(model, x[:, MASK])) - x) ** 2).mean(axis=1)
        return float(np.mean(-10 * np.log10(errors)))

    values = [mean_psnr(fit(x, MASK)[0])]
    values += [mean_psnr(hallucination.fit_for_psnr(fit, x, MASK, num_rounds=n)[0]) for n in (1, 3)]
    assert values[1] > values[0] + 0.5
    assert values[2] > values[1]
    errors = ((np.asarray(hallucination.reconstruct_matrix(fit(x, MASK)[0], x[:, MASK])) - x) ** 2).mean(axis=1)
    weighted, _ = fit(x, MASK, weights=1 / (errors + 0.2 * np.median(errors)))
    once, _ = hallucination.fit_for_psnr(fit, x, MASK, num_rounds=1, floor=0.2)
    assert_close(once.matrix, weighted.matrix, factor=1e3)


def test_float32_stays_float32(rng, quick_to_compile):
    """Where a fit runs on the host; the others are in the transformation table."""
    x = draws.faces(rng).astype(np.float32)
    model, info = FITS["fastfood_dw_ksvd_dekernelized"](x, MASK)
    image = hallucination.reconstruct(model, x[0][MASK])
    assert image.dtype == jnp.float32
    assert np.isfinite(image).all()
    leaves = [leaf for leaf in jax.tree.leaves((model, info)) if jnp.issubdtype(leaf.dtype, jnp.floating)]
    assert {leaf.dtype for leaf in leaves} == {np.dtype("float32")}
