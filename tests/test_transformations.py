"""eager = jit, vmap = loop, float32 in = float32 out (with x64 on), and checked gradients, for every room."""

import functools
import importlib
import inspect
import pkgutil

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.test_util import check_grads

from tests.tolerances import assert_close
from tests.transformations import Case

ROOMS = ["linalg", "faces", "subspace", "cluster"]
TABLES = {room: importlib.import_module(f"tests.{room}.cases") for room in ROOMS}
CASES = [case for table in TABLES.values() for case in table.CASES]
IDS = [case.name for case in CASES]


def bound(case: Case):
    return functools.partial(case.fn, **case.static)


def arguments(case: Case, seed: int):
    return jax.tree.map(jnp.asarray, case.args(np.random.default_rng(seed)))


def cast(tree, dtype):
    return jax.tree.map(lambda leaf: leaf.astype(dtype) if jnp.issubdtype(leaf.dtype, jnp.floating) else leaf, tree)


@pytest.mark.parametrize("case", CASES, ids=IDS)
def test_eager_equals_jit(case):
    args = arguments(case, 0)
    with jax.disable_jit():
        eager = bound(case)(*args)
    assert_close(jax.jit(bound(case))(*args), eager, factor=case.factor)


@pytest.mark.parametrize("case", CASES, ids=IDS)
def test_vmap_equals_loop(case):
    batch = [arguments(case, seed) for seed in (1, 2, 3)]
    stacked = jax.tree.map(lambda *leaves: jnp.stack(leaves), *batch)
    loop = [bound(case)(*args) for args in batch]
    expected = jax.tree.map(lambda *leaves: jnp.stack(leaves), *loop)
    assert_close(jax.vmap(bound(case))(*stacked), expected, factor=case.factor)


@pytest.mark.parametrize("case", CASES, ids=IDS)
def test_float32_stays_float32(case):
    out = jax.eval_shape(bound(case), *cast(arguments(case, 0), jnp.float32))
    wide = {
        jax.tree_util.keystr(path): leaf.dtype
        for path, leaf in jax.tree_util.tree_leaves_with_path(out)
        if leaf.dtype in (jnp.float64, jnp.int64)
    }
    assert not wide, f"64-bit results from float32 arguments: {wide}"


@pytest.mark.parametrize("case", [c for c in CASES if c.grad], ids=[c.name for c in CASES if c.grad])
def test_gradient(case):
    args = arguments(case, 0)

    def of_differentiable(*chosen):
        full = list(args)
        for position, value in zip(case.grad, chosen, strict=True):
            full[position] = value
        return bound(case)(*full)

    check_grads(of_differentiable, [args[p] for p in case.grad], order=1, atol=1e-5, rtol=1e-5)


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
