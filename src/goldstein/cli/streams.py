"""Standard output belongs to the answers: whatever a problem prints goes to standard error."""

import contextlib
import os
import sys
from collections.abc import Iterable, Iterator
from contextvars import ContextVar
from typing import Any, TextIO, cast

#: Before every line that a problem prints.
MARK = "problem prints> "

_answers: ContextVar[TextIO | None] = ContextVar("answers", default=None)


def answers() -> TextIO:
    """Where a command writes its answer."""
    return _answers.get() or sys.stdout


class _Marked:
    """A stream whose lines begin with a mark: nobody takes them for the answer."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream
        self._at_start = True

    def write(self, text: str) -> int:
        if not isinstance(text, str):  # whether a stream takes bytes is asked by writing none
            raise TypeError(f"write() argument must be str, not {type(text).__name__}")
        for line in text.splitlines(keepends=True):
            self._stream.write(MARK + line if self._at_start else line)
            self._at_start = line.endswith("\n")
        return len(text)

    def writelines(self, lines: Iterable[str]) -> None:
        for line in lines:
            self.write(line)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)


@contextlib.contextmanager
def prints_to_stderr() -> Iterator[None]:
    """Send every `print` of a problem to standard error, marked, now and during the run."""
    kept = _answers.set(answers())
    try:
        with contextlib.redirect_stdout(cast(TextIO, _Marked(sys.stderr))):
            yield
    finally:
        _answers.reset(kept)


@contextlib.contextmanager
def whole_process() -> Iterator[None]:
    """The same below Python, for a process of our own: C code, child processes, prints at exit."""
    if sys.stdout is None or sys.stderr is None:  # closed by the shell: nobody listens
        yield
        return
    ours = open(  # noqa: SIM115  # stays open until the process ends
        os.dup(sys.stdout.fileno()), "w", encoding=sys.stdout.encoding, errors=sys.stdout.errors,
        buffering=1 if sys.stdout.isatty() else -1,
    )  # fmt: skip
    sys.stdout.flush()
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())
    sys.stdout = ours
    try:
        yield
    finally:
        sys.stdout = sys.stderr
        try:
            ours.flush()
        except OSError:  # a full disk has been reported, a reader like `head` has seen enough
            os.dup2(os.open(os.devnull, os.O_WRONLY), ours.fileno())
