"""The certificate of f + h, where h is a convex term known exactly.

With v fixed, the claim about f + h is a Goldstein claim about f(x) + <v, x>, and is decided as one;
what is left is that v is a subgradient of h, up to the Fenchel gap (`goldstein.checker.fenchel`).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from goldstein.certificates.export import NoProofFile
from goldstein.certificates.goldstein import GoldsteinCertificate, Renewable
from goldstein.certificates.kinds import Stored, content_hash, hold, require_finite, settle
from goldstein.checker.arrays import Matrix, Vector
from goldstein.checker.fenchel import fenchel_gap, term_share
from goldstein.checker.rounding import up
from goldstein.checker.verification import Label, Verification
from goldstein.constrained.box import as_box
from goldstein.display import PlottedCertificate
from goldstein.errors import GoldsteinError, InputError, InputTypeError
from goldstein.oracles import CountedOracle, Oracle, as_oracle
from goldstein.oracles.structure import Structure
from goldstein.oracles.tilted import Tilted
from goldstein.prox.term import Term, term_from_record

_ARRAYS = ("x", "points", "gradients", "weights", "subgradient")
_FIELDS = ("delta", "eps", "label", "meta", "digest")


def bounded_term(term: Term, bounds: Any, dim: int) -> Term:
    """Return a term of `plus=` with the bounds of the variables in it."""
    if bounds is None:
        return term
    box = as_box(bounds, dim)
    return term.bounded(box.lower, box.upper)


@dataclass(frozen=True, eq=False)
class PlusCertificate(Stored, NoProofFile, PlottedCertificate):
    """Proof that x is (eps, delta)-stationary for f + h.

    Some convex combination of gradients of f at points within `delta` of `x`, plus a subgradient
    of h at x or within `delta` of it, has norm at most `eps`. The stored `subgradient` v is one of
    h at x if the Fenchel gap h(x) + h*(v) - <v, x> is 0; where rounding leaves a gap, gap / delta
    is part of `eps`.

    Attributes
    ----------
    x : ndarray, shape (d,)
    delta, eps : float
    points, gradients : ndarray, shape (k, d)
        Gradients of f alone.
    weights : ndarray, shape (k,)
    subgradient : ndarray, shape (d,)
        Of h.
    term : Term
        h, by name and parameters.
    label, meta, digest
        As in `GoldsteinCertificate`.

    Examples
    --------
    >>> import goldstein as gs
    >>> f, grad = lambda x: 0.5 * (x - [3.0, 0.5]) @ (x - [3.0, 0.5]), lambda x: x - [3.0, 0.5]
    >>> res = gs.minimize(f, [1.0, 1.0], grad, plus=gs.prox.l1(1.0), eps=1e-6, delta=1e-6, rng=0)
    >>> res.x[1], res.certificate.verify(f, grad).ok
    (np.float64(0.0), True)
    """

    kind: ClassVar[str] = "plus"

    x: Vector
    delta: float
    eps: float
    points: Matrix
    gradients: Matrix
    weights: Vector
    subgradient: Vector
    term: Term
    label: Label = "conditional"
    meta: dict[str, Any] = field(default_factory=dict)
    digest: str = ""

    def __post_init__(self) -> None:
        hold(self, _ARRAYS)
        k, d = self.weights.size, self.x.size
        shapes = [(d,), (k, d), (k, d), (k,), (d,)]
        for name, shape in zip(_ARRAYS, shapes):
            if getattr(self, name).shape != shape:
                found = getattr(self, name).shape
                raise InputError(f"{name} of this certificate has shape {found}, not {shape}.")
        if not isinstance(self.term, Term):
            raise InputTypeError(f"term must be one of gs.prox, got {type(self.term).__name__}.")
        self.term.check(d)
        settle(self)

    @classmethod
    def from_tilted(
        cls,
        tilted: GoldsteinCertificate,
        gradients: Matrix,
        subgradient: Vector,
        term: Term,
        delta: float,
    ) -> PlusCertificate:
        """Make a claim about f + h of one about f(x) + <subgradient, x>.

        Where v is no subgradient at x itself, the ball of radius `delta` that was asked for is
        stated: a gap counts less in a larger ball.
        """
        rows, record = gradients + subgradient, term.to_record()
        exact = fenchel_gap(record, tilted.x, subgradient) == (0.0, 0.0)
        radius = tilted.delta if exact else max(tilted.delta, delta)
        extra = term_share(record, tilted.x, subgradient, radius, tilted.weights, rows)
        return cls(
            x=tilted.x, delta=radius, eps=up(tilted.eps + extra), points=tilted.points,
            gradients=gradients, weights=tilted.weights, subgradient=subgradient, term=term,
            meta=tilted.meta,
        )  # fmt: skip

    def verify(
        self,
        fun: Oracle | Callable[..., Any],
        jac: Callable[..., Any] | bool | None = None,
        args: Sequence[Any] = (),
        *,
        plus: Term | None = None,
        seed: int | None = None,
        check_values: bool = True,
    ) -> Verification:
        """Re-derive every number from f and from the term.

        Parameters
        ----------
        fun, jac, args
            f, as in `minimize`.
        plus : Term, optional
            The term that the claim should be about. Without it the stored one is shown, and it is
            for the reader to see that it is the right one.
        seed, check_values
            As for a Goldstein certificate.
        """
        found = Verification(eps=math.inf, delta=math.inf, label="conditional")
        sealed = self.digest == self.content_digest()
        found.add(
            "content", sealed, "unaltered" if sealed else "a field was changed after it was made"
        )
        same = plus is None or plus == self.term
        asked = "as stored; give plus= to have it compared" if plus is None else "as asked for"
        found.add("term", same, f"{self.term!r}, " + (asked if same else f"asked for was {plus!r}"))
        rows = self.gradients + self.subgradient
        term_from_record(self.term.to_record())  # refuses parameters that make no term
        finite = all(np.isfinite(getattr(self, name)).all() for name in _ARRAYS)
        finite = finite and 0.0 < self.delta < math.inf and 0.0 <= self.eps < math.inf
        if not found.add("numbers", finite, "finite" if finite else "not finite"):
            return found
        extra = term_share(
            self.term.to_record(), self.x, self.subgradient, self.delta, self.weights, rows
        )
        left = math.nextafter(self.eps - extra, -math.inf) if extra else self.eps
        if not found.add(
            "subgradient",
            left >= 0.0,
            f"of the term at x, up to {extra:.3g} of eps"
            if extra < math.inf
            else "no subgradient of the term at x, or x is outside its domain",
        ):
            return found
        tilted = GoldsteinCertificate(
            self.x, self.delta, left, self.points, rows, self.weights, self.label,
            {key: value for key, value in self.meta.items() if key != "structure"},
        )  # fmt: skip
        layout = self.meta.get("structure")
        structure = None if layout is None else Structure.read(layout)
        base = as_oracle(fun, jac, args, structure)
        if isinstance(base, Renewable):
            base = base.anew()  # nothing that a search may have written is read
        oracle = CountedOracle(base)
        inner = tilted.verify(
            Tilted(oracle, self.subgradient), seed=seed, check_values=check_values
        )
        found.checks += [check for check in inner.checks if check.name not in ("content",)]
        found.eps, found.delta = inner.eps + extra, inner.delta
        try:
            oracle.require_visible(self.x, self.delta)
        except GoldsteinError as failure:
            found.add("precision", False, str(failure))
        return found

    def to_record(self) -> tuple[str, dict[str, NDArray[Any]], dict[str, Any]]:
        """Return (kind, arrays, JSON fields) for the file."""
        fields = {name: getattr(self, name) for name in _FIELDS}
        arrays = {name: getattr(self, name) for name in _ARRAYS}
        return self.kind, arrays, fields | {"term": self.term.to_record()}

    @classmethod
    def from_record(
        cls, arrays: dict[str, NDArray[Any]], fields: dict[str, Any]
    ) -> PlusCertificate:
        """Rebuild from what `to_record` gave; a file that lacks or adds something is refused."""
        if set(arrays) != set(_ARRAYS) or set(fields) != {*_FIELDS, "term"}:
            raise InputError("these are not the arrays and fields of a certificate of f + h.")
        if not fields["digest"]:
            raise InputError("the digest is missing.")
        require_finite(arrays, arrays)
        everything: dict[str, Any] = {
            **arrays, **fields, "term": term_from_record(fields["term"])
        }  # fmt: skip
        certificate = cls(**everything)
        if not (math.isfinite(certificate.eps) and math.isfinite(certificate.delta)):
            raise InputError("eps and delta must be finite.")
        return certificate

    def content_digest(self) -> str:
        """Return a hash of every field but the digest itself."""
        numbers = [float(self.delta).hex(), float(self.eps).hex()]
        rest = [*numbers, self.label, self.meta, self.term.to_record()]
        return content_hash([getattr(self, name) for name in _ARRAYS], rest)

    def summary(self) -> str:
        """One line for people."""
        return (
            f"({self.eps:.3g}, {self.delta:.3g})-stationary for f + {self.term!r}, "
            f"{self.term.structure(self.x)}, {self.label} (fun and jac are believed)"
        )

    def __repr__(self) -> str:
        return f"<PlusCertificate {self.summary()}>"
