"""Losses on scores, score calibration, and gradient descent: the only room that knows optax.

scores       cllr, pairwise_logistic: proper losses of log-likelihood ratios, differentiable
calibration  Affine(slope, offset): raw scores to calibrated log-likelihood ratios
logistic     Logistic(coefficients, offset): multinomial logistic regression of vectors
minimization any loss of a pytree of parameters, as one scan
"""

from jaxface.losses import calibration, logistic
from jaxface.losses.minimization import minimize
from jaxface.losses.scores import cllr, pairwise_logistic

__all__ = ["calibration", "cllr", "logistic", "minimize", "pairwise_logistic"]
