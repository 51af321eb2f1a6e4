"""`trace`: a JAX function as an expression, read from its jaxpr.

What does not depend on the variable is computed by JAX. Primitives that only move entries are
called with places instead of numbers. Custom derivative rules and `stop_gradient` are not looked
at: a claim is about values.
"""

import operator
import string
import warnings
from collections.abc import Callable, Sequence
from typing import Any

import jax
import numpy as np
from jax.extend import core

from goldstein.calculus import Expression, Variable, atoms, operators
from goldstein.calculus.conditions import Condition, where
from goldstein.calculus.tracing import Sharing, TraceError, compare
from goldstein.errors import GoldsteinError
from goldstein.jax.oracle import raveled

#: Steps up to which loops are unrolled.
LONGEST = 20_000

#: Which arguments are moved, where it is not the first alone.
_MOVED: dict[str, Any] = dict.fromkeys(
    ("slice", "squeeze", "broadcast_in_dim", "reshape", "transpose", "rev", "gather", "copy",
     "dynamic_slice", "expand_dims", "split", "copy_p"), (0,),
) | {"concatenate": None, "pad": (0, 1), "select_n": (1, 2), "dynamic_update_slice": (0, 1),
     "scatter": (0, 2)}  # fmt: skip


def _beyond(pair: Any, a: Any, b: Any, end: float) -> Any:
    """The larger or the smaller of two, one of which may be an infinity that never is."""
    for one, other in ((a, b), (b, a)):
        if not isinstance(one, Expression) and np.all(one == end):
            return other + np.zeros(np.shape(one))
    return pair(a, b)


#: The same in NumPy, which need not be compiled for every shape.
_IN_NUMPY: dict[str, Callable[..., Any]] = {
    "slice": lambda u, start_indices, limit_indices, strides, **_: u[tuple(
        map(slice, start_indices, limit_indices, strides or [1] * u.ndim))],
    "squeeze": lambda u, dimensions, **_: np.squeeze(u, tuple(dimensions)),
    "broadcast_in_dim": lambda u, shape, broadcast_dimensions, **_: np.broadcast_to(
        np.reshape(u, [u.shape[broadcast_dimensions.index(k)] if k in broadcast_dimensions else 1
                       for k in range(len(shape))]), shape),
    "reshape": lambda u, new_sizes, **_: np.reshape(u, new_sizes),
    "transpose": lambda u, permutation, **_: np.transpose(u, permutation),
    "rev": lambda u, dimensions, **_: np.flip(u, tuple(dimensions)),
    "expand_dims": lambda u, dimensions, **_: np.expand_dims(u, tuple(dimensions)),
    "concatenate": lambda *some, dimension, **_: np.concatenate(some, dimension),
    "select_n": lambda mask, no, yes, **_: np.where(mask, yes, no),
    "copy": lambda u, **_: u,
}  # fmt: skip

_ENTRYWISE: dict[str, Callable[..., Any]] = {
    "add": operator.add, "add_any": operator.add, "sub": operator.sub, "mul": operator.mul,
    "div": operator.truediv, "neg": operator.neg, "abs": np.abs,
    "max": lambda a, b: _beyond(np.maximum, a, b, -np.inf),
    "min": lambda a, b: _beyond(np.minimum, a, b, np.inf),
    "pow": operator.pow, "square": np.square, "sqrt": np.sqrt,
    "rsqrt": lambda u: 1.0 / np.sqrt(u), "logistic": atoms.sigmoid, "atan": np.arctan,
    "asinh": np.arcsinh, "stop_gradient": lambda u: u,
    "clamp": lambda low, u, high: np.minimum(np.maximum(u, low), high),
    **{name: getattr(np, name) for name in
       ("exp", "exp2", "log", "log1p", "expm1", "sin", "cos", "tan", "tanh", "sinh", "cosh")},
}  # fmt: skip


def _equal(params: Any, a: Any, b: Any) -> Any:
    if a is not b:
        raise TraceError("fn compares for equality, which no real number stands for.")
    return np.zeros(np.shape(a), bool)  # is it NaN?


def _converted(params: Any, a: Any) -> Any:
    if isinstance(a, Expression) and np.dtype(params["new_dtype"]).kind != "f":
        raise TraceError("fn rounds to whole numbers: its value would jump.")
    return a


def _reduced(function: Any) -> Callable[..., Any]:
    return lambda params, u: function(u, axis=tuple(params["axes"])) if np.ndim(u) else u


def _along(function: Any) -> Callable[..., Any]:
    def rule(params: Any, u: Any) -> Any:
        axis = params["axis"]
        if params.get("reverse"):
            return np.flip(function(np.flip(u, axis), axis), axis)
        return function(u, axis)

    return rule


def _dot_general(params: Any, a: Any, b: Any) -> Any:
    (left, right), (batch_a, batch_b) = params["dimension_numbers"]
    if np.ndim(a) == 2 and np.ndim(b) <= 2 and (tuple(left), tuple(right)) == ((1,), (0,)):
        return a @ b
    names_a = list(string.ascii_lowercase[: np.ndim(a)])
    names_b = list(string.ascii_uppercase[: np.ndim(b)])
    for i, j in zip((*left, *batch_a), (*right, *batch_b)):
        names_b[j] = names_a[i]
    out = [names_a[i] for i in batch_a]
    out += [c for i, c in enumerate(names_a) if i not in (*left, *batch_a)]
    out += [c for j, c in enumerate(names_b) if j not in (*right, *batch_b)]
    return operators.einsum(f"{''.join(names_a)},{''.join(names_b)}->{''.join(out)}", a, b)


def _sort(params: Any, *some: Any) -> Any:
    if len(some) > 1:
        raise TraceError("fn sorts one array by another: it chooses by value.")
    return atoms.sort(some[0], params["dimension"])


#: Primitives with parameters.
_RULES: dict[str, Callable[..., Any]] = {
    **{name: lambda params, a, b, sign=sign: Condition.compare(sign, a, b)
       for name, sign in (("lt", "<"), ("le", "<"), ("gt", ">"), ("ge", ">"))},
    "and": lambda params, a, b: a & b, "or": lambda params, a, b: a | b,
    "not": lambda params, a: ~a, "ne": _equal, "convert_element_type": _converted,
    "is_finite": lambda params, a: np.ones(np.shape(a), bool),
    "integer_pow": lambda params, u: u ** params["y"],
    "reduce_sum": _reduced(operators.sum_entries), "reduce_max": _reduced(atoms.largest),
    "reduce_min": _reduced(atoms.smallest), "reduce_prod": _reduced(operators.product),
    "cumsum": _along(np.cumsum), "cumprod": _along(np.cumprod),
    "cummax": _along(np.maximum.accumulate), "dot_general": _dot_general, "sort": _sort,
}  # fmt: skip
_INNER = ("jaxpr", "call_jaxpr", "fun_jaxpr")
#: Functions of two arguments that JAX writes with cases for infinities.
_NAMED = {"logaddexp": np.logaddexp, "hypot": np.hypot}


def trace(fn: Callable[..., Any], params: Any) -> Expression:
    """Return the expression that a JAX function computes, of the numbers of `params` in order.

    Constants are taken as they are: arrays that were made in 32 bits are those numbers, exactly;
    a warning says so.

    Parameters
    ----------
    fn : callable
        Of a pytree like `params`; it returns one number.
    params : pytree
        Structure and present values.

    Examples
    --------
    >>> import goldstein as gs, goldstein.jax, jax.numpy as jnp
    >>> F = goldstein.jax.trace(lambda x: jnp.abs(x[0] - jnp.exp(x[1])) + x @ x, jnp.ones(2))
    >>> gs.minimize(F, [1.0, 1.0], eps=1e-6, delta=1e-6, stationarity="near", rng=0).success
    True
    """
    flat, rebuild = raveled(params)
    with jax.enable_x64(True), np.errstate(all="ignore"):
        closed = jax.make_jaxpr(lambda x: fn(rebuild(x)))(flat)
        coarse = [c for c in closed.consts if getattr(c, "dtype", None) == np.float32]
        if coarse:
            warnings.warn(
                f"{len(coarse)} arrays in fn are float32; what is proved is about those numbers. "
                "Make them after jax.config.update('jax_enable_x64', True), from a copy.",
                stacklevel=2,
            )
        (found,) = _Reader().run(closed.jaxpr, closed.consts, [Variable(flat.size)])
        if not isinstance(found, Expression):
            raise TraceError("fn does not depend on params.")
        if found.size != 1:
            raise TraceError(f"fn returned shape {found.shape}, expected one number.")
        compare(found.reshape(()), jax.jit(lambda x: fn(rebuild(x))), flat)
    return found.reshape(())


class _Reader:
    """Evaluates equations with expressions."""

    def __init__(self) -> None:
        self.shared, self.steps = Sharing(), 0

    def run(self, jaxpr: Any, consts: Sequence[Any], args: Sequence[Any]) -> list[Any]:
        known: dict[Any, Any] = dict(zip(jaxpr.constvars, consts))
        known |= dict(zip(jaxpr.invars, args, strict=True))

        def read(atom: Any) -> Any:
            return atom.val if isinstance(atom, core.Literal) else known[atom]

        for equation in _needed(jaxpr):
            self.steps += 1
            if self.steps > LONGEST:
                raise TraceError(f"fn takes more than {LONGEST} steps.")
            given = [read(atom) for atom in equation.invars]
            try:
                found = self.step(equation, given)
            except GoldsteinError as failure:
                if isinstance(failure, TraceError):
                    raise
                name = equation.primitive.name
                raise TraceError(f"{name} in the jaxpr of fn: {failure}") from failure
            kept = [self.shared(u) if isinstance(u, Expression) else u for u in found]
            known |= dict(zip(equation.outvars, kept, strict=True))
        return [read(atom) for atom in jaxpr.outvars]

    def step(self, equation: Any, given: list[Any]) -> list[Any]:
        """Return the values of one equation."""
        primitive, params = equation.primitive, equation.params
        name = primitive.name
        if not any(isinstance(a, Expression | Condition) for a in given):
            found = primitive.bind(*given, **params)
            return list(found) if primitive.multiple_results else [found]
        given = [a if isinstance(a, Expression | Condition) else np.asarray(a) for a in given]
        if name in ("scan", "while", "cond"):
            return list(getattr(self, f"_{name}")(params, given))
        known = _NAMED.get(params.get("name", ""))
        if known is not None and len(given) == 2:
            return [known(*given)]
        inner = next((params[key] for key in _INNER if key in params), None)
        if inner is not None:
            return self.run(*_open(inner), given)
        if name == "select_n" and isinstance(given[0], Condition):
            return [where(given[0], given[2], given[1])]
        if name in _MOVED:
            return self._move(primitive, params, given, equation)
        if name in _ENTRYWISE:
            return [_ENTRYWISE[name](*given)]
        rule = _RULES.get(name)
        if rule is None:
            raise TraceError(
                f"the primitive {name!r} of JAX has no meaning here: it jumps, chooses by value or "
                "is not in the language. Use goldstein.jax.oracle(fn, params) instead."
            )
        return [rule(params, *given)]

    def _move(self, primitive: Any, params: Any, given: list[Any], equation: Any) -> list[Any]:
        places = _MOVED[primitive.name]
        at = range(len(given)) if places is None else places

        def arrange(numbers: list[Any]) -> Any:
            whole = list(given)
            for k, some in zip(at, numbers):
                whole[k] = some
            found = _IN_NUMPY.get(primitive.name, primitive.bind)(*whole, **params)
            found = list(found) if primitive.multiple_results else [found]
            if any((np.asarray(part) < 0).any() for part in found):
                raise ValueError("an index out of bounds")
            return [np.asarray(part) for part in found]

        if primitive.name == "select_n":  # what is not chosen may be anything
            given[1:] = [a if isinstance(a, Expression) else np.where(given[0] == k, a, 0.0)
                         for k, a in enumerate(given[1:])]  # fmt: skip
        return operators.moved([given[k] for k in at], arrange)

    # --- control flow ---------------------------------------------------------------------------

    def _scan(self, params: Any, given: list[Any]) -> list[Any]:
        fixed, carried = params["num_consts"], params["num_carry"]
        consts, carry = given[:fixed], given[fixed : fixed + carried]
        rows = given[fixed + carried :]
        jaxpr, kept = _open(params["jaxpr"]), list[list[Any]]()
        order = range(params["length"])
        for k in reversed(order) if params["reverse"] else order:
            out = self.run(*jaxpr, [*consts, *carry, *(row[k] for row in rows)])
            carry = out[:carried]
            kept.append(out[carried:])
        kept = kept[::-1] if params["reverse"] else kept
        return [*carry, *(_stacked(column) for column in zip(*kept))]

    def _while(self, params: Any, given: list[Any]) -> list[Any]:
        a, b = params["cond_nconsts"], params["body_nconsts"]
        state = given[a + b :]
        while True:
            (go,) = self.run(*_open(params["cond_jaxpr"]), [*given[:a], *state])
            if isinstance(go, Expression | Condition):
                raise TraceError("fn has a while loop whose length depends on values.")
            if not bool(go):
                return state
            state = self.run(*_open(params["body_jaxpr"]), [*given[a : a + b], *state])

    def _cond(self, params: Any, given: list[Any]) -> list[Any]:
        which, *rest = given
        if not isinstance(which, Condition):
            return self.run(*_open(params["branches"][int(which)]), rest)
        no, yes = (self.run(*_open(branch), rest) for branch in params["branches"])
        return [where(which, p, q) for p, q in zip(yes, no)]


def _needed(jaxpr: Any) -> list[Any]:
    """Return the equations on which the answer depends."""
    wanted = {atom for atom in jaxpr.outvars if isinstance(atom, core.Var)}
    kept = []
    for equation in reversed(jaxpr.eqns):
        if wanted.intersection(equation.outvars):
            kept.append(equation)
            wanted.update(a for a in equation.invars if isinstance(a, core.Var))
    return kept[::-1]


def _open(closed: Any) -> tuple[Any, Sequence[Any]]:
    return getattr(closed, "jaxpr", closed), getattr(closed, "consts", ())


def _stacked(parts: Sequence[Any]) -> Any:
    known = any(isinstance(p, Expression) for p in parts)
    return operators.stack(list(parts)) if known else np.stack(parts)
