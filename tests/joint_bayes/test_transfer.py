"""The path over w, and the w that held-out people prefer."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxface.core.fitinfo import Status
from jaxface.core.pytree import member
from jaxface.joint_bayes import (
    JointBayes,
    choose_weight,
    collect,
    diagonalize,
    fit_path,
    leave_one_out,
    llr_matrix,
    posterior,
)
from tests.joint_bayes import draws
from tests.reference import joint_bayes_reference as reference
from tests.tolerances import assert_close

WEIGHTS = np.array([0.0, 0.2, 0.6, 1.0])
left_out = jax.jit(leave_one_out, static_argnames=("num_people", "num_iters"))


@pytest.fixture
def problem(rng):
    """Target people to train on, others held out, and a source model that is not the target."""
    target, source = draws.joint_bayes(rng), draws.joint_bayes(rng)
    source = JointBayes(mean=target.mean, identity_cov=source.identity_cov, noise_cov=source.noise_cov)
    train, held_out = draws.people(rng, target), draws.people(rng, target)
    path, _ = fit_path(draws.stats(train, np.zeros(3)), source, source, WEIGHTS, num_iters=10)
    return path, held_out


def test_the_default_is_the_held_out_log_likelihood(problem):
    path, held_out = problem
    choice = choose_weight(path, draws.stats(held_out, np.zeros(3)))
    expected = np.array([reference.log_likelihood(member(path, p), held_out) for p in range(4)])
    assert_close(choice.values, expected, factor=10)
    assert int(choice.chosen) == expected.argmax()
    assert choice.chosen.dtype == jnp.int32
    assert_close(choice.model, member(path, int(expected.argmax())))


def test_any_criterion_serves(problem):
    """The mean margin between genuine and impostor scores of held-out pairs."""
    path, held_out = problem
    x, ids = draws.stacked(held_out)
    same = ids[:, None] == ids[None, :]

    def margin(model, x):
        scores = llr_matrix(diagonalize(model), x, x)
        return scores[same].mean() - scores[~same].mean()

    choice = choose_weight(path, x, criterion=margin)
    assert_close(choice.values, np.array([margin(member(path, p), x) for p in range(4)]))
    assert int(choice.chosen) == np.argmax(choice.values)


def test_values_that_are_not_finite_lose_and_ties_go_to_the_first(problem):
    path, _ = problem
    for values, chosen in (([np.nan, 1.0, np.inf, 1.0], 1), ([-3.0, -np.inf, -2.0, -2.0], 2)):
        left = iter(values)
        choice = choose_weight(path, None, criterion=lambda *_, left=left: jnp.asarray(next(left)))
        assert int(choice.chosen) == chosen
        np.testing.assert_array_equal(choice.values, values)


def test_leave_one_out_equals_a_plain_loop(rng):
    """Each person left out, dense EM on the others about their own mean, dense likelihood of the one."""
    target, prior = draws.joint_bayes(rng, d=2), draws.joint_bayes(rng, d=2)
    groups = draws.people(rng, target, (1, 2, 3, 2))
    x, ids = draws.stacked(groups)
    weights = np.array([0.3, 1.0])
    expected = np.zeros(2)
    for place, weight in enumerate(weights):
        for person in range(4):
            others = groups[:person] + groups[person + 1 :]
            mean = np.concatenate(others).mean(axis=0)
            model = JointBayes(mean=mean, identity_cov=prior.identity_cov, noise_cov=prior.noise_cov)
            for _ in range(3):
                identity, noise = reference.m_step(model, others, prior, weight, with_covariance=True)
                model = JointBayes(mean=mean, identity_cov=identity, noise_cov=noise)
            expected[place] += reference.log_likelihood(model, groups[person : person + 1])
    found, info = left_out(x, ids, prior, weights, num_people=4, num_iters=3)
    assert_close(found, expected, factor=10)
    assert info.objective.shape == (4, 2, 3)
    assert (info.status == 0).all()


def test_leave_one_out_passes_its_settings_to_every_fit(rng):
    """The fold of one person is `fit_path` of the others with the same E-step, tolerance and floor."""
    x, ids = draws.stacked(draws.people(rng, draws.joint_bayes(rng, d=2), (3, 2, 3, 2)))
    prior, weights = draws.joint_bayes(rng, d=2), np.array([0.2, 0.6])
    settings = {"num_iters": 4, "tol": 1e-2, "e_step": posterior.approximate, "floor": 1e-3}
    _, info = leave_one_out(x, ids, prior, weights, num_people=4, **settings)
    others = ids > 0
    stats = collect(x[others], ids[others], num_people=4, shift=x[others].mean(axis=0))
    start = JointBayes(mean=stats.shift, identity_cov=prior.identity_cov, noise_cov=prior.noise_cov)
    _, expected = fit_path(stats, start, prior, weights, **settings)
    assert_close(member(info, 0), expected, factor=10)


def test_a_fold_that_fails_is_in_the_report(rng):
    """Three people, one of them with all the pairs: without these and without a prior there is no split."""
    x, ids = draws.stacked(draws.people(rng, draws.joint_bayes(rng, d=2), (9, 1, 1)))
    _, info = leave_one_out(x, ids, draws.joint_bayes(rng, d=2), np.array([0.0]), num_people=3, num_iters=2)
    assert info.status[:, 0].tolist() == [Status.UNIDENTIFIED, Status.OK, Status.OK]


def test_leave_one_out_does_not_mind_where_the_images_are(rng):
    target = draws.joint_bayes(rng, d=2)
    x, ids = draws.stacked(draws.people(rng, target, (3, 2, 3, 2)))
    weights = np.array([0.0, 0.3])

    def at(place):
        model = jax.tree.map(lambda leaf: jnp.asarray(leaf, jnp.float32), target)
        return left_out((x + place).astype(np.float32), ids, model, weights, num_people=4, num_iters=3)[0]

    np.testing.assert_allclose(at(3000.0), at(0.0), atol=0.1)


def test_transfer_beats_source_and_target_alone_on_little_data():
    """What the prior is for: held-out likelihood peaks inside (0, 1) when the source is near but wrong."""
    rng = np.random.default_rng(3)
    target, off = draws.joint_bayes(rng), draws.joint_bayes(rng)
    source = JointBayes(
        mean=target.mean,
        identity_cov=target.identity_cov + 0.3 * off.identity_cov,
        noise_cov=target.noise_cov + 0.3 * off.noise_cov,
    )
    train, held_out = draws.people(rng, target), draws.people(rng, target, (2,) * 200)
    path, _ = fit_path(draws.stats(train, np.zeros(3)), source, source, WEIGHTS, num_iters=10)
    choice = choose_weight(path, draws.stats(held_out, np.zeros(3)))
    assert 0 < int(choice.chosen) < 3
