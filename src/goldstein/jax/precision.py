"""Finds the steps of a traced function that are computed in less than float64."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import jax.numpy as jnp
from jax.extend import core

from goldstein.oracles.precision import require_float64


def require_double(traced: Any, what: str) -> None:
    """Refuse a trace in which a coarser number depends on the first argument, or is the answer.

    Yes and no, and whole numbers, end the dependence: `(x > 0).astype(float32)` is exact.
    """
    for answer in traced.out_avals:
        require_float64(answer.dtype, what)
    _follow(traced, [k == 0 for k in range(len(traced.in_avals))], what)


def _follow(closed: Any, depends: Sequence[bool], what: str) -> list[bool]:
    """Return which results depend on the arguments marked in `depends`."""
    jaxpr = getattr(closed, "jaxpr", closed)
    marked = {var for var, mark in zip(jaxpr.invars, depends, strict=True) if mark}

    def is_marked(atom: Any) -> bool:
        return isinstance(atom, core.Var) and atom in marked

    for equation in jaxpr.eqns:
        given = [is_marked(atom) for atom in equation.invars]
        if not any(given):
            continue
        for var, reached in zip(equation.outvars, _through(equation, given, what), strict=True):
            if reached and jnp.issubdtype(var.aval.dtype, jnp.inexact):
                require_float64(var.aval.dtype, what)
                marked.add(var)
    return [is_marked(atom) for atom in jaxpr.outvars]


def _through(equation: Any, given: list[bool], what: str) -> list[bool]:
    """Return which outputs of an equation depend on its marked inputs, inner programs included."""
    outputs = len(equation.outvars)
    params = equation.params
    match equation.primitive.name:
        case "scan":
            first, count = params["num_consts"], params["num_carry"]
            return _loop(params["jaxpr"], given, first, count, what)
        case "while":
            consts = params["cond_nconsts"]
            body = given[consts:]
            first = params["body_nconsts"]
            reached = _loop(params["body_jaxpr"], body, first, outputs, what)
            _follow(params["cond_jaxpr"], given[:consts] + reached, what)
            return reached
    reached = [False] * outputs
    inner = list(core.jaxprs_in_params(params))
    for program in inner:
        # The last arguments are the program's: a branch is not given the number of the branch.
        count = len(program.invars)
        marks = given[-count:] if count <= len(given) else [True] * count
        results = _follow(program, marks, what) if count else [False] * len(program.outvars)
        if len(results) != outputs:
            return [True] * outputs
        reached = [a or b for a, b in zip(reached, results, strict=True)]
    return reached if inner else [True] * outputs


def _loop(program: Any, given: list[bool], first: int, count: int, what: str) -> list[bool]:
    """Return what depends after any number of turns; arguments first, first + 1, ... come back."""
    marks = list(given)
    while True:
        results = _follow(program, marks, what)
        carried = [a or b for a, b in zip(marks[first : first + count], results)]
        if carried == marks[first : first + count]:
            return carried + results[count:]
        marks[first : first + count] = carried
