"""eager = jit, vmap = loop, float32 in = float32 out (with x64 on), checked gradients, CUDA and TPU, for every room.

And no function compiles a loop again in its second call.

XLA compiles every function once. What JAX makes of it, by vmap or for gradients, is traced and computed by NumPy:
the rules of JAX are tested as before, and nothing is compiled for them.
"""

import contextlib
import functools
import importlib
import inspect
import pkgutil
import re

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from tests import by_numpy
from tests.tolerances import assert_close
from tests.transformations import Case

ROOMS = [
    "linalg",
    "faces",
    "subspace",
    "cluster",
    "joint_bayes",
    "losses",
    "ensembles",
    "features",
    "mixtures",
    "sparse",
    "hallucination",
    "verifier",
]
TABLES = {room: importlib.import_module(f"tests.{room}.cases") for room in ROOMS}
CASES = [case for table in TABLES.values() for case in table.CASES]
DYNAMIC = re.compile(r"tensor<[^>]*\?")

# Rows whose program makes float64 arrays of float32 arguments while x64 is on, none of which reach a result.
_LBFGS = "the state of optax's L-BFGS and its line search have the default type"
_SIGNS = "jax.random.rademacher draws in the default type"
FLOAT64_INSIDE = {
    "losses.logistic.fit": _LBFGS,
    "losses.calibration.fit": _LBFGS,
    "losses.calibration.fit[weights]": _LBFGS,
    "features.fastfood.init": _SIGNS,
    "features.sorf.init": _SIGNS,
    "hallucination.kernel.fit_fastfood_ridge": _SIGNS,
}
# Loops over a function that is an argument, another one in each call: they belong in a program of the caller.
TAKE_A_FUNCTION = {
    "linalg.krylov.conjugate_gradient",
    "linalg.krylov.leading_eigenvector",
    "linalg.krylov.leading_subspace",
    "linalg.krylov.spectral_range",
    "tests.ensembles.cases.map_sums",
}
STEP = 1e-6  # of central differences: their error is far below the tolerance, and few kinks lie within it


def each(cases: list[Case]) -> pytest.MarkDecorator:
    """One test a case. With the scope of a module the tests of one case run in a row and share what is compiled."""
    return pytest.mark.parametrize("case", cases, ids=[case.name for case in cases], scope="module")


def bound(case: Case):
    return functools.partial(case.fn, **case.static)


@functools.lru_cache(maxsize=8)
def compiled(case: Case):
    return jax.jit(bound(case))


def typed(leaf):
    """A number of Python would take the type of what it meets, and make a program of its own."""
    return leaf if isinstance(leaf, jax.Array) else np.asarray(leaf)


@functools.lru_cache(maxsize=8)
def arguments(case: Case, seed: int):
    """Arrays of JAX, in the structure of the arguments."""
    with jax.disable_jit(), by_numpy.simple_operations():
        return jax.device_put(jax.tree.map(typed, case.args(np.random.default_rng(seed))))


def stack(*leaves):
    """On the host, for on the device each shape would be a program; keys cannot leave it."""
    is_key = jnp.issubdtype(leaves[0].dtype, jax.dtypes.prng_key)
    return jnp.stack(leaves) if is_key else np.stack(leaves)


def single(leaf):
    """The float32 shape of a floating leaf, the leaf itself otherwise."""
    return jax.ShapeDtypeStruct(leaf.shape, jnp.float32) if jnp.issubdtype(leaf.dtype, jnp.floating) else leaf


def floats(tree):
    return [leaf for leaf in jax.tree.leaves(tree) if jnp.issubdtype(leaf.dtype, jnp.floating)]


def inner(left, right):
    return sum(np.vdot(a, b) for a, b in zip(jax.tree.leaves(left), jax.tree.leaves(right), strict=True))


@contextlib.contextmanager
def quick_to_compile():
    """The program of the whole function shows what XLA makes of it; those of single operations may be cheap."""
    jax.config.update("jax_disable_most_optimizations", True)
    try:
        yield
    finally:
        jax.config.update("jax_disable_most_optimizations", False)


@each(CASES)
def test_eager_equals_jit(case):
    args = arguments(case, 0)
    with jax.disable_jit(), quick_to_compile(), by_numpy.simple_operations():
        eager = bound(case)(*args)
    assert_close(compiled(case)(*args), eager, factor=case.factor)


@each(CASES)
def test_vmap_equals_loop(case):
    batch = [arguments(case, seed) for seed in (1, 2)]
    loop = [compiled(case)(*args) for args in batch]
    mapped = by_numpy.evaluate(jax.vmap(bound(case)), *jax.tree.map(stack, *batch))
    assert_close(mapped, jax.tree.map(stack, *loop), factor=case.factor)


@functools.lru_cache(maxsize=8)
def traced(case: Case):
    """The program for float32 shapes, without one number."""
    return jax.jit(bound(case)).trace(*jax.tree.map(single, arguments(case, 0)))


def equations(jaxpr):
    """Those of a program and of all programs inside it."""
    for equation in jaxpr.eqns:
        yield equation
        for leaf in jax.tree.leaves(list(equation.params.values()), is_leaf=lambda x: hasattr(x, "eqns")):
            if hasattr(inner := getattr(leaf, "jaxpr", leaf), "eqns"):
                yield from equations(inner)


def float64_arrays(program):
    """Operations of a program that make arrays of float64; of numbers alone, such as places of quantiles, many do."""
    results = ((equation.primitive.name, out.aval) for equation in equations(program.jaxpr.jaxpr)
               for out in equation.outvars)  # fmt: skip
    return {f"{name} {aval}" for name, aval in results if aval.size > 1 and getattr(aval, "dtype", None) == jnp.float64}


def callbacks(program):
    """Operations that call the host, which an accelerator waits for."""
    return {each.primitive.name for each in equations(program.jaxpr.jaxpr) if "callback" in each.primitive.name}


def loops(jaxpr):
    """Loops and branches outside of a program: each call by itself traces them anew, and compiles them again."""
    for equation in jaxpr.eqns:
        is_of_platforms = equation.params.get("branches_platforms")
        if equation.primitive.name in ("scan", "while", "cond") and not is_of_platforms:
            yield equation.primitive.name
        elif equation.primitive.name != "jit":
            for leaf in jax.tree.leaves(list(equation.params.values()), is_leaf=lambda x: hasattr(x, "eqns")):
                if hasattr(inner := getattr(leaf, "jaxpr", leaf), "eqns"):
                    yield from loops(inner)


@each(CASES)
def test_a_second_call_compiles_nothing(case):
    """Operations are compiled once for their shapes, but a loop with its body, which each call traces anew."""
    found = list(loops(traced(case).jaxpr.jaxpr))
    assert bool(found) == (case.name in TAKE_A_FUNCTION), f"loops outside of a program: {found}"


@each(CASES)
def test_float32_stays_float32(case):
    wide = {
        jax.tree_util.keystr(path): leaf.dtype
        for path, leaf in jax.tree_util.tree_leaves_with_path(traced(case).out_info)
        if leaf.dtype in (jnp.float64, jnp.int64)
    }
    assert not wide, f"64-bit results from float32 arguments: {wide}"
    inside = float64_arrays(traced(case))
    assert bool(inside) == (case.name in FLOAT64_INSIDE), f"float64 inside a program of float32 arguments: {inside}"


@each(CASES)
def test_lowers_for_cuda_and_tpu(case):
    """What `jax.export` does before it writes a program down; nothing is compiled or run."""
    assert not callbacks(traced(case))
    lowered = traced(case).lower(lowering_platforms=("cuda", "tpu"))
    assert not DYNAMIC.search(lowered.as_text()), "a shape that only the run decides"


def test_what_accelerators_cannot_do_is_seen():
    """A decomposition that LAPACK alone has, a call of the host, and float64 within."""
    shape = jax.ShapeDtypeStruct((3, 3), jnp.float32)
    with pytest.raises(NotImplementedError, match="schur"):
        jax.jit(jax.lax.linalg.schur).trace(shape).lower(lowering_platforms=("cuda", "tpu"))

    def scanned(x):
        return jax.lax.scan(lambda c, _: (c + jax.pure_callback(np.sin, shape, c), None), x, length=2)[0]

    assert callbacks(jax.jit(scanned).trace(shape)) == {"pure_callback"}
    assert not float64_arrays(jax.jit(scanned).trace(shape))
    (size,) = jax.export.symbolic_shape("n")
    unknown = jax.export.export(jax.jit(jnp.sin))(jax.ShapeDtypeStruct((size,), jnp.float32))
    assert DYNAMIC.search(unknown.mlir_module())
    widened = jax.jit(lambda x: jax.lax.cond(x[0, 0] > 0, lambda x: x.astype(jnp.float64).sum(), lambda _: 0.0, x))
    assert len(float64_arrays(widened.trace(shape))) == 1


@each([case for case in CASES if case.grad])
def test_gradient(case):
    """Forward mode against central differences in a random direction v, reverse mode by <w, J v> = <J' w, v>."""
    rng = np.random.default_rng(0)
    args = arguments(case, 0)

    def at(fn, x):
        chosen = dict(zip(case.grad, x, strict=True))
        return floats(fn(*(chosen.get(position, arg) for position, arg in enumerate(args))))

    def ahead(step):
        return at(compiled(case), jax.tree.map(lambda x, v: x + step * v, x, direction))

    def both_modes(x, direction, weights):
        fn = functools.partial(at, bound(case))
        value, forward = jax.linearize(fn, x)
        return value, forward(direction), *jax.linear_transpose(forward, x)(weights)

    def normal(leaf):
        return np.asarray(rng.normal(size=leaf.shape))

    x = jax.tree.map(np.asarray, [args[position] for position in case.grad])
    direction = jax.tree.map(normal, x)
    value = ahead(0.0)
    weights = jax.tree.map(normal, value)
    differences = [np.subtract(a, b) / (2 * STEP) for a, b in zip(ahead(STEP), ahead(-STEP), strict=True)]
    value_of_both, forward, reverse = by_numpy.evaluate(both_modes, x, direction, weights)
    assert_close(value_of_both, value, factor=case.factor)
    assert_close(forward, differences, factor=1e5)
    assert_close(inner(reverse, direction), inner(weights, differences), factor=1e5)


def unpromised(case):
    """Positions of floating arguments without a promise."""
    args = arguments(case, 0)
    return [at for at, arg in enumerate(args) if floats(arg) and at not in (*case.grad, *case.partial)]


@each([case for case in CASES if unpromised(case)])
def test_a_gradient_that_is_not_promised_is_right_or_zero(case):
    """Forward mode, each argument by itself: finite and wrong is what eigenvectors and half a stop give."""
    args = arguments(case, 0)

    def moved(position, step):
        leaves, structure = jax.tree.flatten(args[position])
        pairs = zip(leaves, directions[position], strict=True)
        return structure.unflatten(x if v is None else np.asarray(x) + step * v for x, v in pairs)

    def at(fn, steps):
        return floats(fn(*(moved(at, steps[at]) if at in steps else arg for at, arg in enumerate(args))))

    def towards(leaf):
        """Leaves that hold whole numbers stay: they are labels, or counts, where a function may jump."""
        whole = not jnp.issubdtype(leaf.dtype, jnp.floating) or (np.round(values := np.asarray(leaf)) == values).all()
        return None if whole else rng.normal(size=leaf.shape)

    rng = np.random.default_rng(0)
    directions = {at: [towards(leaf) for leaf in jax.tree.leaves(args[at])] for at in unpromised(case)}
    directions = {at: direction for at, direction in directions.items() if any(v is not None for v in direction)}

    positions = list(directions)

    def derivatives(direction):
        """The derivatives of all results in a direction of the steps."""
        steps = np.zeros(len(positions))
        fn = functools.partial(at, bound(case))
        return jax.jvp(lambda steps: fn(dict(zip(positions, steps, strict=True))), (steps,), (direction,))[1]

    forward = by_numpy.traced(derivatives, np.zeros(len(positions)))
    for position, direction in zip(positions, np.eye(len(positions)), strict=True):
        slopes = forward(direction)
        if all((slope == 0).all() for slope in slopes):
            continue
        ahead, behind = (at(compiled(case), {position: step}) for step in (STEP, -STEP))
        # A trace is NaN where no step was done.
        differences = [np.nan_to_num(np.subtract(a, b) / (2 * STEP)) for a, b in zip(ahead, behind, strict=True)]
        assert_close(slopes, differences, factor=1e5)


@pytest.mark.parametrize("room", ROOMS)
def test_every_public_function_is_in_the_table(room):
    package = importlib.import_module(f"jaxface.{room}")
    covered = {case.fn for case in TABLES[room].CASES} | set(TABLES[room].EXEMPT)
    missing = []
    for info in pkgutil.iter_modules(package.__path__):
        module = importlib.import_module(f"jaxface.{room}.{info.name}")
        for name, fn in inspect.getmembers(module, callable):
            own = getattr(fn, "__module__", "") == module.__name__
            if own and not name.startswith("_") and not inspect.isclass(fn) and fn not in covered:
                missing.append(f"{info.name}.{name}")
    assert not missing, f"public functions without a row in the transformation table: {missing}"
