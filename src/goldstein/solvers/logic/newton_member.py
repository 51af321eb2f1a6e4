"""What becomes of a line search of the quasi-Newton member."""

from __future__ import annotations

from typing import TYPE_CHECKING

from goldstein.solvers.logic.centre import may_recentre, recentre

if TYPE_CHECKING:
    from goldstein.solvers.auto import AutoState


def prepare(s: AutoState) -> None:
    """Before a line search: are its gradients worth remembering?"""
    s.newton.noting = not s.refuted


def ended(s: AutoState) -> None:
    """After a line search: take its point, and try what is known around it as a certificate."""
    n = s.newton
    if not n.moved:
        s.slice_ends = 0
        return
    if not adopt(s):
        return
    if n.length > s.delta or not may_recentre(s):
        return
    # The gradients around x are there already: trying them as a certificate costs no call.
    recentre(s, s.delta)
    if s.bundle_size() == 0:
        return
    norm = s.shortest()
    s.bound = norm
    s.radius = s.delta
    if norm <= s.eps:
        s.proved = True
    elif norm <= s.close * s.eps or n.length <= s.short * s.delta:
        # Close in; should that fail, not again before things look better than now.
        s.close = min(s.close, 0.5 * norm / s.eps)
        s.short = min(s.short, 0.5 * n.length / s.delta)
        s.working = s.delta
        s.slice_ends = 0


def adopt(s: AutoState) -> bool:
    """Move to where this member is, if that is better; it never takes the other one up."""
    s.moved = s.newton.fx < s.fx
    if s.moved:
        s.x = s.newton.x
        s.fx = s.newton.fx
        s.steps += 1
    return bool(s.moved)
