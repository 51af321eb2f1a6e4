"""The Goldstein certificate: points near x, their gradients, weights that nearly cancel them."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from goldstein.certificates.export import export_proof, proved_eps
from goldstein.certificates.verifying import (
    Sampled,
    derived,
    digest_after,
    in_layout,
    layout_of,
    thinned,
    verified,
)
from goldstein.checker.arrays import Matrix, Vector
from goldstein.checker.function import Asked
from goldstein.checker.rounding import (
    combination_norm_upper,
    distances_upper,
    norm_upper,
    norms_upper,
)
from goldstein.checker.sampled import asked
from goldstein.checker.verification import Label, Verification
from goldstein.errors import GoldsteinError
from goldstein.numerics.hull import best_bound
from goldstein.oracles import Oracle
from goldstein.storage.codec import array, record

#: Gradients whose combination is this much shorter than they are cancel.
CANCELLED = 1e-3


@record
class GoldsteinCertificate(Sampled):
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
        smaller = thinned(self)
        delta = min(self.delta, max(distances_upper(smaller.points, self.x)))
        eps = combination_norm_upper(smaller.weights, smaller.gradients)
        return replace(smaller, delta=delta, eps=eps, digest=digest_after(self))

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
        found = verified(self, fun, jac, args, like=like, seed=seed, check_values=check_values)
        if self.descent is not None and found.delta < math.inf:
            layout = layout_of(self, like)
            _check_descent(found, self, asked(*derived(fun, jac, args, self.x, layout)))
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
        claim = {"kind": self.kind, "eps": eps, "delta": self.delta}
        return export_proof(path, fun, self.x, claim, evidence)

    def summary(self) -> str:
        """One line for people; what is not so comes first."""
        gradients = "1 gradient" if len(self.weights) == 1 else f"{len(self.weights)} gradients"
        claim = (
            f"({self.eps:.3g}, {self.delta:.3g})-Goldstein stationary, {gradients}, "
            f"{self.label} (fun and jac are believed){in_layout(self)}"
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
