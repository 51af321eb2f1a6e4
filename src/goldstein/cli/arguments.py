"""Arguments that several commands share, with their help and what Tab offers for them."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from goldstein.cli.completion import complete_problem, complete_stationarity

Problem = Annotated[
    str,
    typer.Argument(
        help="A built-in name, file.py, or file.py:name.", autocompletion=complete_problem
    ),
]
RunProblem = Annotated[
    str | None,
    typer.Argument(
        help="A built-in name, file.py, or file.py:name; default: the run's, see --trust.",
        autocompletion=complete_problem,
    ),
]
CertificateOrRun = Annotated[
    Path, typer.Argument(help="A certificate file, or the folder of a run.")
]
Size = Annotated[int | None, typer.Option("--d", help="Size of a built-in problem.")]
Stationarity = Annotated[
    str, typer.Option(help="goldstein or near.", autocompletion=complete_stationarity)
]
Seed = Annotated[int, typer.Option(help="Same seed, same result.")]
MaxCalls = Annotated[int | None, typer.Option(help="Limit on values plus gradients.")]
Trust = Annotated[
    bool, typer.Option("--trust", help="Run the file that the folder of a run names.")
]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON only.")]
