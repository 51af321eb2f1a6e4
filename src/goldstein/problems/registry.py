"""Test problems: oracles that also know their start, best known value and source; and their list.

One decorator line adds one; nothing is built before it is asked for.
"""

from __future__ import annotations

import difflib
import inspect
import math
import operator
from collections.abc import Callable
from dataclasses import dataclass, field, fields, replace
from functools import partial
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from goldstein.checker.arrays import Vector
from goldstein.errors import InputError, InputTypeError
from goldstein.oracles import Oracle

#: Numbers and sequences of them, of NumPy's kind or Python's: `Problem` makes floats and arrays of
#: what builders return.
ValueFunction = Callable[[Vector], Any]
PairFunction = Callable[[Vector], tuple[Any, Any]]
#: How arithmetic gives up far away: floats overflow or divide by zero, eigenvalues of inf fail.
BREAKDOWN = (OverflowError, ZeroDivisionError, np.linalg.LinAlgError)
BestValueKind = Literal["exact", "literature", "planted", "best-found", "none"]


class Objective(NamedTuple):
    """What a builder writes down: the value, and the pair of value and gradient."""

    value: ValueFunction
    both: PairFunction


class Instance(NamedTuple):
    """What a builder returns: the start, the function, and a planted solution or its value.

    `limits` are `bounds` and `constraints` as `minimize` takes them, where there are any.
    """

    x0: ArrayLike
    objective: Objective
    best: float | Vector | None = None
    limits: dict[str, Any] | None = None


def together(both: PairFunction, value: ValueFunction | None = None) -> Objective:
    """A function of a pair (value, gradient); `value` is for those whose value alone is cheaper."""
    return Objective(value or (lambda x: both(x)[0]), both)


def plane_pair(both: Callable[..., tuple[Any, Any]]) -> Objective:
    """A function of few numbers: `both(a, b, ...)` is its value and its derivatives."""
    return together(lambda x: both(*x))


@dataclass(frozen=True, eq=False, kw_only=True, repr=False)
class Facts:
    """What is known about a problem before it is built."""

    name: str = ""
    family: str
    formula: str
    citation: str
    note: str = ""
    convex: bool = False
    smooth: bool = False
    bounded: bool = True
    locally_lipschitz: bool = True


@dataclass(frozen=True, eq=False, kw_only=True, repr=False)
class Problem(Facts, Oracle):
    """A test function with its start, facts and source; usable wherever an oracle is.

    At a kink `jac` returns the gradient of one active piece, as automatic differentiation would;
    it does not know that it stands on a kink (`knows_kinks` is False). Where the formula overflows
    the answer is not finite; there is neither a warning nor an exception.

    Attributes
    ----------
    name, family, formula, citation, note : str
        Identification in words.
    x0 : ndarray
        Standard start, read-only.
    dim : int
        Number of variables.
    best_value : float or None
        Best known value; `best_value_kind` says how it is known: `exact` (proved minimum),
        `literature`, `planted` (value at the solution the data were made from), `best-found`
        (our own solves) or `none`.
    reference_value : float or None
        What a reference BFGS reaches from `x0`: the fair target of a local method when the
        function is not convex.
    convex, smooth, bounded, locally_lipschitz : bool
        `bounded` means bounded below; `locally_lipschitz` refers to the points where the
        formula is finite.
    parameters : dict
        What the problem was built with.
    limits : dict
        `bounds` and `constraints`, where there are any: `gs.minimize(p, p.x0, **p.limits, ...)`.

    Examples
    --------
    >>> from goldstein import problems
    >>> problem = problems.get("chained_crescent_1", d=50)
    >>> problem
    <Problem chained_crescent_1, dim=50, best_value=0 (exact)>
    >>> value, gradient = problem.fun_and_jac(problem.x0)
    >>> value == problem.fun(problem.x0)
    True
    """

    x0: Vector
    objective: Objective
    best_value: float | None
    best_value_kind: BestValueKind
    reference_value: float | None
    parameters: dict[str, Any]
    #: A function and its arguments that make this problem again: closures cannot be pickled.
    recipe: tuple[Callable[..., Problem], tuple[Any, ...]]
    limits: dict[str, Any] = field(default_factory=dict)
    dim: int = field(init=False, default=0)

    def __post_init__(self) -> None:
        start = np.array(self.x0, dtype=np.float64)
        start.setflags(write=False)
        object.__setattr__(self, "x0", start)
        object.__setattr__(self, "dim", start.size)

    def _checked(self, x: ArrayLike) -> Vector:
        point = np.asarray(x, dtype=np.float64)
        if point.shape != (self.dim,):
            raise InputError(
                f"{self.name}: got a point of shape {point.shape}, expected ({self.dim},)."
            )
        return point

    def value(self, x: ArrayLike) -> float:
        """Return f(x)."""
        point = self._checked(x)
        with np.errstate(all="ignore"):
            try:
                return float(self.objective.value(point))
            except BREAKDOWN:
                return math.inf

    def gradient(self, y: ArrayLike) -> Vector:
        """Return the gradient at y, or that of one active piece at a kink."""
        return self.fun_and_jac(y)[1]

    def fun_and_jac(self, x: ArrayLike) -> tuple[float, Vector]:
        """Return f(x) and the gradient, sharing work where the formula allows."""
        point = self._checked(x)
        with np.errstate(all="ignore"):
            try:
                value, gradient = self.objective.both(point)
            except BREAKDOWN:
                return self.value(x), np.full(self.dim, math.nan)
        return float(value), np.asarray(gradient, dtype=np.float64)

    fun = value
    jac = gradient

    def __reduce__(self) -> tuple[Callable[..., Problem], tuple[Any, ...]]:
        return self.recipe

    def __repr__(self) -> str:
        best = "unknown" if self.best_value is None else f"{self.best_value:.10g}"
        return f"<Problem {self.name}, dim={self.dim}, best_value={best} ({self.best_value_kind})>"


#: A dense rotation needs d^2 numbers: 200 MB here.
LARGEST_DIMENSION = 5000


def rotated(problem: Problem, seed: int) -> Problem:
    """Return y -> f(Qy + s) with a random orthogonal Q and a random shift s.

    Same best value and geometry, but nothing is aligned with the coordinates any more.

    Parameters
    ----------
    problem : Problem
        At most 5000 variables: the rotation is a dense matrix.
    seed : int
        Fixes Q and s.

    Returns
    -------
    Problem

    Examples
    --------
    >>> from goldstein import problems
    >>> plain = problems.get("maxq", d=4)
    >>> turned = problems.rotated(plain, seed=1)
    >>> abs(turned.fun(turned.x0) - plain.fun(plain.x0)) < 1e-12
    True
    """
    if problem.dim > LARGEST_DIMENSION:
        raise InputError(
            f"{problem.name} has {problem.dim} variables, but a rotation is a dense matrix; "
            f"use at most {LARGEST_DIMENSION}."
        )
    if problem.limits:
        raise InputError(
            f"{problem.name} has {' and '.join(problem.limits)}, which a rotation does not turn; "
            "rotate problems without them."
        )
    rng = np.random.default_rng(operator.index(seed))
    Q, R = np.linalg.qr(rng.standard_normal((problem.dim, problem.dim)))
    Q = Q * np.where(np.diag(R) >= 0.0, 1.0, -1.0)
    shift = rng.standard_normal(problem.dim)

    def both(y: Vector) -> tuple[float, Vector]:
        value, gradient = problem.fun_and_jac(Q @ y + shift)
        return value, np.asarray(gradient @ Q)

    return replace(
        problem,
        name=f"{problem.name}_rotated_{seed}",
        note=f"random rotation and shift of {problem.name}",
        x0=Q.T @ (problem.x0 - shift),
        objective=Objective(lambda y: problem.value(Q @ y + shift), both),
        reference_value=None,
        recipe=(rotated, (problem, seed)),
    )


Builder = Callable[..., Instance]


@dataclass(frozen=True)
class AnyDimension:
    """A scalable problem: every d that is a multiple of `multiple` and at least `minimum`."""

    minimum: int = 2
    multiple: int = 1

    def allows(self, d: int) -> bool:
        return d >= self.minimum and d % self.multiple == 0

    def __str__(self) -> str:
        if self.multiple > 1:
            return f"any multiple of {self.multiple} from {self.minimum} on"
        return f"any d >= {self.minimum}"


@dataclass(frozen=True, eq=False, kw_only=True, repr=False)
class Definition(Facts):
    """The facts of a problem, and the function that builds it; its defaults are the suite's size.

    Attributes
    ----------
    dims : int or AnyDimension
        How many variables it may have.
    best : float, function of d, or None
        Unless `kind` is "exact" it holds for the default parameters only; a planted value is
        returned by the builder instead.
    reference : float or None
        `reference_value` of the problem at its default parameters.
    public, constrained : bool
        Which suites it belongs to.
    """

    builder: Builder
    dims: int | AnyDimension
    best: float | Callable[[int], float] | None = 0.0
    kind: BestValueKind = "exact"
    reference: float | None = None
    public: bool = True
    constrained: bool = False

    @property
    def defaults(self) -> dict[str, Any]:
        """The parameters of the problem as it appears in the suite."""
        signature = inspect.signature(self.builder)
        return {name: parameter.default for name, parameter in signature.parameters.items()}

    def build(self, d: int | None, parameters: dict[str, Any]) -> Problem:
        """Check the parameters and build the problem."""
        chosen = self._chosen(d, parameters)
        instance = self.builder(**chosen)
        standard = chosen == self.defaults
        start = np.asarray(instance.x0, dtype=np.float64)
        best: Any = instance.best
        if isinstance(best, np.ndarray):
            best = instance.objective.value(best)
        elif best is None and (standard or self.kind == "exact"):
            best = self.best(start.size) if callable(self.best) else self.best
        return Problem(
            **{each.name: getattr(self, each.name) for each in fields(Facts)},
            x0=start, objective=instance.objective, best_value=best,
            best_value_kind="none" if best is None else self.kind,
            reference_value=self.reference if standard else None, parameters=chosen,
            recipe=(partial(get, self.name, **chosen), ()), limits=instance.limits or {},
        )  # fmt: skip

    def _chosen(self, d: int | None, parameters: dict[str, Any]) -> dict[str, Any]:
        chosen = self.defaults
        unknown = sorted(set(parameters) - (set(chosen) - {"d"}))
        if unknown:
            known = ", ".join(sorted(set(chosen) - {"d"})) or "none"
            raise InputError(
                f"{self.name}: unknown parameter {unknown[0]!r}; its parameters besides d: {known}."
            )
        chosen.update(parameters)
        if d is None:
            return chosen
        try:
            size = operator.index(d)
        except TypeError:
            raise InputTypeError(
                f"{self.name}: d must be an integer, got {type(d).__name__} {d!r}."
            ) from None
        if isinstance(self.dims, AnyDimension):
            if not self.dims.allows(size):
                raise InputError(f"{self.name}: d = {size} is not possible; use {self.dims}.")
            chosen["d"] = size
        elif size != self.dims:
            raise InputError(
                f"{self.name}: d = {size} is not possible; it has exactly {self.dims} variables, "
                "leave d out."
            )
        return chosen


DEFINITIONS: dict[str, Definition] = {}

Decorator = Callable[[Callable[..., Any]], Callable[..., Any]]


def family(family: str, source: str = "{}", **common: Any) -> Callable[..., Decorator]:
    """Return the decorator that adds problems to a family.

    `source` is what their citations have in common, {} standing for the rest; `common` are facts
    (`Definition`) that hold for most of them.
    """

    def problem(
        dims: int | AnyDimension, formula: str, citation: str = "", *, start: Any = None,
        size: int = 0, seed: int | None = None, name: str = "", **own: Any,
    ) -> Decorator:  # fmt: skip
        """Add a problem under the builder's name, or `name`.

        With a `start` it is the function itself, a pair (value, gradient): of few numbers, or of a
        vector of the usual `size`, where the start is a number or a function of d. With a `seed`
        it is drawn: the builder is given a generator, and before it d where there is a `size`.
        """

        def register(function: Callable[..., Any]) -> Callable[..., Any]:
            key = name or function.__name__
            builder = function
            if seed is not None:
                builder = _drawn(function, size, seed)
            elif start is not None:
                builder = _builder(function, start, size)
            facts = {"family": family, "citation": source.format(citation), **common, **own}
            DEFINITIONS[key] = Definition(
                name=key, builder=builder, dims=dims, formula=formula, **facts
            )
            return function

        return register

    return problem


def _builder(both: Callable[..., Any], start: Any, size: int) -> Builder:
    if not size:
        return lambda: Instance(start, plane_pair(both))

    def build(d: int = size) -> Instance:
        return Instance(start(d) if callable(start) else np.full(d, start), together(both))

    return build


def _drawn(draw: Builder, size: int, usual: int) -> Builder:
    if not size:
        return lambda seed=usual: draw(np.random.default_rng(seed))
    return lambda d=size, seed=usual: draw(d, np.random.default_rng(seed))


def names(kind: str = "unconstrained") -> list[str]:
    """Return the names of problems, sorted.

    Parameters
    ----------
    kind : {"unconstrained", "constrained", "all"}

    Examples
    --------
    >>> from goldstein import problems
    >>> "maxq" in problems.names(), "mad_1" in problems.names("constrained")
    (True, True)
    """
    kinds = {"unconstrained": (False,), "constrained": (True,), "all": (False, True)}
    if kind not in kinds:
        raise InputError(f"no kind of problems is called {kind!r}; use one of {', '.join(kinds)}.")
    return sorted(name for name, each in DEFINITIONS.items() if each.constrained in kinds[kind])


def get(name: str, d: int | None = None, **parameters: Any) -> Problem:
    """Build a problem by name.

    Parameters
    ----------
    name : str
        One of `names("all")`.
    d : int, optional
        Number of variables, where the problem scales; its usual size when left out.
    **parameters
        Further parameters of some problems, such as `delta` of the counterexamples.

    Returns
    -------
    Problem

    Raises
    ------
    InputError
        The name is unknown (the message has close matches), or d is not possible.

    Examples
    --------
    >>> from goldstein import problems
    >>> problems.get("mifflin_2")
    <Problem mifflin_2, dim=2, best_value=-1 (exact)>
    >>> problems.get("kornowski_shamir", delta=0.1).x0
    array([0., 0.])
    """
    if not isinstance(name, str):
        raise InputTypeError(f"a problem's name is a string, got {type(name).__name__}.")
    definition = DEFINITIONS.get(name)
    if definition is None:
        close = difflib.get_close_matches(name.lower(), DEFINITIONS, n=3, cutoff=0.4)
        hint = f"did you mean {' or '.join(map(repr, close))}?" if close else "no name is close."
        raise InputError(
            f"no problem is called {name!r}; {hint} goldstein.problems.names('all') lists all, "
            "`goldstein problems` in a shell."
        )
    return definition.build(d, parameters)


def suite(name: str = "public") -> list[Problem]:
    """Build a whole collection at its standard sizes, family by family.

    Parameters
    ----------
    name : {"public", "all", "constrained"}
        The benchmark suite, every problem without constraints, or those with some.

    Returns
    -------
    list of Problem
    """
    if name not in ("public", "all", "constrained"):
        raise InputError(f"no suite is called {name!r}; use 'public', 'all' or 'constrained'.")
    return [
        definition.build(None, {})
        for definition in DEFINITIONS.values()
        if definition.constrained == (name == "constrained")
        and (definition.public or name != "public")
    ]


_HEADER = """\
# Test problems

Every function below is `goldstein.problems.get(name)`; scalable ones take `d`. This page is
written by `python -m goldstein.problems > docs/problems.md`.

A best value is *exact* (a proved minimum), from the *literature* (refined to full precision where
our solves agree), *planted* (the value at the solution the data were made from) or *best-found*
(our own solves).
"""


def table() -> str:
    """Return the page docs/problems.md: one table of all problems per family.

    Examples
    --------
    >>> from goldstein import problems
    >>> problems.table().splitlines()[0]
    '# Test problems'
    """
    families: dict[str, list[Definition]] = {}
    for definition in DEFINITIONS.values():
        families.setdefault(definition.family, []).append(definition)
    return _HEADER + "".join(_section(name, members) for name, members in families.items())


def _section(family: str, members: list[Definition]) -> str:
    lines = [
        f"\n## {family}\n",
        "| name | dimension | f(x) | best value | remarks | source |",
        "|---|---|---|---|---|---|",
    ]
    lines += [
        f"| `{m.name}` | {_dimension(m)} | `{_cell(m.formula)}` | {_best(m)} "
        f"| {_cell(_remarks(m))} | {_cell(m.citation)} |"
        for m in members
    ]
    return "\n".join(lines) + "\n"


def _cell(text: str) -> str:
    return text.replace("|", "\\|")


def _dimension(definition: Definition) -> str:
    if isinstance(definition.dims, AnyDimension):
        return f"{definition.dims}; default {definition.defaults['d']}"
    return str(definition.dims)


def _best(definition: Definition) -> str:
    best = definition.best
    if callable(best):
        best = best(definition.defaults["d"])
    elif best is None:
        # Only a built instance knows its planted value.
        best = definition.build(None, {}).best_value
    return "none" if best is None else f"{best:.10g} ({definition.kind})"


def _remarks(definition: Definition) -> str:
    flags = [
        "convex" if definition.convex else "nonconvex",
        *(["smooth"] if definition.smooth else []),
        *([] if definition.bounded else ["unbounded below"]),
        *([] if definition.locally_lipschitz else ["not locally Lipschitz"]),
        *([definition.note] if definition.note else []),
    ]
    return "; ".join(flags)
