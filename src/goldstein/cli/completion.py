"""What the shell offers when Tab is pressed."""

from __future__ import annotations

from pathlib import Path

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
