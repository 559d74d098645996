"""Losses on scores, score calibration, and gradient descent: the only room that knows optax.

scores       cllr, pairwise_logistic: proper losses of log-likelihood ratios, differentiable
calibration  Affine(slope, offset): raw scores to calibrated log-likelihood ratios
fusion       Fusion(weights, offset): several scores and side information to one ratio, a convex fit
logistic     Logistic(coefficients, offset): multinomial logistic regression of vectors
minimization any loss of a pytree of parameters, as one scan
"""

from jaxface.losses import calibration, fusion, logistic
from jaxface.losses.minimization import minimize
from jaxface.losses.scores import cllr, pairwise_logistic

__all__ = ["calibration", "cllr", "fusion", "logistic", "minimize", "pairwise_logistic"]
