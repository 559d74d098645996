"""What XLA counts for programs against the count on paper: `python -m benchmarks.costs`, seconds, no clock.

A program that computes something twice, or that copies its data more often than it must, shows here without an
accelerator and whatever else the machine does. XLA counts the body of a loop once and a call of LAPACK not at all, so
the programs are those of one block; an exponential or a root counts as one operation.
"""

import sys
from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from jaxface import joint_bayes
from jaxface.features import fastfood, forms, maps
from jaxface.linalg import products, scatter
from jaxface.mixtures import encoding, gmm

_MOST = 1.5  # times the count on paper
_BLOCK = 64  # rows of a feature map, so that they are one block


class Program(NamedTuple):
    """A function of arrays, and how many operations it needs."""

    name: str
    fn: Callable[..., Any]
    args: tuple[Any, ...]
    flops: float


def programs() -> list[Program]:
    """The blocks that rows F3, J4, K1, M2, N1 and S4 are made of."""
    x, few = jnp.ones((4096, 512), jnp.float32), jnp.ones((1024, 512), jnp.float32)
    n, d = x.shape
    basis = joint_bayes.ScoringBasis(mean=few[0], vectors=jnp.eye(d, dtype=x.dtype), values=few[0])
    mixture = gmm.GMM(log_weights=few[0, :64], mean=few[:64, :64], variance=few[:64, :64])
    fast = fastfood.init(jax.random.key(0), input_dim=d, num_features=10 * d, bandwidth=1.0, dtype=x.dtype)
    form = forms.random_phase(jax.random.key(1), num_features=10 * d, dtype=x.dtype)
    # A feature: two transforms of length 512 as products with 32 x 32 and 16 x 16, three diagonals, a cosine of 20.
    per_feature = 2 * 2 * (32 + 16) + 3 + 20
    return [
        Program("S4 scores", joint_bayes.score_projections, (basis, x, few), 2.0 * n * len(few) * d),
        Program("J4 scatter", scatter.matrix, (x,), 2.0 * n * d * d),
        Program("N1 inner products", products.inner_products, (few,), 2.0 * len(few) ** 2 * d * 5 / 8),
        Program("M2 Fisher vector", encoding.fisher_vector, (mixture, x[:500, :64]), 2 * 2.0 * 500 * 128 * 64),
        Program(
            "K1 Fastfood",
            partial(maps.feature_matrix, form=form),
            (fast, few[:_BLOCK]),
            _BLOCK * 10.0 * d * per_feature,
        ),
    ]


def counted(program: Program) -> tuple[float, float]:
    """Operations, and bytes read and written, of the compiled program."""
    found: Any = jax.jit(program.fn).lower(*program.args).compile().cost_analysis()
    return float(found["flops"]), float(found["bytes accessed"])


def main() -> int:
    """Prints a line a program; 1 when one of them computes far more than it needs."""
    failed = 0
    for program in programs():
        flops, size = counted(program)
        result = jax.tree.leaves(jax.eval_shape(program.fn, *program.args))
        least = sum(leaf.size * leaf.dtype.itemsize for leaf in [*jax.tree.leaves(program.args), *result])
        ratio = flops / program.flops
        failed |= ratio > _MOST
        of_paper = f"{flops / 1e9:7.3f} GFLOP, {ratio:5.2f} of paper"
        print(f"{program.name:18s} {of_paper}; {size / least:5.1f} of the bytes in and out")
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
