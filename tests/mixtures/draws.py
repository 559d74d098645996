"""Random models and pairs; nearly all tests share these sizes, so that they share programs."""

import functools

import jax
import jax.numpy as jnp
import numpy as np

from jaxface import mixtures
from jaxface.mixtures import GMM, PCCAMixture, em, gmm, initialization

K, N, M, D, S = 3, 4, 3, 2, 60
NUM_ITERS, MANY = 40, 8000
KINDS = {"diagonal": False, "full": True}

fit = functools.partial(mixtures.fit, num_iters=NUM_ITERS)
fit_batch = jax.jit(
    jax.vmap(lambda x, y, init, weights: fit(x, y, init, sample_weights=weights), in_axes=(0, None, 0, 0))
)
fit_gaussians = functools.partial(gmm.fit, num_iters=NUM_ITERS)
e_step = jax.jit(mixtures.e_step, static_argnames="block_size")
m_step = jax.jit(mixtures.m_step, static_argnames=("regression", "floor"))
log_likelihood = jax.jit(mixtures.log_likelihood, static_argnames="block_size")
cluster = jax.jit(initialization.cluster, static_argnames=("num_components", "num_iters"))
sample = jax.jit(mixtures.sample, static_argnames="num_samples")


def noise(rng, k, n, full):
    if not full:
        return jnp.asarray(rng.uniform(0.5, 1.5, size=(k, n)))
    a = rng.normal(size=(k, n, 2 * n))
    return jnp.asarray(a @ a.transpose(0, 2, 1) / (2 * n))


def pcca(rng, *, full=False, k=K, n=N, m=M, d=D, spread=1.5):
    return PCCAMixture(
        log_weights=jnp.log(jnp.asarray(rng.dirichlet(np.full(k, 5.0)))),
        mean_x=jnp.asarray(spread * rng.normal(size=(k, n))),
        mean_y=jnp.asarray(spread * rng.normal(size=(k, m))),
        loadings_x=jnp.asarray(rng.normal(size=(k, n, d))),
        loadings_y=jnp.asarray(rng.normal(size=(k, m, d))),
        noise_x=noise(rng, k, n, full),
        noise_y=noise(rng, k, m, full),
    )


def gaussians(rng, *, k=K, n=N):
    return GMM(
        log_weights=jnp.log(jnp.asarray(rng.dirichlet(np.full(k, 5.0)))),
        mean=jnp.asarray(rng.normal(size=(k, n))),
        variance=noise(rng, k, n, False),
    )


def pairs(rng, *, size=S):
    """Correlated pairs that no model drew."""
    x = rng.normal(size=(size, N)) @ rng.normal(size=(N, N)) + rng.integers(0, 2, (size, 1)) * 3.0
    y = 0.5 * x[:, :M] + rng.normal(size=(size, M))
    return x, y


@functools.cache
def apart(kind):
    """Many pairs of components that hardly overlap: the model, what it drew, and where a fit starts."""
    truth = pcca(np.random.default_rng(3), full=KINDS[kind], spread=6.0)
    drawn = sample(jax.random.key(0), truth, num_samples=MANY)
    settings = {"num_components": K, "latent_dim": D, "full_noise": KINDS[kind]}
    return truth, drawn, mixtures.init(jax.random.key(1), drawn.x, drawn.y, **settings)


def regression_of(name):
    return {"joint": em.joint, "sequential": em.sequential}[name]


def on_host(tree):
    """NumPy leaves: to pick and multiply in a test, nothing is compiled."""
    return jax.tree.map(np.asarray, tree)


def all_finite(tree):
    return all(np.isfinite(leaf).all() for leaf in jax.tree.leaves(on_host(tree)))


def shared(model):
    """What a rotation of z leaves alone."""
    model = on_host(model)
    return (
        np.exp(model.log_weights),
        model.mean_x,
        model.mean_y,
        model.loadings_x @ model.loadings_x.swapaxes(1, 2),
        model.loadings_x @ model.loadings_y.swapaxes(1, 2),
        model.loadings_y @ model.loadings_y.swapaxes(1, 2),
        model.noise_x,
        model.noise_y,
    )


def rotated(rng, model):
    """The same model in other coordinates of z, and the rotations `[k, d, d]`."""
    q = jnp.asarray(np.stack([np.linalg.qr(rng.normal(size=(D, D)))[0] for _ in range(len(model.log_weights))]))
    fields = vars(model) | {"loadings_x": model.loadings_x @ q, "loadings_y": model.loadings_y @ q}
    return PCCAMixture(**fields), q
