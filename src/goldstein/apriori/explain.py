"""Why a triple holds: the proof tree of an expression, or what is missing.

Which Goldstein accuracy implies the wanted near stationarity, a priori.

The arrangement of kinks of an expression, and pivots on it (rules R2, R3, R3').

Every kink argument is an affine function of the variable. Where these are linearly independent, all
kinks that a ball meets can be met at one point, the pivot, at a distance of at most `factor` times
the radius of the ball.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field
from fractions import Fraction
from typing import Any, NamedTuple

import numpy as np

from goldstein.apriori import modulus as moduli
from goldstein.apriori import rules
from goldstein.calculus.elementary import Foreign
from goldstein.calculus.evaluation import Row, affine_row
from goldstein.calculus.expression import Expression, meant, numbered
from goldstein.checker import nodes
from goldstein.checker.arrays import Matrix, Vector
from goldstein.checker.enclosed import irrational
from goldstein.checker.rationals import exact_dot, nearest_float, squared_norm, to_fractions
from goldstein.checker.rounding import gamma, norm_upper
from goldstein.checker.sides import Program
from goldstein.errors import NotCertifiableError
from goldstein.numerics import exact
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
    function: moduli.Scalar | None
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
            found = rules.nearest_kink(values[0], self.function.kinks, square)
            return [Fraction(0) if found is None else found - values[0]]
        settled = rules.levelled(values, (Fraction(reach) * Fraction(self.norm)) ** 2)
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
        groups = list(_groups(moduli.tree_of(fun)))
        parts = exact.connected([{k for row in group.rows for k in row} for group in groups])
        self.components = [_component([groups[index] for index in part]) for part in parts]
        self.factor = exact.root_sum_squares_up(part.factor for part in self.components)

    @property
    def is_empty(self) -> bool:
        """True when there is no kink at all."""
        return not self.components

    def largest_reach(self, pivot_radius: float) -> float:
        """Return the largest reach that keeps pivots within a radius and atoms within limits."""
        if self.is_empty:
            return math.inf
        reach = exact.quotient_down(pivot_radius, self.factor)
        for group in (g for part in self.components for g in part.groups):
            limit, attained = group.limit
            if math.isfinite(limit):
                allowed = exact.quotient_down(limit, group.norm)
                reach = min(reach, allowed if attained else math.nextafter(allowed, 0.0))
        return reach

    def pivot(self, x: Vector, reach: float) -> Vector:
        """Return the pivot of a point for a reach, rounded to float64.

        Which kinks the closed ball meets is decided exactly: one on its boundary is met.
        """
        y, at = np.array(x, dtype=np.float64), to_fractions(x)
        for part in self.components:
            moved = [nearest_float(m) for group in part.groups for m in group.moves(at, reach)]
            if any(moved):
                step = np.linalg.lstsq(part.matrix, np.array(moved), rcond=None)[0]
                y[part.columns] += step
        return y


def _groups(root: Expression) -> Iterator[KinkGroup]:
    made, owners = numbered(root)
    program, at = Program(made), {id(e): k for k, e in enumerate(owners)}
    for e in moduli.plan(root):
        function = moduli.scalar_of(e)
        kinked = bool(function.kinks) if function else e.kind is irrational.Norm2
        if not kinked and not (e.kind is nodes.Max and e.data[0] > 1):
            continue
        ruled_out: dict[Any, str] = {
            nodes.Max: "the calculus has no rule for ties in many rows at once" * (e.size > 1),
            irrational.Norm2: "its modulus grows without bound near its kink",
        }
        if missing := ruled_out.get(e.kind):
            advice = "use a transported certificate, which needs no modulus"
            raise MissingAssumption(e, missing, advice)
        inner = meant(moduli.arguments(e)[0])
        if not program.affine[at[id(inner)]]:
            advice = "use a transported certificate, which follows curved kinks exactly"
            if any(a.kind is Foreign for a in moduli.plan(inner)):
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
    rows = [[row.get(k, Fraction(0)) for k in columns] for group in groups for row in group.rows]
    matrix, count, at = np.array(rows, dtype=np.float64), len(rows), 0
    scaled = np.zeros_like(matrix)
    for group in groups:
        block = slice(at, at := at + len(group.rows))
        some = matrix[block]
        norm = norm_upper(some[0]) if len(some) == 1 else spectral_norm_upper(some)
        group.norm = float(norm)
        scaled[block] = some / group.norm
    part = Component(groups, columns, matrix)
    if count > len(columns):
        _refuse_rank(part, f"at most {len(columns)}")
    # The stored rows round the exact ones, and the scaling rounds once more.
    rounding = gamma(len(columns) + 16) * 1.01 * math.sqrt(count)
    smallest = singular_bounds(scaled).smallest - rounding
    if smallest <= 0.0:
        rank = exact.exact_rank(rows)
        if rank < count:
            _refuse_rank(part, str(rank))
        shape = f"its {count} x {len(columns)} kink matrix"
        missing = f"{shape} is too close to rank {count - 1} for floats"
        raise MissingAssumption(groups[0].node, missing, _NO_RANK)
    moved = exact.root_sum_squares_up(group.spread for group in groups)
    part.factor = exact.product_up(moved, math.nextafter(1.0 / smallest, math.inf))
    return part


def _refuse_rank(part: Component, rank: str) -> None:
    rows, columns = part.matrix.shape
    wanted = f"rank {rows} is needed (linearly independent rows)"
    missing = f"its kink matrix is {rows} x {columns} with rank {rank}, but {wanted}"
    raise MissingAssumption(part.groups[0].node, missing, _NO_RANK)


#: Which statement of Tian, Zhou and So (ICML 2022) a rule corrects or uses.
PROPOSITIONS = {
    "R1": "smooth regularization (correct)",
    "R2": "separable sum (loose as printed, E4)",
    "R3": "linear composition (correct, E20)",
    "R3'": "linear composition, row by row (E19, E20)",
    "R8": "pieces (not in the paper)",
    "1.2": "NAS by GAS (correct)",
}


@dataclass(repr=False)
class Explanation:
    """One step of a proof and the steps it rests on.

    Attributes
    ----------
    claim : str
        What is shown.
    rule : str
        The rule used, with the paper's proposition.
    constants : dict
        Numbers that enter.
    steps : list of Explanation
        What the claim rests on.
    ok : bool
        False where an assumption is missing; then `claim` says which.
    triple : OuterLipschitz or None
        The result, at the root of a successful proof.
    """

    claim: str
    rule: str = ""
    constants: dict[str, float] = field(default_factory=dict)
    steps: list[Explanation] = field(default_factory=list)
    ok: bool = True
    triple: rules.OuterLipschitz | None = None

    def __str__(self) -> str:
        return "\n".join(self._lines(0))

    __repr__ = __str__

    def _lines(self, depth: int) -> Iterator[str]:
        mark, rule = "" if self.ok else "MISSING ", f"[{self.rule}]" if self.rule else ""
        numbers = ", ".join(f"{name} = {value:.9g}" for name, value in self.constants.items())
        yield "  ".join(filter(None, [f"{'  ' * depth}{mark}{self.claim}", rule, numbers]))
        for step in self.steps:
            yield from step._lines(depth + 1)

    def obstacle(self) -> Explanation | None:
        """Return the innermost step whose assumption is missing, or None."""
        inner = filter(None, (step.obstacle() for step in self.steps))
        return next(inner, None if self.ok else self)


def outer_lipschitz(
    fun: Expression, *, pivot_radius: float, domain: moduli.Domain = None
) -> rules.OuterLipschitz:
    """Return a triple of an expression for a wanted pivot radius.

    Parameters
    ----------
    fun : Expression
        Scalar; its kinks sit on affine, linearly independent rows.
    pivot_radius : float
        How far a pivot may lie from its point.
    domain : Ball, (centre, radius), sequence of Block, or None
        Where the modulus must hold. It must contain the points, their reach and their pivots. None
        means everywhere.

    Raises
    ------
    MissingAssumption
        With the innermost node and the assumption that fails.

    Examples
    --------
    >>> from goldstein.calculus import Variable, ramp, sum, sum_squares
    >>> Z = np.array([[1.0, 2.0, 0.0], [0.0, 1.0, -1.0]])
    >>> w = Variable(3)
    >>> triple = outer_lipschitz(0.5 * sum_squares(w) + sum(ramp(Z @ w)), pivot_radius=0.1)
    >>> round(triple.reach, 7), triple.modulus
    (0.0428687, 1.0)
    """
    radius = rules.positive(pivot_radius, "pivot_radius")
    return _triple(Arrangement(fun), _finite(moduli.piece_modulus(fun, domain)), radius)


def pivot(fun: Expression, x: Vector, *, pivot_radius: float) -> Vector:
    """Return the pivot of a point: every kink within reach is moved onto, if it can be reached.

    Examples
    --------
    >>> from goldstein.calculus import Variable, abs, sum
    >>> pivot(sum(abs(Variable(2))), np.array([0.05, 2.0]), pivot_radius=0.1)
    array([0., 2.])
    """
    arrangement = Arrangement(fun)
    point = np.asarray(x, dtype=np.float64)
    if arrangement.is_empty:
        return point.copy()
    reach = arrangement.largest_reach(rules.positive(pivot_radius, "pivot_radius"))
    return arrangement.pivot(point, reach)


def explain(
    fun: Expression, *, pivot_radius: float = 0.1, domain: moduli.Domain = None
) -> Explanation:
    """Return the proof tree of an expression's triple, or the missing assumption.

    Examples
    --------
    >>> from goldstein.calculus import Variable, abs, sum
    >>> print(explain(sum(abs(np.array([[1.0, 0.0], [2.0, 0.0]]) @ Variable(2)))))
    MISSING no triple for sum
      MISSING abs: its kink matrix is 2 x 1 with rank at most 1, but rank 2 is needed ...
    """
    steps: list[Explanation] = []
    arrangement, modulus = None, None
    try:
        arrangement = Arrangement(fun)
        steps.append(_explain_arrangement(arrangement))
    except NotCertifiableError as failure:
        steps.append(_missing(failure, "R3'"))
    try:
        modulus = _finite(moduli.piece_modulus(fun, domain))
        steps.append(_explain_modulus(modulus))
    except NotCertifiableError as failure:
        steps.append(_missing(failure, "R8"))
    name = _label(fun)
    if arrangement is None or modulus is None:
        return Explanation(f"no triple for {name}", steps=steps, ok=False)
    triple = _triple(arrangement, modulus, rules.positive(pivot_radius, "pivot_radius"))
    claim = f"{name} has a triple"
    return Explanation(claim, _cite("R3'", "R8"), asdict(triple), steps, triple=triple)


def _triple(
    arrangement: Arrangement, modulus: moduli.Modulus, radius: float
) -> rules.OuterLipschitz:
    if arrangement.is_empty:
        return rules.OuterLipschitz(0.0, math.inf, modulus.total)
    reach = arrangement.largest_reach(radius)
    moved = min(radius, exact.product_up(arrangement.factor, reach))
    return rules.OuterLipschitz(moved, reach, modulus.total)


def _finite(modulus: moduli.Modulus) -> moduli.Modulus:
    if math.isfinite(modulus.total):
        return modulus
    worst = next(bend for bend in modulus.bends if not math.isfinite(bend.amount))
    node, what = worst.node, f"its part of the modulus, {worst.rule}, has no bound here"
    # The cause is the first node whose own derivative is unbounded although its arguments' are not.
    for candidate in moduli.plan(node):
        inner = [modulus.ranges[id(a)].lipschitz for a in moduli.arguments(candidate)]
        outer = modulus.ranges[id(candidate)].lipschitz
        if not math.isfinite(outer) and all(map(math.isfinite, inner)):
            node, what = candidate, "its derivative has no bound here"
            break
    raise MissingAssumption(
        node, what, "give a bounded domain, for example domain=(centre, radius)"
    )


def _missing(failure: NotCertifiableError, rule: str) -> Explanation:
    text = str(failure)
    if isinstance(failure, MissingAssumption):
        text = f"{_label(failure.node)}: {failure.missing}; {failure.advice}"
    return Explanation(text, _cite(rule), ok=False)


def _cite(*rules: str) -> str:
    return "; ".join(f"{rule}, {PROPOSITIONS[rule]}" for rule in rules)


def _label(node: Expression) -> str:
    return re.sub("(?<!^)(?=[A-Z])", "_", node.name).lower()


def _explain_arrangement(arrangement: Arrangement) -> Explanation:
    if arrangement.is_empty:
        return Explanation("no kinks: every point is its own pivot")
    seen: dict[tuple[str, bytes], Explanation] = {}
    for part in arrangement.components:
        key = (_names(part.groups), part.matrix.tobytes())
        if key in seen:  # the neurons of a layer share one matrix
            seen[key].constants["copies"] = seen[key].constants.get("copies", 1) + 1
        else:
            seen[key] = _explain_component(part)
    claim, factor = "pivots within factor * reach", {"factor": arrangement.factor}
    return Explanation(claim, _cite("R2", "R3'"), factor, list(seen.values()))


def _explain_component(part: Component) -> Explanation:
    rows, columns = part.matrix.shape
    moved = math.sqrt(math.fsum(group.spread**2 for group in part.groups))
    atoms = {id(group.node): group for group in reversed(part.groups)}
    claim = f"{_names(part.groups)} on {rows} independent rows in {columns} variables"
    constants = {"factor": part.factor, "|Ahat+|": part.factor / moved}
    return Explanation(claim, "", constants, list(map(_explain_atom, reversed(atoms.values()))))


def _names(groups: list[KinkGroup]) -> str:
    return ", ".join(dict.fromkeys(_label(group.node) for group in groups))


def _explain_atom(group: KinkGroup) -> Explanation:
    function = group.function
    if function is not None:
        limit, attained = function.pivot_limit
        near = f"radius {'<=' if attained else '<'} {limit:g}"
        bound = "any radius" if math.isinf(limit) else near
        kinks = ", ".join(f"{float(kink):g}" for kink in function.kinks)
        claim = f"atom {group.node.name}: kinks at {kinks}, {bound}"
        return Explanation(claim, "", {"kappa": function.curvature, "L": function.lipschitz})
    claim = f"atom max of {len(group.rows)} entries: average what is within sqrt(2) reach"
    return Explanation(claim, "", {"radius/reach": group.spread, "kappa": 0.0, "L": 1.0})


def _explain_modulus(modulus: moduli.Modulus) -> Explanation:
    steps = []
    for bend in modulus.bends:
        lengths = [
            modulus.ranges[id(argument)].lipschitz for argument in moduli.arguments(bend.node)
        ]
        names = ["|J|"] if len(lengths) == 1 else ["|J_left|", "|J_right|"]
        constants = {"amount": bend.amount, **dict(zip(names, lengths, strict=True))}
        steps.append(Explanation(f"{_label(bend.node)} adds {bend.rule}", "", constants))
    claim = "gradients of the pieces move at most at the modulus"
    return Explanation(claim, _cite("R1", "R8"), {"modulus": modulus.total}, steps)


class GoldsteinTarget(NamedTuple):
    """Accuracy and radius of Goldstein stationarity.

    Attributes
    ----------
    eps, delta : float
    """

    eps: float
    delta: float


def goldstein_target(
    fun: Expression, *, eps: float, delta: float, domain: moduli.Domain = None
) -> GoldsteinTarget:
    """Return `(eps', delta')` such that Goldstein stationarity at it implies `(eps, delta)`-near.

    With pivots within `factor * reach` and modulus kappa,
    `delta' = min(delta / factor, (eps - eps') / (kappa (1 + factor)))` and `eps' = eps / 2`;
    where the pieces are linear (kappa = 0) nothing is lost and `eps' = eps`.

    Parameters
    ----------
    fun : Expression
        Scalar, with kinks on independent affine rows.
    eps, delta : float
        The wanted near stationarity.
    domain : Ball, (centre, radius), sequence of Block, or None
        Where the modulus must hold; None means everywhere.

    Raises
    ------
    MissingAssumption
        When no a-priori constant exists; transported certificates need none.

    Examples
    --------
    >>> import numpy as np
    >>> from goldstein.calculus import Variable, ramp, sum, sum_squares
    >>> Z = np.array([[1.0, 2.0, 0.0], [0.0, 1.0, -1.0]])
    >>> w = Variable(3)
    >>> target = goldstein_target(0.5 * sum_squares(w) + sum(ramp(Z @ w)), eps=0.1, delta=0.1)
    >>> target.eps, round(target.delta, 7)
    (0.05, 0.0150028)
    """
    eps, delta = rules.positive(eps, "eps"), rules.positive(delta, "delta")
    triple = outer_lipschitz(fun, pivot_radius=delta, domain=domain)
    if triple.modulus == 0.0:
        return GoldsteinTarget(eps, min(triple.reach, delta))
    arrangement = Arrangement(fun)
    spent = exact.product_up(triple.modulus, exact.sum_up([1.0, arrangement.factor]))
    radius = min(triple.reach, exact.quotient_down(eps / 2.0, spent))
    if math.isinf(triple.reach):  # smooth: the near point may be any point of the ball
        radius = min(radius, delta)
    return GoldsteinTarget(eps / 2.0, radius)
