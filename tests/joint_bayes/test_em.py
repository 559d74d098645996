"""EM: one step against the dense M-step, what each step improves, closed forms, paths, and what is compiled."""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxface.core.fitinfo import Status
from jaxface.joint_bayes import (
    E_STEPS,
    JointBayes,
    em,
    fit,
    fit_path,
    log_likelihood,
    objectives,
    penalized_objective,
    posterior,
)
from jaxface.joint_bayes.stats import GroupedStats, grouped
from tests.joint_bayes import draws
from tests.reference import joint_bayes_reference as reference
from tests.tolerances import assert_close

RATIOS = [0.0, 0.5, 2.0]
update = jax.jit(partial(em.update, floor=1e-6), static_argnames="e_step")


def start(rng, **shape):
    """A truth, a source model with the same mean, people of the truth and their statistics."""
    model, prior = draws.joint_bayes(rng, **shape), draws.joint_bayes(rng, **shape)
    prior = JointBayes(mean=model.mean, identity_cov=prior.identity_cov, noise_cov=prior.noise_cov)
    groups = draws.people(rng, model)
    return model, prior, groups, draws.stats(groups, np.zeros(model.mean.shape[0]))


def trajectory(stats, model, prior, weight, *, e_step, num_iters):
    """The models before every step, and the objectives that the steps report."""
    models, values, rows = [model], [], grouped(stats)
    for _ in range(num_iters):
        model, value, jitter = update(model, rows, prior, weight, e_step=e_step)
        assert float(jitter) == 0
        models.append(model)
        values.append(float(value))
    return models[:-1], np.array(values)


@pytest.mark.parametrize("weight", [0.0, 0.4])
@pytest.mark.parametrize("e_step", ["full", "approximate"])
def test_one_step_is_the_dense_m_step(e_step, weight, rng):
    model, prior, groups, stats = start(rng)
    found, _, _ = update(model, grouped(stats), prior, weight, e_step=E_STEPS[e_step])
    expected = reference.m_step(model, groups, prior, weight, with_covariance=e_step == "full")
    assert_close((found.identity_cov, found.noise_cov), expected, factor=10)
    np.testing.assert_array_equal(found.mean, model.mean)


@pytest.mark.parametrize("ratio", RATIOS)
def test_full_em_ascends_the_penalised_objective_that_it_reports(ratio, rng):
    model, prior, _, stats = start(rng)
    weight = ratio / (1 + ratio)
    models, values = trajectory(stats, model, prior, weight, e_step=posterior.full, num_iters=draws.NUM_ITERS)
    assert np.diff(values).min() > -1e-9
    at_each = [penalized_objective(m, stats, prior, weight) for m in models]
    assert_close(values, np.stack(at_each), factor=10)
    fitted, info = fit(stats, model, prior=prior, prior_weight=weight, num_iters=draws.NUM_ITERS)
    assert_close(info.objective, values)
    assert all(np.linalg.eigvalsh(cov)[0] > 0 for cov in (fitted.identity_cov, fitted.noise_cov))


def test_full_em_ascends_with_a_rank_deficient_source(rng):
    """The trace is finite and monotone although both log-determinants of T_mu and S_mu are infinite."""
    _, prior, _, stats = start(rng, rank=2)
    for ratio in RATIOS:
        _, info = fit(stats, prior, prior=prior, prior_weight=ratio / (1 + ratio), num_iters=draws.NUM_ITERS)
        assert np.diff(info.objective).min() > -1e-7 * np.abs(info.objective).max()


def test_with_a_prior_the_plain_likelihood_is_not_what_rises(rng):
    model, prior, _, stats = start(rng)
    models, _ = trajectory(stats, model, prior, 2 / 3, e_step=posterior.full, num_iters=10)
    assert np.diff([float(log_likelihood(m, stats)) for m in models]).min() < -0.1


@pytest.mark.parametrize("ratio", RATIOS[1:])
def test_approximate_em_is_coordinate_descent_on_eq6_and_eq11(ratio, rng):
    model, prior, groups, stats = start(rng)
    weight = ratio / (1 + ratio)
    models, _ = trajectory(stats, model, prior, weight, e_step=posterior.approximate, num_iters=12)
    chosen = {"prior": prior, "prior_weight": ratio / (1 + ratio)}
    hidden = [reference.hidden_means(m, groups) for m in models]
    rescaled = [(m.identity_cov / (1 - weight), m.noise_cov / (1 - weight)) for m in models]
    # E-step then M-step: (H_t, T_t), (H_t, T_t+1), (H_t+1, T_t+1), ...
    chain = [objectives.eq6(*hidden[0], *rescaled[0], **chosen)]
    for before, after, theta in zip(hidden[:-1], hidden[1:], rescaled[1:], strict=True):
        chain += [objectives.eq6(*before, *theta, **chosen), objectives.eq6(*after, *theta, **chosen)]
    assert np.diff(chain).max() < 1e-9
    assert chain[0] - chain[-1] > 1
    values = [objectives.eq11(*h, **chosen) for h in hidden]
    assert np.diff(values).max() < 1e-9
    n, k = reference.counts(groups)
    assert_close(np.stack(chain[1::2]), np.stack(values[:-1]) + (n + k) * 3, factor=10)


def test_at_t_itself_eq6_can_rise(rng):
    """It has to be read at T / (1 - w), the scale that (7) lacks."""
    model, prior, groups, stats = start(rng)
    models, _ = trajectory(stats, model, prior, 2 / 3, e_step=posterior.approximate, num_iters=6)
    values = [
        objectives.eq6(*reference.hidden_means(m, groups), m.identity_cov, m.noise_cov, prior=prior, prior_weight=2 / 3)
        for m in models
    ]
    assert np.diff(values).max() > 1


def eq19_along(models, groups, prior, ratio):
    sizes = jnp.asarray([len(images) for images in groups], float)
    return [
        float(
            objectives.eq19(
                *reference.hidden_means(m, groups),
                m.identity_cov,
                m.noise_cov,
                sizes,
                prior=prior,
                prior_weight=ratio / (1 + ratio),
            )
        )
        for m in models
    ]


@pytest.mark.parametrize("ratio", RATIOS)
def test_eq19_belongs_to_the_m_step_without_weights(ratio, rng):
    """With `T = C + lambda S` (19) falls; with the M-step (5) a term is missing, and at lambda = 2 it rises."""
    model, prior, groups, stats = start(rng)
    models, current = [], model
    for _ in range(12):
        models.append(current)
        identity, noise = reference.m_step(current, groups, None, 0, with_covariance=True)
        current = JointBayes(
            mean=model.mean,
            identity_cov=identity + ratio * prior.identity_cov,
            noise_cov=noise + ratio * prior.noise_cov,
        )
    assert np.diff(eq19_along(models, groups, prior, ratio)).max() < 1e-9

    models, _ = trajectory(stats, model, prior, ratio / (1 + ratio), e_step=posterior.full, num_iters=12)
    printed = np.diff(eq19_along(models, groups, prior, ratio)).max()
    assert ratio == 0.5 or (printed < 1e-9 if ratio == 0 else printed > 1)
    corrected = [
        value + ratio * (13 * reference.log_det(m.identity_cov) + 25 * reference.log_det(m.noise_cov))
        for m, value in zip(models, eq19_along(models, groups, prior, ratio), strict=True)
    ]
    assert np.diff(corrected).max() < 1e-9


def test_balanced_data_reach_the_closed_form():
    rng = np.random.default_rng(0)
    model = draws.joint_bayes(rng)
    groups = draws.people(rng, model, (3,) * 40)
    identity, noise = reference.balanced_ml(groups, np.asarray(model.mean))
    assert np.linalg.eigvalsh(identity)[0] > 0.1  # inside: on the boundary EM needs 1 / accuracy steps
    fitted, info = fit(draws.stats(groups, np.zeros(3)), model, num_iters=300)
    assert_close((fitted.identity_cov, fitted.noise_cov), (identity, noise), factor=100)
    assert int(info.status) == Status.OK


def test_balanced_data_on_the_boundary():
    """Noise alone: the best T_mu is singular, and no model that EM passes is better than the closed form."""
    rng = np.random.default_rng(1)
    groups = list(rng.normal(size=(30, 2, 3)))
    identity, noise = reference.balanced_ml(groups, np.zeros(3))
    assert np.linalg.matrix_rank(identity) < 3
    stats = draws.stats(groups, np.zeros(3))
    best = reference.log_likelihood(JointBayes(mean=np.zeros(3), identity_cov=identity, noise_cov=noise), groups)
    first = JointBayes(mean=jnp.zeros(3), identity_cov=jnp.eye(3), noise_cov=jnp.eye(3))
    fitted, info = fit(stats, first, num_iters=300)
    assert np.diff(info.objective).min() > -1e-9
    assert best - 0.05 < log_likelihood(fitted, stats) <= best + 1e-9


@pytest.mark.parametrize("dtype", [jnp.float32, jnp.float64])
def test_weight_one_returns_the_source_to_the_last_bit(dtype, rng):
    model, prior, groups, _ = start(rng)
    # Far more uneven than the floor of T_eps allows elsewhere.
    prior = JointBayes(mean=prior.mean, identity_cov=prior.identity_cov, noise_cov=jnp.diag(jnp.array([1, 2, 1e-8])))
    model, prior = jax.tree.map(lambda a: a.astype(dtype), (model, prior))
    stats = draws.stats([images.astype(dtype) for images in groups], np.zeros(3))
    fitted, info = fit(stats, model, prior=prior, prior_weight=1.0, num_iters=draws.NUM_ITERS)
    np.testing.assert_array_equal(fitted.identity_cov, prior.identity_cov)
    np.testing.assert_array_equal(fitted.noise_cov, prior.noise_cov)
    np.testing.assert_array_equal(fitted.mean, model.mean)
    assert fitted.noise_cov.dtype == dtype
    assert float(info.jitter) == 0
    assert np.isfinite(info.objective).all()
    np.testing.assert_allclose(info.objective[-1], 0, atol=1e-4)  # (1 - w) times the likelihood, and no divergence


@pytest.mark.parametrize(("weight", "pivot"), [(0.0, 1e-4), (0.0, 1.0), (0.999, 20.0), (0.999, 2000.0)])
def test_a_known_pivot_of_the_scatter_within_changes_nothing(weight, pivot):
    """The noise is `(1 - w) S_w / k` on the last axis: below the floor in the first of each pair, S_w itself is not."""
    zero, one = jnp.zeros(3), jnp.ones(1)
    within = jnp.diag(jnp.asarray([1.0, 1.0, pivot]))
    rows = GroupedStats(jnp.zeros((1, 3)), zero[:1], 10 * one, 10 * one, 10 * one, within, zero)
    model = JointBayes(mean=zero, identity_cov=jnp.eye(3), noise_cov=jnp.eye(3))
    singular = jnp.diag(jnp.asarray([1.0, 1.0, 0.0]))
    prior = JointBayes(mean=zero, identity_cov=jnp.eye(3), noise_cov=singular)
    step = partial(em.update, model, rows, prior, weight, e_step=posterior.approximate, floor=1e-3)
    (found, _, jitter), (expected, _, needed) = step(within_pivot=min(pivot, 1.0)), step()
    assert (needed > 0) == (pivot in (1e-4, 20.0))
    assert jitter == needed
    assert_close(found.noise_cov, expected.noise_cov)


def test_a_path_equals_single_fits(rng):
    model, prior, _, stats = start(rng)
    weights = np.array([0.0, 0.3, 1.0])
    path, info = fit_path(stats, model, prior, weights, num_iters=draws.NUM_ITERS)
    for place, weight in enumerate(weights):
        alone, alone_info = fit(stats, model, prior=prior, prior_weight=weight, num_iters=draws.NUM_ITERS)
        assert_close(jax.tree.map(lambda leaf, at=place: leaf[at], (path, info)), (alone, alone_info), factor=10)


def test_vmap_over_weights_and_over_statistics(rng):
    """Inside a transformation the counts are unknown and every person is a row."""
    model, prior, _, first = start(rng)
    second = draws.stats(draws.people(rng, model), np.zeros(3))

    def at(stats, weight):
        return fit(stats, model, prior=prior, prior_weight=weight, num_iters=draws.NUM_ITERS)[0]

    both = jax.tree.map(lambda *leaves: jnp.stack(leaves), first, second)
    fitted = jax.vmap(jax.vmap(at, in_axes=(None, 0)), in_axes=(0, None))(both, jnp.asarray([0.1, 0.6]))
    for place, stats in enumerate((first, second)):
        for member, weight in enumerate((0.1, 0.6)):
            found = jax.tree.map(lambda leaf, at=(place, member): leaf[at], fitted)
            assert_close(found, at(stats, weight), factor=10)


def test_vmap_over_images_of_the_same_people(rng):
    """The counts are known then, and the sums are not."""
    model, prior, groups, _ = start(rng)
    x, ids = draws.stacked(groups)
    batch = np.stack([x, x + rng.normal(size=x.shape)])

    def fitted(x):
        stats = draws.collected(x, ids, np.zeros(3), num_people=len(groups))
        return fit(stats, model, prior=prior, prior_weight=0.3, num_iters=3)[0], log_likelihood(model, stats)

    found = jax.vmap(fitted)(batch)
    for place, x in enumerate(batch):
        assert_close(jax.tree.map(lambda leaf, at=place: leaf[at], found), fitted(x), factor=10)
    likelihood = jax.grad(lambda x: fitted(x)[1])(batch[0])
    direction, step = rng.normal(size=x.shape), 1e-6
    ahead, behind = (fitted(batch[0] + sign * step * direction)[1] for sign in (1, -1))
    assert_close((likelihood * direction).sum(), (ahead - behind) / (2 * step), factor=1e5)


def test_statistics_and_models_of_two_dtypes_meet_in_the_wider_one(rng):
    model, prior, groups, stats = start(rng)
    narrow = jax.tree.map(lambda leaf: jnp.asarray(leaf, jnp.float32), (model, prior, stats))
    settings = {"prior_weight": 0.3, "num_iters": 2}
    expected, _ = fit(stats, model, prior=prior, **settings)
    for given in ((narrow[2], model, prior), (stats, narrow[0], prior), (stats, model, narrow[1])):
        found, info = fit(given[0], given[1], prior=given[2], **settings)
        assert found.noise_cov.dtype == info.objective.dtype == np.float64
        np.testing.assert_allclose(found.noise_cov, expected.noise_cov, atol=1e-4)
    path, _ = fit_path(narrow[2], model, narrow[1], np.array([0.3]), num_iters=2)
    assert path.noise_cov.dtype == np.float64
    x, ids = draws.stacked(groups)
    mixed = draws.collected(x.astype(np.float32), ids, np.zeros(3), num_people=len(groups))
    assert {leaf.dtype for leaf in mixed[:4]} == {np.dtype(np.float64)}


def test_tolerance_stops_where_the_objective_settles(rng):
    model, _, _, stats = start(rng)
    _, info = fit(stats, model, num_iters=400, tol=1e-4)
    steps = int(info.num_iters)
    assert int(info.status) == Status.OK
    assert 2 < steps < 400
    values = np.asarray(info.objective)
    assert np.isnan(values[steps:]).all()
    assert abs(values[steps - 1] - values[steps - 2]) <= 1e-4 * abs(values[steps - 1])


def test_refit_does_not_recompile(rng, caplog):
    model, prior, _, stats = start(rng)
    arguments = {"prior": prior, "num_iters": draws.NUM_ITERS}
    fit(stats, model, prior_weight=0.2, **arguments)
    fit_path(stats, model, prior, np.array([0.1, 0.2, 0.3]), num_iters=draws.NUM_ITERS)
    before = em.fit_grouped._cache_size()
    with jax.log_compiles():
        fit(stats, prior, prior_weight=0.7, **arguments)
        fit_path(stats, prior, prior, np.array([0.3, 0.9, 1.0]), num_iters=draws.NUM_ITERS)
    assert em.fit_grouped._cache_size() == before
    assert not [record for record in caplog.records if "Compiling" in record.getMessage()]


def test_px_em_mixed_with_a_prior_lets_the_objective_fall(rng):
    """Dense, with w = 0.05: why `fit` refuses a prior with `posterior.expanded`."""
    falls, weight = [], 0.05
    for _ in range(6):
        model, prior, groups, _ = start(rng)
        n, k = reference.counts(groups)
        values = []
        for _ in range(15):
            values.append(reference.penalized_objective(model, groups, prior, weight))
            identity, noise = reference.expanded(model, groups)
            mixed = (
                weight * np.asarray(prior.identity_cov) + (1 - weight) * identity / n,
                weight * np.asarray(prior.noise_cov) + (1 - weight) * noise / k,
            )
            model = JointBayes(mean=model.mean, identity_cov=mixed[0], noise_cov=mixed[1])
        falls.append(np.diff(values).min())
    assert min(falls) < -1e-3
