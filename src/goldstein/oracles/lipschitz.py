"""The Lipschitz constant: given by the user, or estimated from the gradients and guarded."""

from __future__ import annotations

import math

import numpy as np

from goldstein.errors import InputError


class LipschitzGuard:
    """Hold L and raise it whenever a gradient contradicts it.

    A violation sets L to max(2 L, |g|). Seeing no violation does not prove L: then only the
    probability statement of the theorem is lost, a certificate stays sound.

    Examples
    --------
    >>> guard = LipschitzGuard(1.0)
    >>> guard.observe(3.0), guard.value
    (True, 3.0)
    """

    def __init__(self, given: float | None) -> None:
        number = isinstance(given, int | float | np.number) and not isinstance(given, bool)
        if given is not None and not (number and math.isfinite(given) and given > 0):
            raise InputError(
                f"lipschitz must be a positive number or None (estimate it), got {given!r}."
            )
        self.value = given or 0.0

    def observe(self, gradient_norm: float) -> bool:
        """Take note of |g|; return True when L had to be raised."""
        if gradient_norm <= self.value:
            return False
        self.value = max(2.0 * self.value, gradient_norm)
        return True
