"""How many axes, directions and members: committees over a grid of M0, M1, M_lda and T in one compilation."""

from functools import partial
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.typing import ArrayLike

from jaxface.core import checks
from jaxface.core.fitinfo import FitInfo
from jaxface.ensembles import committee, fusion, lda_checks, lda_member, posteriors, sampling
from jaxface.ensembles.committee import Diagnosis, Growth
from jaxface.ensembles.posteriors import Posterior, Rule
from jaxface.linalg import scaling

__all__ = ["sweep"]


class Sweep(NamedTuple):
    """What each setting gives; every field has the leading axis s."""

    growth: Growth  # errors and accuracy of the first T members
    diagnosis: Diagnosis  # of all members
    info: FitInfo  # of the fits, [s, m]


def sweep(
    key: jax.Array,
    y: ArrayLike,
    labels: ArrayLike,
    probes: ArrayLike,
    probe_labels: ArrayLike,
    *,
    num_fixed: ArrayLike,
    num_random: ArrayLike,
    num_components: ArrayLike,
    num_members: int,
    num_classes: int,
    ridge: ArrayLike = 0.0,
    floor: float = 1e-5,
    unbiased: bool = True,
    posterior: Posterior = lda_member.gaussian,
    rule: Rule = fusion.sum,
) -> Sweep:
    """Committees on random subspaces for s settings M0 = `num_fixed`, M1 = `num_random`, M_lda = `num_components`.

    y `[n, p]` are principal coordinates of the training set, probes `[q, p]` images in the same coordinates. The draws
    are as wide as the largest setting, and smaller ones leave places empty: all share one program, one key and most of
    their random axes, so that they differ by their sizes and not by their luck.
    """
    sizes = checks.shapes(
        y=(y, "n p"), labels=(labels, "n"), probes=(probes, "q p"), probe_labels=(probe_labels, "q"),
        num_fixed=(num_fixed, "s"), num_random=(num_random, "s"), num_components=(num_components, "s"),
    )  # fmt: skip
    checks.at_least("num_classes", num_classes, 2, "discrimination needs two classes")
    settings = np.stack([np.asarray(each, np.int32) for each in (num_fixed, num_random, num_components)], axis=1)
    widths = settings[:, 0] + settings[:, 1]
    used = np.where(np.arange(widths.max())[None, :] < widths[:, None], 0, -1)
    checks.between("num_components", num_components, 1, num_classes - 1)
    probe_labels = _checked_probes(probes, probe_labels, num_classes)
    labels, _ = lda_checks.samples(y, labels, used, num_classes=num_classes, ridge=ridge)
    lda_checks.principal(y)
    lda_checks.freedom(used, sizes["n"], num_classes, ridge=ridge)
    variances = _variances(jnp.asarray(y))
    for fixed, drawn, _ in settings.tolist():
        sampling.check_subspace(variances, fixed, drawn, width=int(widths.max()), floor=floor)
    return _sweep(
        key, jnp.asarray(y), jnp.asarray(labels), jnp.asarray(probes), jnp.asarray(probe_labels), settings, ridge,
        num_members=num_members, num_classes=num_classes, width=int(widths.max()), floor=floor, unbiased=unbiased,
        posterior=posterior, rule=rule,
    )  # fmt: skip


@partial(
    jax.jit,
    static_argnames=("num_members", "num_classes", "width", "floor", "unbiased", "posterior", "rule"),
)
def _sweep(
    key: jax.Array,
    y: jax.Array,
    labels: jax.Array,
    probes: jax.Array,
    probe_labels: jax.Array,
    settings: jax.Array,
    ridge: ArrayLike,
    *,
    num_members: int,
    num_classes: int,
    width: int,
    floor: float,
    unbiased: bool,
    posterior: Posterior,
    rule: Rule,
) -> Sweep:
    variances = _variances(y)

    def at(setting: jax.Array) -> Sweep:
        num_fixed, num_random, kept = setting
        axes = sampling.feature_subspaces(
            key, variances, num_members=num_members, num_fixed=num_fixed, num_random=num_random, width=width,
            floor=floor,
        )  # fmt: skip
        members, info = lda_member.fit(
            y, labels, axes, num_classes=num_classes, kept=kept, ridge=ridge, unbiased=unbiased
        )
        found = posteriors.log_posteriors(members, probes, posterior=posterior)
        return Sweep(committee.growth(found, probe_labels, rule=rule), committee.diagnose(found, probe_labels), info)

    return jax.lax.map(at, settings)


def _checked_probes(probes: ArrayLike, labels: ArrayLike, num_classes: int) -> ArrayLike:
    checks.floating(probes=probes)
    checks.finite(probes=probes)
    return checks.dense_labels("probe_labels", labels, num_classes)


def _variances(y: jax.Array) -> jax.Array:
    """Those of the axes in a unit in which no square leaves the range of the type: draws compare them only."""
    return (scaling.shifted(y, -scaling.exponent(y)) ** 2).mean(axis=0)
