"""A live progress bar on a terminal; nothing anywhere else."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator

from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

from goldstein.solvers import State

Report = Callable[[State, int], None]


@contextlib.contextmanager
def bar(budget: int, eps: float, *, quiet: bool) -> Iterator[Report | None]:
    """Show calls, value and bound on stderr while the run lasts."""
    console = Console(stderr=True)
    if quiet or not console.is_terminal:
        yield None
        return
    columns = (
        BarColumn(bar_width=24),
        TextColumn("{task.completed}/{task.total} calls"),
        TimeElapsedColumn(),
        TextColumn("f {task.fields[value]}  bound {task.fields[bound]} -> " + f"{eps:g}"),
    )
    with Progress(*columns, console=console, transient=True) as progress:
        task = progress.add_task("solve", total=budget, value="-", bound="-")

        def report(state: State, calls: int) -> None:
            progress.update(
                task, completed=calls, value=f"{state.fx:.8g}", bound=f"{state.bound:.3g}"
            )

        yield report
