"""The support vector machine with the rho-margin (ramp) loss."""

from __future__ import annotations

import math
from functools import cached_property
from typing import Any

import numpy as np

from goldstein.calculus import Variable, ramp, sum, sum_squares
from goldstein.calculus.expression import Vector
from goldstein.errors import InputError
from goldstein.models.base import Model, data_matrix, nonnegative, row_norms
from goldstein.numerics.spectral import spectral_norm_upper


class MarginSVM(Model):
    """lam/2 |w|^2 + sum_i min(1, max(0, 1 - z_i.w/rho)); rows z_i carry their labels."""

    def __init__(self, Z: Any, rho: float, lam: float) -> None:
        self.Z = data_matrix(Z, "Z")
        self.rho, self.lam = float(rho), nonnegative("lam", lam)
        if not (self.rho > 0 and math.isfinite(self.rho)):
            raise InputError(f"rho must be a positive finite number, got {rho!r}.")
        n, d = self.Z.shape
        w = Variable(d)
        tree = sum(ramp(self.Z @ w, rho=self.rho))
        if self.lam:
            tree = (0.5 * self.lam) * sum_squares(w) + tree
        super().__init__(tree)
        # Four times the usual bound of a dot product's rounding error, per |row| |w|.
        self._slack = 4.0 * (d + 8) * 2.0**-53 * row_norms(self.Z)
        self._margins: tuple[bytes, Vector] = (b"", np.zeros(n))

    @property
    def name(self) -> str:
        return "margin_svm"

    def _margin(self, w: Vector) -> Vector:
        key = w.tobytes()
        last = self._margins
        if last[0] != key:
            last = self._margins = (key, self.Z @ w)
        return last[1]

    def value(self, x: Vector) -> float:
        w = self._point(x)
        losses = np.clip(1.0 - self._margin(w) / self.rho, 0.0, 1.0)
        return float(0.5 * self.lam * (w @ w) + losses.sum())

    def gradient(self, y: Vector) -> Vector:
        w = self._point(y)
        u = self._margin(w)
        slack = self._slack * math.sqrt(w @ w) + 2.0**-900
        doubtful = (np.abs(u) <= slack) | (np.abs(u - self.rho) <= slack + 2.0**-50 * self.rho)
        if doubtful.any() or not np.isfinite(u).all():
            return super().gradient(w)
        inside = ((u > 0.0) & (u < self.rho)).astype(np.float64)
        answer: Vector = self.lam * w - (self.Z.T @ inside) / self.rho
        return answer

    def _start(self, rng: np.random.Generator) -> Vector:
        typical = float(row_norms(self.Z).mean()) or 1.0
        answer: Vector = rng.standard_normal(self.Z.shape[1]) * (self.rho / typical)
        return answer

    @cached_property
    def _norm(self) -> float:
        return spectral_norm_upper(self.Z)

    def solver_lipschitz(self, x: Vector, delta: float) -> float:
        """Return sqrt(2 lam F(x)) + lam delta + sqrt(n) |Z| / rho."""
        ridge = math.sqrt(2.0 * self.lam * self.value(x)) + self.lam * delta
        return ridge + math.sqrt(self.Z.shape[0]) * self._norm / self.rho


def margin_svm(Z: Any, rho: float = 1.0, lam: float = 1.0) -> MarginSVM:
    """Return the objective lam/2 |w|^2 + sum_i phi_rho(z_i . w).

    Parameters
    ----------
    Z : array or sparse matrix, shape (n, d)
        Rows label_i * features_i (append a constant feature for an intercept).
    rho : float
        Margin.
    lam : float
        Weight of the ridge term.

    Returns
    -------
    MarginSVM
        An Expression with `start(rng)` and `solver_lipschitz(x, delta)`.

    Examples
    --------
    >>> F = margin_svm([[1.0, 0.0], [0.0, 1.0], [1.0, 1.0]])
    >>> F.value(np.array([0.5, 0.5]))
    1.25
    """
    return MarginSVM(Z, rho, lam)


__all__ = ["MarginSVM", "margin_svm"]
