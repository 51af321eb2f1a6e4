"""Test functions with start, best known value and source.

A family is a file here. Adding a problem takes a function that returns value and gradient, or one
that builds an `Instance`, under one `problem(...)` line.
"""

from importlib import import_module
from pkgutil import iter_modules

from goldstein.problems.registry import Problem, get, names, rotated, suite, table

__all__ = ["Problem", "get", "names", "rotated", "suite", "table"]

for _module in iter_modules(__path__):
    if not _module.name.startswith("_"):
        import_module(f"{__name__}.{_module.name}")  # importing a family registers its problems
