"""A fitted model and what is proved about it; and its form in a checkpoint."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from goldstein.certificates import GoldsteinCertificate
from goldstein.certificates.near import NearCertificate
from goldstein.checker.arrays import Vector
from goldstein.errors import GoldsteinError, InputError
from goldstein.storage.archive import Arrays
from goldstein.storage.folder import Form, Store
from goldstein.storage.records import certificate_from_parts, certificate_parts

#: Values asked for again differ by no more than this part.
SAME = 1e-9


@dataclass(frozen=True)
class Fit:
    """One fitted model.

    Attributes
    ----------
    x : ndarray
        Its parameters.
    value : float
        The mean objective.
    goldstein : GoldsteinCertificate or NearCertificate
        What shows Goldstein stationarity; a near certificate is the stronger claim.
    near : NearCertificate or None
    iterations : int
    """

    x: Vector
    value: float
    goldstein: GoldsteinCertificate | NearCertificate
    near: NearCertificate | None
    iterations: int

    def holds(self, model: Any) -> bool:
        """Whether the model itself confirms it: a checkpoint is not believed."""
        try:
            there = model.value(self.x)
        except (GoldsteinError, ValueError):  # of another size
            return False
        if not abs(there - self.value) <= SAME * max(1.0, abs(self.value)):
            return False
        claims = {c.content_digest(): c for c in (self.goldstein, self.near) if c is not None}
        return all(
            np.array_equal(claim.x, self.x) and claim.verify(model).ok for claim in claims.values()
        )


def _write(fit: Fit) -> tuple[Arrays, dict[str, Any]]:
    arrays: Arrays = {"x": fit.x}
    fields: dict[str, Any] = {"value": fit.value, "iterations": fit.iterations}
    for name in ("goldstein", "near"):
        parts, fields[name] = certificate_parts(name, getattr(fit, name))
        arrays |= parts
    return arrays, fields


def _read(arrays: Arrays, fields: dict[str, Any]) -> Fit:
    certificates = {
        name: certificate_from_parts(name, arrays, fields[name]) for name in ("goldstein", "near")
    }
    if not isinstance(certificates["goldstein"], GoldsteinCertificate | NearCertificate):
        raise InputError("a fit has a Goldstein or a near certificate.")
    if not isinstance(certificates["near"], NearCertificate | None):
        raise InputError("what proves near stationarity is a near certificate.")
    return Fit(
        arrays["x"], float(fields["value"]), iterations=int(fields["iterations"]), **certificates
    )


#: A fit as a part of a longer one that is kept.
FIT = Form("fit", _write, _read)


def whole_fit(kept: Store, model: Any, limits: list[Any], fit: Callable[[], Fit]) -> Fit:
    """Return the fit of a model that is kept, if it was made under these limits; else make it."""
    return kept.part("whole", FIT, fit, limits, holds=lambda found: found.holds(model))
