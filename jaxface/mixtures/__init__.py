"""Mixtures of probabilistic CCA, and codes: sets of descriptors as vectors (supplementary material of the paper on
multi-view super vectors).

Two kinds of descriptors of the same places, x and y, share a latent z in each component of a mixture. A set of such
pairs, taken from one image, becomes one vector: the mean posterior of z, and the gradients of the log-likelihood by the
parameters of x and of y. Nothing but the closed form of CCA needs two views: `multiview` has any number of them, and
samples that lack some.

    patterns        samples in groups of those with the same views
    multiview       MultiviewMixture: init, fit, latent_posterior, conditional, predict, sample; missing views
    selection       num_parameters, bic, choose: how many components and latent dimensions
    views           views that share z; log_density, responsibilities (13), also with a missing view
    stats           the E-step (13)-(20): e_step, merge, stepwise, log_likelihood (12)
    em              the M-step (30)-(36): joint or sequential regression; fit
    repairs         noise below its floor and components without samples, in every M-step
    scores          llr, llr_matrix: do an x and a y belong together?
    pcca            PCCAMixture; latent_posterior (18), (19), predict, sample; closed_form and canonical_correlations
    initialization  init: k-means++ and the closed form of each cluster
    gmm             GMM with diagonal covariances: one view, no z
    validity        checks of a model's parameters, for models that come from files
    encoding        gradient_vector (42)-(45), latent_vector, super_vector, fisher_vector (1), (2); encode_batch
    padding         pad_sets: sets of different sizes
    normalization   signed root, unit rows, unit length

Letters are the paper's: views of n and m dimensions, z of d, k components; s samples or descriptors, i images.

The paper has misprints, which this code corrects: the second matrix of (19) is [W_x; W_y]; (27) has no factor -1/2;
(42)-(45) are -2/N times the gradient of the likelihood; (1), (2) differ from the usual Fisher vector by a factor for
each dimension; and the latent vector holds no new information: it is a linear function of the mean gradients.
"""

from jaxface.mixtures import encoding, gmm, multiview, normalization, selection
from jaxface.mixtures.em import fit, joint, m_step, sequential
from jaxface.mixtures.encoding import encode_batch, fisher_vector, gradient_vector, latent_vector, super_vector
from jaxface.mixtures.gmm import GMM
from jaxface.mixtures.initialization import init
from jaxface.mixtures.multiview import MultiviewMixture
from jaxface.mixtures.pcca import PCCAMixture, canonical_correlations, closed_form, latent_posterior, predict, sample
from jaxface.mixtures.scores import llr, llr_matrix
from jaxface.mixtures.stats import e_step, log_likelihood, merge, stepwise
from jaxface.mixtures.views import View, log_density, log_responsibilities, responsibilities

__all__ = [
    "GMM",
    "MultiviewMixture",
    "PCCAMixture",
    "View",
    "canonical_correlations",
    "closed_form",
    "e_step",
    "encode_batch",
    "encoding",
    "fisher_vector",
    "fit",
    "gmm",
    "gradient_vector",
    "init",
    "joint",
    "latent_posterior",
    "latent_vector",
    "llr",
    "llr_matrix",
    "log_density",
    "log_likelihood",
    "log_responsibilities",
    "m_step",
    "merge",
    "multiview",
    "normalization",
    "predict",
    "responsibilities",
    "sample",
    "selection",
    "sequential",
    "stepwise",
    "super_vector",
]
