"""Free parameters against ranks of Jacobians, BIC, and the choice of sizes."""

from functools import partial

import jax
import numpy as np
import pytest

from jaxface.core.fitinfo import FitError
from jaxface.mixtures import multiview, selection, stats
from tests import by_numpy
from tests.mixtures import draws, gaps
from tests.reference import multiview_reference as reference


def rank(model):
    """Of the derivative of mean and covariance of the first component by all parameters of its views."""
    ((_, _, loadings, _), *_) = reference.components(model)
    n, d = loadings.shape
    upper = np.triu_indices(n)
    slopes = []
    for i in range(n):
        for j in range(d):
            one = np.zeros((n, d))
            one[i, j] = 1
            slopes.append((one @ loadings.T + loadings @ one.T)[upper])
    start = 0
    for view in model.views:
        own = np.asarray(view.mean).shape[1]
        for i in range(own):
            for j in range(i, own) if np.asarray(view.noise).ndim == 3 else (i,):
                one = np.zeros((n, n))
                one[start + i, start + j] = one[start + j, start + i] = 1
                slopes.append(one[upper])
        start += own
    return n + np.linalg.matrix_rank(np.array(slopes))


@pytest.mark.parametrize(
    ("widths", "d", "full"),
    [
        ((3, 2, 3), 2, False),
        ((3, 2, 3), 2, True),
        ((3, 4), 2, False),
        ((3, 4), 2, True),
        ((4, 5), 3, True),
        ((2, 5), 4, True),
        ((6,), 2, False),
        ((4,), 2, True),
        ((3, 2), 0, False),
        ((2, 1), 5, False),
    ],
)
def test_free_parameters_are_the_rank_of_the_jacobian(widths, d, full, rng):
    model = gaps.model(rng, full=full, k=1, d=d, widths=widths)
    assert selection.num_parameters(model) == rank(model)
    three = gaps.model(rng, full=full, k=3, d=d, widths=widths)
    assert selection.num_parameters(three) == 2 + 3 * rank(model)


def test_models_of_one_and_two_views(rng):
    assert selection.num_parameters(draws.gaussians(rng, k=3, n=4)) == 2 + 3 * 8
    assert selection.num_parameters(draws.pcca(rng, k=1)) == 7 + 7 + 7 * 2 - 1


def test_bic(rng):
    model = gaps.model(rng, k=1, d=0, widths=(2,))
    assert selection.bic(model, -10.0, num_samples=100) == pytest.approx(4 * np.log(100) + 20)
    with pytest.raises(ValueError, match="num_samples must be at least 1; got 0"):
        selection.bic(model, -10.0, num_samples=0)


def by_numpy_too(monkeypatch, module, name):
    """The function without a program of its own: four sizes would be twelve programs."""
    traced = getattr(module, name)
    monkeypatch.setattr(module, name, lambda *args, **settings: by_numpy.evaluate(partial(traced, **settings), *args))


def test_the_sizes_of_the_truth_are_chosen(rng, monkeypatch):
    """By both criteria, from samples of which some views are missing."""
    truth, size = gaps.model(rng, widths=(4, 3), spread=4.0), 400
    views = by_numpy.evaluate(partial(multiview.sample, num_samples=size), jax.random.key(0), truth).views
    mask = np.ones((size, 2), bool)
    mask[::3, 0] = False
    train, rest = (tuple(v[part] for v in gaps.spoiled(views, mask)) for part in (slice(0, 250), slice(250, None)))
    settings = {"num_starts": 1, "num_iters": 8, "present": mask[:250], "held_out_present": mask[250:]}
    for module, name in ((selection, "draw_starts"), (selection, "fit_starts"), (stats, "log_likelihood")):
        by_numpy_too(monkeypatch, module, name)
    found = selection.choose(jax.random.key(1), train, rest, num_components=(1, 2), latent_dims=(1, 2), **settings)
    assert (found.num_components, found.latent_dim) == (2, 2)
    assert found.held_out[0, 1] > found.held_out[0, 0]  # one component too few is paid with more latent dimensions
    assert np.unravel_index(found.held_out.argmax(), (2, 2)) == np.unravel_index(found.bic.argmin(), (2, 2)) == (1, 1)
    expected = reference.log_likelihood(found.model, tuple(v[250:] for v in views), mask[250:]) / 150
    assert found.held_out[1, 1] == pytest.approx(expected, rel=1e-9)
    value = reference.log_likelihood(found.model, tuple(v[:250] for v in views), mask[:250])
    assert found.bic[1, 1] == pytest.approx(selection.bic(found.model, value, num_samples=250), rel=1e-9)


def test_unconnected_views_are_refused(rng):
    views, _ = gaps.samples(rng)
    mask = np.array([[1, 1, 0], [0, 0, 1]], bool)[np.arange(gaps.S) % 2]
    sizes = {"num_components": (1,), "latent_dims": (1,), "num_starts": 1, "num_iters": 1}
    with pytest.raises(FitError, match=r"choose ended in UNIDENTIFIED: .*groups of views are never"):
        selection.choose(jax.random.key(0), views, views, present=mask, **sizes)


def test_the_best_of_several_starts_stands_for_its_size(rng, monkeypatch):
    """A start whose fit ended in NaN is none."""
    (views, mask), drawn = gaps.samples(rng), []

    def fitted(starts, samples, **_):
        drawn.append(starts)
        return starts, np.array([-9.0, np.nan, -1.0]), np.array([0, 2, 4], np.int32)

    for module, name in ((selection, "draw_starts"), (stats, "log_likelihood")):
        by_numpy_too(monkeypatch, module, name)
    monkeypatch.setattr(selection, "fit_starts", fitted)
    sizes = {"num_components": (2,), "latent_dims": (1,), "num_starts": 3, "num_iters": 1}
    found = selection.choose(jax.random.key(0), views, views, present=mask, held_out_present=mask, **sizes)
    for view, of_starts in zip(found.model.views, drawn[0].views, strict=True):
        np.testing.assert_array_equal(view.loadings, of_starts.loadings[2])
        assert np.abs(of_starts.loadings[2] - of_starts.loadings[0]).max() > 1e-3
    assert found.status == [[4]]
    assert found.bic[0, 0] == pytest.approx(selection.bic(found.model, -1.0, num_samples=gaps.S))


SMALL = {"num_components": (1,), "latent_dims": (1,), "num_starts": 1, "num_iters": 1}


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"num_starts": 0}, "num_starts must be at least 1; got 0"),
        ({"num_components": ()}, "the number of sizes must be at least 1; got 0"),
        ({"latent_dims": ()}, "the number of sizes must be at least 1; got 0"),
        ({"num_components": (gaps.S + 1,)}, rf"num_components must be at most {gaps.S} \(the number of samples\)"),
        ({"present": np.arange(3) != np.full((gaps.S, 1), 1)}, "view 1 is missing in every sample"),
        ({"present": np.ones((gaps.S, 2), bool)}, r"present must be Boolean of shape \(30, 3\)"),
    ],
)
def test_what_choose_refuses(changes, message, rng):
    views, _ = gaps.samples(rng)
    with pytest.raises(ValueError, match=message):
        selection.choose(jax.random.key(0), views, views, **SMALL | changes)
