"""The Goldstein certificate: points near x, their gradients, weights that nearly cancel them.

The certificate of f + h, where h is a convex term known exactly.

With v fixed, the claim about f + h is a Goldstein claim about f(x) + <v, x>, and is decided as one;
what is left is that v is a subgradient of h, up to the Fenchel gap (`goldstein.checker.fenchel`).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from goldstein.certificates import verifying
from goldstein.certificates.export import export_proof, proved_eps, texts, written
from goldstein.checker.arrays import Matrix, Vector
from goldstein.checker.constrained.limits import as_box
from goldstein.checker.fenchel import fenchel_gap, term_share
from goldstein.checker.function import Asked
from goldstein.checker.rounding import (
    combination_norm_upper,
    distances_upper,
    norm_upper,
    norms_upper,
    up,
)
from goldstein.checker.sampled import asked
from goldstein.checker.verification import Label, Verification
from goldstein.errors import GoldsteinError, InputTypeError
from goldstein.numerics.hull import SOLVED, best_bound
from goldstein.oracles import Oracle
from goldstein.prox.term import Term, term_from_record
from goldstein.storage.codec import array, record, text

#: Gradients whose combination is this much shorter than they are cancel.
CANCELLED = 1e-3


@record
class GoldsteinCertificate(verifying.Sampled):
    """Proof that x is (eps, delta)-Goldstein stationary.

    Each point y_j lies within `delta` of `x`, g_j is the gradient there, and the convex
    combination of the g_j with `weights` has norm at most `eps`. Both numbers are upper bounds in
    float64. Nothing else is needed to believe the claim: neither a Lipschitz constant nor trust in
    the solver.

    Attributes
    ----------
    x : ndarray, shape (d,)
    delta, eps : float
    points, gradients : ndarray, shape (k, d)
    weights : ndarray, shape (k,)
    label : str
        `conditional` for a black box: the algebra is checked, the gradients are believed.
    meta : dict
        JSON-able remarks: function name, seed, how it was found.
    descent : ndarray or None
        A unit direction along which f falls, if one was met; how far along is
        `meta["descent_step"]`.
    digest : str
        Hash of all other fields, made at construction; a later change of any field shows.
    """

    kind: ClassVar[str] = "goldstein"

    descent: Vector | None = array("d", default=None)

    @classmethod
    def from_gradients(
        cls,
        x: Vector,
        points: Matrix,
        gradients: Matrix,
        weights: Vector | None = None,
        *,
        label: Label = "conditional",
        meta: dict[str, Any] | None = None,
        descent: Vector | None = None,
    ) -> GoldsteinCertificate:
        """Make the strongest claim these gradients support, rounded up."""
        bound, best = best_bound(gradients)
        if weights is not None and combination_norm_upper(weights, gradients) < bound:
            best = weights
        used = best > 0
        points, gradients, best = points[used], gradients[used], of_sum_one(best[used])
        return cls(
            x, max(distances_upper(points, x)), combination_norm_upper(best, gradients), points,
            gradients, best, label=label, meta=dict(meta or {}), descent=descent,
        )  # fmt: skip

    def reduce(self) -> GoldsteinCertificate:
        """Return an equivalent certificate with at most d + 1 points (Caratheodory).

        The combination is kept up to rounding, or shortened; `eps` is recomputed for the stored
        numbers. The new certificate is as good as this one: an altered one stays altered.
        """
        smaller = verifying.thinned(self)
        delta = min(self.delta, max(distances_upper(smaller.points, self.x)))
        eps = combination_norm_upper(smaller.weights, smaller.gradients)
        return replace(smaller, delta=delta, eps=eps, digest=verifying.digest_after(self))

    def verify(
        self,
        fun: Oracle | Callable[..., Any],
        jac: Callable[..., Any] | bool | None = None,
        args: Sequence[Any] = (),
        *,
        like: Any = None,
        seed: int | None = None,
        check_values: bool = True,
    ) -> Verification:
        """Re-derive every number of the certificate from the function.

        The gradients are asked for again, at the stored points and at random displacements of them
        within the ball: a stored point that sits exactly on a kink, where a program may return
        anything, does not survive the displacement. The weights are chosen anew there, because any
        convex combination of gradients from the ball proves the claim. Values must agree with
        gradients, for steps that are short against the ball.

        Parameters
        ----------
        fun, jac, args
            As in `minimize`.
        like : array, dict, list or tuple of arrays, optional
            A point in the layout that `fun` is written for; a vector by default. The layout is
            part of the claim.
        seed : int, optional
            Seed of the displacements. By default they are not predictable, so that nobody can
            prepare a certificate for them.
        check_values : bool
            Compare differences of values with the gradients.

        Returns
        -------
        Verification
        """
        found = verifying.verified(
            self, fun, jac, args, like=like, seed=seed, check_values=check_values
        )
        if self.descent is not None and found.delta < math.inf:
            layout = verifying.layout_of(self, like)
            _check_descent(found, self, asked(*verifying.derived(fun, jac, args, self.x, layout)))
        if getattr(fun, "is_written", False) and found.ok:
            from goldstein.calculus.domains import undefined_in

            if missing := undefined_in(fun, np.ravel(self.x), self.delta):  # type: ignore[arg-type]
                found.add("domain", False, f"in the ball there may be {missing}")
        return found

    def export(self, path: str | Path, fun: Any) -> Path:
        """Write certificate and function to one readable file that `goldstein-check` decides.

        Parameters
        ----------
        path : str or Path
            The suffix .json is added if there is none.
        fun : Expression
            The function that the certificate is about; its kinks must be known. The claim in the
            file is about exact gradients: its eps may exceed this one by rounding errors.
        """
        eps = proved_eps(fun, self, self.eps)
        evidence = {"points": self.points, "weights": self.weights}
        return export_proof(path, fun, self, evidence, {"eps": eps, "delta": self.delta})

    def summary(self) -> str:
        """One line for people; what is not so comes first."""
        gradients = "1 gradient" if len(self.weights) == 1 else f"{len(self.weights)} gradients"
        claim = (
            f"({self.eps:.3g}, {self.delta:.3g})-Goldstein stationary, {gradients}, "
            f"{self.label} (fun and jac are believed){verifying.in_layout(self)}"
        )
        return f"{self._verdict()}; proved: {claim}" if self._verdict() else claim

    @property
    def is_short(self) -> bool:
        """Is the bound small against the gradients: do they cancel?"""
        longest = max(norms_upper(self.gradients), default=0.0)
        return self.eps <= CANCELLED * longest or self.eps == 0.0

    def _verdict(self) -> str:
        """What was asked of `certify` and is not so."""
        asked, step = self.meta.get("asked_eps"), self.meta.get("descent_step")
        missed = isinstance(asked, float) and self.eps > asked
        if self.descent is not None and isinstance(step, float):
            bound = f" to eps = {asked:g}" if missed else ""
            fall = self.meta.get("descent_fall")
            by = f" by {fall:.3g}" if isinstance(fall, float) else ""
            along = np.array2string(self.descent, threshold=6, edgeitems=2, precision=3)
            if not missed and self.is_short:
                return f"not a minimum: f falls along {along}{by} in a step of {step:.3g}"
            within = self.meta.get("asked_delta")
            within = within if isinstance(within, float) else self.delta
            return (
                f"NOT stationary{bound} within delta = {within:.3g}: f falls along {along}{by} "
                f"in a step of {step:.3g}"
            )
        return f"NOT proved stationary to eps = {asked:g}" if missed else ""


def of_sum_one(weights: Vector) -> Vector:
    """Return the weights divided by their sum; themselves where that changes nothing."""
    total = weights.sum()
    return weights if total == 1.0 else weights / total


def _check_descent(found: Verification, cert: GoldsteinCertificate, f: Asked) -> None:
    """The direction is advice, not part of the claim; but what is stored must be true."""
    assert cert.descent is not None
    step: Any = cert.meta.get("descent_step")
    length = norm_upper(cert.descent)
    usable = isinstance(step, float) and 0 < step < math.inf and abs(length - 1.0) <= 1e-9
    if not found.add("direction", usable, "unit length" if usable else "no unit direction or step"):
        return
    try:
        here, there = f.value(cert.x), f.value(cert.x + step * cert.descent)
    except GoldsteinError as failure:
        found.add("descent", False, f"the function could not be evaluated: {failure}")
        return
    found.add("descent", there < here, f"f goes from {here:.6g} to {there:.6g} along it")


def bounded_term(term: Term, bounds: Any, dim: int) -> Term:
    """Return a term of `plus=` with the bounds of the variables in it."""
    if bounds is None:
        return term
    box = as_box(bounds, dim)
    return term.bounded(box.lower, box.upper)


@record
class PlusCertificate(verifying.Sampled):
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
        bounds: Any = None,
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
        bounds
            Those of the run, which are part of the term.
        like, seed, check_values
            As for a Goldstein certificate.
        """
        term = self.term if plus is None else bounded_term(plus, bounds, self.x.size)
        return verifying.verified(
            self, fun, jac, args, like=like, seed=seed, check_values=check_values,
            plus=term.to_record(),
        )  # fmt: skip

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
        claim = {"eps": max(self.eps, up(own + share)), "delta": self.delta}
        evidence = {name: getattr(self, name) for name in ("points", "weights", "subgradient")}
        return export_proof(path, fun, self, evidence, claim, term=term)

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
            f"{verifying.in_layout(self)}"
        )
