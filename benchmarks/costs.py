"""What XLA counts for programs against the count on paper: `python -m benchmarks.costs`, seconds, no clock.

A program that computes something twice, or that moves its data more often than it must, shows here without an
accelerator and whatever else the machine does. XLA compiles for this CPU, but what `platform_dependent` does for a CPU
alone, such as transposed copies and polynomials, is left out.

On paper a product reads both of its factors and writes its result. All elementwise work between two products reads what
the first one wrote and writes what the second one reads, once; a concatenation is a pass of its own. XLA counts the
body of a loop once and the operations inside a call of LAPACK not at all, so the programs are those of one block. An
exponential, a cosine or a root counts as no operation.
"""

import sys
from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple
from unittest import mock

import jax
import jax.numpy as jnp

from jaxface import joint_bayes
from jaxface.core import score_tiles
from jaxface.ensembles import lda_member
from jaxface.features import fastfood, forms, maps
from jaxface.joint_bayes import posterior
from jaxface.joint_bayes.stats import GroupedStats
from jaxface.linalg import gram, products, scatter
from jaxface.mixtures import PCCAMixture, encoding, gmm, stats

MOST = 1.5  # times the count on paper
_TYPE = jnp.float32
_BYTES = 4  # of a number


class Program(NamedTuple):
    """A function of arrays, how many operations it needs, and how many numbers it reads and writes."""

    name: str
    fn: Callable[..., Any]
    args: tuple[Any, ...]
    flops: float
    numbers: float


class Counted(NamedTuple):
    """XLA's counts of a compiled program in units of the counts on paper."""

    flops: float
    bytes: float


def programs() -> list[Program]:
    """The blocks that rows F3, J1, J4, K1, K3, M1, M2, N1, N3, R1 and S4 are made of."""
    return [
        _tile_of_scores(t=2048, d=128),
        _e_step(r=4096, d=256),
        _scatter(n=4096, d=512),
        *_fast_features(n=64, d=512, expansion=10),
        _mixture(s=8192, n=96, m=108, k=64, d=32),
        _fisher_vector(s=1024, n=64, k=64),
        _inner_products(n=1024, d=512),
        _kernel_matrix(n=2048, d=512),
        _posteriors(n=2000, p=599, a=100, c=200),
        _scores(g=4096, q=1024, d=512),
    ]


def counted(program: Program) -> Counted:
    """The counts of the program without what is for a CPU alone."""
    jax.clear_caches()  # functions that were traced for a CPU
    with mock.patch.object(jax.lax, "platform_dependent", lambda *args, default, **_: default(*args)):
        found: Any = jax.jit(program.fn).lower(*program.args).compile().cost_analysis()
    jax.clear_caches()
    return Counted(found["flops"] / program.flops, found["bytes accessed"] / (_BYTES * program.numbers))


def _ones(*shape: int) -> jax.Array:
    return jnp.ones(shape, _TYPE)


def _basis(d: int) -> joint_bayes.ScoringBasis:
    return joint_bayes.ScoringBasis(mean=_ones(d), vectors=jnp.eye(d, dtype=_TYPE), values=_ones(d))


def _tile_of_scores(*, t: int, d: int) -> Program:
    """The product, a bin of each score, and their counting, which reads a place and a number to add for each."""
    rows = score_tiles.Rows(_ones(t, d), jnp.zeros(t, jnp.int32), None)

    def count(basis: joint_bayes.ScoringBasis, rows: score_tiles.Rows, span: jax.Array) -> jax.Array:
        pair = jnp.zeros((1, 2), jnp.int32)
        options = {"num_bins": 4096, "block_size": t, "once": True}
        return score_tiles.tile_counts(joint_bayes.score_projections, basis, rows, rows, pair, span, **options)

    numbers = (2 * t * d + t * t) + 2 * t * t + 2 * t * t
    return Program("F3 tile of scores", count, (_basis(d), rows, _ones(2)), 2.0 * t * t * d, numbers)


def _e_step(*, r: int, d: int) -> Program:
    """Three products with all rows, six of d x d; five calls of LAPACK read and write 13 matrices."""
    model = joint_bayes.JointBayes(
        mean=_ones(d), identity_cov=jnp.eye(d, dtype=_TYPE), noise_cov=jnp.eye(d, dtype=_TYPE)
    )
    groups = GroupedStats(
        rows=_ones(r, d), row_unit=_ones(r), row_count=_ones(r), count=_ones(64), num_people=_ones(64),
        within=jnp.eye(d, dtype=_TYPE), mean=_ones(d),
    )  # fmt: skip
    centring, projection, offsets, moments = 2 * r * d, 2 * r * d + d * d, 3 * r * d, 2 * (2 * r * d + d * d)
    numbers = centring + projection + offsets + moments + 6 * 3 * d * d + 13 * d * d
    return Program("J1 E-step", posterior.full, (model, groups), 6.0 * r * d * d + 12.0 * d**3, numbers)


def _scatter(*, n: int, d: int) -> Program:
    return Program("J4 scatter", scatter.matrix, (_ones(n, d),), 2.0 * n * d * d, 2 * n * d + d * d)


def _fast_features(*, n: int, d: int, expansion: int) -> list[Program]:
    """A feature: two transforms of length 512 as products with 32 x 32 and 16 x 16, three diagonals, and the form."""
    f = expansion * d
    params = fastfood.init(jax.random.key(0), input_dim=d, num_features=f, bandwidth=1.0, dtype=_TYPE)
    form = forms.random_phase(jax.random.key(1), num_features=f, dtype=_TYPE)
    flops = n * f * (2 * 2 * (32 + 16) + 3.0)
    numbers = n * f * (4 * 2 + 2 + 3)  # four products, the permutation, and what is before and behind them
    forward = Program("K1 Fastfood", partial(maps.feature_matrix, form=form), (params, _ones(n, d)), flops, numbers)
    back = Program("K3 transposed", jax.vmap(params.transpose), (_ones(n, f),), flops, numbers)
    return [forward, back]


def _mixture(*, s: int, n: int, m: int, k: int, d: int) -> Program:
    """One product gives u of all components; then its squares, g u, and the product with the samples."""
    w = n + m
    model = PCCAMixture(
        log_weights=_ones(k), mean_x=_ones(k, n), mean_y=_ones(k, m), loadings_x=_ones(k, n, d),
        loadings_y=_ones(k, m, d), noise_x=_ones(k, n), noise_y=_ones(k, m),
    )  # fmt: skip
    of_loadings = 2.0 * k * w * d * d * 4  # the Gram matrix, the gain, and moments from u to z
    flops = 2.0 * s * k * (d * (w + 1) + d * w + 2 * 2 * w) + of_loadings
    numbers = 5 * s * k * d + (4 + 4 + 4) * s * w + 6 * s * k + 12 * k * w * d
    e_step = partial(stats.e_step, block_size=s)
    return Program("M1 E-step of a mixture", e_step, (model, _ones(s, n), _ones(s, m)), flops, numbers)


def _fisher_vector(*, s: int, n: int, k: int) -> Program:
    """x^2 and x are written and joined, and read by two products; between these stand the responsibilities."""
    model = gmm.GMM(log_weights=_ones(k), mean=_ones(k, n), variance=_ones(k, n))
    numbers = (4 + 4) * s * n + 2 * (2 * s * n + s * k) + 4 * s * k
    return Program("M2 Fisher vector", encoding.fisher_vector, (model, _ones(s, n)), 8.0 * s * n * k, numbers)


def _inner_products(*, n: int, d: int) -> Program:
    return Program("N1 inner products", products.inner_products, (_ones(n, d),), 2.0 * n * n * d, 2 * n * d + n * n)


def _kernel_matrix(*, n: int, d: int) -> Program:
    """The mean of one side; of both the range, the centred rows and their squares; then one product and its exp."""
    numbers = (1 + 2 * (1 + 2 + 1)) * n * d + (2 * n * d + n * n) + 2 * n * n
    x, y = _ones(n, d), _ones(n, d)
    return Program("N3 Gaussian kernel", gram.gaussian(bandwidth=1.0), (x, y), 2.0 * n * n * d, numbers)


def _posteriors(*, n: int, p: int, a: int, c: int) -> Program:
    """The coordinates of one member, which XLA counts with all of their source, its logits, and their softmax."""
    member = lda_member.LdaMember(axes=jnp.arange(a, dtype=jnp.int32), basis=_ones(a, a), centers=_ones(c, a))
    numbers = n * p + 2 * n * a + a * c + n * c * (1 + 1 + 1 + 2)
    flops = 2.0 * n * a * c + 2.0 * a * a * c
    return Program("R1 posteriors", lda_member.gaussian, (member, _ones(n, p)), flops, numbers)


def _scores(*, g: int, q: int, d: int) -> Program:
    """The weighted gallery, one product, the squares of both sides, and their sum with the product."""
    numbers = 2 * g * d + (g * d + q * d + g * q) + (g * d + q * d) + 2 * g * q
    args = (_basis(d), _ones(g, d), _ones(q, d))
    return Program("S4 scores", joint_bayes.score_projections, args, 2.0 * g * q * d, numbers)


def main() -> int:
    """Prints a line a program; 1 when the count of one of them is far from that on paper."""
    failed = 0
    for program in programs():
        found = counted(program)
        failed |= max(found) > MOST or min(found) < 1 / MOST  # too little: the count on paper is wrong
        print(f"{program.name:24s} {found.flops:5.2f} of the operations on paper, {found.bytes:5.2f} of the bytes")
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
