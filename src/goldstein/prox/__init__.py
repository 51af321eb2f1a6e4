"""Convex terms h that are known exactly: `gs.minimize(f, x0, grad, plus=gs.prox.l1(0.1), ...)`."""

from __future__ import annotations

from goldstein.prox.groups import group_l2
from goldstein.prox.nuclear import nuclear
from goldstein.prox.separable import box, l1
from goldstein.prox.simplex import simplex
from goldstein.prox.term import Term
from goldstein.prox.weakly_convex import mcp, scad

__all__ = ["Term", "box", "group_l2", "l1", "mcp", "nuclear", "scad", "simplex"]
