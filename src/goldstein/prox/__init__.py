"""Convex terms h that are known exactly: `gs.minimize(f, x0, grad, plus=gs.prox.l1(0.1), ...)`."""

from goldstein.prox.term import Term, box, group_l2, l1, mcp, nuclear, scad, simplex

__all__ = ["Term", "box", "group_l2", "l1", "mcp", "nuclear", "scad", "simplex"]
