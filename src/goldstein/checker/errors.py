"""What the checker raises on purpose; `goldstein.errors` has these names, and the rest."""

from __future__ import annotations

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


class CertificateFileError(GoldsteinError, ValueError):
    """A certificate file is damaged, truncated, altered or of an unknown kind."""

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
