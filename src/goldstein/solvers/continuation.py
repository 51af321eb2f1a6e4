"""A run that has its certificate goes on as long as f keeps falling cheaply.

A certificate can be true and useless: where gradients are as small as eps, far from any minimum,
every point has one. So the first certificate is held, the search is asked for a tenth of its eps
and delta, and its answer counts instead when f does not fall any more, or not fast enough. Where
the certificate itself bounds the optimality gap by little, the run ends with it: of a convex f, the
gradients g_j at points y_j with weights w_j say for every z

    f(z) >= f(x) - |sum w_j g_j| |z - x| - sum w_j (f(x) - f(y_j) - <g_j, x - y_j>),

so that no point within a distance has a value that is lower by more than what stands there.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from goldstein.checker.arrays import Matrix, Vector
from goldstein.oracles import CountedOracle
from goldstein.result import Status
from goldstein.solvers.base import Request, Solver, State

#: What counts is this part of the whole fall of f: as what a certificate leaves to be gained, and
#: as what the last third or so of the steps has gained.
SHARE = 1e-3
#: And this part of eps delta at least: after a warm start there is no whole fall to speak of.
LEAST = 0.1
#: The search is asked for an accuracy that is finer by this factor, but not below that part.
FINER, FINEST = 0.1, 1e-3
#: Before this many calls nobody knows whether f falls.
EARLY = 40
#: Whenever f falls, the search gets this part of its calls more.
MORE = 0.25
#: Where f has shown that it is not convex, what a certificate says of the gap is not to be
#: believed: the search gets this many calls to show what else there is.
PATIENCE = 200
#: Unless it is smaller by this factor: then there is nothing near that would be worth it.
DOUBTED = 0.1
#: A run may take this many times the calls of its first certificate, and that many more; called
#: back, it may take that many more to certify what it has found.
LONGEST, SHORTEST = 4, 1000
#: A search looks as far as this part of the start's length, or of 1, at least.
REACH = 0.1
#: f is not convex, as seen from the heaviest points of the support, where this part of the
#: gradients says so on average, and no fewer of them.
ODD, LEAST_ODD, SEEN_FROM = 0.035, 2, 8
#: A gradient says so where the cosine between its change and the offset is below minus this.
COSINE = 1e-3
#: Numbers that are copied at a time.
_AT_ONCE = 1_000_000


@dataclass(frozen=True)
class Held:
    """A certificate in hand, and the point that it is about."""

    x: Vector
    fx: float
    certificate: Any


class Continuation:
    """Decides after a certificate whether to go on, and while going on when to stop."""

    def __init__(self, solver: Solver, request: Request) -> None:
        self.solver = solver
        self.request = request
        self.held: Held | None = None
        self._start: tuple[Vector, float]
        self._oracle: CountedOracle
        self._finer = 1.0
        self._lowest = float("inf")
        #: What a certificate says of the gap is not to be believed.
        self._nonconvex = False
        #: The call at which the search is called back, unless f falls; and at which it is anyway.
        self._until = self._limit = 0

    def begins(self, state: State, oracle: CountedOracle) -> None:
        """Note where the run begins."""
        self._start, self._oracle = (state.x.copy(), state.fx), oracle

    def after(self, certificate: Any, state: State) -> bool:
        """Say whether the run goes on although it has this certificate."""
        calls = self._oracle.calls
        first = self.held is None
        if not first and self._finer == 1.0:
            return False  # it was called back to certify, and has
        self.held = Held(state.x.copy(), state.fx, certificate)
        if first:
            # After a warm start f has not fallen so far that a share of that counts.
            come_down = self._least(state) == SHARE * self._fall(state)
            self._nonconvex = come_down and contradicts_convexity(
                certificate, *self.solver.known(state)
            )
        enough = self._least(state) * (DOUBTED if self._nonconvex else 1.0)
        if optimality_gap(certificate, self._start[0]) <= enough:
            return False
        if first:
            self._until, self._limit = EARLY, LONGEST * calls + SHORTEST
            if self._nonconvex:
                self._until = calls + PATIENCE
        self._extend(state, calls)
        self._finer *= FINER
        # More than the certificate says.
        eps, delta = self.request.eps, self.request.delta
        while self._finer >= FINEST and (
            certificate.eps <= self._finer * eps and certificate.delta <= self._finer * delta
        ):
            self._finer *= FINER
        more = self._finer >= FINEST and calls < min(self._until, self._limit)
        return more and self._aim(state, self._finer)

    def watch(self, state: State) -> None:
        """Call the search back to what was asked for when f does not fall any more."""
        calls = self._oracle.calls
        if self.held is None or state.midway:
            return
        if state.fx < self._lowest:
            self._extend(state, calls)
        if self._finer == 1.0:
            if calls >= self._limit:
                state.status = Status.STALLED  # what is in hand will do
        elif calls >= min(self._until, self._limit):
            self._finer = 1.0
            self._limit = calls + SHORTEST
            self._aim(state, 1.0)

    def answer(self, state: State) -> Any:
        """Return the certificate that was kept, and take the run back to its point."""
        assert self.held is not None
        state.x, state.fx = self.held.x, self.held.fx
        return self.held.certificate

    def _extend(self, state: State, calls: int) -> None:
        """Let the search have more calls if f falls."""
        self._lowest = state.fx
        if state.earlier - state.fx > self._least(state):
            self._until = max(self._until, int((1.0 + MORE) * calls))

    def _least(self, state: State) -> float:
        """Return the smallest change of f that counts."""
        return max(SHARE * self._fall(state), LEAST * self.request.eps * self.request.delta)

    def _fall(self, state: State) -> float:
        return self._start[1] - state.fx

    def _aim(self, state: State, finer: float) -> bool:
        return self.solver.retarget(state, finer * self.request.eps, finer * self.request.delta)


def optimality_gap(certificate: Any, start: Vector) -> float:
    """Return by how much a convex f may be lower than at x, as far from it as the start is."""
    x, gradients = certificate.x, certificate.gradients
    # f(x) - f(y_j) is at most the largest of <g, x - y_j> over the gradients that matter around x.
    rises = gradients @ x - certificate.points @ gradients.T
    errors = rises.max(axis=1) - rises.diagonal()
    offset = x - start
    reach = max(math.sqrt(offset @ offset), REACH * max(1.0, math.sqrt(start @ start)))
    return float(certificate.eps * reach + certificate.weights @ errors)


def contradicts_convexity(certificate: Any, points: Matrix, gradients: Matrix) -> bool:
    """Are there gradients that no convex f has, as seen from the support of the certificate?"""
    heaviest = np.argsort(-certificate.weights, kind="stable")[:SEEN_FROM].tolist()
    odd = np.zeros(len(heaviest), dtype=int)
    width = max(1, _AT_ONCE // certificate.x.size)
    for first in range(0, len(points), width):
        for place, j in enumerate(heaviest):
            offset = points[first : first + width] - certificate.points[j]
            change = gradients[first : first + width] - certificate.gradients[j]
            inner = np.einsum("ij,ij->i", offset, change)
            squares = np.einsum("ij,ij->i", offset, offset) * np.einsum("ij,ij->i", change, change)
            odd[place] += np.count_nonzero(inner < -COSINE * np.sqrt(squares))
    return bool(odd.mean() >= max(LEAST_ODD, ODD * len(points)))
