"""Every exception the library raises on purpose.

A message says what was given, what was expected, and what to do about it.
"""

from typing import Any

from goldstein.checker.blackbox.errors import ContradictedError, UnresolvedError
from goldstein.checker.errors import (
    GoldsteinError,
    InputError,
    InputTypeError,
    KinkError,
    MissingExtraError,
    NotCertifiableError,
    OracleError,
)

for _kind in (
    ContradictedError, GoldsteinError, InputError, InputTypeError, KinkError, MissingExtraError,
    NotCertifiableError, OracleError, UnresolvedError,
):  # fmt: skip
    _kind.__module__ = __name__  # where users find them


class CertificateFileError(GoldsteinError, ValueError):
    """A certificate file is damaged, truncated, altered or of an unknown kind."""


class CheckpointError(InputError):
    """A checkpoint cannot be used: of another run, in use, not a journal, or not writable."""


class FunctionHangs(KeyboardInterrupt):
    """Control flow inside a run: the function does not return, and is interrupted."""


class OutOfBudget(GoldsteinError):
    """Control flow inside a search for a proof: its steps or its seconds are used up."""


class OutOfCalls(GoldsteinError):
    """Control flow inside a run: the next oracle call would exceed `max_calls`."""


class OutOfTime(OutOfCalls):
    """The same for `max_time`: there is no time for another call."""


class Composed(GoldsteinError):
    """One whose message is made by its constructor; pools of processes must be able to send it."""

    def __reduce__(self) -> tuple[Any, ...]:
        return _again, (type(self), self.args, vars(self))


def _again(kind: type[GoldsteinError], args: tuple[Any, ...], state: dict[str, Any]) -> Any:
    error = kind.__new__(kind, *args)
    error.args = args
    vars(error).update(state)
    return error


class NotDeterministicError(Composed):
    """The function gave two different gradients, or two different values, at one point."""

    def __init__(self, name: str, difference: float, what: str = "gradients") -> None:
        super().__init__(
            f"{name} is not deterministic: asked twice at one point, its {what} differ by "
            f"{difference:.3g}. Fix its random numbers (dropout, sampling, shuffling), or say that "
            "it is noisy: gs.FiniteSum, a gradient grad(x, rng), and gs.confidence_bound for what "
            "samples prove."
        )


class WrongGradientError(Composed, ValueError):
    """Differences of values contradict the gradient."""

    def __init__(self, name: str, found: str = "") -> None:
        super().__init__(
            f"the gradient of {name} is wrong: differences of its values say otherwise"
            + (f" ({found})" if found else "")
            + ". Look at it with gs.check_gradient(fun, jac, x), or pass jac=True and automatic "
            "differentiation; options={'check_gradient': False} of minimize switches this off."
        )
        self.found = found


class BallTooSmallError(GoldsteinError):
    """Control flow inside a run: float64 has too few points within delta of x."""


__all__ = [
    "BallTooSmallError", "CertificateFileError", "CheckpointError", "ContradictedError",
    "FunctionHangs", "GoldsteinError", "InputError", "InputTypeError", "KinkError",
    "MissingExtraError", "NotCertifiableError", "NotDeterministicError", "OracleError",
    "OutOfBudget", "OutOfCalls", "OutOfTime", "UnresolvedError", "WrongGradientError",
]  # fmt: skip
