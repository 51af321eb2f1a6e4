"""Objects that stay what they were made: certificates are about one function."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import sparse

from goldstein.calculus.constants import hand_over, hand_over_sparse


class SetOnce:
    """Attributes keep their first value, methods cannot be replaced.

    The names in `adjustable`, those of base classes included, may change: they are memos, and
    settings that change the speed of answers and no answer.

    Examples
    --------
    >>> class Point(SetOnce):
    ...     def __init__(self, x):
    ...         self.x = x
    >>> Point(1.0).x = 2.0
    Traceback (most recent call last):
        ...
    AttributeError: x of Point cannot change: certificates are about one function. Build another...
    """

    adjustable: frozenset[str] = frozenset()

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        cls.adjustable = frozenset().union(
            *(base.__dict__.get("adjustable", ()) for base in cls.__mro__)
        )

    def __setattr__(self, name: str, value: Any) -> None:
        if name not in self.adjustable and (
            name in self.__dict__ or callable(getattr(type(self), name, None))
        ):
            self._refuse(name)
        super().__setattr__(name, value)

    def __delattr__(self, name: str) -> None:
        if name not in self.adjustable:
            self._refuse(name)
        super().__delattr__(name)

    def __setstate__(self, state: dict[str, Any]) -> None:
        # A copy, or what comes from another process, has arrays of its own, open to everyone.
        self.__dict__.update({name: _closed(value) for name, value in state.items()})

    def _refuse(self, name: str) -> None:
        raise AttributeError(
            f"{name} of {type(self).__name__} cannot change: certificates are about one "
            "function. Build another one."
        )


def _closed(value: Any) -> Any:
    if isinstance(value, np.ndarray):
        return hand_over(value)
    if isinstance(value, sparse.csr_array):
        return hand_over_sparse(value)
    return tuple(map(_closed, value)) if type(value) is tuple else value
