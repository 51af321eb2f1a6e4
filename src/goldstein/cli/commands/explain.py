"""`goldstein explain PROBLEM`."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from goldstein.calculus import Explanation, Expression, MissingAssumption, goldstein_target
from goldstein.cli.arguments import AsJson
from goldstein.cli.output import NOT_CERTIFIED, print_json, say
from goldstein.cli.problem import choose
from goldstein.errors import InputError


def explain(
    problem: Annotated[str, typer.Argument(help="file.py:object, the object an Expression.")],
    pivot_radius: Annotated[
        float | None, typer.Option(help="Wanted pivot radius (delta of the triple).")
    ] = None,
    eps: Annotated[float | None, typer.Option(help="Wanted near stationarity.")] = None,
    delta: Annotated[float | None, typer.Option(help="Wanted near stationarity.")] = None,
    as_json: AsJson = False,
) -> None:
    """Print why a function is outer Lipschitz, or which assumption is missing.

    With --eps and --delta also the Goldstein target that implies that near stationarity.
    """
    expression = choose(problem).oracle
    if not isinstance(expression, Expression):
        raise InputError(
            f"{problem} is a black box ({type(expression).__name__}); only an Expression can be "
            "explained: build it from goldstein.Variable and the atoms of goldstein."
        )
    if (eps is None) != (delta is None):
        raise InputError("--eps and --delta go together: they are the wanted near stationarity.")
    proof = expression.explain(pivot_radius=pivot_radius) if pivot_radius else expression.explain()
    target: tuple[float, float] | None = None
    missing = ""
    if eps is not None and delta is not None:
        try:
            target = tuple(goldstein_target(expression, eps=eps, delta=delta))  # type: ignore[assignment]
        except MissingAssumption as failure:
            missing = str(failure)
    if as_json:
        print_json(
            {"problem": problem, "proof": _facts(proof), "target": target or missing or None}
        )
    else:
        say(str(proof))
        if target is not None:
            say(
                f"Goldstein target: eps' = {target[0]:.9g}, delta' = {target[1]:.9g} "
                f"implies ({eps:g}, {delta:g})-near stationarity"
            )
        elif missing:
            say(f"no Goldstein target: {missing}")
    if not proof.ok or missing:
        raise typer.Exit(NOT_CERTIFIED)


def _facts(proof: Explanation) -> dict[str, Any]:
    return {
        "claim": proof.claim,
        "rule": proof.rule,
        "constants": proof.constants,
        "ok": proof.ok,
        "steps": [_facts(step) for step in proof.steps],
    }
