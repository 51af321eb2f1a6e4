"""The kinds of stationarity that `minimize` and `certify` can be asked for, by name."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from goldstein.api.near import near_targets, prove_near, require_structure
from goldstein.certificates import GoldsteinCertificate
from goldstein.errors import InputError
from goldstein.oracles import Oracle

#: (eps, delta, smallest delta) -> Goldstein targets, to be tried in turn.
Targets = Callable[[float, float, float], Iterator[tuple[float, float]]]
#: (function, Goldstein certificate, eps, delta, seed, deadline) -> the stronger one, or None.
Strengthen = Callable[[Any, GoldsteinCertificate, float, float, int, float | None], Any]


@dataclass(frozen=True)
class Stationarity:
    """A kind of stationarity, and how it is reached from Goldstein certificates.

    Attributes
    ----------
    name : str
        What users write: `stationarity=name`.
    require : callable, optional
        Refuses functions that the kind is not for.
    targets : callable, optional
        The Goldstein targets whose certificates are tried.
    strengthen : callable, optional
        Makes a verified certificate of this kind of a Goldstein certificate; None where the
        Goldstein certificate itself is what is asked for.
    """

    name: str
    require: Callable[[Oracle], None] | None = None
    targets: Targets | None = None
    strengthen: Strengthen | None = None


_KINDS: dict[str, Stationarity] = {}


def register_stationarity(kind: Stationarity) -> Stationarity:
    """Let `minimize` and `certify` be asked for a kind of stationarity by its name."""
    _KINDS[kind.name] = kind
    return kind


def stationarity_names() -> list[str]:
    """Return the names of all kinds.

    Examples
    --------
    >>> stationarity_names()
    ['goldstein', 'near']
    """
    return sorted(_KINDS)


def stationarity_named(name: Any) -> Stationarity:
    """Return a kind of stationarity, or refuse an unknown one."""
    if not (isinstance(name, str) and name in _KINDS):
        names = " or ".join(map(repr, stationarity_names()))
        raise InputError(f"stationarity must be {names}, got {name!r}.")
    return _KINDS[name]


register_stationarity(Stationarity("goldstein"))
register_stationarity(Stationarity("near", require_structure, near_targets, prove_near))

__all__ = [
    "Stationarity",
    "register_stationarity",
    "stationarity_named",
    "stationarity_names",
]
