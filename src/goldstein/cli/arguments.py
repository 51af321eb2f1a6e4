"""Arguments that several commands share, with their help and what the shell offers on Tab."""

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Annotated

import typer

from goldstein import problems
from goldstein.reductions.stationarity import stationarity_names
from goldstein.solvers import REGISTRY


def _completion(names: Callable[[], Iterable[str]]) -> Callable[[str], list[str]]:
    """Return what offers the names that begin as what has been typed."""
    return lambda incomplete: [name for name in names() if name.startswith(incomplete)]


complete_name = _completion(lambda: problems.names("all"))
complete_method = _completion(lambda: sorted(REGISTRY))
complete_stationarity = _completion(stationarity_names)


def complete_problem(incomplete: str) -> list[str]:
    """The same, and the Python files of the folder that is being typed."""
    folder, slash, beginning = incomplete.rpartition("/")
    files = sorted(path.name for path in Path(folder + slash or ".").glob("*.py"))
    found = [folder + slash + name for name in files if name.startswith(beginning)]
    return complete_name(incomplete) + found


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
    str, typer.Option(help="goldstein, near or minimum.", autocompletion=complete_stationarity)
]
Seed = Annotated[int, typer.Option(help="Same seed, same result.")]
MaxCalls = Annotated[int | None, typer.Option(help="Limit on values plus gradients.")]
Trust = Annotated[
    bool, typer.Option("--trust", help="Run the file that the folder of a run names.")
]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON only.")]
