"""Archives, as certificates are: arrays and a JSON header in one zip; safe from strangers, too."""

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
from goldstein.storage.files import replacing

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


def _require(ok: bool, message: str) -> None:
    if not ok:
        raise CertificateFileError(message)


def _read(source: Path) -> tuple[str, Arrays, dict[str, Any]]:
    with zipfile.ZipFile(source) as archive:
        entries = archive.infolist()
        sizes = {info.filename: info.file_size for info in entries}
        known = all(info.compress_type in _COMPRESSIONS for info in entries)
        _require(len(sizes) == len(entries), f"{source} holds the same entry twice.")
        _require(known, f"{source} is packed in an unknown way: refused.")
        usable = sizes.get(HEADER, _HEADER_LIMIT + 1) <= _HEADER_LIMIT
        _require(usable, f"{source} has no usable header: not a certificate file.")
        total = sum(sizes.values())
        _require(
            total <= min(_ARRAY_LIMIT, max(_FREE_SIZE, _GROWTH_LIMIT * source.stat().st_size)),
            f"{source} would unpack to {total} bytes, far more than a certificate of its size: "
            "refused.",
        )
        header = json.loads(_entry(archive, HEADER))
        found = header.get("schema") if isinstance(header, dict) else None
        _require(
            found == SCHEMA,
            f"{source} has schema {found!r}, this version reads {SCHEMA}; "
            "use the version of goldstein that wrote it.",
        )
        listed = header.get("arrays")
        named = isinstance(listed, list) and all(isinstance(name, str) for name in listed)
        _require(named, f"{source}: the header does not list its arrays.")
        names = [f"{name}.npy" for name in listed]
        same = sorted([*names, HEADER]) == sorted(sizes)
        _require(same, f"{source}: the entries do not match the header.")
        blobs = {name: _entry(archive, name) for name in names}
    same = header.pop("sha256", None) == digest(header, blobs)
    _require(
        same, f"{source}: the content does not match its hash; the file was altered or damaged."
    )
    _require(isinstance(header.get("fields"), dict), f"{source}: the header has no fields.")
    arrays = {name: _array(blobs[f"{name}.npy"], f"{source}: {name}") for name in listed}
    return str(header.get("kind")), arrays, header["fields"]


def _entry(archive: zipfile.ZipFile, name: str) -> bytes:
    """Unpack one entry, no further than its stated size: the statement may be a lie."""
    with archive.open(name) as packed:
        return packed.read(archive.getinfo(name).file_size)


def _array(blob: bytes, what: str) -> NDArray[Any]:
    """Read one array of plain numbers; its header must fit the bytes that are there."""
    stream = io.BytesIO(blob)
    plain = np.lib.format.read_magic(stream) == (1, 0)
    _require(plain, f"{what} is stored in an unknown array format.")
    shape, _, dtype = np.lib.format.read_array_header_1_0(stream)
    _require(dtype.kind in "fiub", f"{what} holds {dtype}, expected plain numbers.")
    whole = math.prod(shape) * dtype.itemsize == len(blob) - stream.tell()
    _require(whole, f"{what} says shape {shape}, but holds another number of bytes.")
    stream.seek(0)
    return np.lib.format.read_array(stream, allow_pickle=False)


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


def npy(array: NDArray[Any]) -> bytes:
    """Return an array as its file."""
    buffer = io.BytesIO()
    np.lib.format.write_array(
        buffer, np.ascontiguousarray(array), version=(1, 0), allow_pickle=False
    )
    return buffer.getvalue()


def digest(header: dict[str, Any], blobs: dict[str, bytes]) -> str:
    h = hashlib.sha256(json.dumps(header, sort_keys=True).encode())
    for name in sorted(blobs):
        h.update(name.encode())
        h.update(hashlib.sha256(blobs[name]).digest())
    return h.hexdigest()
