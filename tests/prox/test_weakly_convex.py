"""MCP and SCAD: proximal maps against a fine grid, and the split against the sum."""

from __future__ import annotations

import numpy as np
import pytest

import goldstein as gs
from goldstein.errors import InputError
from goldstein.prox.term import WeaklyConvex

TERMS = [gs.prox.mcp(0.7, 2.5), gs.prox.scad(0.7, 3.7)]


@pytest.mark.parametrize("h", TERMS)
@pytest.mark.parametrize("step", [0.3, 1.0])
def test_the_proximal_map_is_the_minimiser(h: WeaklyConvex, step: float) -> None:
    z = np.linspace(-5, 5, 100_001)
    values = np.array([h.value(np.array([v])) for v in z[::100]])
    atom = gs.sum(
        gs.mcp(gs.Variable(1), 0.7, 2.5) if h.name == "mcp" else gs.scad(gs.Variable(1), 0.7, 3.7)
    )
    np.testing.assert_allclose(values, [atom.value(np.array([v])) for v in z[::100]], atol=1e-12)
    for x in (-4.0, -1.9, -0.8, 0.2, 0.75, 1.3, 1.74, 2.2, 2.7):
        (found,) = h.prox(np.array([x]), step)
        objective = np.interp(z, z[::100], values) + (z - x) ** 2 / (2 * step)
        here = h.value(np.array([found])) + (found - x) ** 2 / (2 * step)
        assert here <= objective.min() + 1e-4
        assert found == 0.0 or abs(x) > step * h.weight


@pytest.mark.parametrize("h", TERMS)
def test_a_claim_about_the_split_has_exact_zeros(h: WeaklyConvex) -> None:
    rng = np.random.default_rng(0)
    A = rng.standard_normal((30, 5))
    b = A @ [3.0, 0.0, 0.0, -2.0, 0.0] + 0.1 * rng.standard_normal(30)

    def f(x: np.ndarray) -> float:
        return float(((A @ x - b) ** 2).sum() / 60)

    def grad(x: np.ndarray) -> np.ndarray:
        return A.T @ (A @ x - b) / 30

    low, slope = h.split(f, grad)
    x = rng.standard_normal(5)
    assert low(x) + h.term.value(x) == pytest.approx(f(x) + h.value(x))
    res = gs.minimize(low, np.zeros(5), slope, plus=h.term, eps=1e-6, delta=1e-6, rng=0)
    assert res.success
    assert np.flatnonzero(res.x).tolist() == [0, 3]
    assert res.fun == pytest.approx(f(res.x) + h.value(res.x))
    assert res.certificate.verify(low, slope, plus=h.term).ok


def test_what_has_no_single_minimiser_is_refused() -> None:
    with pytest.raises(InputError, match="1 / rho"):
        TERMS[0].prox(np.ones(1), 2.5)
    with pytest.raises(InputError, match="parameter > 2"):
        gs.prox.scad(1.0, 2.0)
