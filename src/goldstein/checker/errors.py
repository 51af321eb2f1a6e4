"""What the checker raises on purpose; `goldstein.errors` has these names, and the rest."""

import numpy as np


class GoldsteinError(Exception):
    """Base of all exceptions of this library."""


class InputError(GoldsteinError, ValueError):
    """An argument has a value that cannot be used."""


class InputTypeError(GoldsteinError, TypeError):
    """An argument has the wrong type, or a required one is missing."""


class MissingExtraError(GoldsteinError, ImportError):
    """An optional dependency is needed; the message says how to install it."""


class NotCertifiableError(GoldsteinError, ValueError):
    """The structure of the function does not support the certificate that was asked for."""


class Irrational(NotCertifiableError):
    """A value has no rational form that is short enough to compute with."""


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
    value : float or None
        The non-finite value, where that was the failure.
    """

    last_good: np.ndarray | None = None
    value: float | None = None

    def __init__(self, message: str, point: np.ndarray, call: int) -> None:
        super().__init__(message, point, call)  # all of them, or it could not be pickled
        self.point, self.call = point, call

    def __str__(self) -> str:
        return str(self.args[0])
