"""The list of problems: one decorator line adds one; nothing is built before it is asked for."""

import difflib
import inspect
import operator
from collections.abc import Callable
from dataclasses import dataclass, fields
from functools import partial
from typing import Any

import numpy as np

from goldstein.errors import InputError, InputTypeError
from goldstein.problems.forms import plane_pair, together
from goldstein.problems.problem import BestValueKind, Facts, Instance, Problem

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
