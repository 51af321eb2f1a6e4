"""`goldstein check PROBLEM`."""

from dataclasses import asdict
from typing import Annotated

import typer

from goldstein.api.inputs import as_vector
from goldstein.cli.arguments import AsJson, Problem, Seed, Size
from goldstein.cli.folder import answer, table, vector
from goldstein.cli.problem import choose, choose_for, read_vector
from goldstein.oracles.diagnose import check_gradient


def check(
    problem: Problem,
    x: Annotated[
        str | None, typer.Option("--x", help="Where to look: 1,2,3 or a file; default the start.")
    ] = None,
    points: Annotated[int, typer.Option(help="Random points around it.")] = 5,
    radius: Annotated[float, typer.Option(help="How far from it, relative to |x_i|.")] = 1e-2,
    seed: Seed = 0,
    d: Size = None,
    as_json: AsJson = False,
) -> None:
    """Compare a gradient with differences of values, and name the coordinates that are wrong."""
    point = None if x is None else read_vector(x, "--x")
    chosen = choose(problem, d) if point is None else choose_for(problem, d, point)
    centre = as_vector(chosen.start(problem, "--x"), "x")
    found = check_gradient(chosen.oracle, x=centre, points=points, radius=radius, rng=seed)
    rows = [
        ("verdict", "the gradient is right" if found.ok else "the gradient is WRONG"),
        ("coordinates", ", ".join(map(str, found.wrong_coordinates))),
        ("found", found.message), ("looked at", vector(centre)), ("function", chosen.found),
    ]  # fmt: skip
    shown = [row for row in rows if row[1]]
    answer(
        as_json, {"problem": problem, **asdict(found)}, lambda: table(shown, problem), ok=found.ok
    )
