"""`goldstein problems [NAME]`."""

from typing import Annotated, Any

import typer
from rich.table import Table

from goldstein import problems as built_in
from goldstein.cli.arguments import AsJson, complete_name
from goldstein.cli.folder import answer, console, table, vector
from goldstein.problems import Problem


def problems(
    name: Annotated[
        str | None, typer.Argument(help="One problem in detail.", autocompletion=complete_name)
    ] = None,
    d: Annotated[int | None, typer.Option("--d", help="Size, where the problem scales.")] = None,
    as_json: AsJson = False,
) -> None:
    """List the built-in problems, or describe one."""
    if name is not None:
        one = built_in.get(name, d=d)
        return answer(as_json, {**_facts(one), "x0": one.x0}, lambda: _describe(one))
    everything = [built_in.get(each) for each in built_in.names("all")]
    return answer(as_json, [_facts(p) for p in everything], lambda: _list(everything))


def _list(everything: list[Problem]) -> None:
    shown = Table(box=None, pad_edge=False)
    for column in ("name", "d", "best value", "family", "remarks"):
        shown.add_column(column, no_wrap=column == "name", justify="left")
    for p in everything:
        traits = ["convex" if p.convex else "nonconvex"] + ([] if p.bounded else ["unbounded"])
        traits += list(p.limits)
        shown.add_row(p.name, str(p.dim), _best(p), p.family, ", ".join(traits))
    console().print(shown)


def _describe(problem: Problem) -> None:
    rows: list[tuple[str, Any]] = [
        ("f(x)", problem.formula), ("d", problem.dim),
        ("best value", f"{_best(problem)} ({problem.best_value_kind})"),
        ("start", f"{vector(problem.x0)}, f = {problem.value(problem.x0):.10g}"),
        ("convex", "yes" if problem.convex else "no"),
        ("limits", ", ".join(problem.limits) or None), ("source", problem.citation),
        ("note", problem.note or None),
    ]  # fmt: skip
    table(rows, problem.name)


def _best(problem: Problem) -> str:
    return "-" if problem.best_value is None else f"{problem.best_value:.8g}"


def _facts(problem: Problem) -> dict[str, Any]:
    names = (
        "name", "dim", "family", "formula", "best_value", "best_value_kind", "convex", "bounded",
        "citation", "note",
    )  # fmt: skip
    return {name: getattr(problem, name) for name in names}
