"""The scores of all pairs of many faces, and from them ROC, EER and VR: ours counts, the peers keep a matrix.

The scores are Joint Bayes log-likelihood ratios of a model that is given.
"""

import importlib
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from benchmarks import floors
from jaxface.core import pair_counts
from jaxface.data import synthetic
from jaxface.linalg import spectral
from jaxface.metrics import streaming, verification

_FAR = 1e-3
_SEED = 20260711
_ROUNDING = 1e-5  # share of the pairs that float32 may move over the edge of a bin


class Faces(NamedTuple):
    """Vectors of people with unequal numbers of images, and the Joint Bayes model they come from."""

    x: np.ndarray  # float32 [n, d]
    ids: np.ndarray  # int32 [n]
    mean: np.ndarray  # [d]
    identity_cov: np.ndarray  # [d, d]
    noise_cov: np.ndarray  # [d, d]
    scorer: "Scorer"


class Scorer(NamedTuple):
    """The log-likelihood ratio in the basis where both covariances are diagonal, noise 1 and identity l.

    With p_m = l / (1 + m l): LLR = 1/2 sum_j [p_2 (a + b)^2 - p_1 a^2 - p_1 b^2 + 2 log(1 + l) - log(1 + 2 l)]_j.
    In u = sqrt(p_2) V'(x - mean) that is u_a'u_b + q'u_a^2 + q'u_b^2 + constant: one product and two rank-one terms.
    """

    mean: jax.Array  # [d]
    factor: jax.Array  # [d, d], V diag(sqrt(p_2))
    square: jax.Array  # [d], q = (p_2 - p_1) / (2 p_2)
    constant: jax.Array  # []


class Operating(NamedTuple):
    """What is asked of a verification system."""

    eer: float
    vr: float  # at FAR 1e-3


class Counted(NamedTuple):
    """Ours: the curve from counts, and the interval in which the exact values lie."""

    counts: pair_counts.ScoreCounts
    operating: Operating
    eer: streaming.Bounds
    vr: streaming.Bounds


def faces(images_per_person: np.ndarray, *, dim: int) -> Faces:
    """Gaussian identities whose images vary more than people do."""
    rng = np.random.default_rng(_SEED)
    axes = np.linalg.qr(rng.normal(size=(dim, dim)))[0]
    made = synthetic.gaussian_identities(
        rng,
        num_people=len(images_per_person),
        images_per_person=images_per_person,
        dim=dim,
        noise_cov=(axes * 4.0 * np.exp(-3.0 * np.arange(dim) / dim)) @ axes.T,
    )
    model = (made.mean, made.identity_cov, made.noise_cov)
    return Faces(made.features.astype(np.float32), made.ids, *model, _scorer(*model))


def ragged_faces(num_images: int, num_people: int) -> Faces:
    """Everybody has one image, and the rest are spread unevenly; 128 dimensions."""
    rng = np.random.default_rng(_SEED)
    share = rng.dirichlet(np.full(num_people, 0.5))
    return faces(1 + rng.multinomial(num_images - num_people, share), dim=128)


def _scorer(mean: np.ndarray, identity_cov: np.ndarray, noise_cov: np.ndarray) -> Scorer:
    with jax.enable_x64(True):
        basis = spectral.diagonalize_pair(jnp.asarray(identity_cov), jnp.asarray(noise_cov))
        ratio, vectors = np.asarray(basis.values), np.asarray(basis.vectors)
    one, two = ratio / (1.0 + ratio), ratio / (1.0 + 2.0 * ratio)
    constant = np.sum(np.log1p(ratio) - np.log1p(2.0 * ratio) / 2.0)
    fields = (mean, vectors * np.sqrt(two), (two - one) / (2.0 * two), constant)
    return Scorer(*(jnp.asarray(field, jnp.float32) for field in fields))


@jax.jit
def factors(scorer: Scorer, x: jax.Array) -> jax.Array:
    """The u `[n, d]` of x `[n, d]`."""
    return (x - scorer.mean) @ scorer.factor


def llr_tile(scorer: Scorer, a: jax.Array, b: jax.Array) -> jax.Array:
    """Scores `[t, t]` of two blocks of u."""
    own_a, own_b = (a * a) @ scorer.square, (b * b) @ scorer.square
    return a @ b.T + own_a[:, None] + (own_b[None, :] + scorer.constant)


def count_pairs(data: Faces) -> Counted:
    """Our side: scores fall into bins on the device; nothing of size n^2 is kept."""
    counts = pair_counts.count_all_pairs(llr_tile, data.scorer, factors(data.scorer, data.x), data.ids)
    curve = streaming.roc(*counts)
    operating = Operating(verification.eer(curve), verification.verification_rate(curve, _FAR))
    return Counted(counts, operating, streaming.eer_bounds(curve), streaming.verification_rate_bounds(curve, _FAR))


@jax.jit
def _gram(u: jax.Array) -> jax.Array:
    return u @ u.T


def product(data: Faces) -> jax.Array:
    """The yardstick: one product of the same size, kept."""
    return _gram(factors(data.scorer, data.x))


def pair_products(data: Faces) -> jax.Array:
    """The floor: the products of all pairs, each once, not kept."""
    return floors.pairs(factors(data.scorer, data.x))


class Room(NamedTuple):
    """Faces, and memory for the product that has been written to before."""

    faces: Faces
    product: np.ndarray  # float32 [n, n]


def with_room(data: Faces) -> Room:
    """Writing a large array for the first time costs more than the product itself; here that is done before."""
    return Room(data, np.ones((len(data.ids), len(data.ids)), np.float32))


def product_in_place(data: Room) -> np.ndarray:
    """The stricter yardstick: the arithmetic of one product, written over memory that is there."""
    u = np.asarray(factors(data.faces.scorer, data.faces.x))
    # A copy, for NumPy would halve the work of u u' by its symmetry.
    return np.matmul(u, u.copy().T, out=data.product)


def counts_agree(data: Faces, ours: Counted, gram: Any) -> str:
    """Counts the kept product pair by pair in NumPy, in the same bins."""
    kept, u = np.asarray(gram), np.asarray(factors(data.scorer, data.x))
    own = (u * u) @ np.asarray(data.scorer.square)
    total = np.zeros((2, ours.counts.genuine.size), np.int64)
    for i in range(0, len(data.ids), 256):
        rows = slice(i, i + 256)
        later = np.arange(len(data.ids))[None, :] > np.arange(len(data.ids))[rows, None]
        scores = (kept[rows] + own[rows, None] + (own + np.asarray(data.scorer.constant)))[later]
        total += streaming.count(scores, (data.ids[rows, None] == data.ids)[later], ours.counts.edges)
    assert (total.sum(axis=1) == [ours.counts.genuine.sum(), ours.counts.impostor.sum()]).all()
    curve = streaming.roc(ours.counts.edges, *total)
    exact = Operating(verification.eer(curve), verification.verification_rate(curve, _FAR))
    return operating_agrees(data, ours, exact) + f"; {total.sum():,} pairs on both sides"


def operating_agrees(_: Faces, ours: Counted, theirs: Operating) -> str:
    """The exact EER and VR must lie where our bins say, up to the pairs that rounding moves over an edge."""
    for name, value, bounds in (("EER", theirs.eer, ours.eer), ("VR", theirs.vr, ours.vr)):
        assert bounds.low - _ROUNDING <= value <= bounds.high + _ROUNDING, f"{name} {value} is outside {bounds}"
    return (
        f"EER {100 * theirs.eer:.4f} % in [{100 * ours.eer.low:.4f}, {100 * ours.eer.high:.4f}] %, "
        f"VR@FAR=0.1% {100 * theirs.vr:.3f} % in [{100 * ours.vr.low:.3f}, {100 * ours.vr.high:.3f}] %"
    )


def plda_roc(pairs: Callable[[int], Any]) -> Callable[[Faces], Operating]:
    """The peer: the two-covariance PLDA formula as a dense matrix, then `roc_curve` on its entries `pairs(n)`.

    With T = B + W and K = (T - B T^-1 B)^-1: Q = T^-1 - K, P = T^-1 B K, 2 LLR = x'Qx + y'Qy + 2 x'Py + constant.
    """

    def run(data: Faces) -> Operating:
        roc_curve = importlib.import_module("sklearn.metrics").roc_curve
        total = data.identity_cov + data.noise_cov
        inverse = np.linalg.inv(total)
        conditional = np.linalg.inv(total - data.identity_cov @ inverse @ data.identity_cov)
        quadratic = (inverse - conditional).astype(np.float32)
        cross = (inverse @ data.identity_cov @ conditional).astype(np.float32)
        centered = data.x - data.mean.astype(np.float32)
        own = np.sum((centered @ quadratic) * centered, axis=1)
        scores = (own[:, None] + own[None, :]) / 2.0 + centered @ cross @ centered.T
        same = data.ids[:, None] == data.ids[None, :]
        chosen = pairs(len(data.ids))
        far, vr, _ = roc_curve(same[chosen], scores[chosen])
        return operating_point(far, vr)

    return run


def off_diagonal(n: int) -> np.ndarray:
    return ~np.eye(n, dtype=bool)


def above_diagonal(n: int) -> tuple[np.ndarray, ...]:
    return np.triu_indices(n, 1)


def operating_point(far: np.ndarray, vr: np.ndarray) -> Operating:
    """EER and VR@FAR of a curve, written out as a user of `roc_curve` would."""
    after = int(np.argmax(far >= 1.0 - vr))
    before = after - 1
    step = (1.0 - vr[before] - far[before]) / (far[after] - far[before] + vr[after] - vr[before])
    return Operating(float(far[before] + step * (far[after] - far[before])), float(vr[far <= _FAR].max()))
