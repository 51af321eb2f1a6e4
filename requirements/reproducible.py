"""Pack a source archive again so that it depends on its content alone.

`reproducible.py ARCHIVE.tar.gz`: entries in order of their names, of nobody, and as old as
SOURCE_DATE_EPOCH says.
"""

from __future__ import annotations

import gzip
import hashlib
import io
import os
import sys
import tarfile
from pathlib import Path


def repacked(blob: bytes, when: int) -> bytes:
    """Return the archive with everything left out that depends on time, place or person."""
    tape = io.BytesIO()
    with (
        tarfile.open(fileobj=io.BytesIO(blob)) as old,
        tarfile.open(fileobj=tape, mode="w", format=tarfile.PAX_FORMAT) as new,
    ):
        for entry in sorted(old.getmembers(), key=lambda entry: entry.name):
            plain = tarfile.TarInfo(entry.name)
            plain.type, plain.size, plain.mtime = entry.type, entry.size, when
            plain.mode = 0o755 if entry.isdir() or entry.mode & 0o100 else 0o644
            new.addfile(plain, old.extractfile(entry) if entry.isreg() else None)
    packed = io.BytesIO()
    with gzip.GzipFile(filename="", mode="wb", fileobj=packed, mtime=when) as file:
        file.write(tape.getvalue())
    return packed.getvalue()


if __name__ == "__main__":
    archive = Path(sys.argv[1])
    archive.write_bytes(repacked(archive.read_bytes(), int(os.environ["SOURCE_DATE_EPOCH"])))
    print(archive.name, "sha256", hashlib.sha256(archive.read_bytes()).hexdigest())
