"""`goldstein solve PROBLEM --eps E --delta D`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from goldstein.api import minimize
from goldstein.cli import folder
from goldstein.cli.output import NOT_CERTIFIED, print_json, result_facts, table, vector
from goldstein.cli.problem import choose, read_vector
from goldstein.cli.progress import bar
from goldstein.errors import InputError
from goldstein.result import Result


def solve(
    problem: Annotated[str, typer.Argument(help="A built-in name, or file.py:object.")],
    eps: Annotated[float, typer.Option(help="Wanted bound on the combination of gradients.")],
    delta: Annotated[float, typer.Option(help="Radius of the ball the gradients come from.")],
    method: Annotated[str, typer.Option(help="auto, bundle, pingd, ...")] = "auto",
    stationarity: Annotated[str, typer.Option(help="goldstein or near.")] = "goldstein",
    seed: Annotated[int, typer.Option(help="Same seed, same result.")] = 0,
    d: Annotated[int | None, typer.Option("--d", help="Size of a built-in problem.")] = None,
    x0: Annotated[str | None, typer.Option(help="Start: 1,2,3 or a file.")] = None,
    max_calls: Annotated[int | None, typer.Option(help="Limit on values plus gradients.")] = None,
    max_time: Annotated[float | None, typer.Option(help="Limit in seconds.")] = None,
    out: Annotated[Path | None, typer.Option(help="Folder for the run.")] = None,
    resume: Annotated[bool, typer.Option("--resume", help="Continue the run in --out.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON only.")] = False,
) -> None:
    """Minimise a function and certify the answer."""
    chosen = choose(problem, d)
    if x0 is None and chosen.x0 is None:
        raise InputError(f"{problem} has no start; give one with --x0, or put x0 into the file.")
    start = chosen.x0 if x0 is None else read_vector(x0, "--x0")
    checkpoint = folder.prepare(out, resume)
    budget = max_calls if max_calls is not None else 50_000 + 100 * len(start)
    with bar(budget, eps, quiet=as_json) as report:
        result = minimize(
            chosen.oracle,
            start,
            eps=eps,
            delta=delta,
            method=method,
            stationarity=stationarity,  # type: ignore[arg-type]  # checked by minimize
            rng=seed,
            max_calls=budget,
            max_time=max_time,
            checkpoint=checkpoint,
            progress=report or False,
        )
    request = {"problem": problem, "eps": eps, "delta": delta, "d": d, "stationarity": stationarity}
    if out is not None:
        folder.save(out, result, request)
    if as_json:
        print_json({"request": request, **result_facts(result)})
    else:
        _show(problem, result, out)
    if not result.success:
        raise typer.Exit(NOT_CERTIFIED)


def _show(problem: str, result: Result, out: Path | None) -> None:
    rows: list[tuple[str, Any]] = [
        ("status", f"{result.status.name}: {result.message}"),
        ("f(x)", f"{result.fun:.12g}"),
        ("x", vector(result.x)),
        ("certificate", result.certificate.summary() if result.certificate is not None else None),
        ("calls", f"{result.nfev} values + {result.ngev} gradients"),
        ("steps", f"{result.nit} in {result.time:.3g} s"),
        ("method", f"{result.method}, seed {result.seed}"),
    ]
    if out is not None:
        rows.append(("saved", f"{out} ({folder.RESULT}, {folder.CERTIFICATE}, {folder.HISTORY})"))
    table(rows, problem)
    if out is not None and result.certificate is not None:
        typer.echo(f"check it:    goldstein verify {out / folder.CERTIFICATE} {problem}")
