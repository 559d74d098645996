"""Adaptation to unlabelled images: what each method must give back, keep, and go along with."""

import dataclasses
from functools import partial

import numpy as np
import pytest
import scipy.linalg

from jaxface import joint_bayes
from jaxface.core.fitinfo import Status
from jaxface.joint_bayes import JointBayes, adaptation
from jaxface.joint_bayes.adaptation import Target
from tests.tolerances import assert_close

D = 4
METHODS = {
    "mean shift": adaptation.mean_shift,
    "coral": adaptation.coral,
    "printed coral": partial(adaptation.coral, root=adaptation.printed_root),
    "coral+": partial(adaptation.coral_plus, gamma_identity=0.5, gamma_noise=1.0),
    "kaldi": partial(adaptation.kaldi, to_identity=0.7, to_noise=0.3),
}


def spd(rng, rank=D):
    root = rng.normal(size=(D, rank))
    return root @ root.T / rank + (0.1 * np.eye(D) if rank == D else 0)


@pytest.fixture
def model(rng):
    """An identity covariance of rank 2."""
    return JointBayes(mean=rng.normal(size=D), identity_cov=spd(rng, 2), noise_cov=spd(rng))


@pytest.fixture
def target(rng):
    return Target(rng.normal(size=D), spd(rng) * 2, np.float64(50))


def total(model):
    return np.asarray(model.identity_cov + model.noise_cov)


def least(a):
    return np.linalg.eigvalsh((a + a.T) / 2).min()


@pytest.mark.parametrize("name", list(METHODS))
def test_the_source_comes_back_where_nothing_changed(name, model):
    same = Target(model.mean, total(model), np.float64(9))
    found, info = METHODS[name](model, same)
    assert int(info.status) == Status.OK
    for field in ("mean", "identity_cov", "noise_cov"):
        assert_close(getattr(found, field), getattr(model, field), factor=1)
    for strength in (0.0, 7.0):
        assert_close(adaptation.shrunk(same, model, strength=strength).covariance, total(model), factor=1)


def test_a_shift_of_the_mean_leaves_both_covariances(model, target):
    found, info = adaptation.mean_shift(model, target)
    assert int(info.status) == Status.OK
    np.testing.assert_array_equal(found.mean, target.mean)
    assert_close((found.identity_cov, found.noise_cov), (model.identity_cov, model.noise_cov))


@pytest.mark.parametrize("root", [adaptation.equivariant_root, adaptation.printed_root])
def test_coral_turns_one_total_into_the_other(root, model, target):
    a = np.asarray(root(total(model), target.covariance))
    assert_close(a @ total(model) @ a.T, target.covariance, factor=1)
    assert_close(root(total(model), 4 * total(model)), 2 * np.eye(D), factor=1)
    found, _ = adaptation.coral(model, target, root=root)
    assert_close(total(found), target.covariance, factor=1)
    assert np.linalg.matrix_rank(found.identity_cov, tol=1e-9) == 2
    four, _ = adaptation.coral(model, target._replace(covariance=4 * total(model)), root=root)
    assert_close(four.noise_cov, 4 * model.noise_cov, factor=1)
    x = np.linspace(-1, 1, 2 * D).reshape(2, D)
    back = np.linalg.solve(a, (x - target.mean).T).T + np.asarray(model.mean)
    assert_close(joint_bayes.llr(found, *x), joint_bayes.llr(model, *back), factor=1)


def test_the_roots_by_square_roots_of_matrices(model, target):
    """`A U A' = C` holds for A times any rotation of U; here is which one each root takes."""
    u, c = total(model), target.covariance
    half = scipy.linalg.sqrtm(u)
    back = np.linalg.inv(half)
    between = half @ scipy.linalg.sqrtm(back @ c @ back) @ half  # the geometric mean of C and U
    assert_close(adaptation.equivariant_root(u, c), between @ np.linalg.inv(u), factor=1)
    assert_close(adaptation.printed_root(u, c), scipy.linalg.sqrtm(c) @ back, factor=1)


@pytest.mark.parametrize("is_rotation", [True, False])
def test_only_the_printed_root_depends_on_the_units_of_features(is_rotation, model, target, rng):
    """Features mixed by any matrix; a rotation changes no unit, and every method goes along with it."""
    g = rng.normal(size=(D, D)) + 2 * np.eye(D)
    g = np.linalg.qr(g)[0] if is_rotation else g

    def moved(model):
        identity, noise = (g @ each @ g.T for each in (model.identity_cov, model.noise_cov))
        return JointBayes(mean=g @ model.mean, identity_cov=identity, noise_cov=noise)

    there = Target(g @ target.mean, g @ target.covariance @ g.T, target.number)
    for name, method in METHODS.items():
        one, other = moved(method(model, target)[0]), method(moved(model), there)[0]
        if name == "printed coral" and not is_rotation:
            assert np.abs(one.noise_cov - other.noise_cov).max() > 1e-3 * np.abs(other.noise_cov).max()
        else:
            assert_close(one, other, factor=1)


def test_positive_parts_take_nothing_away(model, target):
    a = np.asarray(adaptation.equivariant_root(total(model), target.covariance))
    for gamma in (0.4, 1.0):
        found, _ = adaptation.coral_plus(model, target, gamma_identity=gamma, gamma_noise=gamma)
        for field in ("identity_cov", "noise_cov"):
            before, after = (np.asarray(getattr(each, field)) for each in (model, found))
            assert least(after - before) > -1e-10
            if gamma == 1.0:
                assert least(after - a @ before @ a.T) > -1e-10
        assert np.linalg.matrix_rank(found.identity_cov, tol=1e-9) > 2
    found, _ = adaptation.kaldi(model, target, to_identity=0.6, to_noise=0.4)
    assert least(total(found) - total(model)) > -1e-10
    assert least(total(found) - target.covariance) > -1e-10
    assert np.linalg.matrix_rank(found.identity_cov, tol=1e-9) > 2
    smaller = target._replace(covariance=total(model) - 0.05 * np.asarray(model.noise_cov))
    half = target._replace(covariance=0.5 * total(model))
    for there, method in ((smaller, "kaldi"), (half, "kaldi"), (half, "coral+")):
        kept, _ = METHODS[method](model, there)
        assert_close((kept.identity_cov, kept.noise_cov), (model.identity_cov, model.noise_cov), factor=1)
        assert_close(kept.mean, there.mean)


def beyond(threshold, a, metric):
    """The part of a in the directions v, `v' metric v = 1`, whose value exceeds the threshold, less the threshold."""
    values, vectors = scipy.linalg.eigh(a, metric)
    back = np.linalg.inv(vectors).T
    pairs = zip(values, back.T, strict=True)
    return sum((value - threshold) * np.outer(b, b) for value, b in pairs if value > threshold)


@pytest.mark.parametrize("from_mean", [0.0, 1.0])
def test_kaldis_steps(model, target, from_mean):
    """Its own words: whiten by the total of the model, diagonalise the target's, share out what exceeds one."""
    change = target.mean - model.mean
    excess = beyond(1, target.covariance + from_mean * np.outer(change, change), total(model))
    found, _ = adaptation.kaldi(model, target, to_identity=0.7, to_noise=0.3, from_mean=from_mean)
    assert_close(found.identity_cov, model.identity_cov + 0.7 * excess, factor=1)
    assert_close(found.noise_cov, model.noise_cov + 0.3 * excess, factor=1)


@pytest.mark.parametrize("root", [adaptation.equivariant_root, adaptation.printed_root])
@pytest.mark.parametrize("gamma", [0.4, 0.9])
def test_the_steps_of_coral_plus(model, target, gamma, root):
    """What CORAL changes in either covariance, diagonalised by the total of the model; what grows is added."""
    a = np.asarray(root(total(model), target.covariance))
    found, _ = adaptation.coral_plus(model, target, gamma_identity=gamma, gamma_noise=1 - gamma, root=root)
    for field, share in (("identity_cov", gamma), ("noise_cov", 1 - gamma)):
        before = np.asarray(getattr(model, field))
        grown = beyond(0, a @ before @ a.T - before, total(model))
        assert_close(getattr(found, field), before + share * grown, factor=1)


@pytest.mark.parametrize("gamma", [0.4, 1.0])
def test_the_printed_metric_of_coral_plus_needs_definite_covariances(model, target, rng, gamma):
    """Each covariance diagonalised by itself; both metrics have a result above the old covariance and CORAL's."""
    definite = dataclasses.replace(model, identity_cov=spd(rng))
    a = np.asarray(adaptation.equivariant_root(total(definite), target.covariance))
    settings = {"gamma_identity": gamma, "gamma_noise": gamma, "metric": adaptation.own_metric}
    found, info = adaptation.coral_plus(definite, target, **settings)
    assert int(info.status) == Status.OK
    for field in ("identity_cov", "noise_cov"):
        before, after = np.asarray(getattr(definite, field)), np.asarray(getattr(found, field))
        grown = beyond(0, a @ before @ a.T - before, before)
        assert_close(after, before + gamma * grown, factor=10)
        assert least(after - before) > -1e-12
        assert gamma < 1 or least(after - a @ before @ a.T) > -1e-12
    kept, info = adaptation.coral_plus(model, target, **settings)  # T_mu has rank 2
    assert int(info.status) == Status.NOT_PSD
    assert_close(kept.identity_cov, model.identity_cov)


def test_single_images_do_not_tell_how_variance_is_split(model, target, rng):
    x = rng.normal(size=(30, D))
    one, other = (adaptation.kaldi(model, target, to_identity=b, to_noise=1 - b)[0] for b in (0.1, 0.9))
    densities = [adaptation._mean_log_density(each, x) for each in (one, other)]
    assert_close(*densities, factor=1)
    by_scipy = scipy.stats.multivariate_normal(one.mean, total(one)).logpdf(x).mean()
    assert_close(densities[0], by_scipy, factor=1)


def test_images_of_the_source_are_mixed_in(model, target):
    u, c = total(model), target.covariance
    found = adaptation.shrunk(target, model, strength=3.0)
    assert_close(found, Target(target.mean, (50 * c + 3 * u) / 53, target.number))
    nothing = target._replace(number=np.float64(0))
    assert_close(adaptation.shrunk(nothing, model, strength=3.0).covariance, u)


def test_the_strength_by_the_densities_of_left_out_images(model, rng):
    """CORAL takes the shrunk covariance as the total one, so scipy has the density of the other half."""
    x = rng.multivariate_normal(np.asarray(model.mean) + 1, 3 * total(model), size=12)
    expected = np.zeros(2)
    for seen, left_out in ((x[::2], x[1::2]), (x[1::2], x[::2])):
        for k, strength in enumerate((2.0, 30.0)):
            covariance = (6 * np.cov(seen.T, bias=True) + strength * total(model)) / (6 + strength)
            expected[k] += scipy.stats.multivariate_normal(seen.mean(axis=0), covariance).logpdf(left_out).mean() / 2
    strength, values = adaptation.choose_strength(adaptation.coral, model, x, np.array([2.0, 30.0]))
    assert_close(values, expected, factor=1)
    assert float(strength) == (2.0, 30.0)[expected.argmax()]


def test_few_images_are_shrunk_by_those_left_out(model, rng):
    few = rng.multivariate_normal(model.mean, total(model), size=6)
    strength, values = adaptation.choose_strength(adaptation.coral, model, few, np.array([0.1, 1.0, 100.0]))
    assert float(strength) == 100.0  # the source is right, and six images say nothing
    assert values.shape == (3,)
    many = rng.multivariate_normal(model.mean, 9 * total(model), size=400)
    strength, _ = adaptation.choose_strength(adaptation.coral, model, many, np.array([0.1, 1.0, 1e4]))
    assert float(strength) < 1e4
    _, info = adaptation.coral(model, adaptation.target_of(few[:3]))
    assert int(info.status) == Status.NOT_PSD


def test_moments_of_images_and_what_is_refused(model, target, rng):
    x = rng.normal(size=(7, D)) + 3
    found = adaptation.target_of(x)
    assert_close(found.covariance, np.cov(x.T, bias=True), factor=1)
    with pytest.raises(ValueError, match="gamma_noise must lie in"):
        adaptation.coral_plus(model, target, gamma_identity=0.5, gamma_noise=1.5)
    with pytest.raises(ValueError, match="strength must lie in"):
        adaptation.shrunk(target, model, strength=-1.0)
    with pytest.raises(ValueError, match="number of images must be at least 2"):
        adaptation.target_of(x[:1])
    broken = dataclasses.replace(model, noise_cov=np.full((D, D), np.nan))
    assert int(adaptation.coral(broken, target)[1].status) == Status.NON_FINITE


def test_what_methods_refuse(model, target, rng):
    x = rng.normal(size=(7, D))
    with pytest.raises(ValueError, match="number of images must be at least 4"):
        adaptation.choose_strength(adaptation.coral, model, x[:3], np.array([1.0]))
    with pytest.raises(ValueError, match=r"strengths must lie in \[0, inf\); got 1 values outside, the first -1.0"):
        adaptation.choose_strength(adaptation.coral, model, x, np.array([1.0, -1.0]))
    with pytest.raises(ValueError, match=r"strengths must have shape \[s\]"):
        adaptation.choose_strength(adaptation.coral, model, x, 1.0)
    for share in ({"to_identity": -0.1}, {"to_noise": np.nan}, {"from_mean": np.inf}):
        with pytest.raises(ValueError, match=rf"{next(iter(share))} must lie in \[0, inf\)"):
            adaptation.kaldi(model, target, **{"to_identity": 0.7, "to_noise": 0.3} | share)
    for method in METHODS.values():
        for wrong in ({"covariance": np.eye(3)}, {"mean": np.zeros(3)}):
            with pytest.raises(ValueError, match=rf"^{next(iter(wrong))} must have shape"):
                method(model, target._replace(**wrong))


@pytest.mark.parametrize("root", [adaptation.equivariant_root, adaptation.printed_root])
def test_fewer_images_than_dimensions_need_those_of_the_source(root, model, rng):
    """The root needs no definite C, the ratios do: T_eps is as singular as C until the source is mixed in."""
    few = adaptation.target_of(rng.normal(size=(3, D)))
    a = np.asarray(root(total(model), few.covariance))
    assert_close(a @ total(model) @ a.T, few.covariance, factor=1)
    assert int(adaptation.coral(model, few, root=root)[1].status) == Status.NOT_PSD
    mended = adaptation.shrunk(few, model, strength=2.0)
    found, info = adaptation.coral(model, mended, root=root)
    assert int(info.status) == Status.OK
    assert_close(total(found), mended.covariance, factor=1)
    strength, values = adaptation.choose_strength(
        partial(adaptation.coral, root=root), model, rng.normal(size=(6, D)), np.array([0.0, 1.0])
    )
    assert float(strength) == 1.0
    assert np.isfinite(values[1])


@pytest.mark.parametrize("root", [adaptation.equivariant_root, adaptation.printed_root])
def test_a_singular_target_is_seen_whatever_the_rounding(root):
    for seed in range(40):
        rng = np.random.default_rng(seed)
        f, g = rng.normal(size=(2, 3, 3))
        model = JointBayes(mean=np.zeros(3), identity_cov=f @ f.T, noise_cov=g @ g.T + 0.1 * np.eye(3))
        few = adaptation.target_of(rng.normal(size=(3, 3)) * 10.0 ** rng.uniform(-2, 2, 3))
        assert int(adaptation.coral(model, few, root=root)[1].status) == Status.NOT_PSD


def test_coral_plus_adds_also_where_the_target_varies_less():
    """Unlike Kaldi's: C <= U makes the sum smaller, and not each of its parts if they share no axes."""
    v = np.full(2, 0.5)
    model = JointBayes(mean=np.zeros(2), identity_cov=np.outer(v, v), noise_cov=np.eye(2) - np.outer(v, v))
    less = Target(np.zeros(2), np.diag([1.0, 0.25]), np.float64(50))
    kept, _ = adaptation.kaldi(model, less, to_identity=0.7, to_noise=0.3)
    assert_close((kept.identity_cov, kept.noise_cov), (model.identity_cov, model.noise_cov))
    grown, _ = adaptation.coral_plus(model, less, gamma_identity=1.0, gamma_noise=1.0)
    assert np.trace(grown.identity_cov) > np.trace(model.identity_cov) + 0.05


def test_shares_and_shapes_that_are_refused(model, target):
    with pytest.raises(ValueError, match=r"gamma_identity must lie in \[0, 1\]; got -0.5"):
        adaptation.coral_plus(model, target, gamma_identity=-0.5, gamma_noise=0.5)
    with pytest.raises(ValueError, match=r"^covariance must have shape"):
        adaptation.shrunk(target._replace(covariance=np.eye(3)), model, strength=1.0)
    with pytest.raises(ValueError, match="x must be finite; 1 of 8 values"):
        adaptation.target_of(np.array([[0.0, 1, 2, np.nan], [0, 1, 2, 3]]))
