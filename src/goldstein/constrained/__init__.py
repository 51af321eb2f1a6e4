"""Bounds and constraints: what SciPy's objects say, and the unconstrained function they become."""

from goldstein.constrained.box import Box, as_box
from goldstein.constrained.problem import Problem
from goldstein.constrained.reduction import Penalised, Violation
from goldstein.constrained.system import System, as_system

__all__ = ["Box", "Penalised", "Problem", "System", "Violation", "as_box", "as_system"]
