"""Every exception the library raises on purpose.

A message says what was given, what was expected, and what to do about it.
"""

from __future__ import annotations

import numpy as np


class GoldsteinError(Exception):
    """Base of all exceptions of this library."""


class InputError(GoldsteinError, ValueError):
    """An argument has a value that cannot be used."""


class InputTypeError(GoldsteinError, TypeError):
    """An argument has the wrong type, or a required one is missing."""


class KinkError(GoldsteinError):
    """A gradient was asked for at a point where the function is not differentiable.

    Attributes
    ----------
    point : ndarray
        Where the gradient was asked for.
    """

    def __init__(self, message: str, point: np.ndarray | None = None) -> None:
        super().__init__(message)
        self.point = point


class OracleError(GoldsteinError):
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

    def __init__(self, message: str, point: np.ndarray, call: int) -> None:
        super().__init__(message)
        self.point = point
        self.call = call
        self.last_good: np.ndarray | None = None
        #: The non-finite value, where that was the failure.
        self.value: float | None = None


class CertificateFileError(GoldsteinError, ValueError):
    """A certificate file is damaged, truncated, altered or of an unknown kind."""


class MissingExtraError(GoldsteinError, ImportError):
    """An optional dependency is needed; the message says how to install it."""


class NotCertifiableError(GoldsteinError, ValueError):
    """The structure of the function does not support the certificate that was asked for."""


class OutOfBudget(GoldsteinError):
    """Control flow inside a search for a proof: its steps or its seconds are used up."""


class OutOfCalls(GoldsteinError):
    """Control flow inside a run: the next oracle call would exceed `max_calls`."""
