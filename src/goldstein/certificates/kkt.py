"""The KKT certificate: gradients of f and of constraints near x, normals of the bounds, weights."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from goldstein.certificates.export import NoProofFile
from goldstein.certificates.verifying import Qualified, Sampled, thinned, verified
from goldstein.checker.arrays import Matrix, Vector
from goldstein.checker.constrained.limits import Limits, as_groups
from goldstein.checker.rounding import UNIT, combination_norm_upper, distance_upper, norm_upper, up
from goldstein.checker.verification import Verification
from goldstein.errors import InputError
from goldstein.oracles import Oracle, as_oracle
from goldstein.storage.codec import array, as_number, record

Rows = NDArray[np.int64]

#: What the claim of an infeasible problem is about, in place of the user's function.
VIOLATION = "violation of the constraints"

#: Multipliers that a summary spells out.
LISTED = 6


@record
class KKTCertificate(Qualified, NoProofFile, Sampled):
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

    feasibility: float
    constraint_points: Matrix = array("r d")
    constraint_index: Rows = array("r", np.int64)
    constraint_gradients: Matrix = array("r d")
    constraint_weights: Vector = array("r")
    normal: Vector = array("d")
    multipliers: Vector = array("m")
    qualification: float

    def verify(
        self,
        fun: Oracle | Callable[..., Any],
        jac: Callable[..., Any] | bool | None = None,
        args: Sequence[Any] = (),
        *,
        bounds: Any = None,
        constraints: Any = (),
        like: Any = None,
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
        return verified(
            self, fun, jac, args, like=like, seed=seed, check_values=check_values,
            bounds=bounds, constraints=constraints,
        )  # fmt: skip

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
        oracle = as_oracle(fun, jac, args)
        system = Limits(as_groups(constraints, self.x.size), self.x)
        return convex_gap(self, oracle.value, system, float(radius))

    def reduce(self) -> KKTCertificate:
        """Return an equivalent certificate with at most d + 1 gradients of f."""
        smaller = thinned(self)
        eps = max(self.eps, residual_upper(smaller))
        return replace(smaller, eps=eps, digest="" if eps != self.eps else smaller.digest)

    def summary(self) -> str:
        """A few words for people; what is not so comes first."""
        met = f"violation {self.feasibility:.3g}" if self.feasibility else "feasible"
        if self.meta.get("function") == VIOLATION:
            met = f"about the {VIOLATION}, not about fun"
        parts = [
            f"({self.eps:.3g}, {self.delta:.3g})-Goldstein-KKT, {self.label} (fun, jac and "
            "constraints are believed)",
            met,
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
    rows = np.concatenate([
        c.gradients, np.sign(c.constraint_weights)[:, None] * c.constraint_gradients, c.normal[None]
    ])  # fmt: skip
    factors = np.concatenate([c.weights, np.abs(c.constraint_weights), [1.0]])
    mean = combination_norm_upper(factors, rows)
    with np.errstate(over="ignore"):
        return up(mean * up(math.fsum(factors.tolist()))) if mean else 0.0


def convex_gap(
    cert: KKTCertificate, value: Callable[[Vector], float], system: Limits, radius: float
) -> float:
    """Bound f(x) - f(z) for feasible z within `radius` of x, rounded up; f and c are convex.

    sum_j mu_j e_j + sum_i |multiplier_i| slack_i + eps radius, e_j the error at x of the
    linearisation at stored point j. The certificate itself is to be verified besides.
    """

    def error(at_x: float, at_y: float, y: Vector, g: Vector) -> float:
        """at_x - at_y - <g, x - y>, with room for the rounding of its terms."""
        size = abs(at_x) + abs(at_y) + norm_upper(g) * distance_upper(y, cert.x)
        return at_x - at_y - float(g @ (cert.x - y)) + 4 * (cert.x.size + 4) * UNIT * size

    here = float(value(cert.x.copy()))
    terms = [
        w * error(here, float(value(y.copy())), y, g)
        for w, y, g in zip(cert.weights.tolist(), cert.points, cert.gradients)
        if w > 0
    ]
    values = system.values(cert.x)
    for r in np.flatnonzero(cert.constraint_weights).tolist():
        i, y = int(cert.constraint_index[r]), cert.constraint_points[r]
        weight = float(cert.constraint_weights[r])
        sign = math.copysign(1.0, weight)
        there = float(system.values(y)[i])
        g = sign * cert.constraint_gradients[r]
        terms.append(abs(weight) * error(sign * float(values[i]), sign * there, y, g))
    slack = np.where(cert.multipliers > 0, system.upper - values, values - system.lower)
    for i in np.flatnonzero(cert.multipliers).tolist():
        terms.append(abs(float(cert.multipliers[i])) * max(0.0, float(slack[i])))
    return up(max(0.0, math.fsum(terms)) + up(cert.eps * radius), 64 * UNIT)
