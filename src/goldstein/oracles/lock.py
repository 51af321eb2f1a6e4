"""A lock on an open file that the system gives back when its process ends, however it ends."""

from __future__ import annotations

import errno
import os
from typing import Any

try:
    import fcntl
except ImportError:  # Windows
    fcntl = None  # type: ignore[assignment]
try:
    import msvcrt
except ImportError:
    msvcrt = None  # type: ignore[assignment]

#: What a system says that has locks, but not on files like this one.
_NO_LOCKS = (errno.ENOLCK, errno.ENOTSUP, errno.EOPNOTSUPP, errno.ENOSYS)

#: Windows locks bytes, and nobody else can read them: one far beyond the end of any file.
_FAR = 2**42


def lock(descriptor: int) -> bool:
    """Lock a file for this open descriptor alone, or raise `BlockingIOError` if it is locked.

    False where there are no such locks. The lock is gone when the descriptor is closed, here and in
    every process that was forked since.
    """
    if fcntl is not None:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as failure:
            if failure.errno in _NO_LOCKS:
                return False
            raise BlockingIOError(failure.errno, failure.strerror) from failure
        return True
    return msvcrt is not None and _lock_byte(msvcrt, descriptor)


def _lock_byte(windows: Any, descriptor: int) -> bool:
    place = os.lseek(descriptor, 0, os.SEEK_CUR)
    os.lseek(descriptor, _FAR, os.SEEK_SET)
    try:
        windows.locking(descriptor, windows.LK_NBLCK, 1)
    except OSError as failure:
        raise BlockingIOError(failure.errno, failure.strerror) from failure
    finally:
        os.lseek(descriptor, place, os.SEEK_SET)
    return True
