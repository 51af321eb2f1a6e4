"""The Clarke subdifferential at one point: a base gradient, and one term for every kink through it.

When all kinks through y are kinks of affine entries and none feeds another, the gradients of the
pieces around y are `base + sum of slope_i row_i over the kinks on whose upper side the piece lies`.
"""

from __future__ import annotations

import contextlib
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from goldstein.calculus.arithmetic import (
    ENCLOSURE,
    FLOAT,
    RATIONAL,
    Arithmetic,
    Irrational,
    rational,
    to_fraction,
)
from goldstein.calculus.atoms.base import Elementwise
from goldstein.calculus.kinks import Examination, Kink
from goldstein.checker.arrays import Matrix, Vector
from goldstein.checker.enclosed.arrays import Enclosure
from goldstein.checker.rationals import nearest_float, to_fractions
from goldstein.errors import NotCertifiableError

Row = dict[int, Fraction]


def is_additive(kinks: list[Kink], *, curved: bool = False) -> bool:
    """Return True when every choice of sides adds its own term to the gradient.

    Kinks of affine entries only, unless `curved` ones may be among them: to first order they are
    no different, which is enough for a search.
    """
    nodes = {id(kink.node): kink.node for kink in kinks}
    if not all(
        isinstance(n, Elementwise) and (curved or n.args[0].is_affine) for n in nodes.values()
    ):
        return False
    # A kink inside another one would multiply with it instead.
    return not any(
        id(inner) in nodes and inner is not node for node in nodes.values() for inner in node.plan
    )


def exact_rows(found: Examination, kinks: list[Kink]) -> list[Row]:
    """Return the exact coefficients of the entries that are on their kinks."""
    return [found.row(kink.node.args[0], kink.entry) for kink in kinks]


def dense(rows: list[Row], dim: int) -> Matrix:
    """Return exact rows in float64."""
    out = np.zeros((len(rows), dim))
    for i, row in enumerate(rows):
        for k, a in row.items():
            out[i, k] = nearest_float(a)
    return out


@dataclass
class LocalModel:
    """The pieces around a point in float64.

    Attributes
    ----------
    base : ndarray, shape (d,)
        Gradient of the piece below all kinks.
    rows : ndarray, shape (k, d)
    slopes : ndarray, shape (k,)
        Jump of the derivative along each row.
    """

    base: Vector
    rows: Matrix
    slopes: Vector

    @property
    def terms(self) -> Matrix:
        """What each kink adds to the gradient on its upper side."""
        return self.slopes[:, None] * self.rows


@np.errstate(all="ignore")
def local_model(found: Examination) -> LocalModel:
    """Return the float64 model at an examined point whose kinks are additive."""
    form = found.form
    kinks = form.active_kinks(found)
    point = np.array([nearest_float(q) for q in found.point])
    cotangents = form.root.cotangents(form.root._values(point), FLOAT, found.pieces)
    base = np.array(np.broadcast_to(cotangents[id(form.root.variable)], (form.dim,)), dtype=float)
    slopes = np.array([_slope(cotangents, kink, FLOAT) for kink in kinks], dtype=float)
    _require_finite(base, slopes)
    rows = _float_rows(found, kinks, point)
    _require_finite(rows)
    return LocalModel(base, rows, slopes)


def _float_rows(found: Examination, kinks: list[Kink], point: Vector) -> Matrix:
    """Return the derivatives of the entries that are on their kinks."""
    form = found.form
    if all(kink.node.args[0].is_affine for kink in kinks):
        return dense(exact_rows(found, kinks), form.dim)
    values = form.root._values(point)
    rows = []
    for kink in kinks:
        inner = kink.node.args[0]
        start = np.zeros(inner.size)
        start[kink.entry] = 1.0
        cotangents = inner.cotangents(values, FLOAT, found.pieces, start.reshape(inner.shape))
        rows.append(np.broadcast_to(cotangents[id(inner.variable)], (form.dim,)))
    return np.array(rows, dtype=np.float64)


#: An exact number, or an interval around it: (midpoint, radius).
Proven = tuple[Fraction, Fraction]


@dataclass
class ProvenModel:
    """The pieces around a point with proved numbers: midpoints and radii, exact rows."""

    base: list[Proven]
    rows: list[Row]
    slopes: list[Proven]


def proven_model(found: Examination) -> ProvenModel:
    """Return the model at an examined point whose kinks are additive, with proved numbers."""
    form = found.form
    kinks = form.active_kinks(found)
    rows = exact_rows(found, kinks)
    if form.is_small:
        with contextlib.suppress(Irrational):
            exact = form.root.cotangents(found.exact, RATIONAL, found.pieces)
            base = [(to_fraction(g), Fraction(0)) for g in exact[id(form.root.variable)]]
            slopes = [(to_fraction(_slope(exact, k, RATIONAL)), Fraction(0)) for k in kinks]
            return ProvenModel(base, rows, slopes)
    enclosed = form.root.cotangents(found.values, ENCLOSURE, found.pieces)
    gradient = enclosed[id(form.root.variable)]
    mid, rad = (np.broadcast_to(part, (form.dim,)) for part in (gradient.mid, gradient.rad))
    sizes = [_slope(enclosed, k, ENCLOSURE) for k in kinks]
    _require_finite(mid, rad, *(part for s in sizes for part in (s.mid, s.rad)))
    return ProvenModel(
        list(zip(to_fractions(mid), to_fractions(rad))),
        rows,
        [(Fraction(float(s.mid)), Fraction(float(s.rad))) for s in sizes],
    )


def _require_finite(*parts: Any) -> None:
    if not all(np.isfinite(part).all() for part in parts):
        raise NotCertifiableError(
            "the derivatives at this point overflow, or divide by an interval around 0; rescale "
            "the data."
        )


def _slope(cotangents: dict[int, Any], kink: Kink, arithmetic: Arithmetic) -> Any:
    assert isinstance(kink.node, Elementwise)
    jump = kink.node.function.jumps[kink.level]
    outer = cotangents.get(id(kink.node))
    if outer is None:
        return arithmetic.zeros(())
    if isinstance(outer, Enclosure):
        wide = Enclosure(
            np.broadcast_to(outer.mid, kink.node.shape), np.broadcast_to(outer.rad, kink.node.shape)
        )
        return wide.reshape(-1)[kink.entry] * ENCLOSURE.constant(jump)
    entry = np.broadcast_to(outer, kink.node.shape).reshape(-1)[kink.entry]
    return entry * (float(jump) if arithmetic is FLOAT else rational(jump))


__all__ = [
    "LocalModel",
    "Proven",
    "ProvenModel",
    "Row",
    "dense",
    "exact_rows",
    "is_additive",
    "local_model",
    "proven_model",
]
