"""The near-KKT certificate: an exactly feasible pivot near x, and multipliers proved there."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import field
from fractions import Fraction
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from goldstein.certificates.export import export_proof, texts, written_nodes
from goldstein.certificates.near import (
    CHANGE_OF_MACHINE,
    AtPivot,
    Described,
    parse_pivot,
    program_of,
    written_pivot,
)  # fmt: skip
from goldstein.certificates.separating import separating
from goldstein.certificates.verifying import WithMultipliers
from goldstein.checker import near
from goldstein.checker.arrays import Matrix, Vector
from goldstein.checker.constrained.near import ExactProblem, exact_problem
from goldstein.checker.rationals import sqrt_upper, squared_distance
from goldstein.checker.sides import Program, point_at
from goldstein.checker.verification import Label, Verification
from goldstein.errors import GoldsteinError, InputError
from goldstein.numerics.streams import seed_from
from goldstein.storage.codec import array, record, text

Rows = NDArray[np.int64]


@record
class NearKKTCertificate(WithMultipliers, AtPivot):
    """Proof that within `delta` of x there is a feasible point that is KKT up to `eps`.

    The pivot y satisfies bounds and constraints exactly. Along y + t v, t -> 0+, gradients of f and
    of constraints have limits, elements of the Clarke subdifferentials at y; the weights combine
    them and `normal`, a normal of the bounds at y, to a vector of length <= eps. f has weight 1,
    and a constraint with a multiplier is exactly at its limit at y. The check uses rational
    arithmetic and believes nothing that is stored.

    Attributes
    ----------
    x : ndarray, shape (d,)
        Inside the bounds.
    exact_pivot : tuple of Fraction
    delta, eps : float
        Both rounded up.
    directions : ndarray, shape (k, d)
        Ways to leave the pivot, for f.
    weights : ndarray, shape (k,)
        Nonnegative; only their ratios count.
    constraint_directions : ndarray, shape (r, d)
        Ways to leave the pivot, for constraints.
    constraint_index : ndarray of int, shape (r,)
        Which component of the constraints a row belongs to.
    constraint_weights : ndarray, shape (r,)
        Signed like the multipliers: positive at the upper limit, negative at the lower one.
    normal : ndarray, shape (d,)
        Entries <= 0 at lower bounds, >= 0 at upper bounds, 0 elsewhere.
    multipliers : ndarray, shape (m,)
        Sums of `constraint_weights`.
    label, meta, digest
        As in `GoldsteinCertificate`.

    Examples
    --------
    >>> import goldstein as gs
    >>> x = gs.Variable(2)
    >>> F, limits = gs.sum(abs(x - 2.0)), {"bounds": [(0, 1), (None, None)]}
    >>> res = gs.minimize(F, [0.0, 0.0], eps=1e-3, delta=1e-3, stationarity="near", rng=0, **limits)
    >>> res.certificate
    <NearKKTCertificate (...)-near KKT, certified; multipliers none; 1 active bound>
    >>> res.certificate.verify(F, **limits).ok
    True
    """

    kind: ClassVar[str] = "near-kkt"
    _limits: ClassVar[tuple[str, ...]] = ("bounds", "constraints")

    x: Vector = array("d")
    exact_pivot: tuple[Fraction, ...] = text(written_pivot, parse_pivot)
    delta: float
    eps: float
    directions: Matrix = array("k d")
    weights: Vector = array("k")
    constraint_directions: Matrix = array("r d")
    constraint_index: Rows = array("r", np.int64)
    constraint_weights: Vector = array("r")
    normal: Vector = array("d")
    multipliers: Vector = array("m")
    label: Label = "certified"
    meta: dict[str, Any] = field(default_factory=dict)
    digest: str = ""

    def verify(
        self,
        fun: Described,
        *,
        bounds: Any = None,
        constraints: Any = (),
        seed: int | None = None,
    ) -> Verification:
        """Re-derive everything in exact arithmetic from the expressions.

        Parameters
        ----------
        fun : Expression
        bounds, constraints
            As in `minimize`; constraints are expressions or `LinearConstraint`.
        seed : int, optional
            Seed of the directions in which the constraints are looked at besides, to see whether
            they are degenerate; by default nobody can foresee them.
        """
        try:
            program = program_of(fun)
            problem = exact_problem(self.x, bounds, constraints, separating)
        except GoldsteinError as failure:
            found = Verification(eps=math.inf, delta=math.inf, label="conditional")
            found.add("problem", False, f"function, bounds or constraints do not fit: {failure}")
            return found
        return near.check(self, program, problem, seed_from(seed))

    def export(
        self, path: str | Path, fun: Described, *, bounds: Any = None, constraints: Any = ()
    ) -> Path:
        """Write certificate, function and limits to one file that `goldstein-check` decides.

        Parameters
        ----------
        path : str or Path
            The suffix .json is added if there is none; one that ends in .gz is compressed.
        fun, bounds, constraints
            What the certificate is about, as in `minimize`.
        """
        problem = exact_problem(self.x, bounds, constraints, separating)
        found = Verification(eps=math.inf, delta=math.inf, label="conditional")
        problem.check_place(found, self)
        if not found.ok:
            check = next(check for check in found.checks if not check.ok)
            raise InputError(
                f"the certificate is not about these bounds and constraints ({check.name}: "
                f"{check.message}); pass the bounds= and constraints= that minimize was given."
            )
        _, along = problem.separation(self, 0, problem.readings(self)[0])
        limits, box = problem.system, problem.box
        parts = [
            {
                "function": written_nodes(part),
                **texts({"lower": limits.lower[i], "upper": limits.upper[i]}),
            }
            for i, part in enumerate(problem.parts)
        ]
        rows = zip(self.constraint_index, self.constraint_weights, self.constraint_directions)
        evidence = {
            "pivot": self.exact_pivot, "directions": self.directions, "weights": self.weights,
            "normal": self.normal, "separation": along,
            "rows": [{"constraint": int(i), "weight": w, "direction": v} for i, w, v in rows],
        }  # fmt: skip
        claim = {"kind": self.kind, "eps": self.eps, "delta": self.delta}
        given = {"bounds": texts({"lower": box.lower, "upper": box.upper}), "constraints": parts}
        return export_proof(path, fun, self.x, claim, evidence, **given)

    def summary(self) -> str:
        """One line for people."""
        from goldstein.certificates.kkt import listed

        parts = [
            f"({self.eps:.3g}, {self.delta:.3g})-near KKT, {self.label}",
            "multipliers " + (listed(self.multipliers) or "none"),
        ]
        on_bounds = int(np.count_nonzero(self.normal))
        if on_bounds:
            parts.append(f"{on_bounds} active bound{'s' if on_bounds > 1 else ''}")
        return "; ".join(parts)


def prove_near_kkt(
    program: Program,
    problem: ExactProblem,
    x: Vector,
    pivot: Sequence[Fraction],
    directions: Matrix,
    weights: Vector,
    rows: list[tuple[int, Vector, float]],
    normal: Vector,
) -> NearKKTCertificate:
    """Derive eps and delta, and state them; `rows` are (component, direction, signed weight).

    Raises
    ------
    NotCertifiableError
        When a direction does not show an element of a subdifferential.
    """
    multipliers = np.zeros(problem.system.size)
    for i in {i for i, _, _ in rows}:
        multipliers[i] = math.fsum(w for k, _, w in rows if k == i)
    claim: dict[str, Any] = {
        "x": x, "exact_pivot": tuple(pivot), "directions": directions, "weights": weights,
        "constraint_directions": np.array([v for _, v, _ in rows]).reshape(-1, x.size),
        "constraint_index": np.array([i for i, _, _ in rows], dtype=np.int64),
        "constraint_weights": np.array([w for _, _, w in rows]),
        "normal": normal, "multipliers": multipliers,
        "delta": sqrt_upper(squared_distance(tuple(pivot), x)),
    }  # fmt: skip
    used = weights > 0
    limits = point_at(program, pivot, int(used.sum())).limits(directions[used])
    plain = NearKKTCertificate(**claim, eps=0.0)
    eps = problem.residual(plain, limits, weights[used], CHANGE_OF_MACHINE)
    return NearKKTCertificate(**claim, eps=eps)
