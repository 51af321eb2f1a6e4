"""One rule of precision for all frameworks: what depends on the point is computed in float64."""

from __future__ import annotations

from goldstein.errors import InputTypeError

#: The dtypes of numbers that a small ball is visible in.
DOUBLE = frozenset({"float64", "complex128"})


def require_float64(dtype: object, what: str) -> None:
    """Refuse a dtype in which `what` computed something that depends on the point.

    A result that is cast up again at the end is no better than its coarsest step, so frameworks ask
    this of every step they can see.

    Parameters
    ----------
    dtype : object
        A dtype of NumPy, JAX or PyTorch; its name is compared.
    what : str
        Whose computation it is, for the message.

    Examples
    --------
    >>> import numpy as np
    >>> require_float64(np.dtype(np.float64), "fn")
    >>> require_float64(np.dtype(np.float32), "fn")
    Traceback (most recent call last):
    ...
    goldstein.errors.InputTypeError: fn computed in float32 what depends on the parameters; ...
    """
    name = str(dtype).removeprefix("torch.")
    if name not in DOUBLE:
        raise InputTypeError(
            f"{what} computed in {name} what depends on the parameters; a point moved by less than "
            "the spacing of such numbers does not move at all, and kinks go unnoticed. Remove the "
            "cast (float(), half(), astype, autocast): parameters arrive in float64."
        )
