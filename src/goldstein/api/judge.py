"""The certificate layer's answer to a solver's evidence."""

from __future__ import annotations

import contextlib
import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from goldstein.certificates import GoldsteinCertificate
from goldstein.errors import KinkError, OutOfCalls
from goldstein.numerics.ball import uniform_in_ball
from goldstein.numerics.rounding import distance_upper
from goldstein.numerics.streams import stream
from goldstein.oracles import CountedOracle, Oracle
from goldstein.solvers import Evidence, Request, Solver
from goldstein.solvers.loop import Outcome

Vector = NDArray[np.float64]
Matrix = NDArray[np.float64]

#: Points a solver queried at unperturbed places are displaced by this part of delta.
JITTER = 1e-3

#: The others too, by a hair: that they were drawn at random is only what the solver says.
HAIR = 2.0**-30

#: And by no less than this part of the point: many times what `verify` displaces by, or a point
#: so close to a kink would fail there every second time.
VISIBLE = 2.0**-38

#: Displacements tried where one meets a kink: in float64 that can happen, twice hardly.
DRAWS = 3


class Judge:
    """The certificate layer's answer to evidence: ask the function again, and decide."""

    def __init__(self, oracle: CountedOracle, request: Request, meta: dict[str, Any]) -> None:
        self.oracle = oracle
        self.request = request
        self.meta = meta
        self.trials = 0

    def __call__(
        self, evidence: Evidence
    ) -> tuple[GoldsteinCertificate | None, tuple[Matrix, Matrix] | None]:
        certificate, fresh = self.weigh(evidence)
        good = certificate is not None and certificate.eps <= self.request.eps
        return (certificate, None) if good else (None, fresh)

    def weigh(
        self, evidence: Evidence
    ) -> tuple[GoldsteinCertificate | None, tuple[Matrix, Matrix]]:
        """Return the strongest certificate at fresh gradients of the evidence's points."""
        self.trials += 1
        rng = stream(self.request.seed, self.trials, "judge")
        points, gradients = [], []
        for y, safe in zip(evidence.points, evidence.perturbed):
            share = HAIR if safe else JITTER
            for _ in range(DRAWS):
                z = _displace(rng, y, evidence.x, self.request.delta, share)
                if distance_upper(z, evidence.x) > self.request.delta:
                    break
                with contextlib.suppress(KinkError):
                    gradients.append(self.oracle.gradient(z))
                    points.append(z)
                    break
        if not points:
            empty = np.zeros((0, evidence.x.size))
            return None, (empty, empty)
        self.oracle.require_visible(evidence.x, self.request.delta)
        fresh = np.array(points), np.array(gradients)
        return GoldsteinCertificate.from_gradients(evidence.x, *fresh, meta=self.meta), fresh


def _displace(rng: np.random.Generator, y: Vector, x: Vector, delta: float, share: float) -> Vector:
    """Move y at random by this share of delta (and no less than `verify` sees), in the ball."""
    offset = y - x
    visible = VISIBLE * float(np.abs(y).max(initial=0.0))
    reach = max(share * delta, min(visible, JITTER * delta))
    room = delta - 2.0 * reach
    distance = math.sqrt(offset @ offset)
    if distance > room:
        offset *= room / distance
    return uniform_in_ball(rng, x + offset, reach)


def last_evidence(
    solver: Solver, outcome: Outcome, judge: Judge
) -> tuple[GoldsteinCertificate | None, bool]:
    """A run without success still says what it can prove, with the calls that are left.

    The second answer says whether the gradients were asked for again.
    """
    evidence = solver.best_evidence(outcome.state)
    if evidence is None or not np.array_equal(evidence.x, outcome.state.x):
        return None, False
    try:
        return judge.weigh(evidence)[0], True
    except OutOfCalls:
        safe = evidence.perturbed
        if evidence.gradients is None or not safe.any():
            return None, False
        certificate = GoldsteinCertificate.from_gradients(
            evidence.x, evidence.points[safe], evidence.gradients[safe], meta=judge.meta
        )
        return certificate, False


def describe(oracle: Oracle, method: str, seed: int, given: Any) -> dict[str, Any]:
    meta = {"function": oracle.name, "method": method, "seed": seed}
    dtype = getattr(given, "dtype", None)
    if dtype is not None and dtype != np.float64:
        meta["converted_from"] = str(dtype)
    return meta
