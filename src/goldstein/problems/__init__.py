"""Test functions with start, best known value and source.

Adding one takes a function that returns an `Instance`, under one `problem(...)` line.
"""

from goldstein.problems import (  # noqa: F401  (importing a family registers its problems)
    approximation,
    chebyshev,
    constrained,
    counterexamples,
    differences,
    eigenvalues,
    few_rows,
    haarala,
    learning,
    maxima,
    minimax,
    nearly_smooth,
    recovery,
    sensing,
    statistics,
    structured,
    test19,
    test29,
)
from goldstein.problems.catalogue import table
from goldstein.problems.problem import Problem
from goldstein.problems.registry import get, names, suite
from goldstein.problems.rotation import rotated

__all__ = ["Problem", "get", "names", "rotated", "suite", "table"]
