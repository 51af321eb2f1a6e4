"""Nonsmooth constrained problems with known answers, against the solvers of SciPy."""
