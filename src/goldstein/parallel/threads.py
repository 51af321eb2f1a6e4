"""How many threads BLAS may use: one worker on each core leaves nothing for more.

One thread also adds up in one order, so that every worker gets the same digits.
"""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterator

from threadpoolctl import threadpool_limits

_lock = threading.Lock()
_inside = 0
_limits: threadpool_limits | None = None


@contextlib.contextmanager
def blas_threads(most: int) -> Iterator[None]:
    """Cap the threads of BLAS and OpenMP in this process while anybody is inside.

    The cap belongs to the process, and several threads of it may be workers: the first sets it,
    the last takes it away.

    Examples
    --------
    >>> with blas_threads(1):
    ...     pass
    """
    global _inside, _limits
    with _lock:
        _inside += 1
        if _inside == 1:
            _limits = threadpool_limits(limits=most)
    try:
        yield
    finally:
        with _lock:
            _inside -= 1
            if _inside == 0 and _limits is not None:
                _limits.restore_original_limits()
                _limits = None
