"""Structured H-infinity synthesis: stabilise, then make the norm small, from several starts."""

from __future__ import annotations

import contextlib
import importlib
import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from goldstein.api import certify, minimize
from goldstein.api.certify import uninterrupted
from goldstein.certificates import GoldsteinCertificate
from goldstein.checker.arrays import Matrix, Vector
from goldstein.control.oracles import HInfNorm, abscissa
from goldstein.control.plant import Plant
from goldstein.control.proofs import NormBound, Stability, prove_norm, prove_stability
from goldstein.errors import GoldsteinError, InputError
from goldstein.numerics.streams import seed_from, stream
from goldstein.result import Result

#: The proved bound is the norm times this.
ROOM = 1.0 + 1e-6

#: Most calls of the stabilising phase, per start; and an abscissa that is low enough for it.
CALLS_TO_STABILISE, ENOUGH = 2_000, -0.1


@dataclass(frozen=True, eq=False)
class Design:
    """A controller, and what is known of it.

    Attributes
    ----------
    K : ndarray
        The feedback u = K y; with states [[D, C], [B, A]] of the controller.
    norm : float
        H-infinity norm of the closed loop, in float64.
    stability : Stability or None
        Proof by a Lyapunov matrix, in rationals.
    bound : NormBound or None
        Proof by a bounded real matrix that the norm is below `bound.gamma` = norm (1 + 1e-6).
    certificate : GoldsteinCertificate or None
        How stationary the norm is at K, given that it and its gradient are computed rightly (the
        label is "conditional").
    result : Result
        Of the best search.
    plant : Plant
        With the states of the controller.
    order : int
    norms : list of float
        What the other starts ended with.
    """

    K: Matrix
    norm: float
    stability: Stability | None
    bound: NormBound | None
    certificate: GoldsteinCertificate | None
    result: Result
    plant: Plant
    order: int
    norms: list[float]

    def controller(self) -> tuple[Matrix, Matrix, Matrix, Matrix]:
        """Return A, B, C, D of the controller."""
        m, p = (size - self.order for size in self.K.shape)
        return self.K[m:, p:], self.K[m:, :p], self.K[:m, p:], self.K[:m, :p]

    def to_control(self) -> Any:
        """Return the controller as a `control.StateSpace`; needs the package `control`."""
        return importlib.import_module("control").ss(*self.controller())


def synthesise(
    plant: Plant,
    order: int = 0,
    structure: ArrayLike | None = None,
    *,
    starts: int = 4,
    eps: float = 1e-4,
    delta: float = 1e-4,
    max_calls: int = 5_000,
    largest: float = 1e3,
    x0: ArrayLike | None = None,
    rng: Any = None,
) -> Design:
    """Return a stabilising feedback of a given structure whose H-infinity norm is small.

    The problem is not convex: the best of several starts is kept, and nothing is said about others.

    Parameters
    ----------
    plant : Plant
    order : int
        States of the controller; 0 is static output feedback.
    structure : array_like of bool, optional
        Free entries of K, or of [[D, C], [B, A]]; default all.
    starts : int
        Random starts; the first is 0.
    eps, delta : float
        Stationarity to reach.
    max_calls : int
        Per start.
    largest : float
        A search ends where an entry of K is as large: some norms fall as long as the gain grows.
    x0 : array_like, optional
        A first start, in the free entries.
    rng : int, Generator or None

    Examples
    --------
    >>> design = synthesise(Plant([[1.0]], [[1.0]], [[1.0]]), rng=0)
    >>> design.stability.verify(design.plant), design.bound.verify(design.plant)
    (True, True)
    >>> bool(design.norm < design.bound.gamma < 1.01 * design.norm)
    True
    """
    if isinstance(order, bool) or not isinstance(order, int) or order < 0:
        raise InputError(f"order must be an integer >= 0, got {order!r}.")
    plant = plant.with_states(order)
    norm, seed = HInfNorm(plant, structure), seed_from(rng)
    draws = stream(seed, 0, "control")
    first = np.zeros(norm.loop.dim) if x0 is None else np.array(x0, dtype=float).ravel()
    points = [first, *(draws.standard_normal(norm.dim) for _ in range(starts - 1))]
    asked: dict[str, Any] = {"eps": eps, "delta": delta, "rng": seed, "max_calls": max_calls}
    runs = []

    def too_large(x: Vector) -> bool:
        return bool(np.abs(x).max() > largest)

    for point in points:
        stable = stabilised(norm, point, seed)
        if stable is not None:
            runs.append(uninterrupted(minimize(norm, stable, callback=too_large, **asked)))
    if not runs:
        raise InputError(
            f"no stabilising feedback was found from {starts} starts; raise `starts` or `order`, "
            "or give x0. That none exists is not said."
        )
    best = min(runs, key=lambda run: run.fun)
    K, value = norm.gain(best.x), float(best.fun)
    claim = best.certificate
    # Float64 cannot sample a ball that is too small beside x, nor see steps below its rounding.
    around = delta * max(1.0, float(np.linalg.norm(best.x)))
    for factor in (1.0, 10.0, 100.0):
        if claim is None:
            with contextlib.suppress(GoldsteinError):
                claim = certify(norm, best.x, eps=eps, delta=factor * around, rng=seed)
    return Design(
        K, value, prove_stability(plant, K), prove_norm(plant, K, value * ROOM), claim, best, plant,
        order, sorted(float(run.fun) for run in runs),
    )  # fmt: skip


def stabilised(norm: HInfNorm, start: Vector, seed: int) -> Vector | None:
    """Return a feedback with a stable loop near a start, by its spectral abscissa, or None."""
    if math.isfinite(norm.value(start)):
        return start
    found = minimize(
        abscissa(norm.loop, ENOUGH), start, eps=1e-3, delta=1e-4, rng=seed,
        max_calls=CALLS_TO_STABILISE,
    )  # fmt: skip
    return found.x if math.isfinite(norm.value(found.x)) else None
