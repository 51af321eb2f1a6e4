"""Files: written whole or not at all; locked by one run at a time, and appended to, in words."""

from __future__ import annotations

import contextlib
import errno
import os
import threading
import time
import warnings
import weakref
from collections.abc import Iterator
from io import FileIO
from pathlib import Path
from typing import Any, BinaryIO

from goldstein.errors import CheckpointError

fcntl: Any
msvcrt: Any
try:
    import fcntl
except ImportError:  # Windows
    fcntl = None
try:
    import msvcrt
except ImportError:
    msvcrt = None

#: What a system says that has locks, but not on files like this one.
_NO_LOCKS = (errno.ENOLCK, errno.ENOTSUP, errno.EOPNOTSUPP, errno.ENOSYS)

#: Windows locks bytes, and nobody else can read them: one far beyond the end of any file.
_FAR = 2**42

#: Seconds between two writes that wait for the disk: what a power cut may cost.
_SYNC_EVERY = 5.0

_open: weakref.WeakSet[LockedFile] = weakref.WeakSet()


class CheckpointWarning(UserWarning):
    """A checkpoint was damaged, is full, or cannot be locked; the run goes on."""


@contextlib.contextmanager
def replacing(target: Path) -> Iterator[BinaryIO]:
    """Write a file all or nothing: under its own name only once it is whole and on the disk."""
    who = f"{os.getpid()}-{threading.get_ident()}"  # no two writers in each other's way
    partial = target.with_name(f".{target.name}.{who}.partial")
    try:
        partial.unlink(missing_ok=True)
        with open(partial, "xb") as file:  # in a stranger's folder there may be a link
            yield file
            file.flush()
            os.fsync(file.fileno())
        os.replace(partial, target)
    except OSError as failure:
        said = failure.strerror or str(failure)
        raise OSError(
            failure.errno, f"{said}; nothing was written or changed under this name", str(target)
        ) from failure
    finally:
        with contextlib.suppress(OSError):
            partial.unlink(missing_ok=True)


def lock(descriptor: int) -> bool:
    """Lock a file for this open descriptor alone, or raise `BlockingIOError` if it is locked.

    False where there are no such locks. The system gives the lock back when the descriptor is
    closed, here and in every process that was forked since, or its process ends.
    """
    if fcntl is None and msvcrt is None:
        return False
    place = os.lseek(descriptor, 0, os.SEEK_CUR)
    try:
        if fcntl is not None:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        else:
            os.lseek(descriptor, _FAR, os.SEEK_SET)
            msvcrt.locking(descriptor, msvcrt.LK_NBLCK, 1)
    except OSError as failure:
        if fcntl is not None and failure.errno in _NO_LOCKS:
            return False
        raise BlockingIOError(failure.errno, failure.strerror) from failure
    finally:
        os.lseek(descriptor, place, os.SEEK_SET)
    return True


class LockedFile:
    """A file that one run at a time reads and appends to.

    Attributes
    ----------
    path : Path
    size : int
        Bytes that were there.
    end : int
        Where the next bytes go.
    """

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path)
        self.end = 0
        self._synced = time.monotonic()
        try:
            if self.path.exists() and not self.path.is_file():  # nobody knows where a device ends
                raise OSError(0, "not a file")
            descriptor = os.open(self.path, os.O_RDWR | os.O_CREAT | getattr(os, "O_BINARY", 0))
        except (OSError, ValueError) as failure:
            raise CheckpointError(
                f"checkpoint {self.path} cannot be used ({getattr(failure, 'strerror', failure)}); "
                "name a file in an existing folder that can be written to."
            ) from failure
        self._file = FileIO(descriptor, "r+")
        try:
            if not lock(descriptor):
                self.say("cannot be locked on this file system: see that no second run uses it")
            self.size = os.fstat(descriptor).st_size
        except BaseException as failure:
            self._file.close()
            if not isinstance(failure, BlockingIOError):
                raise
            raise CheckpointError(
                f"checkpoint {self.path} is in use by another run, in this process or another; "
                "wait until it has ended, or name another file."
            ) from None
        _open.add(self)

    def read(self, at: int, count: int) -> bytes:
        """Return so many bytes, fewer only at the end of the file."""
        parts = []
        try:
            self._file.seek(at)
            while count > 0 and (part := self._file.read(count)):
                parts.append(part)
                count -= len(part)
        except (OSError, ValueError) as failure:
            raise self._failed("read", failure) from failure
        return b"".join(parts)

    def append(self, blob: bytes) -> None:
        """Write at the end, all or nothing."""
        try:
            self._file.seek(self.end)
            view = memoryview(blob)
            while view:
                view = view[self._file.write(view) or 0 :]
            now = time.monotonic()
            if now - self._synced >= _SYNC_EVERY:
                os.fsync(self._file.fileno())
                self._synced = now
        except BaseException as failure:  # Ctrl-C, too
            with contextlib.suppress(OSError, ValueError):
                self._file.truncate(self.end)
            if isinstance(failure, OSError | ValueError):
                raise self._failed("written", failure) from failure
            raise
        self.end += len(blob)

    def cut(self) -> None:
        """Drop what is behind the end."""
        self._file.truncate(self.end)

    def say(self, what: str) -> None:
        """Tell the user what became of the checkpoint; the run goes on."""
        warnings.warn(f"checkpoint {self.path} {what}.", CheckpointWarning, stacklevel=2)

    def close(self) -> None:
        """Give the file back."""
        _open.discard(self)
        if not self._file.closed:
            with contextlib.suppress(OSError):  # a file system may have nothing to wait for
                os.fsync(self._file.fileno())
            self._file.close()

    def _failed(self, what: str, failure: OSError | ValueError) -> CheckpointError:
        if self._file.closed:
            return CheckpointError(
                f"checkpoint {self.path} was closed: it belongs to the process that began the run, "
                "and not to one that was forked from it."
            )
        return CheckpointError(
            f"checkpoint {self.path} cannot be {what} ({getattr(failure, 'strerror', failure)}). "
            "The answers so far are in it: mend that (make room?), and the same call continues."
        )


def in_use(path: str | Path) -> bool:
    """Whether a run holds the file at this moment."""
    with contextlib.suppress(FileNotFoundError), open(path, "r+b") as file:
        try:
            lock(file.fileno())
        except BlockingIOError:
            return True
    return False


def _leave_to_the_parent() -> None:
    """Close files in a forked process: it must neither write to them nor hold their locks."""
    for held in list(_open):
        held._file.close()
    _open.clear()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_leave_to_the_parent)
