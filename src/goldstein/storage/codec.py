"""Certificates as data: what every kind offers, one codec by the metadata of fields, a registry.

They are stored as archives: arrays and a JSON header in one zip; safe from strangers, too.
"""

import dataclasses
import functools
import hashlib
import importlib
import io
import json
import math
import typing
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any, ClassVar, Protocol, Self, TypeVar, get_args

import numpy as np
from numpy.typing import NDArray

from goldstein.checker.rationals import exact_floats
from goldstein.checker.verification import Label, Verification
from goldstein.errors import CertificateFileError, GoldsteinError, InputError, InputTypeError
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
    altered = "the content does not match its hash; the file was altered or damaged."
    _require(same, f"{source}: {altered}")
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


LABELS = get_args(Label)
T = TypeVar("T")


def as_number(name: str, value: Any) -> float:
    """Return a field that must be a plain real number as a float."""
    if isinstance(value, bool) or not isinstance(value, int | float | np.floating | np.integer):
        raise InputTypeError(f"{name} must be a number, got {type(value).__name__}.")
    try:
        return float(value)
    except OverflowError:
        raise InputError(f"{name} is beyond the range of float64.") from None


def is_layout(data: Any, depth: int = 0) -> bool:
    """Is this plain data a layout, as `goldstein.checker.function` has it?"""
    if not isinstance(data, list) or depth > 50:
        return False
    if not (data and isinstance(data[0], str)):
        return all(type(n) is int and n >= 0 for n in data)
    parts = data[1:]
    if data[0] == "dict":
        keys, *parts = parts or [None]
        named = isinstance(keys, list) and all(isinstance(key, str) for key in keys)
        if not (named and len(set(keys)) == len(keys) == len(parts)):
            return False
    return data[0] in ("dict", "list", "tuple") and all(is_layout(p, depth + 1) for p in parts)


@typing.runtime_checkable
class Certificate(Protocol):
    """A claim about a point, with its evidence.

    Attributes
    ----------
    kind : str
        The name of the kind, as it stands in files.
    x : ndarray
    eps, delta : float
        What is claimed.
    label : str
        How far the claim can be trusted.
    """

    kind: ClassVar[str]
    x: NDArray[np.float64]
    eps: float
    delta: float
    label: Label

    def verify(self, fun: Any) -> Verification:
        """Re-derive the claim from the function alone."""

    def to_record(self) -> tuple[str, Arrays, dict[str, Any]]:
        """Return the kind, arrays and JSON fields for a file."""

    @classmethod
    def from_record(cls, arrays: Arrays, fields: dict[str, Any]) -> Any:
        """Rebuild from what `to_record` gave."""

    def content_digest(self) -> str:
        """Return a hash of every field."""

    def summary(self) -> str:
        """One line for people."""


#: The kinds by name; those of the library are there once `goldstein.certificates` is loaded.
_registered: dict[str, type] = {}

#: As `json.dumps(..., sort_keys=True)` does, which makes an encoder each time.
_written = json.JSONEncoder(sort_keys=True).encode


def limits_for(certificate: Certificate, given: dict[str, Any]) -> dict[str, Any]:
    """Return what the check of a certificate takes of the arguments of a run."""
    names = getattr(certificate, "_limits", ())
    return {name: given[name] for name in names if name in given}


def register(cls: type) -> type:
    """Make a kind of certificate known by its name (a decorator): files of it can be read."""
    _registered[cls.kind] = cls  # type: ignore[attr-defined]
    return cls


def certificate_kind(name: str) -> Any:
    """Return the class of a kind of certificate.

    Examples
    --------
    >>> certificate_kind("near").__name__
    'NearCertificate'
    """
    importlib.import_module("goldstein.certificates")
    if name not in _registered:
        known = ", ".join(sorted(_registered))
        raise InputError(f"unknown kind of certificate: {name!r}; known are {known}.")
    return _registered[name]


@dataclasses.dataclass(frozen=True)
class Array:
    """A field that holds an array of numbers, of a shape in letters: equal letters, equal sizes."""

    shape: list[str]
    dtype: np.dtype[Any]
    finite: bool

    def held(self, name: str, value: Any) -> NDArray[Any]:
        """Return a copy that nobody can write to."""
        array = np.array(value) if self.dtype.kind == "i" else real_numbers(name, value)
        if self.dtype.kind == "i" and array.size and array.dtype.kind not in "iu":
            raise InputTypeError(f"{name} must hold integers.")
        array = array.astype(self.dtype, copy=False)
        array.setflags(write=False)
        return array

    def read(self, name: str, array: NDArray[Any]) -> NDArray[Any]:
        """Return an array of a file, or refuse what cannot have been written."""
        if array.dtype != self.dtype or (self.finite and not np.isfinite(array).all()):
            raise InputError(f"{name} must hold finite {self.dtype} numbers.")
        return array


def array(shape: str, dtype: type = np.float64, finite: bool = True, **options: Any) -> Any:
    """Declare a field that is an array; see `Array`."""
    codec = Array(shape.split(), np.dtype(dtype), finite)
    return dataclasses.field(metadata={"array": codec}, **options)


def text(written: Callable[[Any], Any], read: Callable[[Any], Any], **options: Any) -> Any:
    """Declare a field that goes to a file as plain data, and is made of it again."""
    return dataclasses.field(metadata={"text": (written, read)}, **options)


def real_numbers(name: str, values: Any) -> NDArray[np.float64]:
    """Return a float64 copy of real numbers, none of which is rounded."""
    return np.array(exact_floats(values, name, finite=False))


@typing.dataclass_transform(
    frozen_default=True, eq_default=False, field_specifiers=(dataclasses.field, array, text)
)
def record(cls: type[T]) -> type[T]:
    """Make a dataclass of a kind of certificate, and make it known (a decorator)."""
    made = dataclasses.dataclass(frozen=True, eq=False, repr=False)(cls)
    return register(made) if "kind" in vars(made) else made


class Stored:
    """A certificate: data by fields. It goes to files, and comes out of them as it was made.

    A field is an array (`array(...)`), something that is written as plain data (`text(...)`), or
    plain data itself; a float is a number of the claim.
    """

    __dataclass_fields__: ClassVar[dict[str, dataclasses.Field[Any]]]
    kind: ClassVar[str]
    x: NDArray[np.float64]
    #: What its check is given besides the function.
    _limits: ClassVar[tuple[str, ...]] = ()

    def __post_init__(self) -> None:
        sizes: dict[str, int] = {}
        for name, codec in _layout(type(self)).arrays.items():
            value = getattr(self, name)
            if value is None:  # a field that may be missing
                continue
            found = codec.held(name, value)
            object.__setattr__(self, name, found)
            expected = tuple(map(sizes.setdefault, codec.shape, found.shape))
            if found.ndim != len(codec.shape) or found.shape != expected:
                raise InputError(
                    f"{name} of a {self.kind} certificate has shape {found.shape}, expected "
                    f"({', '.join(codec.shape)}) with {sizes}."
                )
        for name in _layout(type(self)).numbers:
            object.__setattr__(self, name, as_number(name, getattr(self, name)))
        state: Any = vars(self)
        if state["label"] not in LABELS:
            raise InputError(f"label must be one of {', '.join(LABELS)}; got {state['label']!r}.")
        if not isinstance(state["meta"], dict) or not isinstance(state.get("digest", ""), str):
            raise InputTypeError("meta must be a dict and digest a str.")
        if state.get("digest") == "":
            object.__setattr__(self, "digest", self.content_digest())

    def to_record(self) -> tuple[str, Arrays, dict[str, Any]]:
        """Return the kind, arrays and JSON fields for a file."""
        held = {name: getattr(self, name) for name in _layout(type(self)).arrays}
        arrays = {name: array for name, array in held.items() if array is not None}
        digest = getattr(self, "digest", None) or self.content_digest()
        return self.kind, arrays, {**self._plain(), "digest": digest}

    @classmethod
    def from_record(cls, arrays: Arrays, fields: dict[str, Any]) -> Self:
        """Rebuild from what `to_record` gave; a file that lacks or adds something is refused."""
        layout = _layout(cls)
        needed = set(layout.arrays) - layout.optional
        if not (needed <= set(arrays) <= set(layout.arrays) and set(fields) == layout.written):
            raise InputError(f"the entries of the file are not those of a {cls.kind} certificate.")
        everything = {**fields, **{n: layout.arrays[n].read(n, a) for n, a in arrays.items()}}
        digest = everything["digest"]
        if not isinstance(digest, str) or not digest:
            raise InputError("the digest is missing.")
        for name, (_, read) in layout.texts.items():
            everything[name] = read(everything[name])
        if not layout.digest:
            del everything["digest"]
        certificate = cls(**everything)
        for name in layout.numbers:
            if not np.isfinite(getattr(certificate, name)):
                raise InputError(f"{name} must be finite.")
        if not layout.digest and certificate.content_digest() != digest:
            raise InputError("the certificate was changed after it was made.")
        return certificate

    def content_digest(self) -> str:
        """Return a hash of every field but the digest itself."""
        h = hashlib.sha256()
        for name in _layout(type(self)).arrays:
            array = getattr(self, name)
            h.update(repr(None if array is None else array.shape).encode())
            h.update(b"" if array is None else np.ascontiguousarray(array).data)
        plain = {k: v.hex() if isinstance(v, float) else v for k, v in self._plain().items()}
        try:
            h.update(_written(plain).encode())
        except (TypeError, ValueError, RecursionError) as failure:
            raise InputTypeError(
                f"meta must hold plain numbers, strings, lists and dicts: {failure}."
            ) from failure
        return h.hexdigest()

    def _plain(self) -> dict[str, Any]:
        """Everything but arrays and digest, as plain data."""
        layout = _layout(type(self))
        fields = {name: getattr(self, name) for name in layout.plain}
        return fields | {k: written(fields[k]) for k, (written, _) in layout.texts.items()}

    def save(self, path: str | Path) -> Path:
        """Write the certificate to one file that is safe to hand to a stranger."""
        return write_record(path, *self.to_record())

    def __setstate__(self, state: dict[str, Any]) -> None:
        # Checked and closed as a new one is; nothing that was derived from the fields comes along.
        names = {field.name for field in dataclasses.fields(self)}
        if not names <= set(state):
            missing = ", ".join(sorted(names - set(state)))
            raise InputError(
                f"a pickled {type(self).__name__} lacks {missing}: it was made by another version. "
                "Files of `certificate.save` are read by later versions."
            )
        vars(self).update({name: state[name] for name in names})
        self.__post_init__()

    def summary(self) -> str:
        """One line for people."""
        raise NotImplementedError

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.summary()}>"


class _Layout:
    """The fields of a kind of certificate, by how they are written."""

    def __init__(self, cls: Any) -> None:
        # What a run remembers of its own is no part of the claim.
        fields = [f for f in dataclasses.fields(cls) if f.compare]
        names = [f.name for f in fields]
        self.arrays = {f.name: f.metadata["array"] for f in fields if "array" in f.metadata}
        self.texts = {f.name: f.metadata["text"] for f in fields if "text" in f.metadata}
        self.numbers = [f.name for f in fields if f.type == "float"]
        self.optional = {f.name for f in fields if f.default is None}
        self.digest = "digest" in names
        self.plain = [name for name in names if name not in {*self.arrays, "digest"}]
        self.written = {*self.plain, "digest"}


_layout: Callable[[Any], _Layout] = functools.cache(_Layout)


def save_certificate(certificate: Certificate, path: str | Path) -> Path:
    """Write a certificate to a file (suffix .cert is added if there is none), all or nothing."""
    return write_record(path, *certificate.to_record())


def load_certificate(path: str | Path) -> Any:
    """Read a certificate written by `save`, or say in one sentence what is wrong with the file.

    Returns
    -------
    GoldsteinCertificate, NearCertificate, KKTCertificate, NearKKTCertificate or ValuesCertificate
    """
    return read_record(
        path, lambda kind, arrays, fields: certificate_kind(kind).from_record(arrays, fields)
    )
