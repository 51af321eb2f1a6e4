"""Certificate files: arrays and a JSON header in one zip; safe to open from a stranger."""

from __future__ import annotations

import hashlib
import io
import json
import math
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from goldstein.errors import CertificateFileError, GoldsteinError

SCHEMA = 1
HEADER = "header.json"
#: Refused unread: a header or arrays beyond these sizes, or a small file that unpacks to much more
#: than real points and gradients do.
_HEADER_LIMIT = 64 * 2**20
_ARRAY_LIMIT = 16 * 2**30
_FREE_SIZE = 64 * 2**20
_GROWTH_LIMIT = 50
#: Others unpack without any bound on the memory they take.
_COMPRESSIONS = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)

Arrays = dict[str, NDArray[Any]]


def read_record(path: str | Path, make: Callable[[str, Arrays, dict[str, Any]], Any]) -> Any:
    """Read a record and make a certificate of it, or say in one sentence what is wrong with it."""
    source = Path(path)
    if not source.is_file():
        raise CertificateFileError(f"{source}: no such certificate file.")
    try:
        return make(*_read(source))
    except CertificateFileError:
        raise
    except GoldsteinError as failure:
        raise CertificateFileError(f"{source} is not a valid certificate: {failure}") from failure
    except Exception as failure:  # zip, zlib, JSON and array readers have no common base
        raise CertificateFileError(
            f"{source} is not a readable certificate file ({type(failure).__name__}: {failure}); "
            "it is damaged, truncated or something else. Ask for it again."
        ) from failure


def _read(source: Path) -> tuple[str, Arrays, dict[str, Any]]:
    with zipfile.ZipFile(source) as archive:
        sizes = {info.filename: info.file_size for info in archive.infolist()}
        if len(sizes) != len(archive.infolist()):
            raise CertificateFileError(f"{source} holds the same entry twice.")
        if any(info.compress_type not in _COMPRESSIONS for info in archive.infolist()):
            raise CertificateFileError(f"{source} is packed in an unknown way: refused.")
        if sizes.get(HEADER, _HEADER_LIMIT + 1) > _HEADER_LIMIT:
            raise CertificateFileError(f"{source} has no usable header: not a certificate file.")
        total = sum(sizes.values())
        if total > min(_ARRAY_LIMIT, max(_FREE_SIZE, _GROWTH_LIMIT * source.stat().st_size)):
            raise CertificateFileError(
                f"{source} would unpack to {total} bytes, far more than a certificate of its size: "
                "refused."
            )
        header = json.loads(_entry(archive, HEADER))
        if not isinstance(header, dict) or header.get("schema") != SCHEMA:
            found = header.get("schema") if isinstance(header, dict) else None
            raise CertificateFileError(
                f"{source} has schema {found!r}, this version reads {SCHEMA}; "
                "use the version of goldstein that wrote it."
            )
        listed = header.get("arrays")
        if not (isinstance(listed, list) and all(isinstance(name, str) for name in listed)):
            raise CertificateFileError(f"{source}: the header does not list its arrays.")
        names = [f"{name}.npy" for name in listed]
        if sorted([*names, HEADER]) != sorted(sizes):
            raise CertificateFileError(f"{source}: the entries do not match the header.")
        blobs = {name: _entry(archive, name) for name in names}
    claimed = header.pop("sha256", None)
    if claimed != digest(header, blobs):
        raise CertificateFileError(
            f"{source}: the content does not match its hash; the file was altered or damaged."
        )
    fields = header.get("fields")
    if not isinstance(fields, dict):
        raise CertificateFileError(f"{source}: the header has no fields.")
    arrays = {name: _array(blobs[f"{name}.npy"], f"{source}: {name}") for name in listed}
    return str(header.get("kind")), arrays, fields


def _entry(archive: zipfile.ZipFile, name: str) -> bytes:
    """Unpack one entry, no further than its stated size: the statement may be a lie."""
    with archive.open(name) as packed:
        return packed.read(archive.getinfo(name).file_size)


def _array(blob: bytes, what: str) -> NDArray[Any]:
    """Read one array of plain numbers; its header must fit the bytes that are there."""
    stream = io.BytesIO(blob)
    if np.lib.format.read_magic(stream) != (1, 0):
        raise CertificateFileError(f"{what} is stored in an unknown array format.")
    shape, _, dtype = np.lib.format.read_array_header_1_0(stream)
    if dtype.kind not in "fiub":
        raise CertificateFileError(f"{what} holds {dtype}, expected plain numbers.")
    if math.prod(shape) * dtype.itemsize != len(blob) - stream.tell():
        raise CertificateFileError(f"{what} says shape {shape}, but holds another number of bytes.")
    stream.seek(0)
    array: NDArray[Any] = np.lib.format.read_array(stream, allow_pickle=False)
    return array


def digest(header: dict[str, Any], blobs: dict[str, bytes]) -> str:
    h = hashlib.sha256(json.dumps(header, sort_keys=True).encode())
    for name in sorted(blobs):
        h.update(name.encode())
        h.update(hashlib.sha256(blobs[name]).digest())
    return h.hexdigest()
