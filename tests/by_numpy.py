"""What JAX traces, computed by NumPy: no program is made, where XLA takes 10 to 100 ms for each.

    evaluate(fn, *args)    fn traced once, its equations done one after the other
    traced(fn, *args)      the function that does so for other arguments of these shapes
    simple_operations()    within it, the functions and operations of JAX itself do without XLA outside of a program

What the library compiles stays with XLA. An operation without a form in `tests/numpy_forms.py` is XLA's.
"""

import contextlib
import functools
import math
import pathlib
from collections.abc import Callable, Iterator
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax._src import array, pjit  # where every call of a program passes; there is no public place
from jax._src.interpreters import pxla
from jax.extend.core import ClosedJaxpr, Jaxpr, JaxprEqn, Literal, Primitive, primitives

from jaxface import linalg
from tests.numpy_forms import FORMS, Arrays


def scan(*args: Any, jaxpr: ClosedJaxpr, length: int, reverse: bool, **params: Any) -> Arrays:
    fixed, carry, xs = parts_of_scan(args, **params)
    num_carry, rows = len(carry), []
    for at in reversed(range(length)) if reverse else range(length):
        out = run(jaxpr.jaxpr, jaxpr.consts, [*fixed, *carry, *(x[at] for x in xs)])
        carry, row = out[:num_carry], out[num_carry:]
        rows.append(row)
    if reverse:
        rows.reverse()
    if rows:
        return [*carry, *(np.stack(column) for column in zip(*rows, strict=True))]
    avals = jaxpr.out_avals[num_carry:]
    return [*carry, *(np.zeros((0, *aval.shape), aval.dtype) for aval in avals)]


def parts_of_scan(
    args: Arrays, *, num_consts: int = 0, num_carry: int = 0, ft_in: Any = None, **_: Any
) -> tuple[Arrays, Arrays, Arrays]:
    """What stays, what is carried, what is scanned; JAX 0.12 has a tree for it, JAX 0.10 has numbers."""
    if ft_in is not None:
        return tuple(map(list, ft_in.update(args).unpack()))
    return args[:num_consts], args[num_consts:][:num_carry], args[num_consts + num_carry :]


def while_loop(
    *args: Any, cond_jaxpr: ClosedJaxpr, body_jaxpr: ClosedJaxpr, cond_nconsts: int, body_nconsts: int, **_: Any
) -> Arrays:
    of_cond, of_body = args[:cond_nconsts], args[cond_nconsts:][:body_nconsts]
    state = args[cond_nconsts + body_nconsts :]
    while (goes_on := run(cond_jaxpr.jaxpr, cond_jaxpr.consts, [*of_cond, *state])[0]).any():
        after = run(body_jaxpr.jaxpr, body_jaxpr.consts, [*of_body, *state])
        state = [keep_finished(goes_on, new, old) for new, old in zip(after, state, strict=True)]
    return state


def keep_finished(goes_on: np.ndarray, new: Any, old: Any) -> Any:
    """The members of a batch that have ended stay as they are; their axes come first."""
    if goes_on.all():
        return new
    goes_on = goes_on.reshape(*goes_on.shape, *[1] * (new.ndim - goes_on.ndim))
    return np.where(goes_on, new, old) if isinstance(new, np.ndarray) else jnp.where(goes_on, new, old)  # keys


def cond(which: Any, *args: Any, branches: Any, **_: Any) -> Arrays:
    taken = branches[min(max(int(which), 0), len(branches) - 1)]
    return run(taken.jaxpr, taken.consts, args)


def linear_solve(*args: Any, const_lengths: Any, jaxprs: Any) -> Arrays:
    before = const_lengths.matvec + const_lengths.vecmat
    own, sides = args[before:][: const_lengths.solve], args[sum(const_lengths) :]
    return run(jaxprs.solve.jaxpr, jaxprs.solve.consts, [*own, *sides])


def inner(params: dict[str, Any]) -> Jaxpr | ClosedJaxpr | None:
    """The program that an equation only calls."""
    return params.get("jaxpr") or params.get("call_jaxpr")


CALLS = {"jit", "pjit", "closed_call", "core_call", "custom_jvp_call", "custom_vjp_call", "checkpoint", "remat2"}
LOOPS = {"scan": scan, "while": while_loop, "cond": cond, "custom_linear_solve": linear_solve}


def call(*args: Any, **params: Any) -> Arrays:
    called = inner(params)
    return run(called.jaxpr, called.consts, args) if isinstance(called, ClosedJaxpr) else run(called, [], args)


def is_key(aval: Any) -> bool:
    return not isinstance(aval.dtype, np.dtype) and jax.dtypes.issubdtype(aval.dtype, jax.dtypes.extended)


def by_jax(eqn: JaxprEqn, args: Arrays) -> Arrays:
    out = eqn.primitive.bind(*args, **eqn.params)
    return out if eqn.primitive.multiple_results else [out]


def done(eqn: JaxprEqn, args: Arrays) -> Arrays:
    """The results of one equation."""
    name, avals = eqn.primitive.name, [v.aval for v in eqn.outvars]
    if any(is_key(v.aval) for v in (*eqn.invars, *eqn.outvars)) and name not in CALLS and name not in LOOPS:
        out = by_jax(eqn, args)
    elif name in FORMS:
        out = FORMS[name](*args, **eqn.params)
        out = out if eqn.primitive.multiple_results else [out]
    elif name in CALLS or name in LOOPS:
        return (call if name in CALLS else LOOPS[name])(*args, **eqn.params)
    else:
        out = by_jax(eqn, args)
    return [x if is_key(a) else np.asarray(x, a.dtype) for x, a in zip(out, avals, strict=True)]


def run(jaxpr: Jaxpr, consts: Arrays, args: Arrays) -> list[Any]:
    values = dict(zip((*jaxpr.constvars, *jaxpr.invars), (*consts, *args), strict=True))

    def read(atom: Any) -> Any:
        value = atom.val if isinstance(atom, Literal) else values[atom]
        return value if is_key(atom.aval) else np.asarray(value, atom.aval.dtype)

    for eqn in jaxpr.eqns:
        values.update(zip(eqn.outvars, done(eqn, [read(atom) for atom in eqn.invars]), strict=True))
    return [read(atom) for atom in jaxpr.outvars]


def traced(fn: Callable[..., Any], *args: Any) -> Callable[..., Any]:
    """fn, traced once for arguments of these shapes; its results are arrays of NumPy."""
    program, shapes = jax.make_jaxpr(fn, return_shape=True)(*args)

    def call(*args: Any) -> Any:
        with np.errstate(all="ignore"):
            out = run(program.jaxpr, program.consts, jax.tree.leaves(args))
        return jax.tree.unflatten(jax.tree.structure(shapes), out)

    return call


def evaluate(fn: Callable[..., Any], *args: Any) -> Any:
    """fn(*args), with arrays of NumPy in its result."""
    return traced(fn, *args)(*args)


JAX, LINALG = (str(pathlib.Path(module.__file__ or "").parent) for module in (jax, linalg))
MOST_EQUATIONS, MOST_STEPS = 50, 2000  # of a function, and of its loops


@functools.lru_cache(maxsize=10_000)
def is_simple(jaxpr: Jaxpr) -> bool:
    """Whether NumPy can do all of it, and soon."""
    if len(jaxpr.eqns) > MOST_EQUATIONS or jaxpr.effects:
        return False
    if any(is_key(v.aval) for v in (*jaxpr.invars, *jaxpr.outvars, *jaxpr.constvars)):
        return False
    for eqn in jaxpr.eqns:
        name = eqn.primitive.name
        if name == "scan":
            if eqn.params["length"] * steps_of(eqn.params["jaxpr"].jaxpr) > MOST_STEPS:
                return False
        elif name in CALLS:
            if not is_simple(called_by(eqn)):
                return False
        elif name not in FORMS:
            return False
    return True


def steps_of(jaxpr: Jaxpr) -> float:
    """How many equations a step of a loop is; infinitely many where NumPy cannot do one of them."""
    if jaxpr.effects or any(is_key(v.aval) for v in (*jaxpr.invars, *jaxpr.outvars, *jaxpr.constvars)):
        return math.inf
    return sum(map(steps_of_equation, jaxpr.eqns))


def steps_of_equation(eqn: JaxprEqn) -> float:
    name = eqn.primitive.name
    if name in CALLS:
        return steps_of(called_by(eqn))
    return 1 if name in FORMS or name == "eigh" else math.inf  # one small program for all steps of a loop


def called_by(eqn: JaxprEqn) -> Jaxpr:
    called: Any = inner(eqn.params)
    return getattr(called, "jaxpr", called)


def is_of(folders: tuple[str, ...], jaxpr: Jaxpr) -> bool:
    """Whether the function that was traced stands in one of these folders, as `jnp.add` stands in JAX's."""
    return (jaxpr.debug_info.func_filename or "").startswith(folders)


def is_here(x: Any) -> bool:
    return not isinstance(x, jax.Array) or x.devices() == {jax.devices()[0]}


def is_plain(x: Any) -> bool:
    """Whether NumPy can hold it and its type is settled: no key, and no number that takes the type of the other one."""
    return isinstance(x, np.ndarray | np.generic) or (
        isinstance(x, jax.Array) and not getattr(x, "weak_type", True) and is_here(x)
    )


@functools.cache
def first_device() -> tuple[list[jax.Device], jax.sharding.Sharding]:
    return jax.devices()[:1], jax.sharding.SingleDeviceSharding(jax.devices()[0])


def placed(x: Any) -> jax.Array:
    """`jax.device_put`, which takes four times as long."""
    if not isinstance(x, np.ndarray):
        return jax.device_put(x)
    devices, sharding = first_device()
    return pxla.batched_device_put(jax.core.ShapedArray(x.shape, x.dtype), sharding, [x], devices, committed=False)


def operation(primitive: Primitive, plain: Callable[..., Any]) -> Callable[..., Any]:
    form = FORMS[primitive.name]

    def impl(*args: Any, **params: Any) -> Any:
        if params.get("weak_type") or not all(map(is_plain, args)):
            return plain(*args, **params)
        with np.errstate(all="ignore"):
            out = form(*map(np.asarray, args), **params)
        return [placed(x) for x in out] if primitive.multiple_results else placed(np.asarray(out))

    return impl


@contextlib.contextmanager
def simple_operations(*, folders: tuple[str, ...] = (JAX,)) -> Iterator[None]:
    """Within it, outside of a program, NumPy does the operations of JAX and the functions that consist of them.

    The functions are those of modules in `folders`.
    """
    own = {primitive: primitive.impl for primitive in vars(primitives).values() if is_operation(primitive)}
    for primitive, impl in own.items():
        primitive.def_impl(operation(primitive, impl))
    try:
        with simple_functions(folders):
            yield
    finally:
        for primitive, impl in own.items():
            primitive.def_impl(impl)


def is_operation(value: Any) -> bool:
    return isinstance(value, Primitive) and value.name in FORMS


def on_device(x: Any, aval: Any) -> jax.Array:
    """With the type that takes that of the other one, where the function has it."""
    array_of_jax = placed(x)
    if not aval.weak_type:
        return array_of_jax
    return array.ArrayImpl(aval, array_of_jax.sharding, [array_of_jax], committed=False)


@contextlib.contextmanager
def simple_functions(folders: tuple[str, ...]) -> Iterator[None]:
    """Functions such as `jnp.add`, which call a program; only where this version of JAX is known to do it so."""
    if not jax.__version__.startswith("0.10."):
        yield
        return
    plain = pjit._pjit_call_impl_python

    def stand_in(*args: Any, jaxpr: ClosedJaxpr, **params: Any) -> Any:
        traced = jaxpr.jaxpr
        if not (is_of(folders, traced) and is_simple(traced) and all(map(is_here, args))):
            return plain(*args, jaxpr=jaxpr, **params)
        with np.errstate(all="ignore"):
            out = run(traced, jaxpr.consts, args)
        return [on_device(x, v.aval) for x, v in zip(out, traced.outvars, strict=True)], None, None, []

    pjit._pjit_call_impl_python = stand_in
    try:
        yield
    finally:
        pjit._pjit_call_impl_python = plain
