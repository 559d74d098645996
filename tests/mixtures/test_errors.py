"""Every message of the room's boundary, once."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxface import mixtures
from jaxface.mixtures import GMM, PCCAMixture, encoding, gmm
from tests.mixtures import draws
from tests.mixtures.draws import D, K, M, N

RNG = np.random.default_rng(0)
MODEL, FULL, GAUSSIANS = draws.pcca(RNG), draws.pcca(RNG, full=True), draws.gaussians(RNG)
X, Y = np.zeros((6, N)), np.zeros((6, M))
KEY = jax.random.key(0)
NAN = np.where(np.arange(6 * N).reshape(6, N) == 5, np.nan, 0.0)
SETTINGS = {"num_components": 2, "latent_dim": 1}


def changed(**fields):
    return PCCAMixture(**(vars(MODEL) | fields))


CASES = {
    "views of different length": (
        lambda: mixtures.fit(X, Y[:5], MODEL, num_iters=1),
        r"y must have shape \[s, m\] with s = 6; got shape \(5, 3\) \(s = 6 comes from x\)",
    ),
    "views of different length at the start": (
        lambda: mixtures.init(KEY, X, Y[:5], **SETTINGS),
        r"y must have shape \[s, m\] with s = 6; got shape \(5, 3\)",
    ),
    "NaN": (lambda: mixtures.fit(NAN, Y, MODEL, num_iters=1), "x must be finite; 1 of 24 values are NaN or infinite"),
    "NaN at the start": (lambda: mixtures.init(KEY, NAN, Y, **SETTINGS), "x must be finite; 1 of 24"),
    "NaN in a Gaussian mixture": (lambda: gmm.init(KEY, NAN, num_components=2), "x must be finite; 1 of 24"),
    "integers": (
        lambda: mixtures.e_step(MODEL, X.astype(int), Y),
        "x must be a floating point array; got dtype int64",
    ),
    "a view of another dimension": (
        lambda: mixtures.log_density(MODEL, np.zeros(N), np.zeros(N)),
        r"y must have shape \[m\] with m = 3; got shape \(4,\) \(m = 3 comes from mean_y\)",
    ),
    "a batch where one sample is meant": (
        lambda: mixtures.responsibilities(GAUSSIANS, X),
        r"x must have shape \[n\]; got shape \(6, 4\)",
    ),
    "one view too few": (
        lambda: mixtures.log_density(MODEL, X[0]),
        "the model has 2 views; got 1. Pass None for a missing view",
    ),
    "no view": (lambda: mixtures.latent_posterior(MODEL), "x or y must be given; got None for every view"),
    "a missing view where sums are made": (
        lambda: mixtures.e_step(MODEL, X, None),
        "y must be given; got None. Only functions of one sample accept a missing view",
    ),
    "both views where one is asked for": (
        lambda: mixtures.predict(MODEL, X[0], Y[0]),
        "exactly one of x and y must be given; the other one is predicted",
    ),
    "nothing to predict from": (lambda: mixtures.predict(MODEL), "exactly one of x and y must be given"),
    "a latent dimension above a view's": (
        lambda: mixtures.init(KEY, X, Y, num_components=2, latent_dim=4),
        r"latent_dim must be at most 3 \(the views have 4 and 3 dimensions\); got 4",
    ),
    "a latent dimension above a view's in closed form": (
        lambda: mixtures.closed_form(X, Y, latent_dim=5),
        "latent_dim must be at most 3",
    ),
    "no latent dimension": (
        lambda: mixtures.init(KEY, X, Y, num_components=2, latent_dim=0),
        "latent_dim must be at least 1; got 0",
    ),
    "more components than samples": (
        lambda: mixtures.init(KEY, X, Y, num_components=7, latent_dim=1),
        r"num_components must be at most 6 \(the number of samples\); got 7",
    ),
    "more Gaussians than samples": (
        lambda: gmm.init(KEY, X, num_components=7),
        r"num_components must be at most 6 \(the number of samples\); got 7",
    ),
    "an old key": (
        lambda: mixtures.init(np.zeros(2, np.uint32), X, Y, **SETTINGS),
        "key must be a typed PRNG key",
    ),
    "no ridge": (lambda: mixtures.init(KEY, X, Y, ridge=0.0, **SETTINGS), r"ridge must lie in \(0, inf\); got 0.0"),
    "a negative ridge": (
        lambda: mixtures.closed_form(X, Y, latent_dim=1, ridge=-1.0),
        r"ridge must lie in \[0, inf\); got -1.0",
    ),
    "one sample for a covariance": (
        lambda: mixtures.closed_form(X[:1], Y[:1], latent_dim=1),
        "the number of samples must be at least 2; got 1",
    ),
    "no floor": (
        lambda: mixtures.fit(X, Y, MODEL, num_iters=1, floor=0.0),
        r"floor must lie in \(0, inf\); got 0.0",
    ),
    "no floor for Gaussians": (
        lambda: gmm.fit(X, GAUSSIANS, num_iters=1, floor=-1.0),
        r"floor must lie in \(0, inf\); got -1.0",
    ),
    "no iterations": (lambda: mixtures.fit(X, Y, MODEL, num_iters=0), "num_iters must be at least 1; got 0"),
    "no block": (lambda: mixtures.e_step(MODEL, X, Y, block_size=0), "block_size must be at least 1; got 0"),
    "no samples": (
        lambda: mixtures.fit(X[:0], Y[:0], MODEL, num_iters=1),
        "the number of samples must be at least 1; got 0",
    ),
    "negative weights": (
        lambda: mixtures.fit(X, Y, MODEL, num_iters=1, sample_weights=-np.ones(6)),
        r"sample_weights must lie in \[0, inf\); got 6 values outside, the first -1.0",
    ),
    "only weights of zero": (
        lambda: mixtures.fit(X, Y, MODEL, num_iters=1, sample_weights=np.zeros(6)),
        r"the sum of sample_weights must lie in \(0, inf\); got 0.0",
    ),
    "weights of other samples": (
        lambda: mixtures.log_likelihood(MODEL, X, Y, sample_weights=np.ones(5)),
        r"sample_weights must have shape \[s\] with s = 6; got shape \(5,\)",
    ),
    "components that do not agree": (
        lambda: mixtures.fit(X, Y, changed(mean_y=MODEL.mean_y[:2]), num_iters=1),
        r"mean_y must have shape \[k, m\] with k = 3; got shape \(2, 3\)",
    ),
    "latent dimensions that do not agree": (
        lambda: mixtures.fit(X, Y, changed(loadings_y=MODEL.loadings_y[:, :, :1]), num_iters=1),
        r"loadings_y must have shape \[k, m, d\] with d = 2; got shape \(3, 3, 1\)",
    ),
    "two kinds of noise": (
        lambda: mixtures.fit(X, Y, changed(noise_y=FULL.noise_y), num_iters=1),
        r"noise must be diagonal in both views, or full in both; got shapes \(3, 4\) and \(3, 3, 3\)",
    ),
    "an x of another dimension in a matrix of ratios": (
        lambda: mixtures.llr_matrix(MODEL, Y, Y),
        r"x must have shape \[g, n\] with n = 4; got shape \(6, 3\)",
    ),
    "two kinds of noise in a matrix of ratios": (
        lambda: mixtures.llr_matrix(changed(noise_y=FULL.noise_y), X, Y),
        "noise must be diagonal in both views, or full in both",
    ),
    "integers in a matrix of ratios": (
        lambda: mixtures.llr_matrix(MODEL, X.astype(int), Y),
        "x must be a floating point array; got dtype int64",
    ),
    "a ratio of one view": (lambda: mixtures.llr(MODEL, None, Y[0]), "x and y must both be given"),
    "no floor in one step": (
        lambda: mixtures.m_step(MODEL, mixtures.e_step(MODEL, X, Y)[0], floor=-1.0),
        r"floor must lie in \(0, inf\); got -1.0",
    ),
    "a rate above one": (
        lambda: mixtures.stepwise(*[mixtures.e_step(MODEL, X, Y)[0]] * 2, 1.5),
        r"rate must lie in \[0, 1\]; got 1.5",
    ),
    "no draws": (lambda: mixtures.sample(KEY, MODEL, num_samples=0), "num_samples must be at least 1; got 0"),
    "an image with no descriptor": (
        lambda: encoding.super_vector(MODEL, X[:0], Y[:0]),
        "a set must hold at least one descriptor; got none",
    ),
    "an image with nothing but padding": (
        lambda: encoding.fisher_vector(GAUSSIANS, X, sample_weights=np.zeros(6)),
        "a set must hold at least one descriptor; got none",
    ),
    "an image with no descriptor in a batch": (
        lambda: encoding.encode_batch(
            GAUSSIANS,
            np.zeros((3, 6, N)),
            encoder=encoding.fisher_vector,
            sample_weights=np.array([[1] * 6, [0] * 6, [0] * 6]),
        ),
        "every image must have a descriptor; 2 have none, the first is image 1",
    ),
    "an image of integers": (
        lambda: encoding.super_vector(MODEL, X.astype(int), Y),
        "x must be a floating point array; got dtype int64",
    ),
    "an image in a list": (
        lambda: encoding.fisher_vector(GAUSSIANS, X.tolist()),
        "x must be an array of numbers; got a list",
    ),
    "an image without its second view": (
        lambda: encoding.super_vector(MODEL, X, None),
        "y must be given; got None. Only functions of one sample accept a missing view",
    ),
    "images without their second view": (
        lambda: encoding.encode_batch(MODEL, X[None], None, encoder=encoding.super_vector),
        "y must be given; got None",
    ),
    "weights of images that are no numbers": (
        lambda: encoding.encode_batch(
            GAUSSIANS, X[None], encoder=encoding.fisher_vector, sample_weights=np.full((1, 6), np.nan)
        ),
        r"sample_weights must lie in \[0, inf\); got 6 values outside, the first nan",
    ),
    "sets of different width": (
        lambda: encoding.pad_sets([X, X[:, :2]]),
        r"x must hold sets \[s, n\] of one width n; got shape \(6, 2\) for image 1",
    ),
    "sets that are vectors": (
        lambda: encoding.pad_sets([X[0]]),
        r"x must hold sets \[s, n\] of one width n; got shape \(4,\) for image 0",
    ),
    "weights of other images": (
        lambda: encoding.encode_batch(
            GAUSSIANS, np.zeros((3, 6, N)), encoder=encoding.fisher_vector, sample_weights=np.ones((3, 5))
        ),
        r"sample_weights must have shape \[i, s\] with s = 6; got shape \(3, 5\)",
    ),
    "no images": (
        lambda: encoding.encode_batch(GAUSSIANS, X[None][:0], encoder=encoding.fisher_vector),
        "the number of images must be at least 1; got 0",
    ),
    "no images at a time": (
        lambda: encoding.encode_batch(GAUSSIANS, X[None], encoder=encoding.fisher_vector, block_size=0),
        "block_size must be at least 1; got 0",
    ),
    "ragged sets that do not agree": (
        lambda: encoding.pad_sets([X, X[:2]], [Y, Y[:3]]),
        r"views must have the same descriptors of every image; got \[6, 2\] and \[6, 3\]",
    ),
    "an empty ragged set": (
        lambda: encoding.pad_sets([X, X[:0]]),
        r"every image must have a descriptor; got numbers \[6, 0\]",
    ),
    "no sets": (lambda: encoding.pad_sets([]), r"every image must have a descriptor; got numbers \[\]"),
    "full noise in a Fisher vector": (
        lambda: encoding.whiten(FULL, encoding.FisherScores(X, (), ())),
        "model must have diagonal noise; got full covariances, whose gradients are not whitened here",
    ),
    "variances of another dimension": (
        lambda: gmm.fit(X, GMM(**(vars(GAUSSIANS) | {"variance": jnp.ones((K, D))})), num_iters=1),
        r"noise_x must have shape \[k, n\] with n = 4; got shape \(3, 2\)",
    ),
}


@pytest.mark.parametrize("what", CASES)
def test_message(what):
    call, message = CASES[what]
    with pytest.raises(ValueError, match=message):
        call()
