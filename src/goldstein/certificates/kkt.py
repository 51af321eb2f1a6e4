"""The KKT certificate: gradients of f and of constraints near x, normals of the bounds, weights."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from goldstein.certificates.export import NoProofFile
from goldstein.certificates.kinds import (
    Stored,
    content_hash,
    hold,
    require_finite,
    require_shapes,
    settle,
    whole_numbers,
)
from goldstein.certificates.multipliers import Qualified
from goldstein.checker.arrays import Matrix, Vector
from goldstein.checker.constraints import Rows, combined_upper
from goldstein.checker.kkt import convex_gap
from goldstein.checker.verification import Label, Verification, as_number
from goldstein.constrained.system import as_system
from goldstein.display import PlottedCertificate
from goldstein.errors import InputError
from goldstein.numerics.caratheodory import sparse_weights
from goldstein.numerics.streams import seed_from
from goldstein.oracles import Oracle, as_oracle

_FLOATS = (
    "x", "points", "gradients", "weights", "constraint_points", "constraint_gradients",
    "constraint_weights", "normal", "multipliers",
)  # fmt: skip
_NUMBERS = ("delta", "eps", "feasibility", "qualification")

#: Multipliers that a summary spells out.
LISTED = 6


@dataclass(frozen=True, eq=False)
class KKTCertificate(Stored, Qualified, NoProofFile, PlottedCertificate):
    """Proof that x is an (eps, delta)-Goldstein-KKT point of a constrained problem.

    The claim is `|weights @ grad f(points) + sum_r constraint_weights[r] grad c_i(r)
    (constraint_points[r]) + normal| <= eps`, all points within `delta` of x and inside the bounds,
    `weights` convex, `normal` normal to the bounds at x, and every inequality with a multiplier
    reached or crossed at a stored point. Nothing is scaled.

    Attributes
    ----------
    x : ndarray, shape (d,)
        Inside the bounds, exactly.
    delta, eps : float
    feasibility : float
        The largest violation of a constraint at x; 0 means that all hold.
    points, gradients : ndarray, shape (k, d)
        Of f.
    weights : ndarray, shape (k,)
    constraint_points, constraint_gradients : ndarray, shape (r, d)
        Of the constraints. Rows of weight 0 show that a constraint is reached.
    constraint_index : ndarray of int, shape (r,)
        Which component of the constraints a row belongs to.
    constraint_weights : ndarray, shape (r,)
        Signed like the multipliers: positive at the upper limit, negative at the lower one.
    normal : ndarray, shape (d,)
        Entries <= 0 at lower bounds, >= 0 at upper bounds, 0 elsewhere.
    multipliers : ndarray, shape (m,)
        Sums of `constraint_weights`.
    qualification : float
        How far the gradients of the constraints with a multiplier are from cancelling each other,
        each divided by the longest of its constraint; next to 0 the claim is `degenerate`. It is
        measured on samples: an upper bound.
    label, meta, digest
        As in `GoldsteinCertificate`.

    Examples
    --------
    >>> import goldstein as gs
    >>> f, grad = lambda x: abs(x[0] - 2.0), lambda x: np.sign(x - 2.0)
    >>> certificate = gs.certify(f, [1.0], grad, delta=1e-3, rng=0, bounds=[(0, 1)])
    >>> certificate.normal, certificate.verify(f, grad, bounds=[(0, 1)]).ok
    (array([1.]), True)
    """

    kind: ClassVar[str] = "kkt"

    x: Vector
    delta: float
    eps: float
    feasibility: float
    points: Matrix
    gradients: Matrix
    weights: Vector
    constraint_points: Matrix
    constraint_index: Rows
    constraint_gradients: Matrix
    constraint_weights: Vector
    normal: Vector
    multipliers: Vector
    qualification: float
    label: Label = "conditional"
    meta: dict[str, Any] = field(default_factory=dict)
    digest: str = ""

    def __post_init__(self) -> None:
        hold(self, ("constraint_index",), whole_numbers)
        hold(self, _FLOATS)
        self._check_shapes()
        settle(self, _NUMBERS)

    def _check_shapes(self) -> None:
        d, k, r = self.x.size, self.weights.size, self.constraint_weights.size
        require_shapes(self, {
            "x": (d,), "points": (k, d), "gradients": (k, d), "weights": (k,),
            "constraint_points": (r, d), "constraint_gradients": (r, d),
            "constraint_index": (r,), "constraint_weights": (r,), "normal": (d,),
            "multipliers": (self.multipliers.size,),
        })  # fmt: skip

    def verify(
        self,
        fun: Oracle | Callable[..., Any],
        jac: Callable[..., Any] | bool | None = None,
        args: Sequence[Any] = (),
        *,
        bounds: Any = None,
        constraints: Any = (),
        seed: int | None = None,
        check_values: bool = True,
    ) -> Verification:
        """Re-derive every number from the function, the bounds and the constraints.

        Nothing is asked outside the bounds.

        Parameters
        ----------
        fun, jac, args, bounds, constraints
            As in `minimize`.
        seed : int, optional
            Seed of the displacements; by default nobody can foresee them.
        check_values : bool
            Compare differences of values with the gradients, of f and of each constraint used.
        """
        from goldstein.certificates.kkt_check import check_kkt

        oracle = as_oracle(fun, jac, args)
        return check_kkt(self, oracle, bounds, constraints, seed_from(seed), check_values)

    def gap(
        self,
        fun: Oracle | Callable[..., Any],
        jac: Callable[..., Any] | bool | None = None,
        args: Sequence[Any] = (),
        *,
        radius: float,
        constraints: Any = (),
    ) -> float:
        """Bound how much lower f is at any feasible point within `radius` of x.

        For convex problems only, and on your word that the problem is one: f convex, constraints
        convex at upper limits, concave at lower ones, equalities linear. Then for every feasible z

            f(x) - f(z) <= sum_j mu_j e_j + sum_i |multiplier_i| slack_i + eps |z - x|

        with e_j >= 0 the error of the linearisation at stored point j, taken at x. The certificate
        itself is to be verified besides.

        Parameters
        ----------
        fun, jac, args, constraints
            As in `minimize`.
        radius : float
            How far other feasible points may be; the diameter of the feasible set makes the bound
            global.
        """
        if not (as_number("radius", radius) >= 0 and math.isfinite(radius)):
            raise InputError(f"radius must be finite and not negative, got {radius!r}.")
        oracle, system = as_oracle(fun, jac, args), as_system(constraints, self.x)
        return convex_gap(self, oracle.value, system, float(radius))

    def reduce(self) -> KKTCertificate:
        """Return an equivalent certificate with at most d + 1 gradients of f."""
        weights = sparse_weights(self.weights, self.gradients)
        used = np.flatnonzero(weights > 0)
        smaller = replace(
            self, points=self.points[used], gradients=self.gradients[used], weights=weights[used],
            digest="" if self.digest == self.content_digest() else self.digest,
        )  # fmt: skip
        eps = max(self.eps, residual_upper(smaller))
        return replace(smaller, eps=eps, digest="" if eps != self.eps else smaller.digest)

    def to_record(self) -> tuple[str, dict[str, NDArray[Any]], dict[str, Any]]:
        """Return (kind, arrays, JSON fields) for the file."""
        arrays = {name: getattr(self, name) for name in (*_FLOATS, "constraint_index")}
        return self.kind, arrays, {name: getattr(self, name) for name in _fields()}

    @classmethod
    def from_record(cls, arrays: dict[str, NDArray[Any]], fields: dict[str, Any]) -> KKTCertificate:
        """Rebuild from what `to_record` gave; a file that lacks or adds something is refused."""
        if set(arrays) != {*_FLOATS, "constraint_index"}:
            raise InputError(f"arrays {sorted(arrays)} are not those of a KKT certificate.")
        if set(fields) != set(_fields()) or not fields["digest"]:
            raise InputError(f"fields {sorted(fields)} are not those of a KKT certificate.")
        require_finite(arrays, _FLOATS)
        everything: dict[str, Any] = {**arrays, **fields}
        certificate = cls(**everything)
        if not all(math.isfinite(getattr(certificate, name)) for name in _NUMBERS):
            raise InputError(f"{', '.join(_NUMBERS)} must be finite.")
        return certificate

    def content_digest(self) -> str:
        """Return a hash of every field but the digest itself."""
        arrays = [getattr(self, name) for name in (*_FLOATS, "constraint_index")]
        rest = [*(float(getattr(self, name)).hex() for name in _NUMBERS), self.label, self.meta]
        return content_hash(arrays, rest)

    def summary(self) -> str:
        """A few words for people; what is not so comes first."""
        parts = [
            f"({self.eps:.3g}, {self.delta:.3g})-Goldstein-KKT, {self.label} (fun, jac and "
            "constraints are believed)",
            f"violation {self.feasibility:.3g}" if self.feasibility else "feasible",
            "multipliers " + (listed(self.multipliers, self.meta.get("active")) or "none"),
        ]
        on_bounds, slack = int(np.count_nonzero(self.normal)), self.meta.get("slack")
        if on_bounds:
            parts.append(f"{on_bounds} active bounds")
        if isinstance(slack, int) and slack:
            parts.append(f"{slack} slack")
        if self.degenerate:
            parts.insert(0, f"DEGENERATE constraints (qualification {self.qualification:.2g})")
        asked = self.meta.get("asked_eps")
        if isinstance(asked, float) and self.eps > asked:
            parts.insert(0, f"NOT proved KKT to eps = {asked:g}")
        return "; ".join(parts)

    def __repr__(self) -> str:
        return f"<KKTCertificate {self.summary()}>"


def _fields() -> tuple[str, ...]:
    return (*_NUMBERS, "label", "meta", "digest")


def listed(multipliers: Vector, names: Any = None) -> str:
    """Write the multipliers that are not 0, the first few of them, by name if names are known."""
    used = np.flatnonzero(multipliers)
    named = isinstance(names, list) and len(names) == min(used.size, LISTED)
    shown = [
        f"{f'{names[k]} =' if named else f'[{i}]'} {multipliers[i]:.4g}"
        for k, i in enumerate(used[:LISTED].tolist())
    ]
    return ", ".join(shown) + (f" and {used.size - LISTED} more" if used.size > LISTED else "")


def residual_upper(certificate: KKTCertificate) -> float:
    """Return an upper bound of the length in the claim, for the stored gradients."""
    c = certificate
    return combined_upper(
        c.weights, c.gradients, c.constraint_weights, c.constraint_gradients, c.normal
    )
