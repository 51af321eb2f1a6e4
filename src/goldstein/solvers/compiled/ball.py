"""The arithmetic of the bundle member, as in `solvers.ball_state` and `solvers.auto`."""

from __future__ import annotations

from typing import Any

from goldstein.solvers.compiled import bundle  # noqa: F401
from goldstein.solvers.compiled.layout import BEGINS, TOLD
from goldstein.solvers.compiled.records import make_kernels, search_at, unit, vector
from goldstein.solvers.compiled.vectors import ball_point, copy, distance, move
from goldstein.solvers.logic import bundle_member


def place_descent(search: Any) -> None:
    """Ask at the trial point of Algorithm 1."""
    copy(vector(search.hull.point, search.dim), search.aimed)
    size = -search.span * (1.0 - search.ratio / 8.0) / search.norm
    move(search.centre, size, search.aimed, search.point)


def place_farther(search: Any) -> None:
    """Ask at the end of a step of length `span`."""
    move(search.centre, -search.span / search.norm, search.aimed, search.point)


def draw_first(search: Any, radius: Any) -> None:
    ball_point(search, search.centre, radius)


def move_centre(search: Any) -> Any:
    """Move the centre to x; return how far that is, and a little more."""
    moved = distance(search.x, search.centre) * (1.0 + 1e-12)
    copy(search.x, search.centre)
    return moved


def is_centred(search: Any) -> Any:
    return distance(search.x, search.centre) == 0.0


def was_tried(search: Any) -> Any:
    return distance(search.point, search.tried) == 0.0


@unit
def go_surely(address: Any) -> Any:
    """Go on with a step; return the next question."""
    search = search_at(address)
    if search.entry == BEGINS:
        return bundle_member.begin(search)
    if search.entry == TOLD:
        return bundle_member.told(search)
    return bundle_member.kinked(search)


make_kernels(globals())
