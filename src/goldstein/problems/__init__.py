"""Test functions with start, best known value and source.

Adding one takes a function that returns an `Instance`, under one `problem(...)` line.
"""

from goldstein.problems import (  # noqa: F401  (importing a family registers its problems)
    chebyshev,
    constrained,
    counterexamples,
    differences,
    eigenvalues,
    haarala,
    learning,
    maxima,
    nearly_smooth,
    recovery,
    statistics,
    structured,
    test06,
    test19,
    test29,
)
from goldstein.problems.problem import Problem, rotated
from goldstein.problems.registry import get, names, suite, table

__all__ = ["Problem", "get", "names", "rotated", "suite", "table"]
