"""What `progress` shows: a bar from rich on a terminal or in a notebook, else one plain line."""

import contextlib
import sys
from collections.abc import Callable, Iterator
from importlib.util import find_spec

from goldstein.errors import InputTypeError
from goldstein.solvers import State

Report = Callable[[State, int], None]

#: Is told how many are done, and a remark.
Tell = Callable[[int, str], None]


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
    return _reports(budget, eps)


@contextlib.contextmanager
def _reports(budget: int, eps: float) -> Iterator[Report]:
    with _display(budget, "calls") as tell:

        def report(state: State, calls: int) -> None:
            limits = "" if state.violation is None else f"  violation {state.violation:.2g}"
            doing = state.notes.get("doing", f"bound {state.bound:.3g} -> {eps:g}")
            tell(calls, f"f {state.fx:.8g}{limits}   {doing}")

        yield report


def counter(progress: bool, total: int, what: str) -> contextlib.AbstractContextManager[Tell]:
    """Turn the argument `progress` into what is told how many are done, and a remark.

    Examples
    --------
    >>> with counter(False, 3, "starts") as tell:
    ...     tell(1, "best so far 2.5")
    """
    if not _shown(progress, "True or False"):
        return contextlib.nullcontext(lambda done, remark: None)
    return _display(total, what)


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
def _display(total: int, what: str) -> Iterator[Tell]:
    """A bar of rich on standard error, or a line that is written over, and gone at the end."""
    if not _rich_can_show():
        try:
            yield lambda done, remark: _write(f"{done}/{total} {what}   {remark}")
        finally:
            _write("")
        return
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

    words = TextColumn("{task.completed}/{task.total} " + what)
    with Progress(
        BarColumn(bar_width=24), words, TimeElapsedColumn(), TextColumn("{task.fields[remark]}"),
        # What the function prints appears above the bar, unless it is on its way into a file.
        console=Console(stderr=True), transient=True, redirect_stdout=sys.stdout.isatty(),
    ) as display:  # fmt: skip
        task = display.add_task("", total=total, remark="")
        yield lambda done, remark: display.update(task, completed=done, remark=remark)


def _write(text: str) -> None:
    sys.stderr.write(f"\r{text:<78}" + ("" if text else "\r"))
    sys.stderr.flush()
