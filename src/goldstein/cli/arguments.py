"""Arguments that several commands share, with their help and what the shell offers on Tab."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from goldstein import problems
from goldstein.reductions.stationarity import stationarity_names
from goldstein.solvers import REGISTRY


def complete_name(incomplete: str) -> list[str]:
    """The built-in problems."""
    return [name for name in problems.names("all") if name.startswith(incomplete)]


def complete_problem(incomplete: str) -> list[str]:
    """The same, and the Python files of the folder that is being typed."""
    folder, slash, beginning = incomplete.rpartition("/")
    files = sorted(path.name for path in Path(folder + slash or ".").glob("*.py"))
    found = [folder + slash + name for name in files if name.startswith(beginning)]
    return complete_name(incomplete) + found


def complete_method(incomplete: str) -> list[str]:
    """The methods of `minimize`."""
    return [name for name in sorted(REGISTRY) if name.startswith(incomplete)]


def complete_stationarity(incomplete: str) -> list[str]:
    """The kinds of stationarity."""
    return [kind for kind in stationarity_names() if kind.startswith(incomplete)]


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
