"""What every kind of certificate offers, and where the kinds are found by name."""

from __future__ import annotations

import dataclasses
import functools
import hashlib
import importlib
import json
from collections.abc import Callable
from pathlib import Path
from typing import (
    Any,
    ClassVar,
    Protocol,
    Self,
    TypeVar,
    cast,
    dataclass_transform,
    get_args,
    runtime_checkable,
)  # fmt: skip

import numpy as np
from numpy.typing import NDArray

from goldstein.certificates.files import Arrays, read_record
from goldstein.certificates.writing import write_record
from goldstein.checker.verification import Label, Verification
from goldstein.errors import InputError, InputTypeError
from goldstein.numerics.exact_floats import exact_floats

LABELS = get_args(Label)

Kind = TypeVar("Kind")
F = TypeVar("F", bound=Callable[..., Any])


def as_number(name: str, value: Any) -> float:
    """Return a field that must be a plain real number as a float."""
    if isinstance(value, bool) or not isinstance(value, int | float | np.floating | np.integer):
        raise InputTypeError(f"{name} must be a number, got {type(value).__name__}.")
    try:
        return float(value)
    except OverflowError:
        raise InputError(f"{name} is beyond the range of float64.") from None


@runtime_checkable
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

    @property
    def x(self) -> NDArray[np.float64]: ...
    @property
    def eps(self) -> float: ...
    @property
    def delta(self) -> float: ...
    @property
    def label(self) -> Label: ...

    def verify(self, fun: Any) -> Verification:
        """Re-derive the claim from the function alone."""
        ...

    def to_record(self) -> tuple[str, Arrays, dict[str, Any]]:
        """Return the kind, arrays and JSON fields for a file."""
        ...

    @classmethod
    def from_record(cls, arrays: Arrays, fields: dict[str, Any]) -> Any:
        """Rebuild from what `to_record` gave."""
        ...

    def content_digest(self) -> str:
        """Return a hash of every field."""
        ...

    def summary(self) -> str:
        """One line for people."""
        ...


#: The kinds of the library by name; loaded when they are needed.
_OWN = {
    "goldstein": "goldstein.certificates.goldstein:GoldsteinCertificate",
    "near": "goldstein.certificates.near:NearCertificate",
    "kkt": "goldstein.certificates.kkt:KKTCertificate",
    "plus": "goldstein.certificates.plus:PlusCertificate",
    "near-kkt": "goldstein.certificates.near_kkt:NearKKTCertificate",
    "values": "goldstein.certificates.values:ValuesCertificate",
    "values-kkt": "goldstein.certificates.values_kkt:ValuesKKTCertificate",
}

#: What the check of a kind is given besides the function.
_LIMITS = {
    "kkt": ("bounds", "constraints"),
    "near-kkt": ("bounds", "constraints"),
    "values": ("bounds",),
    "values-kkt": ("bounds", "constraints"),
}

_registered: dict[str, type] = {}

#: As `json.dumps(..., sort_keys=True)` does, which makes an encoder each time.
_written = json.JSONEncoder(sort_keys=True).encode


def limits_for(certificate: Certificate, given: dict[str, Any]) -> dict[str, Any]:
    """Return what the check of a certificate takes of the arguments of a run."""
    names = _LIMITS.get(certificate.kind, ())
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
    if name in _registered:
        return _registered[name]
    if name not in _OWN:
        known = ", ".join(sorted({*_OWN, *_registered}))
        raise InputError(f"unknown kind of certificate: {name!r}; known are {known}.")
    module, _, attribute = _OWN[name].partition(":")
    return getattr(importlib.import_module(module), attribute)


def _cached(function: F) -> F:
    return cast(F, functools.cache(function))


class Array:
    """A field that holds an array of numbers, of a shape in letters: equal letters, equal sizes."""

    def __init__(self, shape: str, dtype: type = np.float64, finite: bool = True) -> None:
        self.shape, self.dtype, self.finite = shape.split(), np.dtype(dtype), finite

    def held(self, name: str, value: Any) -> NDArray[Any]:
        """Return a copy that nobody can write to."""
        array = np.array(value) if self.dtype.kind == "i" else real_numbers(name, value)
        if self.dtype.kind == "i" and array.size and array.dtype.kind not in "iu":
            raise InputTypeError(f"{name} must hold integers.")
        return closed(array.astype(self.dtype, copy=False))

    def read(self, name: str, array: NDArray[Any]) -> NDArray[Any]:
        """Return an array of a file, or refuse what cannot have been written."""
        if array.dtype != self.dtype or (self.finite and not np.isfinite(array).all()):
            raise InputError(f"{name} must hold finite {self.dtype} numbers.")
        return array


class Text:
    """A field that goes to a file as plain data, and is made of it again."""

    def __init__(self, written: Callable[[Any], Any], read: Callable[[Any], Any]) -> None:
        self.written, self.read = written, read


def array(shape: str, dtype: type = np.float64, finite: bool = True, **options: Any) -> Any:
    """Declare a field that is an array; see `Array`."""
    return dataclasses.field(metadata={"array": Array(shape, dtype, finite)}, **options)


def text(written: Callable[[Any], Any], read: Callable[[Any], Any], **options: Any) -> Any:
    """Declare a field that is written as plain data; see `Text`."""
    return dataclasses.field(metadata={"text": Text(written, read)}, **options)


@dataclass_transform(eq_default=False, field_specifiers=(dataclasses.field, array, text))
def stored(kind: type[Kind]) -> type[Kind]:
    """Make a kind of certificate of its fields (a decorator)."""
    return dataclasses.dataclass(frozen=True, eq=False, repr=False)(kind)


def real_numbers(name: str, values: Any) -> NDArray[np.float64]:
    """Return a float64 copy of real numbers, none of which is rounded."""
    return np.array(exact_floats(values, name, finite=False))


def closed(array: NDArray[Any]) -> NDArray[Any]:
    """Let nobody write to an array any more, and return it."""
    array.setflags(write=False)
    return array


class Stored:
    """A certificate: data by fields. It goes to files, and comes out of them as it was made.

    A field is an array (`array(...)`), something that is written as plain data (`text(...)`), or
    plain data itself; a float is a number of the claim.
    """

    kind: ClassVar[str]

    def __post_init__(self) -> None:
        sizes: dict[str, int] = {}
        for name, codec in _codecs(type(self), "array"):
            value = getattr(self, name)
            if value is None:  # a field that may be missing
                continue
            found = codec.held(name, value)
            object.__setattr__(self, name, found)
            expected = tuple(sizes.setdefault(s, n) for s, n in zip(codec.shape, found.shape))
            if found.ndim != len(codec.shape) or found.shape != expected:
                raise InputError(
                    f"{name} of a {self.kind} certificate has shape {found.shape}, expected "
                    f"({', '.join(codec.shape)}) with {sizes}."
                )
        for name in _numbers(type(self)):
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
        arrays = {
            name: getattr(self, name)
            for name, _ in _codecs(type(self), "array")
            if getattr(self, name) is not None
        }
        digest = getattr(self, "digest", None) or self.content_digest()
        return self.kind, arrays, {**self._plain(), "digest": digest}

    @classmethod
    def from_record(cls, arrays: Arrays, fields: dict[str, Any]) -> Self:
        """Rebuild from what `to_record` gave; a file that lacks or adds something is refused."""
        codecs = dict(_codecs(cls, "array"))
        optional = {f.name for f in dataclasses.fields(cls) if f.default is None}  # type: ignore[arg-type]
        plain = {name for name in _names(cls) if name not in codecs} | {"digest"}
        if not set(codecs) - optional <= set(arrays) <= set(codecs) or set(fields) != plain:
            raise InputError(f"the entries of the file are not those of a {cls.kind} certificate.")
        everything = {**fields, **{name: codecs[name].read(name, a) for name, a in arrays.items()}}
        digest = everything["digest"]
        if not isinstance(digest, str) or not digest:
            raise InputError("the digest is missing.")
        for name, codec in _codecs(cls, "text"):
            everything[name] = codec.read(everything[name])
        if "digest" not in _names(cls):
            del everything["digest"]
        certificate = cls(**everything)
        for name in _numbers(cls):
            if not np.isfinite(getattr(certificate, name)):
                raise InputError(f"{name} must be finite.")
        if "digest" not in _names(cls) and certificate.content_digest() != digest:
            raise InputError("the certificate was changed after it was made.")
        return certificate

    def content_digest(self) -> str:
        """Return a hash of every field but the digest itself."""
        h = hashlib.sha256()
        for name, _ in _codecs(type(self), "array"):
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
        codecs = {name for name, _ in _codecs(type(self), "array")} | {"digest"}
        texts = dict(_codecs(type(self), "text"))
        fields = {name: getattr(self, name) for name in _names(type(self)) if name not in codecs}
        return {k: texts[k].written(v) if k in texts else v for k, v in fields.items()}

    def save(self, path: str | Path) -> Path:
        """Write the certificate to one file that is safe to hand to a stranger."""
        return save_certificate(cast("Certificate", self), path)

    def __setstate__(self, state: dict[str, Any]) -> None:
        # Checked and closed as a new one is; nothing that was derived from the fields comes along.
        names = {field.name for field in dataclasses.fields(self)}  # type: ignore[arg-type]
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


@_cached
def _codecs(cls: Any, kind: str) -> list[tuple[str, Any]]:
    return [(f.name, f.metadata[kind]) for f in dataclasses.fields(cls) if kind in f.metadata]


@_cached
def _numbers(cls: Any) -> list[str]:
    return [f.name for f in dataclasses.fields(cls) if f.type == "float"]


@_cached
def _names(cls: Any) -> list[str]:
    """The fields that belong to the claim; what a run remembers of its own does not."""
    return [f.name for f in dataclasses.fields(cls) if f.compare]


def save_certificate(certificate: Certificate, path: str | Path) -> Path:
    """Write a certificate to a file (suffix .cert is added if there is none), all or nothing."""
    return write_record(path, *certificate.to_record())


def load_certificate(path: str | Path) -> Any:
    """Read a certificate written by `save`, or say in one sentence what is wrong with the file.

    Returns
    -------
    GoldsteinCertificate, NearCertificate, KKTCertificate, NearKKTCertificate or ValuesCertificate
    """

    def make(kind: str, arrays: Arrays, fields: dict[str, Any]) -> Any:
        return certificate_kind(kind).from_record(arrays, fields)

    return read_record(path, make)


__all__ = [
    "Certificate",
    "Stored",
    "array",
    "certificate_kind",
    "closed",
    "limits_for",
    "load_certificate",
    "register",
    "save_certificate",
    "text",
]
