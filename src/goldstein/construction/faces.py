"""Cuts on the faces of a box: evidence for a minimum of a black box of declared curvature."""

from __future__ import annotations

import math
import time
from types import SimpleNamespace
from typing import Any

import numpy as np
from scipy.optimize import linprog

from goldstein.certificates.minimum import MinimumCertificate
from goldstein.checker.arrays import Vector
from goldstein.checker.minimum.box import check_box, consistent
from goldstein.checker.rationals import to_fractions
from goldstein.checker.rounding import combination_norm_upper
from goldstein.errors import InputError, KinkError, OutOfCalls
from goldstein.oracles import CountedOracle

#: Half widths of boxes that are tried, relative to the size of x; and calls for one of them.
WIDTHS = (0.3, 0.03, 0.003)
PER_FACE = 40

#: Calls that make the gap smaller once the faces are done.
AFTER = 30

#: A black box has this proof up to so many variables: calls grow like their square.
MOST = 40


class Cuts:
    """The cuts so far, as affine functions of t = z - y."""

    def __init__(self, f: CountedOracle, y: Vector, curvature: float) -> None:
        self.f, self.y, self.curvature, self.rho = f, y, curvature, max(0.0, -curvature)
        self.points: list[Vector] = []
        self.values: list[float] = []
        self.gradients: list[Vector] = []
        self.b: list[float] = []
        self.c: list[Vector] = []

    def add(self, point: Vector) -> None:
        try:
            value, g = self.f.value(point), self.f.gradient(point)
        except KinkError:
            return
        s = point - self.y
        self.points.append(point)
        self.values.append(value)
        self.gradients.append(g)
        self.b.append(float(value - g @ s - self.rho / 2 * s @ s))
        self.c.append(g + self.rho * s)

    def lowest(self, low: Vector, high: Vector) -> tuple[float, Vector, Vector]:
        """Return the least of the largest cut on a box, where it is, and the weights."""
        k, d = len(self.b), len(low)
        rows = np.column_stack([np.array(self.c), -np.ones(k)])
        bounds = [*zip(low, high), (None, None)]
        cost = np.append(np.zeros(d), 1.0)
        found = linprog(cost, A_ub=rows, b_ub=-np.array(self.b), bounds=bounds, method="highs")
        if found.x is None:
            return -math.inf, low, np.ones(k)
        weights = np.maximum(-found.ineqlin.marginals, 0.0)
        return found.fun, found.x[:d], weights if weights.any() else np.ones(k)


def prove_box(
    f: CountedOracle,
    x: Vector,
    curvature: float,
    hints: Any,
    eps: float,
    deadline: float = math.inf,
) -> MinimumCertificate | None:
    """Return a claim about a box around x, or about everything where f is convex; or None."""
    if x.size > MOST:
        return None
    for width in WIDTHS:
        cuts = Cuts(f, x, curvature)
        try:
            found = _tried(cuts, width * max(1.0, float(np.abs(x).max())), hints, eps)
        except OutOfCalls:
            found = None
        if not cuts.b:
            return None
        told = SimpleNamespace(points=np.array(cuts.points), curvature=curvature)
        obeyed, why = consistent(told, cuts.values, cuts.gradients, cuts.rho)
        if not obeyed:
            raise InputError(f"{why}.")
        if found is not None or time.perf_counter() > deadline:
            return found
    return None


def _tried(cuts: Cuts, width: float, hints: Any, eps: float) -> MinimumCertificate | None:
    here, r = cuts.f.value(cuts.y), np.full(cuts.y.size, width)
    for point in [*hints[:8], cuts.y]:
        cuts.add(np.asarray(point, dtype=float))
    weights = _faces(cuts, r, here) if cuts.b else None
    if weights is None:
        return None
    cert = _stated(cuts, r, weights, here, eps)
    return cert if check_box(cert, cuts.f).ok else None


def _faces(cuts: Cuts, r: Vector, here: float) -> list[Vector] | None:
    lost = cuts.rho / 2 * float(r @ r)
    found: list[Vector] = []
    for i in range(r.size):
        for sign in (-1.0, 1.0):
            low, high = -r.copy(), r.copy()
            low[i] = high[i] = sign * r[i]
            for _ in range(PER_FACE):
                bound, t, weights = cuts.lowest(low, high)
                if bound - lost > here + 1e-12 * (1.0 + abs(here)):
                    found.append(weights)
                    break
                if cuts.f.value(cuts.y + t) <= here:
                    return None  # the face is not higher
                before = len(cuts.b)
                cuts.add(cuts.y + t)
                if len(cuts.b) == before:
                    return None
            else:
                return None
    return found


def _stated(
    cuts: Cuts, r: Vector, faces: list[Vector], here: float, eps: float
) -> MinimumCertificate:
    small = 1e-12 * (1.0 + abs(here))
    for _ in range(AFTER):
        bound, t, weights = cuts.lowest(-r, r)
        if here - bound <= small:
            break
        cuts.add(cuts.y + t)
    bound, _, weights = cuts.lowest(-r, r)
    k = len(cuts.b)
    table = np.array([np.append(w, np.zeros(k - w.size)) for w in [*faces, weights]])
    gap = max(0.0, here - bound + cuts.rho / 2 * float(r @ r)) * (1 + 1e-9) + small
    convex, slopes = cuts.curvature >= 0, np.array(cuts.c)
    steep = combination_norm_upper(weights, slopes)
    steep += 2.0**-44 * float(np.abs(slopes).max())  # another machine rounds gradients otherwise
    return MinimumCertificate(
        x=cuts.y, exact_pivot=tuple(to_fractions(cuts.y)), delta=0.0, eps=max(eps, steep),
        radius=math.inf if convex else float(r.min()), gap=gap,
        within=float(np.linalg.norm(r)) * (1 + 2.0**-30), scope="global" if convex else "box",
        strict=True, unique=False, label="conditional", curvature=cuts.curvature, widths=r,
        points=np.array(cuts.points), weights=table,
    )  # fmt: skip
