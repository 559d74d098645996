"""How a committee on bags does on its own training images: each is judged by the members that have not seen it.

Member t saw image i if its weight `w_ti` is above zero. The members in use have centres of their bags alone, for a
centre that holds the image itself would know the answer, and a person who is not in a bag has the probability 0 there.
No held-out images are needed. A plain bootstrap of n of n images leaves out `(1 - 1/n)^n`, about 36.8 %, of them.
"""

from functools import partial
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax.typing import ArrayLike

from jaxface.core import checks
from jaxface.ensembles import fusion, lda_checks
from jaxface.ensembles.fusion import Total
from jaxface.ensembles.lda_member import LdaMember
from jaxface.ensembles.posteriors import Posterior

__all__ = ["OutOfBag", "out_of_bag"]


class OutOfBag(NamedTuple):
    """The answers for the images of the bags."""

    log_posteriors: jax.Array  # [n, c], by the sum rule; NaN for an image that is in every bag
    num_members: jax.Array  # int32 [n], that have not seen the image


def out_of_bag(
    members: LdaMember,
    y: ArrayLike,
    labels: ArrayLike,
    sample_weights: ArrayLike,
    *,
    num_classes: int,
    posterior: Posterior,
) -> OutOfBag:
    """The sum rule over the members whose bags leave an image out, for each image of y `[n, p]`.

    `members`, `labels` `[n]` and `sample_weights` `[m, n]` are those of `lda_member.fit_bags`; `posterior` is
    `lda_member.gaussian` or `lda_member.cosine`. `fusion.predict` names the people of images that some bag leaves out.
    """
    sizes = checks.shapes(y=(y, "n p"), labels=(labels, "n"), sample_weights=(sample_weights, "m n"))
    checks.shapes(axes=(members.axes, f"{sizes['m']} k"))
    labels, _ = lda_checks.check_images(y, labels, members.axes, num_classes=num_classes)
    checks.between("sample_weights", sample_weights, 0.0, jnp.inf, closed_high=False)
    y, labels = jnp.asarray(y), jnp.asarray(labels)
    weights = jnp.asarray(sample_weights, y.dtype)
    return _out_of_bag(members, y, labels, weights, num_classes=num_classes, posterior=posterior)


@partial(jax.jit, static_argnames=("num_classes", "posterior"))
def _out_of_bag(
    members: LdaMember,
    y: jax.Array,
    labels: jax.Array,
    weights: jax.Array,
    *,
    num_classes: int,
    posterior: Posterior,
) -> OutOfBag:
    def add(total: Total, one: tuple[LdaMember, jax.Array]) -> tuple[Total, None]:
        member, weight = one
        counts = jax.ops.segment_sum(weight, labels, num_classes)
        shares = weight / jnp.where(counts > 0, counts, 1)[labels]
        means = jax.ops.segment_sum(shares[:, None] * y[:, member.axes], labels, num_classes)
        of_bag = LdaMember(axes=member.axes, basis=member.basis, centers=means @ member.basis)
        log_p = fusion.normalize(jnp.where(counts[None, :] > 0, posterior(of_bag, y), -jnp.inf))
        after = fusion.add(total, log_p)
        is_new = (weight == 0)[:, None]
        return Total(*(jnp.where(is_new, now, before) for now, before in zip(after, total, strict=True))), None

    nothing = fusion.nothing(jnp.zeros((len(y), num_classes), y.dtype))
    total, _ = jax.lax.scan(add, nothing, (members, weights))
    number = (weights == 0).sum(axis=0, dtype=jnp.int32)
    return OutOfBag(jnp.where(number[:, None] > 0, fusion.mean(total), jnp.nan), number)
