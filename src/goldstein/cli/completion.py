"""What the shell offers when Tab is pressed."""

from __future__ import annotations

from pathlib import Path

from goldstein import problems
from goldstein.solvers import REGISTRY


def complete_problem(incomplete: str) -> list[str]:
    """Built-in problems, and the Python files of the folder that is being typed."""
    names = [name for name in problems.names() if name.startswith(incomplete)]
    folder, _, beginning = incomplete.rpartition("/")
    prefix = f"{folder}/" if folder or incomplete.startswith("/") else ""
    files = sorted(path.name for path in Path(prefix or ".").glob("*.py"))
    return names + [prefix + name for name in files if name.startswith(beginning)]


def complete_method(incomplete: str) -> list[str]:
    """The methods of `minimize`."""
    return [name for name in sorted(REGISTRY) if name.startswith(incomplete)]


def complete_stationarity(incomplete: str) -> list[str]:
    """The two kinds of stationarity."""
    return [kind for kind in ("goldstein", "near") if kind.startswith(incomplete)]
