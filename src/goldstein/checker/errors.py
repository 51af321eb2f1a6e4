"""What the checker raises on purpose; `goldstein.errors` has these names, and the rest."""

from __future__ import annotations

from typing import Any

import numpy as np


class GoldsteinError(Exception):
    """Base of all exceptions of this library."""

    __module__ = "goldstein.errors"


class InputError(GoldsteinError, ValueError):
    """An argument has a value that cannot be used."""

    __module__ = "goldstein.errors"


class InputTypeError(GoldsteinError, TypeError):
    """An argument has the wrong type, or a required one is missing."""

    __module__ = "goldstein.errors"


class MissingExtraError(GoldsteinError, ImportError):
    """An optional dependency is needed; the message says how to install it."""

    __module__ = "goldstein.errors"


class NotCertifiableError(GoldsteinError, ValueError):
    """The structure of the function does not support the certificate that was asked for."""

    __module__ = "goldstein.errors"


class Irrational(NotCertifiableError):
    """A value has no rational form that is short enough to compute with."""

    __module__ = "goldstein.errors"


class KinkError(GoldsteinError):
    """A gradient was asked for at a point where the function is not differentiable.

    Attributes
    ----------
    point : ndarray
        Where the gradient was asked for.
    """

    __module__ = "goldstein.errors"

    def __init__(self, message: str, point: np.ndarray | None = None) -> None:
        super().__init__(message)
        self.point = point


class ContradictedError(GoldsteinError):
    """Differences of values contradict the gradients; `gap`: by how much these vary."""

    __module__ = "goldstein.errors"

    def __init__(self, gap: float = 0.0) -> None:
        super().__init__("differences of values contradict the gradients")
        self.gap = gap


class UnresolvedError(GoldsteinError):
    """The values of a function do not resolve steps that are short against a ball."""

    __module__ = "goldstein.errors"

    def __init__(self, step: float) -> None:
        super().__init__(
            f"f does not resolve steps of {step:.2g}: its values do not follow its gradients "
            "there. Ask for a larger delta, or compute f with more digits."
        )


class Composed(GoldsteinError):
    """One whose message is made by its constructor; pools of processes must be able to send it."""

    def __reduce__(self) -> tuple[Any, ...]:
        return _again, (type(self), self.args, vars(self))


def _again(kind: type[GoldsteinError], args: tuple[Any, ...], state: dict[str, Any]) -> Any:
    error = kind.__new__(kind, *args)
    error.args = args
    vars(error).update(state)
    return error


class OracleError(Composed):
    """The user's function failed: an exception, a non-finite number or a wrong shape.

    Attributes
    ----------
    point : ndarray
        The point of the failing call.
    call : int
        Its number, counted over values and gradients together, starting at 1.
    last_good : ndarray or None
        The best point known before the failure, where a solver was running.
    """

    __module__ = "goldstein.errors"

    def __init__(self, message: str, point: np.ndarray, call: int) -> None:
        super().__init__(message)
        self.point = point
        self.call = call
        self.last_good: np.ndarray | None = None
        #: The non-finite value, where that was the failure.
        self.value: float | None = None
