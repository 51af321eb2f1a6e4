"""Where to ask for the next gradient after a step along -m has failed, by name."""

from __future__ import annotations

from typing import Literal, get_args

from goldstein.errors import InputError

Line = Literal["random", "bisection", "hybrid"]

#: In the order of `logic.algorithm_one`.
LINES: tuple[Line, ...] = get_args(Line)


def check_line(line: str) -> Line:
    """Refuse an unknown line oracle."""
    if line not in LINES:
        raise InputError(f"line must be one of {', '.join(LINES)}; got {line!r}.")
    return line
