"""What `progress` shows: a bar from rich on a terminal or in a notebook, else one plain line."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Callable, Iterator
from importlib.util import find_spec
from typing import Any

from goldstein.errors import InputTypeError
from goldstein.solvers import State

Report = Callable[[State, int], None]


def reporter(
    progress: bool | Report, budget: int, eps: float
) -> contextlib.AbstractContextManager[Report | None]:
    """Turn the argument `progress` into what the loop calls now and then; None means silence.

    Parameters
    ----------
    progress : bool or callable
        True for a display on standard error while the run lasts, shown to people only: on a
        terminal and in a notebook. A callable is handed through; it receives the state of the
        solver (`x`, `fx`, `bound`, ...) and the number of calls.
    budget : int
        Length of the bar, in calls.
    eps : float
        The bound that the run is after.

    Examples
    --------
    >>> with reporter(False, 100, 1e-3) as report:
    ...     print(report)
    None
    """
    if callable(progress):
        return contextlib.nullcontext(progress)
    if not _shown(progress, "True, False or a callable progress(state, calls)"):
        return contextlib.nullcontext()
    return _bar(budget, eps) if _rich_can_show() else _line(eps)


@contextlib.contextmanager
def counter(progress: bool, total: int, what: str) -> Iterator[Callable[[int, str], None]]:
    """Turn the argument `progress` into what is told how many are done, and a remark.

    Examples
    --------
    >>> with counter(False, 3, "starts") as tell:
    ...     tell(1, "best so far 2.5")
    """
    if not _shown(progress, "True or False"):
        yield lambda done, remark: None
    elif _rich_can_show():
        from rich.progress import TextColumn

        words = TextColumn("{task.completed}/{task.total} " + what)
        with _display(words, TextColumn("{task.fields[remark]}")) as display:
            task = display.add_task("", total=total, remark="")
            yield lambda done, remark: display.update(task, completed=done, remark=remark)
    else:
        with _plain_line() as write:
            yield lambda done, remark: write(f"{done}/{total} {what}   {remark}")


def _shown(progress: object, wanted: str) -> bool:
    """Whether there is somebody to show a progress to, who asked for it."""
    if not isinstance(progress, bool):
        raise InputTypeError(f"progress must be {wanted}, got {type(progress).__name__}.")
    return progress and (_notebook() or sys.stderr.isatty())


def _notebook() -> bool:
    """Whether we run in a Jupyter kernel, whose standard error is no terminal and yet is read."""
    shell = getattr(sys.modules.get("IPython"), "get_ipython", lambda: None)()
    return type(shell).__name__ == "ZMQInteractiveShell"


def _rich_can_show() -> bool:
    needed = ("rich", "ipywidgets") if _notebook() else ("rich",)
    return all(sys.modules.get(name) or find_spec(name) for name in needed)


@contextlib.contextmanager
def _display(words: Any, *columns: Any) -> Iterator[Any]:
    """A bar of rich on standard error, with words before and columns behind the time."""
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TimeElapsedColumn

    # What the function prints appears above the bar, unless it is on its way into a file.
    shared = sys.stdout.isatty()
    with Progress(
        BarColumn(bar_width=24), words, TimeElapsedColumn(), *columns,
        console=Console(stderr=True), transient=True, redirect_stdout=shared,
    ) as display:  # fmt: skip
        yield display


@contextlib.contextmanager
def _bar(budget: int, eps: float) -> Iterator[Report]:
    from rich.progress import TextColumn

    words = TextColumn("{task.completed}/{task.total} calls")
    value = TextColumn("f {task.fields[value]}{task.fields[violation]}")
    bound = TextColumn("bound {task.fields[bound]} -> " + f"{eps:g}")
    with _display(words, value, bound) as display:
        task = display.add_task("", total=budget, value="-", bound="-", violation="")

        def report(state: State, calls: int) -> None:
            display.update(
                task, completed=calls, value=f"{state.fx:.8g}", bound=f"{state.bound:.3g}",
                violation=_violation(state),
            )  # fmt: skip

        yield report


@contextlib.contextmanager
def _plain_line() -> Iterator[Callable[[str], None]]:
    """One line on standard error that is written over, and gone at the end."""

    def write(text: str) -> None:
        sys.stderr.write(f"\r{text:<78}")
        sys.stderr.flush()

    try:
        yield write
    finally:
        sys.stderr.write("\r" + " " * 78 + "\r")


@contextlib.contextmanager
def _line(eps: float) -> Iterator[Report]:
    with _plain_line() as write:

        def report(state: State, calls: int) -> None:
            text = f"calls {calls}   f {state.fx:.8g}{_violation(state)}"
            write(text + f"   bound {state.bound:.3g} -> {eps:g}")

        yield report


def _violation(state: State) -> str:
    return "" if state.violation is None else f"  violation {state.violation:.2g}"
