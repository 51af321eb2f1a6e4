"""The kinds of stationarity that `minimize` and `certify` can be asked for, by name."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

from goldstein.checker.arrays import Vector
from goldstein.errors import InputError
from goldstein.oracles.problem import Problem
from goldstein.solvers import Request


class Attempt(NamedTuple):
    """A proof that was tried: the verified certificate or None, and how it went in words."""

    certificate: Any
    note: str = ""
    #: The constraints prove anything about f at the point, that is nothing.
    degenerate: bool = False


#: (eps, delta, smallest delta) -> targets of the weaker claims that are tried in turn.
Targets = Callable[[float, float, float], Iterator[tuple[float, float]]]
#: (problem, weaker certificate, request, deadline) -> what came of it.
Strengthen = Callable[[Problem, Any, Request, float], Attempt]


@dataclass(frozen=True)
class Stationarity:
    """A kind of stationarity, and how it is reached from Goldstein or KKT certificates.

    Attributes
    ----------
    name : str
        What users write: `stationarity=name`.
    require : callable, optional
        Refuses problems (and starts) that the kind is not for.
    targets : callable, optional
        The targets of the weaker claims whose certificates are tried.
    strengthen : callable, optional
        Makes a verified certificate of this kind of a weaker one; None where the weaker one itself
        is what is asked for.
    needs : frozenset of str
        What it asks of a problem, in the words of `goldstein.api.compatibility`.
    """

    name: str
    require: Callable[[Problem, Vector], None] | None = None
    targets: Targets | None = None
    strengthen: Strengthen | None = None
    needs: frozenset[str] = frozenset()


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
