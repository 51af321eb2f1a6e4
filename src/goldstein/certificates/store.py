"""Certificate files: arrays and a JSON header in one zip, no pickle, safe to open from a stranger."""

from __future__ import annotations

import hashlib
import io
import json
import os
import zipfile
from pathlib import Path
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from goldstein.certificates.goldstein import GoldsteinCertificate
from goldstein.errors import CertificateFileError, GoldsteinError

SCHEMA = 1
_HEADER = "header.json"
#: A header larger than this, or arrays beyond this many bytes, are refused unread.
_HEADER_LIMIT = 64 * 2**20
_ARRAY_LIMIT = 16 * 2**30

Arrays = dict[str, NDArray[Any]]


class Storable(Protocol):
    """A certificate that can be written: its kind, its arrays and its JSON fields."""

    def to_record(self) -> tuple[str, Arrays, dict[str, Any]]: ...


def save_certificate(certificate: Storable, path: str | Path) -> Path:
    """Write `certificate` to `path` (suffix .cert is added if there is none), all or nothing."""
    target = Path(path)
    if not target.suffix:
        target = target.with_suffix(".cert")
    kind, arrays, fields = certificate.to_record()
    blobs = {f"{name}.npy": _npy(array) for name, array in arrays.items()}
    header = {"schema": SCHEMA, "kind": kind, "arrays": sorted(arrays), "fields": fields}
    header["sha256"] = _digest(header, blobs)
    partial = target.with_name(f".{target.name}.{os.getpid()}.partial")
    try:
        with zipfile.ZipFile(partial, "w", zipfile.ZIP_DEFLATED) as archive:
            archive.writestr(_HEADER, json.dumps(header, sort_keys=True, indent=1))
            for name, blob in sorted(blobs.items()):
                archive.writestr(name, blob)
        os.replace(partial, target)
    finally:
        partial.unlink(missing_ok=True)
    return target


def load_certificate(path: str | Path) -> Any:
    """Read a certificate written by `save`, or say in one sentence what is wrong with the file.

    Returns
    -------
    GoldsteinCertificate or NearCertificate
    """
    source = Path(path)
    if not source.is_file():
        raise CertificateFileError(f"{source}: no such certificate file.")
    try:
        kind, arrays, fields = _read(source)
        return _maker(kind, source)(arrays, fields)
    except CertificateFileError:
        raise
    except (
        zipfile.BadZipFile,
        KeyError,
        TypeError,
        ValueError,
        EOFError,
        OSError,
        MemoryError,
        NotImplementedError,
        RecursionError,
        RuntimeError,
        OverflowError,
        GoldsteinError,
    ) as failure:
        raise CertificateFileError(
            f"{source} is not a readable certificate file ({type(failure).__name__}: {failure}); "
            "it is damaged or truncated. Ask for it again."
        ) from failure
    except Exception as failure:  # zlib.error and friends have no common base
        raise CertificateFileError(
            f"{source} is damaged ({type(failure).__name__}: {failure}). Ask for it again."
        ) from failure


def _read(source: Path) -> tuple[str, Arrays, dict[str, Any]]:
    with zipfile.ZipFile(source) as archive:
        sizes = {info.filename: info.file_size for info in archive.infolist()}
        if len(sizes) != len(archive.infolist()):
            raise CertificateFileError(f"{source} holds the same entry twice.")
        if sizes.get(_HEADER, _HEADER_LIMIT + 1) > _HEADER_LIMIT:
            raise CertificateFileError(f"{source} has no usable header: not a certificate file.")
        header = json.loads(archive.read(_HEADER))
        if not isinstance(header, dict) or header.get("schema") != SCHEMA:
            found = header.get("schema") if isinstance(header, dict) else None
            raise CertificateFileError(
                f"{source} has schema {found!r}, this version reads {SCHEMA}; "
                "use the version of goldstein that wrote it."
            )
        names = [f"{name}.npy" for name in header["arrays"]]
        if set(names) | {_HEADER} != set(sizes):
            raise CertificateFileError(f"{source}: the entries do not match the header.")
        if sum(sizes.values()) > _ARRAY_LIMIT:
            raise CertificateFileError(f"{source} unpacks to {sum(sizes.values())} bytes: refused.")
        blobs = {name: archive.read(name) for name in names}
    claimed = header.pop("sha256", None)
    if claimed != _digest(header, blobs):
        raise CertificateFileError(
            f"{source}: the content does not match its hash; the file was altered or damaged."
        )
    arrays = {
        name: np.load(io.BytesIO(blobs[f"{name}.npy"]), allow_pickle=False)
        for name in header["arrays"]
    }
    return header["kind"], arrays, header["fields"]


def _maker(kind: str, source: Path) -> Any:
    if kind == "goldstein":
        return GoldsteinCertificate.from_record
    if kind == "near":
        from goldstein.certificates.near import NearCertificate

        return NearCertificate.from_record
    raise CertificateFileError(f"{source} holds an unknown kind of certificate: {kind!r}.")


def _npy(array: NDArray[Any]) -> bytes:
    buffer = io.BytesIO()
    np.lib.format.write_array(
        buffer, np.ascontiguousarray(array), version=(1, 0), allow_pickle=False
    )
    return buffer.getvalue()


def _digest(header: dict[str, Any], blobs: dict[str, bytes]) -> str:
    h = hashlib.sha256(json.dumps(header, sort_keys=True).encode())
    for name in sorted(blobs):
        h.update(name.encode())
        h.update(hashlib.sha256(blobs[name]).digest())
    return h.hexdigest()
