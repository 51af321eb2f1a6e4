"""`read`: a CVXPY problem as an expression and constraints, convex or not.

So a solution of CVXPY gets a certificate, and a problem that CVXPY refuses is solved. Atoms that
only move entries are called with places instead of numbers.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import reduce
from typing import Any

import numpy as np

from goldstein.calculus import Expression, Variable, atoms, operators
from goldstein.calculus.tracing import Sharing, TraceError
from goldstein.checker.arrays import Vector
from goldstein.errors import InputTypeError
from goldstein.extras import from_extra

with from_extra("goldstein.cvxpy", "CVXPY", "cvxpy"):
    import cvxpy

_MOVERS = frozenset(
    {"index", "special_index", "reshape", "transpose", "Hstack", "Vstack", "Concatenate", "Promote",
     "promote", "broadcast_to", "diag_vec", "diag_mat", "upper_tri", "vec", "swapaxes"}
)  # fmt: skip


@dataclass(frozen=True)
class Read:
    """A problem of CVXPY.

    Attributes
    ----------
    objective : Expression
        To be minimised; of all variables in one vector, each column by column.
    constraints : list
        As `minimize` takes them.
    bounds : list of pairs, or None
        From `nonneg`, `nonpos` and `bounds` of variables.
    x0 : ndarray
        The present values of the variables, 0 where they have none.
    variables : list of cvxpy.Variable
    """

    objective: Expression
    constraints: list[Any]
    bounds: list[tuple[float, float]] | None
    x0: Vector
    variables: list[Any]

    def unpack(self, x: Any) -> dict[str, Any]:
        """Return the values of the variables at a point, by their names."""
        parts = np.split(np.asarray(x), np.cumsum([v.size for v in self.variables])[:-1])
        return {
            v.name(): part.reshape(v.shape, order="F") for v, part in zip(self.variables, parts)
        }


def read(problem: Any) -> Read:
    """Return a CVXPY problem as expressions; it need not be convex.

    Parameters
    ----------
    problem : cvxpy.Problem
        Parameters have their present values.

    Examples
    --------
    >>> import cvxpy as cp, goldstein as gs, goldstein.cvxpy
    >>> x = cp.Variable(2, name="x")
    >>> P = goldstein.cvxpy.read(cp.Problem(cp.Minimize(cp.norm1(x - 1)), [cp.sum(x) <= 1]))
    >>> res = gs.minimize(P.objective, P.x0, constraints=P.constraints, eps=1e-4, delta=1e-3, rng=0)
    >>> res.success, bool(abs(P.unpack(res.x)["x"].sum() - 1) < 1e-3)
    (True, True)
    """
    if not isinstance(problem, cvxpy.Problem):
        raise InputTypeError(f"got {type(problem).__name__}, expected a cvxpy.Problem.")
    variables = problem.variables()
    if not variables:
        raise InputTypeError("the problem has no variables.")
    walker = _Walker(variables)
    goal = walker.value(problem.objective.args[0])
    sign = -1.0 if isinstance(problem.objective, cvxpy.Maximize) else 1.0
    start = [np.zeros(v.shape) if v.value is None else np.asarray(v.value) for v in variables]
    whole = walker.variable
    if not isinstance(goal, Expression):
        goal = operators.constant(float(np.asarray(goal).reshape(())), whole)
    return Read(
        objective=(sign * goal).reshape(()),
        constraints=[c for one in problem.constraints for c in walker.constraint(one)],
        bounds=_bounds(variables),
        x0=np.concatenate([s.ravel(order="F") for s in start]),
        variables=variables,
    )


def _bounds(variables: list[Any]) -> list[tuple[float, float]] | None:
    found: list[tuple[float, float]] = []
    for v in variables:
        known = v.attributes.items()
        given = {name: value for name, value in known if not (value is None or value is False)}
        odd = set(given) - {"nonneg", "nonpos", "pos", "neg", "bounds"}
        if odd:
            raise TraceError(
                f"variable {v.name()} is {', '.join(sorted(odd))}: not in the language."
            )
        low = 0.0 if given.get("nonneg") or given.get("pos") else -np.inf
        high = 0.0 if given.get("nonpos") or given.get("neg") else np.inf
        ends = given.get("bounds", (low, high))
        full = [np.broadcast_to(np.asarray(e, float), v.shape).ravel(order="F") for e in ends]
        found += list(zip(full[0].tolist(), full[1].tolist()))
    return found if np.isfinite(found).any() else None


class _Walker:
    """Expressions of CVXPY, from the leaves up."""

    def __init__(self, variables: list[Any]) -> None:
        self.variable = Variable(sum(v.size for v in variables))
        self.shared, self.known, at = Sharing(), dict[int, Any](), 0
        for v in variables:
            places = at + np.arange(v.size).reshape(v.shape, order="F")
            self.known[v.id] = operators.gather(self.variable, places)
            at += v.size

    def value(self, e: Any) -> Any:
        """Return an expression, or numbers."""
        if isinstance(e, cvxpy.Variable):
            return self.known[e.id]
        if e.is_constant():
            number = e.value
            if number is None:
                raise TraceError(f"{e} has no value; set the values of parameters first.")
            return number.toarray() if hasattr(number, "toarray") else np.asarray(number)
        args = [self.value(a) for a in e.args]
        name = type(e).__name__
        if name in _MOVERS:
            found = operators.moved(args, lambda places: _placed(e, places))
        else:
            rule = _RULES.get(name) or _RULES.get(name.removesuffix("Approx"))
            if rule is None:
                raise TraceError(
                    f"the atom {name} of CVXPY is not in the language; rewrite {e} with max, abs, "
                    "norms, exp, log or quotients."
                )
            found = rule(e, *args)
        return self.shared(found.reshape(e.shape)) if isinstance(found, Expression) else found

    def constraint(self, one: Any) -> list[Any]:
        """Return a constraint of CVXPY as comparisons with 0."""
        name = type(one).__name__
        if name == "SOC":
            t, rows = (self.value(a) for a in one.args)
            axis = 0 if np.ndim(rows) > 1 and one.axis == 0 else None
            return [atoms.norm(rows, None, axis) - t <= 0.0]
        if name not in ("Inequality", "Equality", "Zero", "NonNeg", "NonPos"):
            raise TraceError(f"constraints of the kind {name} are not in the language.")
        gap = self.value(one.args[0]) if len(one.args) == 1 else self.value(one.expr)
        if not isinstance(gap, Expression):
            return []  # about numbers alone
        if name in ("Equality", "Zero"):
            return [gap == 0.0]
        return [gap >= 0.0 if name == "NonNeg" else gap <= 0.0]


def _placed(e: Any, places: list[Any]) -> Any:
    # CVXPY has columns first; its own function knows.
    return np.rint(np.asarray(e.numeric([p.astype(float) for p in places]))).astype(np.intp)


def _axis(e: Any) -> dict[str, Any]:
    return {"axis": getattr(e, "axis", None), "keepdims": bool(getattr(e, "keepdims", False))}


def _pnorm(e: Any, u: Any) -> Any:
    p = float(e.original_p if hasattr(e, "original_p") else e.p)
    flat = u.reshape(u.size) if e.axis is None else u
    return atoms.norm(flat, np.inf if np.isinf(p) else p, e.axis, bool(e.keepdims))


_RULES: dict[str, Callable[..., Any]] = {
    "AddExpression": lambda e, *some: sum(some[1:], some[0]),
    "MulExpression": lambda e, a, b: a @ b if np.ndim(a) and np.ndim(b) else a * b,
    "multiply": lambda e, a, b: a * b,
    "DivExpression": lambda e, a, b: a / b,
    "Sum": lambda e, u: operators.sum_entries(u, **_axis(e)),
    **{name: lambda e, u, function=function: function(u) for name, function in {
        "abs": np.abs, "exp": np.exp, "log": np.log, "log1p": np.log1p, "Trace": np.trace,
        "logistic": atoms.softplus, "NegExpression": np.negative}.items()},
    "entr": lambda e, u: -u * np.log(u),
    "maximum": lambda e, *some: reduce(np.maximum, some),
    "minimum": lambda e, *some: reduce(np.minimum, some),
    "max": lambda e, u: atoms.largest(u, **_axis(e)),
    "min": lambda e, u: atoms.smallest(u, **_axis(e)),
    "norm1": lambda e, u: operators.sum_entries(np.abs(u), **_axis(e)),
    "norm_inf": lambda e, u: atoms.largest(np.abs(u), **_axis(e)),
    "Pnorm": _pnorm,
    "quad_over_lin": lambda e, u, t: operators.sum_entries(atoms.square(u)) / t,
    "QuadForm": lambda e, u, P: u @ (P @ u),
    "huber": lambda e, u: atoms.huber(u, float(np.asarray(e.M.value))) * 2.0,
    **dict.fromkeys(("power", "Power"), lambda e, u: u ** float(getattr(e.p, "value", e.p))),
    "log_sum_exp": lambda e, u: atoms.log_sum_exp(u, **_axis(e)),
    "sum_largest": lambda e, u: atoms.sum_largest(u, int(e.k)),
    "cumsum": lambda e, u: operators.cumulated(u, e.axis),
    "kl_div": lambda e, a, b: a * (np.log(a) - np.log(b)) - a + b,
}  # fmt: skip
