"""The near-KKT certificate: an exactly feasible pivot near x, and multipliers proved there."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from goldstein.certificates.export import NoProofFile
from goldstein.certificates.kinds import (
    Stored,
    closed,
    content_hash,
    hold,
    require_finite,
    require_shapes,
    settle,
    whole_numbers,
)
from goldstein.certificates.multipliers import WithMultipliers
from goldstein.certificates.near import Described, parse_pivot, written_pivot
from goldstein.checker.arrays import Matrix, Vector
from goldstein.checker.near import nearest
from goldstein.checker.rationals import to_fractions
from goldstein.checker.verification import Label, Verification
from goldstein.display import PlottedCertificate
from goldstein.errors import InputError, InputTypeError
from goldstein.numerics.streams import seed_from

Rows = NDArray[np.int64]

_FLOATS = (
    "x", "directions", "weights", "constraint_directions", "constraint_weights", "normal",
    "multipliers",
)  # fmt: skip
_NUMBERS = ("delta", "eps")


@dataclass(frozen=True, eq=False)
class NearKKTCertificate(Stored, WithMultipliers, NoProofFile, PlottedCertificate):
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

    x: Vector
    exact_pivot: tuple[Fraction, ...]
    delta: float
    eps: float
    directions: Matrix
    weights: Vector
    constraint_directions: Matrix
    constraint_index: Rows
    constraint_weights: Vector
    normal: Vector
    multipliers: Vector
    label: Label = "certified"
    meta: dict[str, Any] = field(default_factory=dict)
    digest: str = ""

    def __post_init__(self) -> None:
        hold(self, ("constraint_index",), whole_numbers)
        hold(self, _FLOATS)
        try:
            object.__setattr__(self, "exact_pivot", tuple(to_fractions(list(self.exact_pivot))))
        except (TypeError, ValueError, OverflowError) as failure:
            raise InputTypeError(f"the pivot must hold rationals: {failure}.") from failure
        self._check_shapes()
        settle(self, _NUMBERS)

    def _check_shapes(self) -> None:
        d, k, r = self.x.size, self.weights.size, self.constraint_weights.size
        require_shapes(self, {
            "x": (d,), "directions": (k, d), "weights": (k,), "constraint_directions": (r, d),
            "constraint_index": (r,), "constraint_weights": (r,), "normal": (d,),
            "multipliers": (self.multipliers.size,),
        })  # fmt: skip
        if len(self.exact_pivot) != d:
            raise InputError(f"the pivot has {len(self.exact_pivot)} coordinates, x has {d}.")

    @cached_property
    def pivot(self) -> Vector:
        """The pivot rounded to float64; the exact one is `exact_pivot`."""
        return closed(nearest(self.exact_pivot))

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
        from goldstein.certificates.near_kkt_check import check_near_kkt

        return check_near_kkt(self, fun, bounds, constraints, seed_from(seed))

    def to_record(self) -> tuple[str, dict[str, NDArray[Any]], dict[str, Any]]:
        """Return (kind, arrays, JSON fields) for the file."""
        arrays = {name: getattr(self, name) for name in (*_FLOATS, "constraint_index")}
        fields = {name: getattr(self, name) for name in (*_NUMBERS, "label", "meta", "digest")}
        return self.kind, arrays, {**fields, "pivot": written_pivot(self.exact_pivot)}

    @classmethod
    def from_record(
        cls, arrays: dict[str, NDArray[Any]], fields: dict[str, Any]
    ) -> NearKKTCertificate:
        """Rebuild from what `to_record` gave; a file that lacks or adds something is refused."""
        if set(arrays) != {*_FLOATS, "constraint_index"}:
            raise InputError(f"arrays {sorted(arrays)} are not those of a near-KKT certificate.")
        if set(fields) != {*_NUMBERS, "label", "meta", "digest", "pivot"} or not fields["digest"]:
            raise InputError(f"fields {sorted(fields)} are not those of a near-KKT certificate.")
        require_finite(arrays, _FLOATS)
        rest = dict(fields)
        pivot = parse_pivot(rest.pop("pivot"))
        everything: dict[str, Any] = {**arrays, **rest}
        certificate = cls(exact_pivot=pivot, **everything)
        if not all(math.isfinite(getattr(certificate, name)) for name in _NUMBERS):
            raise InputError("eps and delta must be finite.")
        return certificate

    def content_digest(self) -> str:
        """Return a hash of every field but the digest itself."""
        arrays = [getattr(self, name) for name in (*_FLOATS, "constraint_index")]
        rest = [*(float(getattr(self, name)).hex() for name in _NUMBERS), self.label, self.meta]
        return content_hash(arrays, rest, [";".join(written_pivot(self.exact_pivot))])

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

    def __repr__(self) -> str:
        return f"<NearKKTCertificate {self.summary()}>"


__all__: Sequence[str] = ["NearKKTCertificate"]
