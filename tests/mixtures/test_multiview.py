"""Any number of views, and samples that lack some, against one dense Gaussian a sample."""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxface import mixtures
from jaxface.core.fitinfo import Status
from jaxface.mixtures import MultiviewMixture, PCCAMixture, View, multiview
from tests import by_numpy
from tests.mixtures import draws, gaps
from tests.mixtures.gaps import WIDTHS, D, K, S
from tests.reference import multiview_reference as reference
from tests.tolerances import assert_close


@pytest.mark.parametrize(("kind", "d"), [("diagonal", D), ("full", D), ("diagonal", 0)])
def test_one_step_is_the_loop_over_samples(kind, d, rng):
    """Without latent dimensions it is a mixture of Gaussians with missing blocks."""
    model = gaps.model(rng, full=gaps.KINDS[kind], d=d)
    views, mask = gaps.samples(rng)
    weights = rng.uniform(0.5, 2, size=S)
    weights[7] = 0
    moments, value = gaps.e_step(model, gaps.spoiled(views, mask), mask, sample_weights=weights)
    assert_close(value, reference.log_likelihood(model, views, mask, weights), factor=0.1)
    assert_close(moments.views[2].weight.sum(), weights @ mask[:, 2])
    found, repairs = gaps.m_step(model, moments)
    shares, expected = reference.m_step(model, views, mask, weights)
    assert_close(np.exp(found.log_weights), shares)
    for view, of_components in zip(found.views, expected, strict=True):
        for k, (mean, loadings, psi) in enumerate(of_components):
            psi = psi if kind == "full" else np.diag(psi)
            assert_close((view.mean[k], view.loadings[k], view.noise[k]), (mean, loadings, psi), factor=0.1)
    assert (repairs.jitter == 0).all()
    assert int(repairs.num_empty) == int(repairs.num_unseen) == 0


def test_missing_entries_are_never_read(rng):
    """NaN, 1e300 and ordinary numbers give the same bits, also in samples of weight 0 and as arrays of the device."""
    model, (views, mask) = gaps.model(rng), gaps.samples(rng)
    weights = np.where(np.arange(S) == 7, 0.0, 1.0)
    whole = gaps.e_step(model, views, mask, sample_weights=weights)
    for value in (np.nan, 1e300):
        other = gaps.spoiled(views, mask, value)
        other[1][7] = np.nan
        found = gaps.e_step(model, other, mask, sample_weights=weights)
        jax.tree.map(np.testing.assert_array_equal, found, whole)


def test_a_mask_without_known_values_gives_the_same(rng):
    """Inside a transformation, all patterns are computed for all samples."""
    model, (views, mask) = gaps.model(rng), gaps.samples(rng)
    holes = gaps.spoiled(views, mask)
    traced = by_numpy.evaluate(lambda m, p, *v: mixtures.e_step(m, *v, present=p), model, jnp.asarray(mask), *holes)
    assert_close(traced, gaps.e_step(model, views, mask), factor=0.1)


def test_sums_add(rng):
    model, (views, mask) = gaps.on_device(gaps.model(rng)), gaps.samples(rng)
    rows = slice(0, 10), slice(10, S)
    parts = [gaps.e_step(model, tuple(v[part] for v in views), mask[part])[0] for part in rows]
    assert_close(mixtures.merge(*gaps.on_device(parts)), gaps.e_step(model, views, mask)[0], factor=0.1)


@pytest.mark.parametrize("kind", gaps.KINDS)
def test_two_whole_views_are_the_model_of_pairs(kind, rng):
    """One EM step, the latent and the gradients are those of `PCCAMixture`, to the last digit but one."""
    pairs = draws.on_host(draws.pcca(rng, full=draws.KINDS[kind]))
    model = MultiviewMixture(log_weights=pairs.log_weights, views=pairs.views)
    x, y = draws.pairs(rng)
    everything = np.ones((len(x), 2), bool)
    found, _ = gaps.e_step(model, (x, y), everything)
    expected, _ = by_numpy.evaluate(mixtures.e_step, pairs, x, y)
    assert_close(found, expected, factor=4e-5)
    after, before = gaps.m_step(model, found)[0], gaps.m_step(pairs, expected)[0]
    assert_close(after.views, before.views, factor=4e-5)
    scores = [
        by_numpy.evaluate(partial(mixtures.encoding.closed_form, **present), each, x, y)
        for each, present in ((model, {"present": everything}), (pairs, {}))
    ]
    assert_close(*scores, factor=4e-5)


def test_pairs_may_lack_a_view(rng):
    """`multiview.fit` takes the model of pairs, and x alone is a sample, too."""
    start = draws.on_host(draws.pcca(rng))
    x, y = draws.pairs(rng)
    mask = np.ones((len(x), 2), bool)
    mask[::3, 1] = False
    fitted, info = gaps.fit(start, (x, np.where(mask[:, [1]], y, np.nan)), mask, num_iters=2)
    assert isinstance(fitted, PCCAMixture)
    assert int(info.status) == Status.OK
    assert_close(info.objective[0], reference.log_likelihood(start, (x, y), mask), factor=10)
    assert (np.diff(info.objective) > 0).all()


def test_the_order_of_the_views_does_not_matter(rng):
    model, (views, mask) = gaps.model(rng), gaps.samples(rng)
    order = [2, 0, 1]
    other = MultiviewMixture(log_weights=model.log_weights, views=tuple(model.views[v] for v in order))
    one, info = gaps.fit(model, views, mask, num_iters=2)
    two, other_info = gaps.fit(other, tuple(views[v] for v in order), mask[:, order], num_iters=2)
    assert_close(other_info, info)
    assert_close(two.views, tuple(one.views[v] for v in order))


def test_diagonal_noise_lets_a_view_be_cut_in_two(rng):
    model, (views, mask) = gaps.model(rng), gaps.samples(rng)
    last = model.views[2]
    halves = [View(*(leaf[:, part] for leaf in last)) for part in (slice(0, 1), slice(1, None))]
    cut = MultiviewMixture(log_weights=model.log_weights, views=(*model.views[:2], *halves))
    one, info = gaps.fit(model, views, mask, num_iters=2)
    two, other = gaps.fit(cut, (*views[:2], views[2][:, :1], views[2][:, 1:]), mask[:, [0, 1, 2, 2]], num_iters=2)
    assert_close(other.objective, info.objective)
    for field in View._fields:
        both = np.concatenate([getattr(view, field) for view in two.views[2:]], axis=1)
        assert_close(both, getattr(one.views[2], field), factor=0.1)


def test_the_maximum_of_probabilistic_pca_stays(rng):
    """One view, one component: the closed form of isotropic noise is a fixed point but for noise that is diagonal."""
    x = rng.normal(size=(S, 4)) @ rng.normal(size=(4, 4))
    values, vectors = np.linalg.eigh(np.cov(x.T, bias=True))
    sigma = values[:2].mean()
    w = vectors[:, 2:] * np.sqrt(values[2:] - sigma)
    start = MultiviewMixture(
        log_weights=np.zeros(1), views=(View(x.mean(axis=0)[None], w[None], np.full((1, 4), sigma)),)
    )
    found, _ = gaps.m_step(start, gaps.e_step(start, (x,), np.ones((S, 1), bool))[0])
    assert_close(found.views[0][:2], start.views[0][:2], factor=0.1)
    assert_close(found.views[0].noise.mean(), sigma, factor=0.1)


@pytest.mark.parametrize("regression", [mixtures.joint, mixtures.sequential])
@pytest.mark.parametrize("kind", gaps.KINDS)
def test_the_likelihood_never_falls(kind, regression, rng):
    model, (views, mask) = gaps.model(rng, full=gaps.KINDS[kind]), gaps.samples(rng)
    weights = rng.uniform(0.5, 2, size=S)
    _, info = gaps.fit(model, views, mask, num_iters=12, regression=regression, sample_weights=weights)
    assert (np.diff(info.objective) > -1e-9).all()
    assert info.objective[-1] > info.objective[0] + 5


@pytest.mark.parametrize("k", [1, K])
def test_missing_views_are_not_imputed(k, rng):
    """EM whose hidden variables are the missing entries, too, rises as well, but is behind at every step."""
    model, (views, mask) = gaps.model(rng, k=k), gaps.samples(rng)
    _, info = gaps.fit(model, views, mask, num_iters=5)
    imputed, slow = model, []
    for _ in range(5):
        slow.append(reference.log_likelihood(imputed, views, mask))
        imputed = reference.imputing_step(imputed, views, mask)
    behind = np.asarray(info.objective) - slow
    assert_close(behind[0], 0.0, factor=100)
    assert (np.diff(slow) > 0).all()
    assert behind[1:].min() > 1e-3


def test_to_impute_has_the_same_maximum_and_takes_more_steps():
    """Half of the views are missing; the maximum is one where no noise goes to zero, so that EM arrives at it."""
    rng = np.random.default_rng(1)
    truth, start = gaps.model(rng, spread=4.0, d=1), gaps.model(rng, d=1)
    near = tuple(view._replace(mean=true.mean) for view, true in zip(start.views, truth.views, strict=True))
    start = start.with_views(start.log_weights, near)
    views = tuple(map(np.asarray, multiview.sample(jax.random.key(1), gaps.on_device(truth), num_samples=150).views))
    mask = rng.random((150, 3)) < 0.5
    mask[~mask.any(axis=1), 0] = True
    fitted, info = jax.tree.map(np.asarray, multiview.fit(views, gaps.on_device(start), present=mask, num_iters=1000))
    top = reference.log_likelihood(fitted, views, mask)
    after = reference.imputing_step(fitted, views, mask)
    assert_close((after.views, after.log_weights), (fitted.views, fitted.log_weights))
    assert abs(reference.log_likelihood(after, views, mask) - top) < 1e-11
    steps, imputed = 0, start
    while reference.log_likelihood(imputed, views, mask) < top - 0.1:
        imputed, steps = reference.imputing_step(imputed, views, mask), steps + 1
        assert steps < 1000
    assert 1.5 * np.argmax(info.objective > top - 0.1) < steps


def test_full_noise_ties_the_dimensions_of_a_view_and_needs_samples(rng):
    """Cutting a view in two is another model; with fewer samples than dimensions the noise is floored, and reported."""
    model, (views, mask) = gaps.model(rng, full=True, k=1), gaps.samples(rng)
    last = model.views[2]
    parts = (slice(0, 1), slice(1, None))
    halves = [View(last.mean[:, own], last.loadings[:, own], last.noise[:, own, own]) for own in parts]
    cut = MultiviewMixture(log_weights=model.log_weights, views=(*model.views[:2], *halves))
    value = gaps.e_step(model, views, mask)[1]
    other = gaps.e_step(cut, (*views[:2], *(views[2][:, own] for own in parts)), mask[:, [0, 1, 2, 2]])[1]
    assert abs(float(value - other)) > 0.1
    few = tuple(view[:3] for view in views)
    fitted, info = gaps.fit(model, few, np.ones((3, 3), bool), num_iters=1)
    assert float(info.jitter) > 0
    assert int(info.status) == Status.RANK_DEFICIENT
    assert all(np.isfinite(leaf).all() for leaf in jax.tree.leaves(fitted))


def test_a_unit_scales_the_model(rng):
    """float32 data near 1e12, where squares of squares would leave the range."""
    model, (views, mask) = gaps.model(rng), gaps.samples(rng)
    model, views = jax.tree.map(lambda leaf: leaf.astype(np.float32), (model, views))
    unit = 2.0**40
    mean, loadings, noise = model.views[2]
    far = model.with_views(model.log_weights, (*model.views[:2], View(mean * unit, loadings * unit, noise * unit**2)))
    one, info = gaps.fit(model, views, mask, num_iters=2)
    two, other = gaps.fit(far, (*views[:2], unit * views[2]), mask, num_iters=2)
    assert other.objective.dtype == two.views[2].noise.dtype == np.float32
    assert int(other.status) == Status.OK
    assert_close(other.objective + mask[:, 2].sum() * 3 * np.log(unit), info.objective, factor=10)
    assert_close(two.views[2].loadings / unit, one.views[2].loadings, factor=10)


def test_one_view_is_a_mixture_of_factor_analysers(rng):
    model, x = gaps.model(rng, widths=(4,)), (rng.normal(size=(S, 4)) @ rng.normal(size=(4, 4)),)
    everything = np.ones((S, 1), bool)
    moments, value = gaps.e_step(model, x, everything)
    assert_close(value, reference.log_likelihood(model, x, everything), factor=0.1)
    found, _ = gaps.m_step(model, moments)
    shares, (of_components,) = reference.m_step(model, x, everything)
    assert_close(np.exp(found.log_weights), shares, factor=0.1)
    for k, (mean, loadings, psi) in enumerate(of_components):
        view = found.views[0]
        assert_close((view.mean[k], view.loadings[k], view.noise[k]), (mean, loadings, np.diag(psi)), factor=0.1)


CHOICES = [((0,), (1,)), ((2, 0), (1,)), ((0, 1), (2,)), ((0, 1, 2), (1,)), ((1, 2), (2, 0))]


@pytest.mark.parametrize(("given", "wanted"), CHOICES)
@pytest.mark.parametrize("kind", gaps.KINDS)
def test_any_views_given_any_others(kind, given, wanted, rng):
    """A view that is given, too: another measurement of the same z, with noise of its own."""
    model, (views, _) = gaps.model(rng, full=gaps.KINDS[kind]), gaps.samples(rng)
    one = [view[0] if v in given else None for v, view in enumerate(views)]
    found = by_numpy.evaluate(lambda m: multiview.conditional(m, *one, wanted=wanted), gaps.on_device(model))
    twice = model.with_views(model.log_weights, (*model.views, *model.views))  # every view measured a second time
    row = np.concatenate([*(view[0] for view in views), np.full(sum(WIDTHS), np.nan)])
    expected = reference.conditional(twice, row, given, [len(WIDTHS) + v for v in wanted])
    assert_close((found.mean, found.cov), expected, factor=0.1)


def test_two_views_with_full_noise_share_nothing_but_their_cross_covariance(rng):
    """W_x A and W_y A'^-1, with the noise that leaves the covariance of each view alone, are the same density."""
    drawn = gaps.model(rng, full=True, k=1, widths=WIDTHS[:2])
    pair = [view._replace(noise=view.noise + np.eye(view.mean.shape[1])) for view in drawn.views]
    a = np.array([[1.02, 0.02], [0.0, 0.98]])
    moved = []
    for view, turn in zip(pair, (a, np.linalg.inv(a).T), strict=True):
        w, new = view.loadings, view.loadings @ turn
        moved.append(view._replace(loadings=new, noise=view.noise + w @ w.swapaxes(1, 2) - new @ new.swapaxes(1, 2)))
    views, mask = gaps.samples(rng)
    mask = mask[:, :2]
    mask[4, 0] = True
    one, other = (
        gaps.e_step(drawn.with_views(drawn.log_weights, tuple(each)), views[:2], mask)[1] for each in (pair, moved)
    )
    assert_close(other, one, factor=0.01)


def test_statuses(rng):
    model, (views, mask) = gaps.model(rng), gaps.samples(rng)
    _, info = gaps.fit(model, views, mask, num_iters=2, tol=1e-15)
    assert (int(info.status), int(info.num_iters)) == (Status.MAX_ITERS, 2)
    lost = model.views[0]._replace(mean=model.views[0].mean * np.nan)
    _, info = gaps.fit(model.with_views(model.log_weights, (lost, *model.views[1:])), views, mask, num_iters=2)
    assert int(info.status) == Status.NON_FINITE
    apart = np.array([[1, 1, 0], [0, 0, 1]], bool)[np.arange(S) % 2]
    _, info = gaps.fit(gaps.model(rng, d=0), views, apart, num_iters=2)
    assert int(info.status) == Status.OK  # without z nothing needs a connection


def slopes(model, present, *views):
    return jax.grad(lambda views: mixtures.log_likelihood(model, *views, present=present))(views)


def test_nan_of_missing_views_reaches_no_gradient(rng):
    """By the samples of each pattern, and inside a transformation by all samples, of which most do not count."""
    model, (views, mask) = gaps.model(rng), gaps.samples(rng, size=6)
    holes = gaps.spoiled(views, mask)

    def moved(place):
        def value(x):
            return reference.log_likelihood(model, (*views[:place], x, *views[place + 1 :]), mask)

        return reference.slope(value, views[place])

    known = by_numpy.evaluate(lambda m, *v: slopes(m, mask, *v), model, *holes)
    traced = by_numpy.evaluate(slopes, model, mask, *holes)
    assert_close(known, tuple(moved(place) for place in range(3)), factor=100)
    assert_close(traced, known, factor=0.1)


def chain(rng, *, size):
    """Views 0 and 2 are never seen together, but both with view 1, which has as many dimensions as z."""
    truth = gaps.model(rng, k=1)
    drawn = by_numpy.evaluate(partial(multiview.sample, num_samples=size), jax.random.key(0), truth)
    mask = np.ones((size, 3), bool)
    mask[: size // 2, 2] = mask[size // 2 :, 0] = False
    return truth, drawn, mask


def covariance_across(model):
    return np.asarray(model.views[0].loadings)[0] @ np.asarray(model.views[2].loadings)[0].T


def test_views_are_compared_through_a_third(rng):
    truth, drawn, mask = chain(rng, size=2000)
    views = gaps.spoiled(drawn.views, mask)
    start = by_numpy.evaluate(
        lambda key, *v: multiview.init(key, v, num_components=1, latent_dim=D, present=mask), jax.random.key(1), *views
    )
    model, info = gaps.fit(start, views, mask, num_iters=40)
    assert int(info.status) == Status.OK
    assert float(info.objective[-1]) >= reference.log_likelihood(truth, drawn.views, mask)
    np.testing.assert_allclose(covariance_across(model), covariance_across(truth), atol=0.35)


def test_without_a_connection_nothing_is_identified(rng):
    """To rotate z in one part changes no likelihood, so that the covariance between the parts is arbitrary."""
    model, (views, _) = gaps.model(rng, k=1), gaps.samples(rng)
    mask = np.array([[1, 1, 0], [0, 0, 1]], bool)[np.arange(S) % 2]
    _, info = gaps.fit(model, views, mask, num_iters=2)
    assert int(info.status) == Status.UNIDENTIFIED
    turned = model.views[2]._replace(loadings=model.views[2].loadings @ np.array([[0.6, -0.8], [0.8, 0.6]]))
    other = MultiviewMixture(log_weights=model.log_weights, views=(*model.views[:2], turned))
    assert np.abs(covariance_across(other) - covariance_across(model)).max() > 0.3
    assert_close(gaps.e_step(other, views, mask)[1], gaps.e_step(model, views, mask)[1], factor=1e-3)
    connected = mask.copy()
    connected[3] = True
    assert int(gaps.fit(model, views, connected, num_iters=2)[1].status) == Status.OK
    weights = np.where(np.arange(S) == 3, 0.0, 1.0)  # a sample that does not count connects nothing
    _, info = gaps.fit(model, views, connected, num_iters=2, sample_weights=weights)
    assert int(info.status) == Status.UNIDENTIFIED


def test_a_component_whose_samples_all_lack_a_view_keeps_its_parameters(rng):
    """The likelihood does not depend on them; the status names the empty component."""
    model, (views, mask) = gaps.model(rng), gaps.samples(rng)
    far = np.array([0.0, 1e3])[:, None]
    model = MultiviewMixture(
        log_weights=model.log_weights, views=tuple(v._replace(mean=v.mean + far) for v in model.views)
    )
    belongs = np.arange(S) % 2
    views = tuple(view + 1e3 * belongs[:, None] for view in views)
    mask = np.ones((S, 3), bool)
    mask[belongs == 1, 1] = False
    found, repairs = gaps.m_step(model, gaps.e_step(model, views, mask)[0])
    assert int(repairs.num_unseen) == 1
    assert int(repairs.num_empty) == 0
    jax.tree.map(lambda new, old: np.testing.assert_array_equal(new[1], old[1]), found.views[1], model.views[1])
    assert np.abs(found.views[1].mean[0] - model.views[1].mean[0]).min() > 1e-3
    _, info = gaps.fit(model, views, mask, num_iters=2)
    assert int(info.status) == Status.EMPTY_COMPONENT
    assert int(info.num_replaced) == 0


@pytest.mark.parametrize("kind", gaps.KINDS)
def test_the_posterior_and_any_conditional(kind, rng):
    model, (views, _) = gaps.model(rng, full=gaps.KINDS[kind]), gaps.samples(rng)
    row = np.concatenate([view[0] for view in views])
    for given in ((0, 1), (2,), (0, 1, 2)):
        one = [view[0] if v in given else None for v, view in enumerate(views)]
        holder = gaps.on_device(model)
        posterior = by_numpy.evaluate(lambda m, one=one: multiview.latent_posterior(m, *one), holder)
        assert_close((posterior.mean, posterior.cov), reference.posterior(model, row, given))
        joint = reference.log_joint(model, [view[:1] for view in views], np.isin(np.arange(3), given)[None])[0]
        assert_close(posterior.log_responsibilities, joint - np.logaddexp.reduce(joint))
    one = [None, views[1][0], None]
    found = by_numpy.evaluate(lambda m: multiview.conditional(m, *one), holder)
    assert_close((found.mean, found.cov), reference.conditional(model, row, [1], [0, 2]))
    only = by_numpy.evaluate(lambda m: multiview.conditional(m, *one, wanted=(2,)), holder)
    assert_close((only.mean, only.cov), (found.mean[:, WIDTHS[0] :], found.cov[:, WIDTHS[0] :, WIDTHS[0] :]))
    completed = by_numpy.evaluate(lambda m: multiview.predict(m, *one), holder)
    guess = np.exp(found.log_responsibilities) @ found.mean
    assert_close(completed, (guess[: WIDTHS[0]], views[1][0], guess[WIDTHS[0] :]))


def test_samples_have_the_covariance_of_the_model(rng):
    truth = gaps.model(rng, k=1, full=True)
    drawn = by_numpy.evaluate(partial(multiview.sample, num_samples=4000), jax.random.key(3), truth)
    ((_, mean, loadings, noise),) = reference.components(truth)
    v = np.concatenate(drawn.views, axis=1)
    np.testing.assert_allclose(v.mean(axis=0), mean, atol=0.15)
    np.testing.assert_allclose(np.cov(v.T), loadings @ loadings.T + noise, atol=0.4)


@pytest.mark.parametrize("widths", [WIDTHS, (4,)])
def test_a_start_is_a_model(widths, rng):
    """Also of one view, with a pair of views that no sample has, and with a cluster of one sample."""
    views = tuple(rng.normal(size=(S, n)) @ rng.normal(size=(n, n)) for n in widths)
    mask = np.ones((S, len(widths)), bool)
    if len(widths) > 1:
        mask[: S // 2, 0] = mask[S // 2 :, 2] = False
    views[0][-1] += 100
    start = by_numpy.evaluate(
        lambda key, *v: multiview.init(key, v, num_components=K, latent_dim=D, present=mask),
        jax.random.key(0),
        *gaps.spoiled(views, mask),
    )
    gaps.on_device(start).check()
    assert all(np.linalg.norm(view.loadings, axis=(1, 2)).min() > 0 for view in start.views)
    _, info = gaps.fit(start, views, mask, num_iters=2)
    assert (np.diff(info.objective) > 0).all()


MODEL = gaps.model(np.random.default_rng(0))
VIEWS, MASK = gaps.samples(np.random.default_rng(0))
IMAGES = tuple(view[None] for view in VIEWS)
NOBODY = np.ones((S, 3), bool) & (np.arange(3) != 1)
EMPTY = MASK & (np.arange(S) != 4)[:, None]
TWO_KINDS = MODEL.with_views(
    MODEL.log_weights, (*MODEL.views[:2], gaps.model(np.random.default_rng(0), full=True).views[2])
)
SIZES = {"num_components": 1, "latent_dim": 1}
MESSAGES = {
    "a view that all samples lack": (
        lambda: multiview.fit(VIEWS, MODEL, num_iters=1, present=NOBODY),
        "view 1 is missing in every sample; nothing can be said of it",
    ),
    "a view that all samples lack at the start": (
        lambda: multiview.init(jax.random.key(0), VIEWS[:2], present=NOBODY[:, :2], **SIZES),
        "y is missing in every sample",
    ),
    "a sample without a view": (
        lambda: mixtures.e_step(MODEL, *VIEWS, present=EMPTY),
        "every sample must have a view; 1 have none, the first is sample 4",
    ),
    "a descriptor without a view": (
        lambda: mixtures.encode_batch(MODEL, *IMAGES, encoder=mixtures.super_vector, present=EMPTY[None]),
        "every sample must have a view; 1 have none, the first is sample 0, 4",
    ),
    "a mask of another shape": (
        lambda: mixtures.e_step(MODEL, *VIEWS, present=MASK[:, :2]),
        r"present must be Boolean of shape \(30, 3\), True where a sample has the view; got",
    ),
    "a mask of numbers": (
        lambda: mixtures.log_likelihood(MODEL, *VIEWS, present=1.0 * MASK),
        r"present must be Boolean of shape \(30, 3\)",
    ),
    "NaN in a view that is there": (
        lambda: mixtures.e_step(MODEL, *gaps.spoiled(VIEWS, MASK), present=MASK | (np.arange(3) == 1)),
        r"view 1 must be finite; 2 of 60 values are NaN or infinite, the first at index \(4, 0\)",
    ),
    "no view at all": (
        lambda: multiview.latent_posterior(MODEL, None, None, None),
        "view 0 or view 1 or view 2 must be given; got None for every view",
    ),
    "a view of another dimension": (
        lambda: mixtures.log_density(MODEL, None, np.zeros(3), None),
        r"view 1 must have shape \[n1\] with n1 = 2; got shape \(3,\) \(n1 = 2 comes from mean of view 1\)",
    ),
    "two kinds of noise": (
        lambda: mixtures.log_density(TWO_KINDS, *(view[0] for view in VIEWS)),
        r"noise must be diagonal in all views, or full in all; got shapes",
    ),
    "wanted twice": (
        lambda: multiview.conditional(MODEL, VIEWS[0][0], None, None, wanted=(1, 1)),
        r"wanted must name different views of 0 to 2, at least one; got \(1, 1\)",
    ),
    "nothing wanted": (lambda: multiview.conditional(MODEL, *(view[0] for view in VIEWS)), "wanted must name"),
    "too many latent dimensions": (
        lambda: multiview.init(jax.random.key(0), VIEWS, num_components=1, latent_dim=8),
        r"latent_dim must be at most 7 \(the views have 8 dimensions in all\); got 8",
    ),
    "one view with full noise": (
        lambda: multiview.init(jax.random.key(0), VIEWS[:1], **SIZES, full_noise=True),
        "one view with full noise determines nothing but its covariance; use diagonal noise",
    ),
    "a mask of other images": (
        lambda: mixtures.encode_batch(MODEL, *IMAGES, encoder=mixtures.super_vector, present=MASK),
        r"present must be Boolean of shape \(1, 30, 3\)",
    ),
    "a mask of another set": (
        lambda: mixtures.super_vector(MODEL, *VIEWS, present=MASK[:, :2]),
        r"present must be Boolean of shape \(30, 3\)",
    ),
    "no samples to draw": (
        lambda: multiview.sample(jax.random.key(0), MODEL, num_samples=0),
        "num_samples must be at least 1; got 0",
    ),
    "an old key": (
        lambda: multiview.sample(np.zeros(2, np.uint32), MODEL, num_samples=1), "key must be a typed PRNG key"
    ),
    "nothing to predict from": (
        lambda: multiview.predict(MODEL, None, None, None),
        "view 0 or view 1 or view 2 must",
    ),
    "a floor of zero": (lambda: multiview.fit(VIEWS, MODEL, num_iters=1, floor=0.0), r"floor must lie in \(0, inf\)"),
}  # fmt: skip


@pytest.mark.parametrize("what", MESSAGES)
def test_message(what):
    call, message = MESSAGES[what]
    with pytest.raises(ValueError, match=message):
        call()


def test_a_model_from_a_file_is_checked():
    model = gaps.on_device(MODEL)
    model.check()
    wrong = model.views[1]._replace(noise=-model.views[1].noise)
    with pytest.raises(ValueError, match=r"views\[1\]\.noise must lie in \(0, inf\)"):
        model.with_views(model.log_weights, (model.views[0], wrong, model.views[2])).check()
    short = model.views[1]._replace(loadings=model.views[1].loadings[:, :, :1])
    with pytest.raises(ValueError, match=r"views\[1\]\.loadings must have shape .* with d = 2; got shape \(2, 2, 1\)"):
        model.with_views(model.log_weights, (model.views[0], short, model.views[2])).check()
