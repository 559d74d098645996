"""Mixtures of probabilistic CCA, and the vectors they encode sets of descriptors in (supplementary material of the
paper on multi-view super vectors).

Two kinds of descriptors of the same places, x and y, share a latent z in each component of a mixture. A set of pairs,
an image, becomes one vector: what its pairs say about z, and where they would move what x and y have for themselves.

    views       Woodbury forms of views that share z; log_density, responsibilities (13), with a view missing too
    stats       the E-step (13)-(20): e_step, merge, stepwise, log_likelihood (12)
    em          the M-step (30)-(36): joint or sequential regression, fit
    pairs       llr, llr_matrix: do an x and a y belong together?
    pcca        PCCAMixture; latent_posterior (18), (19), conditional, predict; closed_form and canonical_correlations
    initialize  k-means++ and the closed form of each cluster
    gmm         GMM with diagonal covariances: one view, no z
    validity    what the models' own `check` refuses, for models that come from files
    encode      gradient_vector (42)-(45), latent_vector, super_vector, fisher_vector (1), (2); encode_batch
    normalize   signed root, unit rows, unit length

Letters are the paper's: views of n and m dimensions, z of d, k components; s samples or descriptors, i images.

Where the printed text differs from this code, the text is wrong: the second matrix of (19) is [W_x; W_y]; (27) has no
factor -1/2; (42)-(45) are -2/N times the gradient of the likelihood; (1), (2) differ from the usual Fisher vector by a
factor for each dimension; and the latent vector is no new information but a linear function of the mean gradients.
"""

from jaxface.mixtures import encode, gmm, normalize
from jaxface.mixtures.em import fit, joint, m_step, sequential
from jaxface.mixtures.encode import encode_batch, fisher_vector, gradient_vector, latent_vector, super_vector
from jaxface.mixtures.gmm import GMM
from jaxface.mixtures.initialize import init
from jaxface.mixtures.pairs import llr, llr_matrix
from jaxface.mixtures.pcca import (
    PCCAMixture,
    canonical_correlations,
    closed_form,
    conditional,
    latent_posterior,
    predict,
    sample,
)
from jaxface.mixtures.stats import e_step, log_likelihood, merge, stepwise
from jaxface.mixtures.views import log_density, log_responsibilities, responsibilities

REGRESSIONS = {"joint": joint, "sequential": sequential}
ENCODERS = {"fisher": fisher_vector, "gradient": gradient_vector, "latent": latent_vector, "super": super_vector}

__all__ = [
    "ENCODERS",
    "GMM",
    "REGRESSIONS",
    "PCCAMixture",
    "canonical_correlations",
    "closed_form",
    "conditional",
    "e_step",
    "encode",
    "encode_batch",
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
    "normalize",
    "predict",
    "responsibilities",
    "sample",
    "sequential",
    "stepwise",
    "super_vector",
]
