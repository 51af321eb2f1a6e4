"""The certificate of f + h, where h is a convex term known exactly.

With v fixed, the claim about f + h is a Goldstein claim about f(x) + <v, x>, and is decided as one;
what is left is that v is a subgradient of h, up to the Fenchel gap (`goldstein.checker.fenchel`).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from goldstein.certificates.export import export_proof, proved_eps, texts, written
from goldstein.certificates.goldstein import GoldsteinCertificate
from goldstein.certificates.verifying import Sampled, in_layout, verified
from goldstein.checker.arrays import Matrix, Vector
from goldstein.checker.constrained.box import as_box
from goldstein.checker.fenchel import fenchel_gap, term_share
from goldstein.checker.rounding import combination_norm_upper, norms_upper, up
from goldstein.checker.verification import Verification
from goldstein.errors import InputTypeError
from goldstein.numerics.hull import SOLVED
from goldstein.oracles import Oracle
from goldstein.prox.term import Term, term_from_record
from goldstein.storage.codec import array, record, text


def bounded_term(term: Term, bounds: Any, dim: int) -> Term:
    """Return a term of `plus=` with the bounds of the variables in it."""
    if bounds is None:
        return term
    box = as_box(bounds, dim)
    return term.bounded(box.lower, box.upper)


@record
class PlusCertificate(Sampled):
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

    subgradient: Vector = array("d")
    term: Term = text(lambda term: term.to_record(), term_from_record)

    def __post_init__(self) -> None:
        if not isinstance(self.term, Term):
            raise InputTypeError(f"term must be one of gs.prox, got {type(self.term).__name__}.")
        self.term.check(np.size(self.x))
        super().__post_init__()

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
        # g_j + v is rounded; a check adds up the g_j and v, and its bound allows for that.
        total = math.fsum(tilted.weights.tolist())
        own = combination_norm_upper(
            np.append(tilted.weights, total), np.concatenate([gradients, subgradient[None]])
        )
        eps = max(tilted.eps, up(2.0 * own, 2.0**-40))
        if len(gradients) > 1:  # weights that are chosen anew do no better
            eps += SOLVED * max(norms_upper(gradients))
        return cls(
            x=tilted.x, delta=radius, eps=up(up(eps + extra)), points=tilted.points,
            gradients=gradients, weights=tilted.weights, subgradient=subgradient, term=term,
            meta=tilted.meta, layout=tilted.layout, own_layout=tilted.own_layout,
        )  # fmt: skip

    def verify(
        self,
        fun: Oracle | Callable[..., Any],
        jac: Callable[..., Any] | bool | None = None,
        args: Sequence[Any] = (),
        *,
        plus: Term | None = None,
        like: Any = None,
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
        like, seed, check_values
            As for a Goldstein certificate.
        """
        record = (self.term if plus is None else plus).to_record()
        return verified(
            self, fun, jac, args, like=like, seed=seed, check_values=check_values, plus=record
        )

    def export(self, path: str | Path, fun: Any) -> Path:
        """Write certificate, function and term to one file that `goldstein-check` decides.

        Parameters
        ----------
        path : str or Path
            The suffix .json is added if there is none; one that ends in .gz is compressed.
        fun : Expression
            f alone.
        """
        term = self._written_term()
        gap, away = fenchel_gap(self.term.to_record(), self.x, self.subgradient)
        share = up(gap / (self.delta - away)) if gap else 0.0
        own = proved_eps(fun, self, max(0.0, self.eps - share), self.subgradient)
        claim = {"kind": self.kind, "eps": max(self.eps, up(own + share)), "delta": self.delta}
        evidence = {
            "points": self.points, "weights": self.weights, "subgradient": self.subgradient
        }  # fmt: skip
        return export_proof(path, fun, self.x, claim, evidence, term=term)

    def _written_term(self) -> dict[str, Any]:
        """The term as docs/proof_files.md has it."""
        record, d = self.term.to_record(), self.x.size
        if record["name"] == "nuclear":
            # X is about LR', the sum of its singular values (|L|^2 + |R|^2)/2.
            rows, columns = (int(n) for n in record["shape"])
            U, s, W = np.linalg.svd(self.x.reshape(rows, columns), full_matrices=False)
            sides = {"left": U * np.sqrt(s), "right": W.T * np.sqrt(s)}
            numbers = texts({"weight": float(record["weight"]), **sides})
            return {"name": "nuclear", "rows": rows, "columns": columns, **numbers}

        def each(name: str, default: float, size: int) -> Any:
            values = np.broadcast_to(np.asarray(record.get(name, default), dtype=float), (size,))
            return texts(values)

        if record["name"] == "simplex":
            return {"name": "simplex", "total": written(float(record["total"]))}
        if record["name"] == "group_l2":
            groups = [[int(i) for i in group] for group in record["groups"]]
            weight = each("weight", 1.0, len(groups))
            return {"name": "group_l2", "groups": groups, "weight": weight}
        sides = {"weight": 0.0, "lower": -math.inf, "upper": math.inf}
        return {"name": "l1_box", **{name: each(name, at, d) for name, at in sides.items()}}

    def summary(self) -> str:
        """One line for people."""
        return (
            f"({self.eps:.3g}, {self.delta:.3g})-stationary for f + {self.term!r}, "
            f"{self.term.structure(self.x)}, {self.label} (fun and jac are believed)"
            f"{in_layout(self)}"
        )
