"""`goldstein certify PROBLEM --x POINT --delta D`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from goldstein.api import certify as certify_point
from goldstein.cli.output import (
    NOT_CERTIFIED,
    certificate_facts,
    print_json,
    table,
    vector,
    verification_facts,
)
from goldstein.cli.problem import choose_for, read_vector


def certify(
    problem: Annotated[str, typer.Argument(help="A built-in name, or file.py:object.")],
    x: Annotated[str, typer.Option("--x", help="The point: 1,2,3 or a .npy, .csv or .txt file.")],
    delta: Annotated[float, typer.Option(help="Radius of the ball.")],
    eps: Annotated[
        float | None, typer.Option(help="Wanted bound; without it the smallest that is found.")
    ] = None,
    stationarity: Annotated[str, typer.Option(help="goldstein or near.")] = "goldstein",
    seed: Annotated[int, typer.Option(help="Same seed, same certificate.")] = 0,
    d: Annotated[int | None, typer.Option("--d", help="Size of a built-in problem.")] = None,
    max_calls: Annotated[int | None, typer.Option(help="Limit on values plus gradients.")] = None,
    out: Annotated[Path | None, typer.Option(help="File for the certificate.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON only.")] = False,
) -> None:
    """Say how stationary a point is; the point is never moved."""
    point = read_vector(x, "--x")
    oracle = choose_for(problem, d, point.size).oracle
    kind: Any = stationarity  # certify itself refuses other words
    certificate = certify_point(
        oracle,
        point,
        delta=delta,
        eps=0.0 if eps is None else eps,
        stationarity=kind,
        rng=seed,
        max_calls=max_calls,
    )
    found = certificate.verify(oracle)
    met = found.ok and (eps is None or certificate.eps <= eps)
    saved = None if out is None else certificate.save(out)
    if as_json:
        print_json(
            {
                "problem": problem,
                "met": met,
                "certificate": certificate_facts(certificate),
                "verification": verification_facts(found),
            }
        )
    else:
        rows: list[tuple[str, Any]] = [
            ("x", vector(point)),
            ("certificate", certificate.summary()),
            ("verified", "yes" if found.ok else "NO"),
        ]
        if eps is not None:
            rows.append(("wanted", f"eps <= {eps:g}: {'met' if met else 'NOT met'}"))
        descent = getattr(certificate, "descent", None)
        if descent is not None:
            step = certificate.meta["descent_step"]
            rows.append(("descent", f"f falls along {vector(descent)} (step {step:.3g})"))
        if saved is not None:
            rows.append(("saved", saved))
        table(rows, problem)
    if not met:
        raise typer.Exit(NOT_CERTIFIED)
