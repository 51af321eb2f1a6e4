"""What every kind of certificate offers, and where the kinds are found by name."""

from __future__ import annotations

import dataclasses
import hashlib
import importlib
import json
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, ClassVar, Protocol, cast, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from goldstein.certificates.writing import write_record
from goldstein.checker.files import Arrays, read_record
from goldstein.checker.verification import LABELS, Label, Verification, as_number
from goldstein.errors import InputError, InputTypeError
from goldstein.numerics.exact_floats import exact_floats


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


def float_numbers(name: str, values: Any) -> NDArray[np.float64]:
    """Return a copy of numbers that are exactly float64 numbers."""
    return np.array(exact_floats(values, name, finite=False))


def whole_numbers(name: str, values: Any) -> NDArray[np.int64]:
    """Return a copy of integers."""
    index = np.array(values)
    if index.size and index.dtype.kind not in "iu":
        raise InputTypeError(f"{name} must hold integers.")
    return index.astype(np.int64)


def closed(array: NDArray[Any]) -> NDArray[Any]:
    """Let nobody write to an array any more, and return it."""
    array.setflags(write=False)
    return array


def hold(
    certificate: Any,
    names: Iterable[str],
    copied: Callable[[str, Any], NDArray[Any]] = float_numbers,
) -> None:
    """Let a certificate have its arrays for itself: copies that nobody can write to."""
    for name in names:
        object.__setattr__(certificate, name, closed(copied(name, getattr(certificate, name))))


def require_shapes(certificate: Any, expected: dict[str, tuple[int, ...]]) -> None:
    """Refuse arrays of a certificate that do not belong together."""
    for name, shape in expected.items():
        found = getattr(certificate, name).shape
        if found != shape:
            raise InputError(
                f"{name} of a certificate of kind {certificate.kind} has shape {found}, expected "
                f"{shape}."
            )


def require_finite(arrays: Arrays, names: Iterable[str]) -> None:
    """Refuse arrays of a file that are not what `to_record` writes."""
    for name in names:
        if arrays[name].dtype != np.float64 or not np.isfinite(arrays[name]).all():
            raise InputError(f"{name} must hold finite float64 numbers.")


def settle(certificate: Any, numbers: Iterable[str] = ("delta", "eps")) -> None:
    """Check what every kind has: numbers, label, meta; and make the digest where one is kept."""
    for name in numbers:
        object.__setattr__(certificate, name, as_number(name, getattr(certificate, name)))
    if certificate.label not in LABELS:
        raise InputError(f"label must be one of {', '.join(LABELS)}; got {certificate.label!r}.")
    digest = getattr(certificate, "digest", "none")
    if not (isinstance(certificate.meta, dict) and isinstance(digest, str)):
        raise InputTypeError("meta must be a dict and digest a str.")
    if not digest:
        object.__setattr__(certificate, "digest", certificate.content_digest())


class Stored:
    """A certificate that goes to files, and comes out of pickles and copies as it was made."""

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
        self.__post_init__()  # type: ignore[attr-defined]


def content_hash(
    arrays: Iterable[NDArray[Any] | None], rest: list[Any], texts: Iterable[str] = ()
) -> str:
    """Return a hash of what a certificate holds: arrays, exact numbers as texts, and the rest."""
    h = hashlib.sha256()
    for array in arrays:
        h.update(repr(None if array is None else array.shape).encode())
        h.update(b"" if array is None else np.ascontiguousarray(array).data)
    for text in texts:
        h.update(text.encode())
    try:
        h.update(_written(rest).encode())
    except (TypeError, ValueError, RecursionError) as failure:
        raise InputTypeError(
            f"meta must hold plain numbers, strings, lists and dicts: {failure}."
        ) from failure
    return h.hexdigest()


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
    "certificate_kind",
    "content_hash",
    "hold",
    "limits_for",
    "load_certificate",
    "register",
    "require_finite",
    "require_shapes",
    "save_certificate",
    "settle",
    "whole_numbers",
]
