"""Why a triple holds: the proof tree of an expression, or what is missing.

Which Goldstein accuracy implies the wanted near stationarity, a priori.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field
from typing import NamedTuple

import numpy as np

from goldstein.apriori.arrangement import Arrangement, Component, KinkGroup, MissingAssumption
from goldstein.apriori.modulus import Domain, Modulus, arguments, piece_modulus, plan
from goldstein.apriori.rules import OuterLipschitz, positive
from goldstein.calculus.expression import Expression
from goldstein.checker.arrays import Vector
from goldstein.errors import NotCertifiableError
from goldstein.numerics.exact import product_up, quotient_down, sum_up

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
    triple: OuterLipschitz | None = None

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
    fun: Expression, *, pivot_radius: float, domain: Domain = None
) -> OuterLipschitz:
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
    radius = positive(pivot_radius, "pivot_radius")
    return _triple(Arrangement(fun), _finite(piece_modulus(fun, domain)), radius)


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
    reach = arrangement.largest_reach(positive(pivot_radius, "pivot_radius"))
    return arrangement.pivot(point, reach)


def explain(fun: Expression, *, pivot_radius: float = 0.1, domain: Domain = None) -> Explanation:
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
        modulus = _finite(piece_modulus(fun, domain))
        steps.append(_explain_modulus(modulus))
    except NotCertifiableError as failure:
        steps.append(_missing(failure, "R8"))
    name = _label(fun)
    if arrangement is None or modulus is None:
        return Explanation(f"no triple for {name}", steps=steps, ok=False)
    triple = _triple(arrangement, modulus, positive(pivot_radius, "pivot_radius"))
    claim, rules = f"{name} has a triple", _cite("R3'", "R8")
    return Explanation(claim, rules, asdict(triple), steps, triple=triple)


def _triple(arrangement: Arrangement, modulus: Modulus, radius: float) -> OuterLipschitz:
    if arrangement.is_empty:
        return OuterLipschitz(0.0, math.inf, modulus.total)
    reach = arrangement.largest_reach(radius)
    moved = min(radius, product_up(arrangement.factor, reach))
    return OuterLipschitz(moved, reach, modulus.total)


def _finite(modulus: Modulus) -> Modulus:
    if math.isfinite(modulus.total):
        return modulus
    worst = next(bend for bend in modulus.bends if not math.isfinite(bend.amount))
    node, what = worst.node, f"its part of the modulus, {worst.rule}, has no bound here"
    # The cause is the first node whose own derivative is unbounded although its arguments' are not.
    for candidate in plan(node):
        inner = [modulus.ranges[id(a)].lipschitz for a in arguments(candidate)]
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


def _explain_modulus(modulus: Modulus) -> Explanation:
    steps = []
    for bend in modulus.bends:
        lengths = [modulus.ranges[id(argument)].lipschitz for argument in arguments(bend.node)]
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
    fun: Expression, *, eps: float, delta: float, domain: Domain = None
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
    eps, delta = positive(eps, "eps"), positive(delta, "delta")
    triple = outer_lipschitz(fun, pivot_radius=delta, domain=domain)
    if triple.modulus == 0.0:
        return GoldsteinTarget(eps, min(triple.reach, delta))
    arrangement = Arrangement(fun)
    spent = product_up(triple.modulus, sum_up([1.0, arrangement.factor]))
    radius = min(triple.reach, quotient_down(eps / 2.0, spent))
    if math.isinf(triple.reach):  # smooth: the near point may be any point of the ball
        radius = min(radius, delta)
    return GoldsteinTarget(eps / 2.0, radius)
