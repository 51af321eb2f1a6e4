"""A problem: the function, its bounds, its constraints and a convex term; all may be journalled."""

from __future__ import annotations

import contextlib
import hashlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import NonlinearConstraint

from goldstein.checker.arrays import Matrix, Vector
from goldstein.checker.constrained.limits import Box, Group, Limits, as_box, as_groups
from goldstein.checker.function import Layout
from goldstein.errors import GoldsteinError, InputTypeError, KinkError, OracleError
from goldstein.oracles import counted
from goldstein.oracles.base import Oracle, Wrapper
from goldstein.oracles.differences import Stencil, slopes_along
from goldstein.storage.journal import Fits, Journal, Question


class _Useless(Exception):
    """An answer that is not kept; the guard above says what is wrong with it."""

    def __init__(self, raw: Any) -> None:
        super().__init__()
        self.raw = raw


class JournalOracle(Wrapper):
    """Answer from the journal what it knows, and the rest from the function, writing as we go.

    Parameters
    ----------
    inner : Oracle
    journal : Journal
    """

    def __init__(self, inner: Oracle, journal: Journal) -> None:
        super().__init__(inner)
        self.journal = journal

    def value(self, x: Vector) -> float:
        return self._asked("value", x, self._value, lambda s: s is not None and s.size == 1)

    def gradient(self, y: Vector) -> Vector:
        return self._asked("gradient", y, lambda z: _checked(self.inner.gradient(z), z.shape))

    def sample(self, x: Vector, rng: np.random.Generator) -> Vector:
        draw = repr(rng.bit_generator.state).encode()
        asked = lambda z: _checked(self.inner.sample(z, rng), z.shape)  # noqa: E731
        return self._asked("sample", x, asked, more=draw)

    def _asked(
        self, what: str, x: Vector, question: Question, fits: Fits | None = None, more: bytes = b""
    ) -> Any:
        try:
            answer = self.journal.asked(what, x, question, fits or of_size(x.size), more)
        except _Useless as useless:
            return useless.raw
        return float(answer[0]) if what == "value" else answer

    def _value(self, x: Vector) -> NDArray[np.float64]:
        raw = self.inner.value(x)
        try:
            return np.array([counted.as_value(raw)])
        except counted.BadAnswer as bad:
            if bad.value is None:
                raise _Useless(raw) from None
            return np.array([bad.value])  # a run may step back from such a point and go on


def of_size(size: int) -> Callable[[Vector | None], bool]:
    """Return whether an answer can be derivatives, so many of them; or a kink."""
    return lambda stored: (
        stored is None or (stored.size == size and bool(np.isfinite(stored).all()))
    )


def _checked(raw: Any, shape: tuple[int, ...]) -> NDArray[Any]:
    """Return a gradient as the guard would take it, in the precision in which it came."""
    try:
        answer = counted.as_gradient(raw, shape)
    except counted.BadAnswer:
        raise _Useless(raw) from None
    dtype = getattr(raw, "dtype", None)
    return answer.astype(dtype) if counted.is_coarse(dtype) else answer


#: Numbers remembered of points asked for lately, and points in any case.
REMEMBERED, AT_LEAST = 100_000, 16


class Comparison:
    """What `F <= 1`, `F >= 0` or `F == 0` say of an Expression: a constraint for `minimize`.

    Parameters
    ----------
    parts : sequence of Oracle
        One for each component.
    lb, ub : float or ndarray
    """

    def __init__(self, parts: Sequence[Oracle], lb: Any, ub: Any) -> None:
        self.parts, self.lb, self.ub = tuple(parts), lb, ub
        self.jac = self._rows

    def fun(self, x: Vector) -> Vector:
        return np.array([part.value(x) for part in self.parts])

    def _rows(self, x: Vector) -> Matrix:
        return np.array([part.gradient(x) for part in self.parts])

    def __bool__(self) -> bool:
        raise InputTypeError(
            "a comparison of an expression is a constraint, neither true nor false; two-sided "
            "limits are two comparisons: constraints=[F >= 0, F <= 1]."
        )

    def __repr__(self) -> str:
        return f"<{len(self.parts)} constraints, {self.lb} <= F(x) <= {self.ub}>"


@dataclass(eq=False, kw_only=True)
class JournalledGroup(Group):
    """A constraint whose answers are kept in a journal, under its number."""

    journal: Journal
    number: int

    def values(self, x: Vector) -> Vector:
        what = f"values of constraint {self.number}"
        return self.journal.asked(what, x, super().values, self._can_be_values)

    def _can_be_values(self, stored: Vector | None) -> bool:
        promised = self.size or (0 if stored is None else stored.size)
        return stored is not None and of_size(promised)(stored)

    def rows(self, x: Vector) -> Matrix:
        what = f"Jacobian of constraint {self.number}"
        fits = of_size(self.size * x.size)
        return self.journal.asked(what, x, super().rows, fits).reshape(self.size, x.size)


class System(Limits):
    """All constraints together, each evaluated once per point."""

    def __init__(
        self,
        groups: Sequence[Group],
        x: Vector,
        stencil: Stencil | None = None,
        workers: counted.Map = map,
    ) -> None:
        self._stencil, self._workers = stencil, workers
        for group in groups:
            if group.jac is None and stencil is None:
                raise InputTypeError(
                    f"{group.name} has no gradient. Pass jac=the function that returns its "
                    "Jacobian, shape (components, variables), or jac=True if fun returns both; "
                    "methods 'auto' and 'values' take differences of its values, and what they "
                    "claim is then statistical."
                )
        super().__init__(groups, x)
        #: Points at which values and Jacobians were asked for.
        self.nfev = self.njev = 0
        self._known: dict[bytes, Vector] = {}
        self._rows_at: tuple[bytes, Matrix] = (b"", np.zeros((1, 0)))

    def values(self, x: Vector) -> Vector:
        key = x.tobytes()
        found = self._known.get(key)
        if found is None:
            self.nfev += 1
            found = self._known[key] = Values(self.groups)(x)
            if len(self._known) > max(AT_LEAST, REMEMBERED // (self.size + x.size)):
                del self._known[next(iter(self._known))]
        return found

    def rows(self, x: Vector) -> Matrix:
        """Return the Jacobian, shape (m, d)."""
        key = x.tobytes()
        if self._rows_at[0] != key:
            self.njev += 1
            blind = [g for g in self.groups if g.jac is None]
            differenced = self._differenced(x, blind) if blind else iter(())
            parts = [next(differenced) if g.jac is None else g.rows(x) for g in self.groups]
            self._rows_at = key, np.concatenate([np.zeros((0, x.size)), *parts])
        return self._rows_at[1]

    def many_values(self, points: Matrix, which: Sequence[Group] | None = None) -> Matrix:
        """Return the values of all constraints, or of some, at many points: one row for each."""
        asked = Values(self.groups if which is None else which)
        keys = [y.tobytes() for y in points]
        found = {key: self._known.get(key) if which is None else None for key in keys}
        fresh = {key: y for key, y in zip(keys, points) if found[key] is None}
        self.nfev += len(fresh)
        answers = self._workers(counted.Attempt(asked), list(fresh.values()))
        for key, answer in zip(fresh, answers):
            if isinstance(answer, Exception):
                raise answer
            found[key] = answer
        return np.array([found[key] for key in keys]).reshape(len(points), -1)

    def _differenced(self, x: Vector, blind: list[Group]) -> Iterator[Matrix]:
        """Give the Jacobians, from differences, of constraints of which there are values only."""
        assert self._stencil is not None
        place, steps = self._stencil.at(x)
        ahead, behind = place + steps, place - steps
        if self._stencil.central:
            both = self.many_values(np.vstack([ahead, behind]), blind)
            rises, steps = both[: len(steps)] - both[len(steps) :], ahead - behind
        else:
            sizes = np.concatenate([np.full(g.size, g.jac is None) for g in self.groups])
            here = self.values(place)[sizes]
            rises, steps = self.many_values(ahead, blind) - here, ahead - place
        slopes = slopes_along(steps, rises)
        yield from np.split(slopes, np.cumsum([group.size for group in blind])[:-1])

    def violation(self, x: Vector) -> float:
        """Return the largest violation at x; 0 where all constraints hold."""
        return float(np.abs(self.excess(self.values(x))).max(initial=0.0))


class Values:
    """The values of several constraints at a point, as one question for a worker."""

    def __init__(self, groups: Sequence[Group]) -> None:
        self.groups = groups

    def __call__(self, x: Vector) -> Vector:
        return np.concatenate([np.zeros(0), *[group.values(x) for group in self.groups]])


def as_system(
    constraints: Any,
    x: Vector,
    journal: Journal | None = None,
    stencil: Stencil | None = None,
    workers: counted.Map = map,
    layout: Layout | None = None,
) -> System:
    """Read constraints as SciPy takes them; they are asked once, at x, for their sizes.

    Their answers are kept in the journal, if there is one; matrices answer at once. With a stencil
    there may be constraints without a gradient. Functions are called with points in this layout.
    """
    if isinstance(constraints, System):
        return constraints
    groups = as_groups(constraints, x.size, layout)
    if journal is not None:
        groups = [
            group if group.linear else JournalledGroup(**vars(group), journal=journal, number=k)
            for k, group in enumerate(groups)
        ]
    return System(groups, x, stencil, workers)


def lacks_gradient(constraints: Any) -> bool:
    """Whether there is a constraint of which only values are given."""
    if isinstance(constraints, System) or not given(constraints):
        return False
    # The number of variables matters for matrices only, and these have gradients.
    several = constraints if isinstance(constraints, list | tuple) else [constraints]
    groups = as_groups([one for one in several if not hasattr(one, "A")], 0)
    return any(group.jac is None for group in groups)


def of_vectors(constraints: Any, x: Vector, layout: Layout) -> list[Any]:
    """Return constraints whose functions know points in a layout as constraints on vectors."""
    several = constraints if isinstance(constraints, list | tuple) else [constraints]
    return [
        one if g.linear else NonlinearConstraint(g.values, g.lower, g.upper, g.rows)
        for one, g in zip(several, as_system(constraints, x, layout=layout).groups)
    ]


def given(constraints: Any) -> bool:
    """Whether there are any: None and an empty list mean none."""
    return bool(constraints) if isinstance(constraints, list | tuple) else constraints is not None


if TYPE_CHECKING:
    from goldstein.prox.term import Term


@dataclass(eq=False)
class Problem:
    """Minimise f + term over the box, subject to constraints; a point is asked about once.

    `f` counts: value and constraints at a point are one call, gradient and Jacobian too.

    Attributes
    ----------
    f : CountedOracle
    box : Box
    constraints : System
    term : Term, optional
    """

    f: counted.CountedOracle
    box: Box
    constraints: System
    term: Term | None = None
    #: Whether there are bounds or constraints.
    limited: bool = True
    #: How differences are taken where there are values only.
    stencil: Stencil | None = None

    @classmethod
    def of(
        cls,
        f: counted.CountedOracle | Oracle,
        x: Vector,
        bounds: Any = None,
        constraints: Any = (),
        term: Term | None = None,
        stencil: Stencil | None = None,
        **how: Any,
    ) -> Problem:
        """Read bounds and constraints; these are asked once, at the point of the box nearest x.

        `how` says how the answers of constraints are stored, and asked for: see `as_system`.
        """
        limited = bounds is not None or given(constraints)
        if limited and stencil is None and not (f.has_gradient and f.has_value):
            raise InputTypeError(
                f"bounds and constraints need a function with values and gradients; {f.name} has "
                "noisy samples of gradients only."
            )
        box = as_box(bounds, x.size)
        constraints = () if constraints is None else constraints
        system = as_system(constraints, box.clip(x), stencil=stencil, **how)
        asked = f if isinstance(f, counted.CountedOracle) else counted.CountedOracle(f)
        return cls(asked, box, system, term, limited=limited, stencil=stencil)

    def value(self, x: Vector) -> float:
        """Return f(x), and the term there."""
        return self.f.value(x) + (0.0 if self.term is None else self.term.value(x))

    def answers(self, y: Vector) -> tuple[Vector, Vector, Matrix]:
        """Return gradient, values of the constraints and Jacobian at a point of the box."""
        return self.f.gradient(y), self.constraints.values(y), self.constraints.rows(y)

    @property
    def failures(self) -> list[OracleError]:
        """The last exceptions of f and of the constraints."""
        known = [self.f.failure, *(group.failure for group in self.constraints.groups)]
        return [failure for failure in known if failure is not None]

    def excuse(self, failure: GoldsteinError) -> None:
        """Raise an exception of f or of a constraint that does not come again at its point.

        Functions need not be defined wherever a search looks; one that fails once is broken.
        """
        if not isinstance(failure, OracleError) or failure.__cause__ is None:
            return
        x = failure.point
        with contextlib.suppress(KinkError):
            try:
                self.constraints.values(x), self.constraints.rows(x)
                self.f.value(x), self.f.gradient(x)
            except OracleError:
                return
        raise failure

    def feasible(self, x: Vector) -> bool:
        """Whether x satisfies everything, up to FEASIBLE."""
        system = self.constraints
        excess = np.abs(system.excess(system.values(x)))
        return self.box.contains(x) and bool((excess <= system.tolerances()).all())


def _digest_of_numbers(group: Group) -> str:
    limits = [np.asarray(side, dtype=object).tolist() for side in (group.lower, group.upper)]
    matrix = np.array(group.parts).tobytes() if group.linear else b""
    return hashlib.blake2b(repr(limits).encode() + matrix, digest_size=8).hexdigest()


def limits_identity(bounds: Any, constraints: Any, dim: int) -> dict[str, Any]:
    """Describe bounds and constraints, without asking them, for a checkpoint."""
    if bounds is None and not given(constraints):
        return {}
    box = as_box(bounds, dim)
    limits = np.concatenate([box.lower, box.upper]).tobytes()
    return {
        "bounds": hashlib.blake2b(limits, digest_size=8).hexdigest(),
        "constraints": [
            [group.name, _digest_of_numbers(group)]
            for group in as_groups(() if constraints is None else constraints, dim)
        ],
    }
