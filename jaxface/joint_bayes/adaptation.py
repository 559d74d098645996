"""Adapts a model to another camera by unlabelled images, of which only the mean and the total covariance are used.

A source model has the total covariance `U = T_mu + T_eps`, the images of the target the mean m and the total covariance
C. Every method takes m as the mean. With `C = U` all give the source model back.

    mean_shift  T as they are
    coral       T' = A T A' with A U A' = C, for both covariances
    coral_plus  T' = T + gamma (A T A' - T)_+, so that no variance is taken away
    kaldi       T_mu' = T_mu + b X and T_eps' = T_eps + w X with X = (C + a dd' - U)_+, d the change of the mean

`(D)_+ = L (L^-1 D L^-T)_+ L'` is the positive part in the metric `U = LL'`: it does not depend on how features are
scaled or mixed. Nor does the default root of CORAL, `A = L (L^-1 C L^-T)^1/2 L^-1`; the printed `C^1/2 U^-1/2` does.

Unlabelled images do not tell how to split new variance between people and noise: the likelihood of single images
depends on `U'` alone. So b, w and gamma are assumptions, and no method is safe. CORAL undoes a stretch of the axes and
makes a small rotation worse; Kaldi's form with all variance to the noise helps against noise and harms with new people.
Compare with the source model, and calibrate again, because any change of T changes the scale of the ratios. With few
images shrink C towards U (`shrunk`, `choose_strength`). Results have stopped gradients.
"""

import dataclasses
from collections.abc import Callable
from functools import partial
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax.typing import ArrayLike

from jaxface.core import checks, fitinfo
from jaxface.core.fitinfo import FitInfo, Status
from jaxface.joint_bayes.model import JointBayes
from jaxface.linalg import psd, spectral, triangular

__all__ = [
    "Adapt",
    "Target",
    "choose_strength",
    "coral",
    "coral_plus",
    "equivariant_root",
    "kaldi",
    "mean_shift",
    "own_metric",
    "printed_root",
    "shrunk",
    "target_of",
    "total_metric",
]

Root = Callable[[jax.Array, jax.Array], jax.Array]  # root(U, C) = A with A U A' = C
Metric = Callable[[jax.Array, jax.Array], jax.Array]  # metric(U, T) in which the growth of T is measured
Adapt = Callable[[JointBayes, "Target"], tuple[JointBayes, FitInfo]]


class Target(NamedTuple):
    """Mean and covariance of unlabelled images; images that come in parts are pooled by `class_stats.total` first."""

    mean: jax.Array  # [d]
    covariance: jax.Array  # [d, d], about the mean, divided by the number
    number: jax.Array  # [], of images


def target_of(x: ArrayLike) -> Target:
    """Mean and covariance of images x `[n, d]`; of a stream they come from `linalg.class_stats.total`."""
    sizes = checks.samples(x=(x, "n d"))
    checks.at_least("number of images", sizes["n"], 2)
    x = jnp.asarray(x)
    mean = x.mean(axis=0)
    centered = x - mean[None, :]
    return Target(mean, centered.T @ centered / sizes["n"], jnp.asarray(sizes["n"], x.dtype))


def shrunk(target: Target, model: JointBayes, *, strength: ArrayLike) -> Target:
    """The covariance `(N C + strength U) / (N + strength)`: `strength` images' worth of the source model.

    Needed where there are fewer images than dimensions. Images of few people count as few: the part of C between
    people has the rank of their number less one.
    """
    checks.between("strength", strength, 0.0, jnp.inf, closed_high=False)
    _check(model, target)
    weight = jnp.asarray(strength, target.covariance.dtype)
    mixed = target.number * target.covariance + weight * _total(model)
    return target._replace(covariance=mixed / (target.number + weight))


def choose_strength(adapt: Adapt, model: JointBayes, x: ArrayLike, strengths: ArrayLike) -> tuple[jax.Array, jax.Array]:
    """The strength whose adapted model gives left-out images the largest mean log-likelihood, and all values `[s]`.

    The images x `[n, d]` are cut in two, even rows and odd rows, and each half is judged by the model of the other:
    give them in random order. `adapt(model, target)` is one of the functions here with its options bound.
    """
    checks.samples(x=(x, "n d"))
    checks.at_least("number of images", len(jnp.asarray(x)), 4)
    checks.shapes(strengths=(strengths, "s"))
    x, tried = jnp.asarray(x), jnp.asarray(strengths, jnp.asarray(x).dtype)
    checks.between("strengths", tried, 0.0, jnp.inf, closed_high=False)
    halves = x[::2], x[1::2]

    def value(strength: jax.Array) -> jax.Array:
        found = []
        for seen, left_out in (halves, halves[::-1]):
            adapted, _ = adapt(model, shrunk(target_of(seen), model, strength=strength))
            found.append(_mean_log_density(adapted, left_out))
        return jnp.stack(found).mean()

    values = jnp.stack([value(strength) for strength in tried])
    best = jnp.where(jnp.isnan(values), -jnp.inf, values).argmax()
    return tried[best], values


def mean_shift(model: JointBayes, target: Target) -> tuple[JointBayes, FitInfo]:
    """The source model about the mean of the target."""
    _check(model, target)
    return _adapted(model, target, model.identity_cov, model.noise_cov)


def equivariant_root(total: jax.Array, covariance: jax.Array) -> jax.Array:
    """`A = L (L^-1 C L^-T)^1/2 L^-1` with `U = LL'`: equivariant under linear maps of the features."""
    total, covariance = jax.lax.stop_gradient((total, covariance))
    lower = psd.cholesky(total)
    root = _power(triangular.whiten(lower, covariance), 0.5)
    return lower @ triangular.solve_transposed(lower, root).T


def printed_root(total: jax.Array, covariance: jax.Array) -> jax.Array:
    """`A = C^1/2 U^-1/2`, the form in print: it depends on how features are scaled."""
    total, covariance = jax.lax.stop_gradient((total, covariance))
    return _power(covariance, 0.5) @ _power(total, -0.5)


def coral(model: JointBayes, target: Target, *, root: Root = equivariant_root) -> tuple[JointBayes, FitInfo]:
    """Maps both covariances by A, which turns U into C: the ratios are those of the source at `A^-1 (x - m)`."""
    _check(model, target)
    return _coral(*jax.lax.stop_gradient((model, target)), root=root)


@partial(jax.jit, static_argnames="root")
def _coral(model: JointBayes, target: Target, *, root: Root) -> tuple[JointBayes, FitInfo]:
    a = root(_total(model), target.covariance)
    identity_cov, noise_cov = (a @ each @ a.T for each in (model.identity_cov, model.noise_cov))
    # C itself is judged: what is rounding in C is no longer rounding in its root.
    return _adapted(model, target, identity_cov, noise_cov, psd.is_definite(psd.cholesky(target.covariance)))


def total_metric(total: jax.Array, _: jax.Array) -> jax.Array:
    """U, for both covariances: they may have any rank."""
    return total


def own_metric(_: jax.Array, own: jax.Array) -> jax.Array:
    """Each covariance in its own metric, the form in print: it must be definite."""
    return own


def coral_plus(
    model: JointBayes,
    target: Target,
    *,
    gamma_identity: ArrayLike,
    gamma_noise: ArrayLike,
    root: Root = equivariant_root,
    metric: Metric = total_metric,
) -> tuple[JointBayes, FitInfo]:
    """Adds gamma in [0, 1] times the variance that CORAL adds to each covariance; no variance is removed.

    A covariance that is singular in `own_metric` stays as it is, and the status is NOT_PSD.
    """
    for name, gamma in (("gamma_identity", gamma_identity), ("gamma_noise", gamma_noise)):
        checks.between(name, gamma, 0.0, 1.0)
    _check(model, target)
    return _coral_plus(*jax.lax.stop_gradient((model, target)), gamma_identity, gamma_noise, root=root, metric=metric)


@partial(jax.jit, static_argnames=("root", "metric"))
def _coral_plus(
    model: JointBayes, target: Target, gamma_identity: ArrayLike, gamma_noise: ArrayLike, *, root: Root, metric: Metric
) -> tuple[JointBayes, FitInfo]:
    total, every_definite = _total(model), jnp.asarray(True)
    a, grown = root(total, target.covariance), []
    for own, gamma in ((model.identity_cov, gamma_identity), (model.noise_cov, gamma_noise)):
        lower = psd.cholesky(metric(total, own))
        is_definite = psd.is_definite(lower)
        grown.append(own + jnp.where(is_definite, gamma * _positive_part(a @ own @ a.T - own, lower), 0))
        every_definite = every_definite & is_definite
    identity_cov, noise_cov = grown
    return _adapted(model, target, identity_cov, noise_cov, every_definite)


def kaldi(
    model: JointBayes,
    target: Target,
    *,
    to_identity: ArrayLike,
    to_noise: ArrayLike,
    from_mean: ArrayLike = 0.0,
) -> tuple[JointBayes, FitInfo]:
    """Kaldi's adaptation of PLDA: adds shares of the target's excess variance to T_mu and T_eps, in Kaldi 0.7 and 0.3.

    `from_mean = 1`, as in Kaldi, counts the change of the mean as variance although the mean is moved as well.
    """
    for name, share in (("to_identity", to_identity), ("to_noise", to_noise), ("from_mean", from_mean)):
        checks.between(name, share, 0.0, jnp.inf, closed_high=False)
    _check(model, target)
    return _kaldi(*jax.lax.stop_gradient((model, target)), to_identity, to_noise, from_mean)


@jax.jit
def _kaldi(
    model: JointBayes, target: Target, to_identity: ArrayLike, to_noise: ArrayLike, from_mean: ArrayLike
) -> tuple[JointBayes, FitInfo]:
    change, total = target.mean - model.mean, _total(model)
    beyond = target.covariance + from_mean * jnp.outer(change, change) - total
    excess = _positive_part(beyond, psd.cholesky(total))
    return _adapted(model, target, model.identity_cov + to_identity * excess, model.noise_cov + to_noise * excess)


def _total(model: JointBayes) -> jax.Array:
    """U, of the model and not of its images: then C = U gives the model back."""
    return psd.symmetrize(model.identity_cov + model.noise_cov)


def _positive_part(a: jax.Array, lower: jax.Array) -> jax.Array:
    """`L (L^-1 A L^-T)_+ L'`."""
    values, vectors = spectral.eigh(triangular.whiten(lower, a))
    root = lower @ (vectors * jnp.sqrt(jnp.maximum(values, 0))[None, :])
    return root @ root.T


def _power(a: jax.Array, power: float) -> jax.Array:
    """A symmetric power of a covariance; rounding below zero counts as zero."""
    values, vectors = spectral.eigh(a)
    return (vectors * jnp.maximum(values, 0)[None, :] ** power) @ vectors.T


def _adapted(
    model: JointBayes, target: Target, identity_cov: jax.Array, noise_cov: jax.Array, valid: jax.Array | bool = True
) -> tuple[JointBayes, FitInfo]:
    """The model about the target's mean; NOT_PSD where the noise is singular, as with fewer images than dimensions."""
    identity_cov, noise_cov = psd.symmetrize(identity_cov), psd.symmetrize(noise_cov)
    found = dataclasses.replace(model, mean=target.mean, identity_cov=identity_cov, noise_cov=noise_cov)
    found = jax.lax.stop_gradient(found)
    is_definite = psd.is_definite(psd.cholesky(found.noise_cov)) & valid
    status = fitinfo.or_non_finite(fitinfo.diagnose((~is_definite, Status.NOT_PSD)), found)
    return found, fitinfo.closed_form(dtype=found.mean.dtype, status=status)


def _mean_log_density(model: JointBayes, x: jax.Array) -> jax.Array:
    """Of single images: people are unknown."""
    lower = psd.cholesky(_total(model))
    whitened = triangular.solve(lower, (x - model.mean[None, :]).T)
    d = x.shape[1]
    return -(whitened**2).sum(axis=0).mean() / 2 - jnp.log(jnp.diagonal(lower)).sum() - d * jnp.log(2 * jnp.pi) / 2


def _check(model: JointBayes, target: Target) -> None:
    checks.shapes(model_mean=(model.mean, "d"), identity_cov=(model.identity_cov, "d d"))
    checks.shapes(model_mean=(model.mean, "d"), mean=(target.mean, "d"), covariance=(target.covariance, "d d"))
