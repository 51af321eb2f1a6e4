"""The near certificate: a pivot near x, and limits of gradients there that nearly cancel.

The evidence is a rational pivot y, directions v_j and weights a_j. Along y + t v_j, t -> 0+, the
function is differentiable and its gradients tend to some g_j; every such limit belongs to the
Clarke subdifferential at y, which is convex. So |sum a_j g_j| / sum a_j bounds its distance from 0.
The checker decides in exact arithmetic; it needs no constant and believes nothing that is stored.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import cached_property
from numbers import Real
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from goldstein.certificates.verification import LABELS, Label, Verification, as_number
from goldstein.errors import GoldsteinError, InputError, InputTypeError, NotCertifiableError
from goldstein.numerics.caratheodory import sparse_weights
from goldstein.numerics.exact import (
    exact_combination,
    fraction_upper,
    nearest_float,
    sqrt_upper,
    squared_distance,
    squared_norm,
    to_fractions,
)
from goldstein.numerics.rounding import combination_norm_upper, norm_upper, up

Vector = NDArray[np.float64]
Matrix = NDArray[np.float64]

#: Refused when a file is read: reducing fractions takes quadratic time in their digits (one of this
#: length takes seconds), and coordinates over one denominator take this many bits of memory.
_LONGEST = 1_000_000
_LONGEST_SHARED = 2**30


#: Enclosures may come out differently on another machine, by their radii: claims allow for it.
CHANGE_OF_MACHINE = 4


class LimitingGradients(Protocol):
    """What the checker asks of a function whose kinks are known."""

    dim: int

    def limiting_gradients(
        self, point: Sequence[Fraction], directions: Any
    ) -> list[tuple[list[Fraction], list[Fraction]]]:
        """Return exact enclosures of the limits of gradients at `point` along `directions`."""
        ...


@runtime_checkable
class LimitingBoxes(Protocol):
    """A form that also encloses in float64: where it does, no rationals are formed."""

    def limiting_boxes(
        self, point: Sequence[Fraction], directions: Any
    ) -> tuple[Matrix, Matrix] | None:
        """Return proved midpoints and radii, or None where the exact answer is affordable."""
        ...


@runtime_checkable
class HasKinkForm(Protocol):
    """A function whose kinks are known exactly."""

    def kink_form(self) -> LimitingGradients: ...


@dataclass(frozen=True, eq=False)
class NearCertificate:
    """Proof that x is (eps, delta)-near stationary: a pivot within delta has a subgradient <= eps.

    Attributes
    ----------
    x : ndarray, shape (d,)
    exact_pivot : tuple of Fraction
        The pivot y, |y - x| <= delta.
    delta, eps : float
        Both rounded up.
    directions : ndarray, shape (k, d)
        Ways to leave the pivot; along each the gradients have a limit.
    weights : ndarray, shape (k,)
        Nonnegative.
    gradients : ndarray, shape (k, d)
        The limits of gradients in float64, for people; the checker computes them again.
    errors : ndarray, shape (k,)
        How far each of them is from the exact one, at most.
    label : str
    meta : dict

    Examples
    --------
    >>> import numpy as np
    >>> from goldstein.calculus import Variable, abs, sum
    >>> F = sum(abs(Variable(1)))
    >>> cert = NearCertificate.prove(F, [0.05], [0], [[1.0], [-1.0]], [0.5, 0.5])
    >>> cert.eps, cert.delta, cert.label
    (0.0, 0.05, 'certified')
    >>> cert.verify(F).ok
    True
    """

    x: Vector
    exact_pivot: tuple[Fraction, ...]
    delta: float
    eps: float
    directions: Matrix
    weights: Vector
    gradients: Matrix
    errors: Vector
    label: Label = "certified"
    meta: dict[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for name in ("x", "directions", "weights", "gradients", "errors"):
            array = _numbers(name, getattr(self, name))
            array.setflags(write=False)
            object.__setattr__(self, name, array)
        object.__setattr__(self, "exact_pivot", _rationals(self.exact_pivot))
        k, d = self.weights.size, self.x.size
        shapes = [a.shape for a in (self.directions, self.gradients, self.weights, self.errors)]
        wanted = [(k, d), (k, d), (k,), (k,)]
        if self.x.ndim != 1 or len(self.exact_pivot) != d or shapes != wanted:
            raise InputError(
                f"a near certificate needs x and pivot of length d, directions and gradients of "
                f"shape (k, d), weights and errors of shape (k,); got {self.x.shape}, "
                f"{len(self.exact_pivot)}, {shapes}."
            )
        for name in ("delta", "eps"):
            object.__setattr__(self, name, as_number(name, getattr(self, name)))
        if self.label not in LABELS:
            raise InputError(f"label must be one of {', '.join(LABELS)}; got {self.label!r}.")
        if not isinstance(self.meta, dict):
            raise InputTypeError(f"meta must be a dict, got {type(self.meta).__name__}.")

    @classmethod
    def prove(
        cls,
        fun: HasKinkForm,
        x: Any,
        pivot: Sequence[Any],
        directions: Any,
        weights: Any,
        meta: dict[str, Any] | None = None,
    ) -> NearCertificate:
        """Derive eps and delta from the function, and state them.

        Raises
        ------
        NotCertifiableError
            When the directions do not show elements of the subdifferential.
        """
        point, shares = _numbers("x", x), _numbers("weights", weights)
        ways = np.atleast_2d(_numbers("directions", directions))
        exact = _rationals(pivot)
        if ways.shape != (shares.size, point.size) or len(exact) != point.size:
            raise InputError(
                f"x and pivot must have the same length d, directions shape (k, d) and weights "
                f"shape (k,); got {point.shape}, {len(exact)}, {ways.shape}, {shares.shape}."
            )
        fault = _fault(point, ways, shares)
        if fault:
            raise InputError(f"{fault}: x, directions and weights must be usable numbers.")
        if not shares.all():
            ways, shares = ways[shares > 0], shares[shares > 0]
        shown = _show(form_of(fun), exact, ways, shares, CHANGE_OF_MACHINE)
        return cls(
            x=point,
            exact_pivot=exact,
            delta=sqrt_upper(squared_distance(exact, point)),
            eps=shown.eps,
            directions=ways,
            weights=shares,
            gradients=shown.gradients,
            errors=shown.errors,
            meta=dict(meta or {}),
        )

    @cached_property
    def pivot(self) -> Vector:
        """The pivot rounded to float64; the exact one is `exact_pivot`."""
        return np.array([nearest_float(q) for q in self.exact_pivot])

    def verify(self, fun: HasKinkForm) -> Verification:
        """Re-derive the distance, the subgradients and their combination in exact arithmetic.

        Parameters
        ----------
        fun : Expression
            The function; its structure must be known.

        Returns
        -------
        Verification
        """
        form = form_of(fun)
        found = Verification(eps=math.inf, delta=math.inf, label="conditional")
        fault = _fault(self.x, self.directions, self.weights)
        if not (self.eps >= 0 and self.delta >= 0):
            fault = f"eps = {self.eps:g} and delta = {self.delta:g} must not be negative"
        if not found.add("numbers", not fault, fault or "finite, weights nonnegative"):
            return found
        fits = form.dim == self.x.size
        if not found.add("dimension", fits, f"{self.x.size}, the function has {form.dim}"):
            return found
        square = squared_distance(self.exact_pivot, self.x)
        found.delta = sqrt_upper(square)
        inside = square <= _square(self.delta)
        found.add("ball", inside, f"pivot at distance {found.delta:.6g}, claimed {self.delta:.6g}")
        try:
            used = np.flatnonzero(self.weights > 0)
            ways, shares = self.directions[used], self.weights[used]
            found.eps = _show(form, self.exact_pivot, ways, shares).eps
        except GoldsteinError as failure:
            found.add("subgradients", False, str(failure))
            return found
        found.add("subgradients", True, f"{self.weights.size} limits of gradients at the pivot")
        found.add(
            "bound",
            found.eps <= self.eps,
            f"recomputed eps {found.eps:.6g}, claimed {self.eps:.6g}",
        )
        if found.ok:
            found.label = "certified"
        supported = self.label in ("certified", "conditional", "estimated")
        found.add("label", supported, f"claimed {self.label}, this check proves {found.label}")
        return found

    def reduce(self) -> NearCertificate:
        """Return an equivalent certificate with at most d + 1 directions (Caratheodory).

        `eps` is recomputed from the stored gradients and their error bounds.
        """
        fault = _fault(self.x, self.gradients, self.weights)
        if fault or not (np.isfinite(self.errors).all() and (self.errors >= 0).all()):
            raise InputError(f"the certificate cannot be reduced: {fault or 'unusable errors'}.")
        weights = sparse_weights(self.weights, self.gradients)
        used = np.flatnonzero(weights > 0)
        if used.size == self.weights.size:
            return self
        limits = [
            ([Fraction(g) for g in row], [Fraction(e)] * self.x.size)
            for row, e in zip(self.gradients[used].tolist(), self.errors[used].tolist())
        ]
        eps = _combination(weights[used], limits)
        if self.errors.any():
            # A check bounds the errors by their norms, and another machine may round differently.
            error = CHANGE_OF_MACHINE * float(self.errors.max()) * math.sqrt(self.x.size)
            eps = (eps + error) * (1.0 + 2.0**-40)
        return replace(
            self,
            directions=self.directions[used],
            weights=weights[used],
            gradients=self.gradients[used],
            errors=self.errors[used],
            eps=eps,
        )

    def save(self, path: str | Path) -> Path:
        """Write the certificate to one file that is safe to hand to a stranger."""
        from goldstein.certificates.store import save_certificate

        return save_certificate(self, path)

    def export(self, path: str | Path, fun: HasKinkForm) -> Path:
        """Write certificate and function to one readable file that `goldstein-check` decides.

        Parameters
        ----------
        path : str or Path
            The suffix .json is added if there is none.
        fun : Expression
            The function that the certificate is about.
        """
        from goldstein.certificates.export import export_proof

        evidence = {
            "pivot": self.exact_pivot, "directions": self.directions, "weights": self.weights
        }  # fmt: skip
        return export_proof(
            path, fun, kind="near", eps=self.eps, delta=self.delta, x=self.x, evidence=evidence
        )

    def to_record(self) -> tuple[str, dict[str, NDArray[Any]], dict[str, Any]]:
        """Return (kind, arrays, JSON fields) for the file."""
        arrays: dict[str, NDArray[Any]] = {
            name: getattr(self, name)
            for name in ("x", "directions", "weights", "gradients", "errors")
        }
        fields = {
            "pivot": written_pivot(self.exact_pivot), "delta": self.delta, "eps": self.eps,
            "label": self.label, "meta": self.meta, "digest": self.content_digest(),
        }  # fmt: skip
        return "near", arrays, fields

    @classmethod
    def from_record(
        cls, arrays: dict[str, NDArray[Any]], fields: dict[str, Any]
    ) -> NearCertificate:
        """Rebuild from what `to_record` gave."""
        if set(fields) != {"pivot", "delta", "eps", "label", "meta", "digest"}:
            raise InputError(f"fields {sorted(fields)} are not those of a near certificate.")
        if set(arrays) != {"x", "directions", "weights", "gradients", "errors"}:
            raise InputError(f"arrays {sorted(arrays)} are not those of a near certificate.")
        for name, array in arrays.items():
            if array.dtype != np.float64 or not np.isfinite(array).all():
                raise InputError(f"{name} must hold finite float64 numbers.")
        rest = dict(fields)
        digest = rest.pop("digest")
        pivot = parse_pivot(rest.pop("pivot"))
        content: dict[str, Any] = {**arrays, **rest}
        certificate = cls(exact_pivot=pivot, **content)
        if not (math.isfinite(certificate.eps) and math.isfinite(certificate.delta)):
            raise InputError("eps and delta must be finite.")
        if certificate.content_digest() != digest:
            raise InputError("the near certificate was changed after it was made.")
        return certificate

    def content_digest(self) -> str:
        """Return a hash of every field."""
        h = hashlib.sha256()
        for array in (self.x, self.directions, self.weights, self.gradients, self.errors):
            h.update(repr(array.shape).encode())
            h.update(np.ascontiguousarray(array).tobytes())
        for q in self.exact_pivot:
            h.update(f"{hex(q.numerator)}/{hex(q.denominator)};".encode())
        rest = [float(self.delta).hex(), float(self.eps).hex(), self.label, self.meta]
        try:
            h.update(json.dumps(rest, sort_keys=True).encode())
        except (TypeError, ValueError, RecursionError) as failure:
            raise InputTypeError(
                f"meta must hold plain numbers, strings, lists and dicts: {failure}."
            ) from failure
        return h.hexdigest()

    def summary(self) -> str:
        """One line for people."""
        return (
            f"({self.eps:.3g}, {self.delta:.3g})-near stationary, "
            f"{len(self.weights)} subgradients at the pivot, {self.label}"
        )

    def __repr__(self) -> str:
        return f"<NearCertificate {self.summary()}>"


def _numbers(name: str, values: Any) -> NDArray[np.float64]:
    """Return a float64 copy of real numbers."""
    try:
        array = np.asarray(values)
        rational = array.dtype == object and all(isinstance(v, Real) for v in array.flat)
        if array.dtype.kind not in "fiub" and not rational:
            raise TypeError(f"got {array.dtype}")
        return np.array(array, dtype=np.float64)
    except (TypeError, ValueError, OverflowError) as failure:
        raise InputTypeError(f"{name} must be an array of real numbers: {failure}.") from failure


def _rationals(pivot: Any) -> tuple[Fraction, ...]:
    try:
        return tuple(to_fractions(pivot))
    except (TypeError, ValueError, OverflowError) as failure:
        if isinstance(failure, InputError):
            raise
        raise InputTypeError(f"the pivot must be a vector of rationals: {failure}.") from failure


def _fault(x: Vector, vectors: Matrix, weights: Vector) -> str:
    """Say what makes the evidence unusable, or nothing."""
    if not all(np.isfinite(a).all() for a in (x, vectors, weights)):
        return "an entry is not finite"
    if (weights < 0).any() or not weights.any():
        return "the weights are negative, or all 0"
    with np.errstate(over="ignore"):
        total = float(weights.sum())
    return "" if math.isfinite(total) else "the sum of the weights is beyond float64; scale them"


@dataclass(frozen=True)
class _Shown:
    """What directions show at a pivot: a bound, and the limits of gradients in float64."""

    eps: float
    gradients: Matrix
    errors: Vector


def _show(
    form: LimitingGradients,
    pivot: tuple[Fraction, ...],
    ways: Matrix,
    shares: Vector,
    allowance: int = 1,
) -> _Shown:
    """Derive the bound; radii of enclosures count `allowance` times."""
    boxes = form.limiting_boxes(pivot, ways) if isinstance(form, LimitingBoxes) else None
    if boxes is not None:
        mid, rad = boxes
        spread = max(norm_upper(r) for r in rad)
        eps = up(combination_norm_upper(_of_size_one(shares), mid) + allowance * spread)
        return _Shown(eps, mid, rad.max(axis=1))
    limits = form.limiting_gradients(pivot, ways)
    rounded = [_rounded(mid, rad) for mid, rad in limits]
    wider = [(m, [allowance * r for r in rad]) for m, rad in limits]
    gradients = np.array([g for g, _ in rounded])
    return _Shown(_combination(shares, wider), gradients, np.array([e for _, e in rounded]))


def _of_size_one(weights: Vector) -> Vector:
    """Scale weights by a power of two, where none of them loses a digit by it."""
    exponent = math.frexp(float(weights.max()))[1]
    scaled = np.ldexp(weights, -exponent)
    return scaled if np.array_equal(np.ldexp(scaled, exponent), weights) else weights


def _combination(weights: Vector, limits: list[tuple[list[Fraction], list[Fraction]]]) -> float:
    """Return an upper bound of |sum a_j g_j| / sum a_j over all members of the enclosures."""
    if len(limits) == 1:  # its weight cancels
        return sqrt_upper(squared_norm([abs(m) + r for m, r in zip(*limits[0], strict=True)]))
    shares = [Fraction(float(a)) for a in weights]
    mid = exact_combination(shares, [m for m, _ in limits])
    rad = exact_combination(shares, [r for _, r in limits])
    total = sum(shares, Fraction(0))
    square = squared_norm([abs(m) + r for m, r in zip(mid, rad, strict=True)])
    return sqrt_upper(square / (total * total))


def _rounded(mid: list[Fraction], rad: list[Fraction]) -> tuple[list[float], float]:
    """Return the midpoint in float64 and a bound of every entry's distance from the exact one."""
    try:
        nearest = [float(m) for m in mid]
    except OverflowError:
        raise NotCertifiableError(
            "a gradient at the pivot is beyond the range of float64; rescale the data."
        ) from None
    error = max(
        # Both ratios are in lowest terms: equal ones are the same number.
        r if f.as_integer_ratio() == (m.numerator, m.denominator) else abs(Fraction(f) - m) + r
        for f, m, r in zip(nearest, mid, rad, strict=True)
    )
    return nearest, fraction_upper(error)


def _square(value: float) -> Fraction | float:
    return math.inf if math.isinf(value) else Fraction(value) ** 2


def written_pivot(pivot: Sequence[Fraction]) -> list[str]:
    """Write the pivot's coordinates for a file.

    Hexadecimal: converting long integers to decimal digits takes quadratic time.
    """
    return [f"{hex(q.numerator)}/{hex(q.denominator)}" for q in pivot]


def parse_pivot(texts: Any) -> tuple[Fraction, ...]:
    """Read the pivot's coordinates; refuse what would take minutes or gigabytes to compute with."""
    if not (isinstance(texts, list) and all(isinstance(text, str) for text in texts)):
        raise InputError("the pivot must be a list of rationals in hexadecimal.")
    if sum(len(text) ** 2 for text in texts) > _LONGEST**2:
        raise InputError("the coordinates of the pivot have too many digits.")
    pivot = tuple(_parse(text) for text in texts)
    shared = 1
    for q in pivot:
        shared = math.lcm(shared, q.denominator)
        if shared.bit_length() * len(pivot) > _LONGEST_SHARED:
            raise InputError("the common denominator of the pivot has too many digits.")
    return pivot


def _parse(text: str) -> Fraction:
    top, _, bottom = text.partition("/")
    try:
        return Fraction(int(top, 16), int(bottom, 16))
    except (ValueError, ZeroDivisionError):
        raise InputError("a coordinate of the pivot is not a rational in hexadecimal.") from None


def form_of(fun: Any) -> LimitingGradients:
    if not isinstance(fun, HasKinkForm):
        raise InputTypeError(
            f"a near certificate is about a function whose kinks are known; got "
            f"{type(fun).__name__}. Build the function as a goldstein Expression."
        )
    return fun.kink_form()


__all__ = ["HasKinkForm", "LimitingGradients", "NearCertificate"]
