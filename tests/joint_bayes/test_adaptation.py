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
        assert_close(getattr(found, field), getattr(model, field), factor=1e3)
    for strength in (0.0, 7.0):
        assert_close(adaptation.shrunk(same, model, strength=strength).covariance, total(model), factor=10)


@pytest.mark.parametrize("root", [adaptation.equivariant_root, adaptation.printed_root])
def test_coral_turns_one_total_into_the_other(root, model, target):
    a = np.asarray(root(total(model), target.covariance))
    assert_close(a @ total(model) @ a.T, target.covariance, factor=1e3)
    found, _ = adaptation.coral(model, target, root=root)
    assert_close(total(found), target.covariance, factor=1e3)
    assert np.linalg.matrix_rank(found.identity_cov, tol=1e-9) == 2
    four, _ = adaptation.coral(model, target._replace(covariance=4 * total(model)), root=root)
    assert_close(four.noise_cov, 4 * model.noise_cov, factor=1e3)
    x = np.linspace(-1, 1, 2 * D).reshape(2, D)
    back = np.linalg.solve(a, (x - target.mean).T).T + np.asarray(model.mean)
    assert_close(joint_bayes.llr(found, *x), joint_bayes.llr(model, *back), factor=1e4)


def test_only_the_printed_root_depends_on_the_units_of_features(model, target, rng):
    g = rng.normal(size=(D, D)) + 2 * np.eye(D)
    moved = JointBayes(
        mean=g @ model.mean, identity_cov=g @ model.identity_cov @ g.T, noise_cov=g @ model.noise_cov @ g.T
    )
    there = Target(g @ target.mean, g @ target.covariance @ g.T, target.number)
    for name, method in METHODS.items():
        one, other = method(model, target)[0], method(moved, there)[0]
        gap = np.abs(g @ one.noise_cov @ g.T - other.noise_cov).max() / np.abs(other.noise_cov).max()
        assert (gap > 1e-3) if name == "printed coral" else (gap < 1e-9), name


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
        assert_close((kept.identity_cov, kept.noise_cov), (model.identity_cov, model.noise_cov), factor=1e3)
        assert_close(kept.mean, there.mean)


@pytest.mark.parametrize("from_mean", [0.0, 1.0])
def test_kaldis_steps(model, target, from_mean):
    """Its own words: whiten by the total of the model, diagonalise the target's, share out what exceeds one."""
    change = target.mean - model.mean
    covariance = target.covariance + from_mean * np.outer(change, change)
    values, vectors = scipy.linalg.eigh(covariance, total(model))  # v' U v = 1
    back = np.linalg.inv(vectors).T
    excess = sum((value - 1) * np.outer(b, b) for value, b in zip(values, back.T, strict=True) if value > 1)
    found, _ = adaptation.kaldi(model, target, to_identity=0.7, to_noise=0.3, from_mean=from_mean)
    assert_close(found.identity_cov, model.identity_cov + 0.7 * excess, factor=1e4)
    assert_close(found.noise_cov, model.noise_cov + 0.3 * excess, factor=1e4)


def test_single_images_do_not_tell_how_variance_is_split(model, target, rng):
    x = rng.normal(size=(30, D))
    one, other = (adaptation.kaldi(model, target, to_identity=b, to_noise=1 - b)[0] for b in (0.1, 0.9))
    densities = [adaptation._mean_log_density(each, x) for each in (one, other)]
    assert_close(*densities, factor=1e3)
    by_scipy = scipy.stats.multivariate_normal(one.mean, total(one)).logpdf(x).mean()
    assert_close(densities[0], by_scipy, factor=1e3)


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
    assert_close(found.covariance, np.cov(x.T, bias=True), factor=10)
    with pytest.raises(ValueError, match="gamma_noise must lie in"):
        adaptation.coral_plus(model, target, gamma_identity=0.5, gamma_noise=1.5)
    with pytest.raises(ValueError, match="strength must lie in"):
        adaptation.shrunk(target, model, strength=-1.0)
    with pytest.raises(ValueError, match="number of images must be at least 2"):
        adaptation.target_of(x[:1])
    with pytest.raises(ValueError, match="covariance"):
        adaptation.coral(model, target._replace(covariance=np.eye(3)))
    broken = dataclasses.replace(model, noise_cov=np.full((D, D), np.nan))
    assert int(adaptation.coral(broken, target)[1].status) == Status.NON_FINITE
