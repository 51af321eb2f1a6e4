"""`goldstein explain PROBLEM`."""

from typing import Annotated, Any

import typer

from goldstein.calculus import Explanation, Expression, MissingAssumption, goldstein_target
from goldstein.cli.arguments import AsJson
from goldstein.cli.folder import answer, say
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
            target = tuple(goldstein_target(expression, eps=eps, delta=delta))
        except MissingAssumption as failure:
            missing = str(failure)
    words = f"no Goldstein target: {missing}" if missing else ""
    if target is not None:
        words = (
            f"Goldstein target: eps' = {target[0]:.9g}, delta' = {target[1]:.9g} "
            f"implies ({eps:g}, {delta:g})-near stationarity"
        )
    facts = {"problem": problem, "proof": _facts(proof), "target": target or missing or None}
    lines = "\n".join(filter(None, (str(proof), words)))
    answer(as_json, facts, lambda: say(lines), ok=proof.ok and not missing)


def _facts(proof: Explanation) -> dict[str, Any]:
    own = {name: getattr(proof, name) for name in ("claim", "rule", "constants", "ok")}
    return {**own, "steps": [_facts(step) for step in proof.steps]}
