"""Writing files: whole or not at all."""

from __future__ import annotations

import contextlib
import io
import json
import os
import threading
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import NDArray

from goldstein.certificates.files import HEADER, SCHEMA, Arrays, digest


def write_record(path: str | Path, kind: str, arrays: Arrays, fields: dict[str, Any]) -> Path:
    """Write a certificate's record (suffix .cert is added if there is none), all or nothing."""
    target = Path(path)
    if not target.suffix:
        target = target.with_suffix(".cert")
    blobs = {f"{name}.npy": npy(array) for name, array in arrays.items()}
    header = {"schema": SCHEMA, "kind": kind, "arrays": sorted(arrays), "fields": fields}
    header["sha256"] = digest(header, blobs)
    with replacing(target) as file, zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr(HEADER, json.dumps(header, sort_keys=True, indent=1))
        for name, blob in sorted(blobs.items()):
            archive.writestr(name, blob)
    return target


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


def npy(array: NDArray[Any]) -> bytes:
    """Return an array as its file."""
    buffer = io.BytesIO()
    np.lib.format.write_array(
        buffer, np.ascontiguousarray(array), version=(1, 0), allow_pickle=False
    )
    return buffer.getvalue()
