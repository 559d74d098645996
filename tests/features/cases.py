"""The transformation table of `jaxface.features`."""

import functools

import jax
import jax.numpy as jnp
import numpy as np

from jaxface.features import (
    bandwidth,
    dekernelize,
    fastfood,
    forms,
    kitchen_sinks,
    maps,
    orthogonal,
    sorf,
    spectra,
    trig,
    units,
    validity,
)
from tests.transformations import Case

D, F = 3, 10  # padded to 4: three blocks, the last one cut
DRAW = {"input_dim": D, "num_features": F, "bandwidth": np.float32(1.5)}
SHAPE = {"num": 5, "dim": 3, "dtype": jnp.float32}


def fast(rng, size=4, count=3, input_dim=D, num_features=F):
    return fastfood.Fastfood(
        signs=rng.choice([-1.0, 1.0], size=(count, size)),
        permutation=np.stack([rng.permutation(size) for _ in range(count)]).astype(np.int32),
        gaussian=rng.normal(size=(count, size)),
        scale=rng.uniform(0.1, 0.3, size=(count, size)),
        input_dim=input_dim,
        num_features=num_features,
    )


def three_transforms(rng):
    return sorf.Sorf(
        signs=rng.choice([-1.0, 1.0], size=(3, 3, 4)),
        scale=rng.uniform(0.1, 0.3, size=(3, 4)),
        input_dim=D,
        num_features=F,
    )


def dense(rng):
    return kitchen_sinks.KitchenSinks(frequencies=rng.normal(size=(F, D)))


def square(rng):
    return kitchen_sinks.KitchenSinks(frequencies=rng.normal(size=(D, D)) + 3 * np.eye(D))


def key(rng):
    return jax.random.key(int(rng.integers(1000)))


def point(rng, size=D):
    return rng.normal(size=size)


def sines(rng, n=None):
    return rng.uniform(-0.6, 0.6, size=(F,) if n is None else (n, F)) / F**0.5


def mapped(rng):
    """Features that are nearly those of a vector: Gauss-Newton ends soon, and its residual is not at its kink."""
    params = fast(rng)
    z = maps.transform(params, 0.3 * point(rng), form=forms.sin)
    return params, np.asarray(z) * (1 + 0.02 * rng.normal(size=F))


DESCENT = functools.partial(dekernelize.gauss_newton, tol=1e-7)
INVERT = {"form": forms.sin}
INITS = (kitchen_sinks.init, orthogonal.init, fastfood.init, sorf.init)

CASES = [
    *[Case(init, lambda r: (key(r),), DRAW, factor=100) for init in INITS],
    *[Case(maps.project, lambda r, m=m: (m(r), point(r)), grad=(1,), variant=m.__name__)
      for m in (fast, three_transforms, dense)],
    *[Case(maps.transpose, lambda r, m=m: (m(r), point(r, F)), grad=(1,), variant=m.__name__)
      for m in (fast, three_transforms)],
    Case(maps.inverse, lambda r: (square(r), point(r)), grad=(0, 1), factor=10),
    Case(maps.transform, lambda r: (dense(r), point(r)), {"form": forms.cos_sin}, grad=(0, 1)),
    Case(maps.feature_matrix, lambda r: (fast(r), r.normal(size=(5, D))), {"form": forms.sin, "block_size": 2},
         grad=(1,)),
    Case(maps.dense_matrix, lambda r: (fast(r),)),
    Case(maps.gram_matrix, lambda r: (dense(r),), grad=(0,)),
    Case(maps.sum_of_blocks, lambda r: (r.normal(size=(3, 4)),), grad=(0,)),
    Case(maps.zero_padded, lambda r: (point(r),), {"size": 5}, grad=(0,)),
    Case(forms.cos_sin, lambda r: (point(r),), grad=(0,)),
    Case(forms.identity, lambda r: (point(r),), grad=(0,)),
    Case(forms.sin, lambda r: (point(r),), grad=(0,)),
    Case(forms.random_phase, lambda r: (key(r),), {"num_features": 4, "dtype": jnp.float32}),
    Case(spectra.gaussian, lambda r: (key(r),), SHAPE),
    Case(spectra.laplacian, lambda r: (key(r),), SHAPE, factor=100),
    Case(spectra.row_lengths, lambda r: (key(r),), {**SHAPE, "spectrum": spectra.matern(nu=1.5)}, factor=100),
    Case(spectra.rotation_invariant, lambda r: (key(r),), {**SHAPE, "spectrum": spectra.gaussian}),
    Case(bandwidth.median_distance, lambda r: (key(r), r.normal(size=(6, D))), {"num_pairs": 20}),
    Case(dekernelize.invert, lambda r: (fast(r), sines(r)), INVERT, grad=(1,), partial=(0,), factor=100),
    Case(dekernelize.invert, mapped, {**INVERT, "method": DESCENT},
         grad=(1,), partial=(0,), factor=1e4, variant="gauss_newton"),
    Case(dekernelize.invert_matrix, lambda r: (dense(r), sines(r, 3)), {**INVERT, "block_size": 2}, factor=100),
    Case(trig.sin, lambda r: (point(r),), grad=(0,)),
    Case(trig.cos, lambda r: (point(r),), grad=(0,)),
    Case(trig.clipped_arcsin, lambda r: (r.uniform(-0.9, 0.9, size=D),), grad=(0,)),
    Case(trig.arctan2, lambda r: (point(r), point(r)), grad=(0, 1)),
]  # fmt: skip

EXEMPT = [
    bandwidth.choose_bandwidth,  # on the host
    maps.dtype_of,  # no arrays out
    maps.initializer,  # functions in and out
    maps.draw_blocks,  # runs inside every init
    maps.gram_operator,  # returns a function, which gram_matrix runs
    validity.of_solution,  # steps of invert
    validity.conditioning,
    validity.spectral_range,
    maps.check_square,
    forms.complex,  # the table compares real numbers
    forms.as_tree,  # functions in and out
    forms.real,  # by type of the argument
    forms.inverse,
    spectra.matern,
    dekernelize.least_squares,  # methods return solvers, which `invert` runs
    dekernelize.solver,  # the same, for programs of one's own
    units.in_own_unit,  # a map in, a map out
    dekernelize.conjugate_gradient,
    dekernelize.gauss_newton,
    dekernelize.square,
]
