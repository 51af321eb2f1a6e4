"""The arrangement of kinks of an expression, and pivots on it (rules R2, R3, R3').

Every kink argument is an affine function of the variable. Where these are linearly independent, all
kinks that a ball meets can be met at one point, the pivot, at a distance of at most `factor` times
the radius of the ball.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from goldstein.apriori.curves import Scalar, scalar_of
from goldstein.apriori.modulus import arguments, plan, tree_of
from goldstein.apriori.rules import levelled, nearest_kink, row_norms_upper
from goldstein.calculus.elementary import Foreign
from goldstein.calculus.expression import Expression, meant, numbered
from goldstein.calculus.rows import Row, affine_row
from goldstein.checker import nodes
from goldstein.checker.arrays import Matrix, Vector
from goldstein.checker.rationals import exact_dot, nearest_float, squared_norm, to_fractions
from goldstein.checker.rounding import gamma
from goldstein.checker.sides import Program
from goldstein.errors import NotCertifiableError
from goldstein.numerics.exact import (
    connected,
    exact_rank,
    product_up,
    quotient_down,
    root_sum_squares_up,
)
from goldstein.numerics.spectral import singular_bounds, spectral_norm_upper

_NO_RANK = "use a transported certificate, which needs no rank"


class MissingAssumption(NotCertifiableError):
    """A rule does not apply.

    Attributes
    ----------
    node : Expression
        The innermost node at which it fails.
    missing : str
        The assumption that does not hold.
    """

    def __init__(self, node: Expression, missing: str, advice: str) -> None:
        super().__init__(f"{node.name}: {missing}; {advice}")
        self.node, self.missing, self.advice = node, missing, advice


@dataclass
class KinkGroup:
    """Rows that decide one kink together: one row of an elementwise atom, all rows of a max."""

    node: Expression
    function: Scalar | None
    rows: list[Row]
    offsets: list[Fraction]
    norm: float = 0.0

    @property
    def spread(self) -> float:
        """How far the pivot moves the group, in units of its reach."""
        if self.function is None:
            return math.sqrt(len(self.rows) / 2.0) * (1.0 + 2.0**-50)
        return 1.0

    @property
    def limit(self) -> tuple[float, bool]:
        """Largest radius at which the pivot rule holds, and whether it holds there."""
        return (math.inf, True) if self.function is None else self.function.pivot_limit

    def moves(self, x: list[Fraction], reach: float) -> list[Fraction]:
        """Return by how much the group's values move to their pivot: which ones is exact."""
        values = [
            offset + exact_dot(list(row.values()), [x[k] for k in row])
            for row, offset in zip(self.rows, self.offsets, strict=True)
        ]
        if self.function is not None:
            square = Fraction(reach) ** 2 * squared_norm(list(self.rows[0].values()))
            found = nearest_kink(values[0], self.function.kinks, square)
            return [Fraction(0) if found is None else found - values[0]]
        settled = levelled(values, (Fraction(reach) * Fraction(self.norm)) ** 2)
        return [new - old for new, old in zip(settled, values, strict=True)]


@dataclass
class Component:
    """Groups of kinks that share variables."""

    groups: list[KinkGroup]
    columns: list[int]
    matrix: Matrix
    factor: float = math.nan


class Arrangement:
    """All kinks of an expression whose arguments are affine and independent.

    Parameters
    ----------
    fun : Expression

    Attributes
    ----------
    components : list of Component
    factor : float
        A pivot for reach eta lies within `factor * eta`.

    Raises
    ------
    MissingAssumption
        If a kink depends on a nonlinear expression, or rows are dependent.

    Examples
    --------
    >>> from goldstein.calculus import Variable, ramp, sum
    >>> Z = np.array([[1.0, 2.0, 0.0], [0.0, 1.0, -1.0]])
    >>> round(Arrangement(sum(ramp(Z @ Variable(3)))).factor / 2**0.5, 6)
    1.649472
    """

    def __init__(self, fun: Expression) -> None:
        self.dim = fun.variable.size
        groups = list(_groups(tree_of(fun)))
        parts = connected([{k for row in group.rows for k in row} for group in groups])
        self.components = [_component([groups[index] for index in part]) for part in parts]
        self.factor = root_sum_squares_up(part.factor for part in self.components)

    @property
    def is_empty(self) -> bool:
        """True when there is no kink at all."""
        return not self.components

    def largest_reach(self, pivot_radius: float) -> float:
        """Return the largest reach that keeps pivots within a radius and atoms within limits."""
        if self.is_empty:
            return math.inf
        reach = quotient_down(pivot_radius, self.factor)
        for group in (g for part in self.components for g in part.groups):
            limit, attained = group.limit
            if math.isfinite(limit):
                allowed = quotient_down(limit, group.norm)
                reach = min(reach, allowed if attained else math.nextafter(allowed, 0.0))
        return reach

    def pivot(self, x: Vector, reach: float) -> Vector:
        """Return the pivot of a point for a reach, rounded to float64.

        Which kinks the closed ball meets is decided exactly: one on its boundary is met.
        """
        y, exact = np.array(x, dtype=np.float64), to_fractions(x)
        for part in self.components:
            moved = [nearest_float(m) for group in part.groups for m in group.moves(exact, reach)]
            if any(moved):
                step = np.linalg.lstsq(part.matrix, np.array(moved), rcond=None)[0]
                y[part.columns] += step
        return y


def _groups(root: Expression) -> Iterator[KinkGroup]:
    made, owners = numbered(root)
    program, at = Program(made), {id(e): k for k, e in enumerate(owners)}
    for e in plan(root):
        function = scalar_of(e)
        kinked = bool(function.kinks) if function else e.kind is nodes.Norm2
        if not kinked and not (e.kind is nodes.Max and e.data[0] > 1):
            continue
        ruled_out: dict[Any, str] = {
            nodes.Max: "the calculus has no rule for ties in many rows at once" * (e.size > 1),
            nodes.Norm2: "its modulus grows without bound near its kink",
        }
        if missing := ruled_out.get(e.kind):
            advice = "use a transported certificate, which needs no modulus"
            raise MissingAssumption(e, missing, advice)
        inner = meant(arguments(e)[0])
        if not program.affine[at[id(inner)]]:
            advice = "use a transported certificate, which follows curved kinks exactly"
            if any(a.kind is Foreign for a in plan(inner)):
                advice = "pass matrices instead of LinearOperators"
            missing = f"its argument {inner.name} is not affine in the variable"
            raise MissingAssumption(e, missing, advice)
        both = [affine_row(program, at[id(inner)], i) for i in range(inner.size)]
        if function is None:
            yield KinkGroup(e, None, [row for row, _ in both], [offset for _, offset in both])
            continue
        for row, offset in both:
            if row:  # a constant argument never crosses its kink
                yield KinkGroup(e, function, [row], [offset])


def _component(groups: list[KinkGroup]) -> Component:
    columns = sorted({k for group in groups for row in group.rows for k in row})
    exact = [[row.get(k, Fraction(0)) for k in columns] for group in groups for row in group.rows]
    matrix, count, at = np.array(exact, dtype=np.float64), len(exact), 0
    scaled = np.zeros_like(matrix)
    for group in groups:
        block = slice(at, at := at + len(group.rows))
        some = matrix[block]
        norm = row_norms_upper(some)[0] if len(some) == 1 else spectral_norm_upper(some)
        group.norm = float(norm)
        scaled[block] = some / group.norm
    part = Component(groups, columns, matrix)
    if count > len(columns):
        _refuse_rank(part, f"at most {len(columns)}")
    # The stored rows round the exact ones, and the scaling rounds once more.
    rounding = gamma(len(columns) + 16) * 1.01 * math.sqrt(count)
    smallest = singular_bounds(scaled).smallest - rounding
    if smallest <= 0.0:
        rank = exact_rank(exact)
        if rank < count:
            _refuse_rank(part, str(rank))
        shape = f"its {count} x {len(columns)} kink matrix"
        missing = f"{shape} is too close to rank {count - 1} for floats"
        raise MissingAssumption(groups[0].node, missing, _NO_RANK)
    moved = root_sum_squares_up(group.spread for group in groups)
    part.factor = product_up(moved, math.nextafter(1.0 / smallest, math.inf))
    return part


def _refuse_rank(part: Component, rank: str) -> None:
    rows, columns = part.matrix.shape
    wanted = f"rank {rows} is needed (linearly independent rows)"
    missing = f"its kink matrix is {rows} x {columns} with rank {rank}, but {wanted}"
    raise MissingAssumption(part.groups[0].node, missing, _NO_RANK)
