"""A run that has its certificate goes on as long as f keeps falling cheaply.

A certificate can be true and useless: where gradients are as small as eps, far from any minimum,
every point has one. So the first certificate is kept, the search is asked for a tenth of its eps
and delta, and its answer counts instead when f does not fall any more, or not fast enough.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from goldstein.checker.arrays import Vector
from goldstein.solvers.base import Request, Solver, State

#: f falls while the last fifth or so of the calls has lowered it by this share of the whole fall.
SHARE = 1e-3
#: The search is asked for an accuracy that is finer by this factor.
FINER = 0.1
#: Before this many calls nobody knows whether f falls.
EARLY = 40
#: A run may take this many times the calls of its first certificate, and that many more.
LONGEST, SHORTEST = 4, 1000


@dataclass(frozen=True)
class Held:
    """A certificate in hand, and the point that it is about."""

    x: Vector
    fx: float
    certificate: Any


class GoingOn:
    """Decides after a certificate whether to go on, and while going on when to stop."""

    def __init__(self, solver: Solver, request: Request) -> None:
        self.solver = solver
        self.request = request
        self.held: Held | None = None
        self._finer = 1.0
        self._start = 0.0
        self._limit = 0

    def begins(self, state: State) -> None:
        """Note where the run begins."""
        self._start = state.fx

    def after(self, certificate: Any, state: State, calls: int) -> bool:
        """Say whether the run goes on although it has this certificate."""
        if self.held is None:
            self._limit = LONGEST * calls + SHORTEST
        elif self._finer == 1.0:
            return False  # it was called back to certify, and has
        self.held = Held(state.x.copy(), state.fx, certificate)
        self._finer *= FINER
        if self._meets(certificate):
            return False
        return self._falls(state, calls) and self._aim(state, self._finer)

    def watch(self, state: State, calls: int) -> None:
        """Call the search back to what was asked for when f does not fall any more."""
        if self.held is not None and self._finer < 1.0 and not self._falls(state, calls):
            self._finer = 1.0
            self._aim(state, 1.0)

    def answer(self, state: State) -> Any:
        """Return the certificate that was kept, and take the run back to its point."""
        assert self.held is not None
        state.x, state.fx = self.held.x, self.held.fx
        return self.held.certificate

    def _falls(self, state: State, calls: int) -> bool:
        # A fall below eps delta is what the certificate allows for; a warm start sees no other.
        least = max(SHARE * (self._start - state.fx), self.request.eps * self.request.delta)
        falls = calls < EARLY or state.earlier - state.fx > least
        return falls and calls < self._limit

    def _meets(self, certificate: Any) -> bool:
        """Is it as fine as what the search would be asked for?"""
        eps, delta = self._finer * self.request.eps, self._finer * self.request.delta
        return bool(certificate.eps <= eps and certificate.delta <= delta)

    def _aim(self, state: State, finer: float) -> bool:
        return self.solver.retarget(state, finer * self.request.eps, finer * self.request.delta)
