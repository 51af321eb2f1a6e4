"""Functions and numbers that break searches: what each ends with, and never a false claim.

A row says which endings are allowed. Whatever certificate comes back must verify, and its claim
must be true where the truth is known. The table stands in docs/reliability.md.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pytest

import goldstein as gs

Status = gs.Status
ANY = tuple(Status)


@dataclass
class Row:
    """A problem, and the endings it may have; an exception type for one that is refused."""

    fun: Callable[[np.ndarray], Any]
    jac: Callable[[np.ndarray], Any]
    x0: Any
    endings: tuple[Any, ...] = (Status.VERIFIED,)
    ask: dict[str, Any] = field(default_factory=dict)
    #: Smallest eps that is true at (x, delta), where it is known.
    least: Callable[[np.ndarray, float], float] | None = None


def kink(scale: float, d: int = 2) -> dict[str, Any]:
    """scale * |x|_1: where a coordinate is further than delta from 0, eps >= scale."""

    def least(x: np.ndarray, delta: float) -> float:
        return scale * math.sqrt(np.count_nonzero(np.abs(x) > delta))

    return {
        "fun": lambda x: scale * np.abs(x).sum(), "jac": lambda x: scale * np.sign(x),
        "x0": np.linspace(1.0, 2.0, d), "least": least,
    }  # fmt: skip


def slowly(power: float) -> dict[str, Any]:
    return {
        "fun": lambda x: float((np.abs(x) ** power).sum()),
        "jac": lambda x: power * np.sign(x) * np.abs(x) ** (power - 1),
        "x0": [1.3, -0.7],
    }


def rows_of(matrix: np.ndarray) -> dict[str, Any]:
    return {
        "fun": lambda x: float(np.abs(matrix @ x).sum()),
        "jac": lambda x: matrix.T @ np.sign(matrix @ x),
        "x0": np.ones(matrix.shape[1]),
    }


NOISE = np.random.default_rng(0)
DEFAULT = {"eps": 1e-3, "delta": 1e-3}
NOT_PROVED = (
    Status.NOT_VERIFIED, Status.STALLED, Status.OUT_OF_CALLS, Status.BALL_TOO_SMALL,
    Status.NOT_DETERMINISTIC, Status.WRONG_GRADIENT, Status.UNBOUNDED,
)  # fmt: skip

ROWS: dict[str, Row] = {
    "f of size 1e150": Row(**kink(1e150), ask={"eps": 1e147}),
    "f of size 1e-150": Row(**kink(1e-150), ask={"eps": 1e-153}),
    "f of size 1e-150, eps of size 1": Row(**kink(1e-150), ask={"eps": 1.0}),
    "f of size 1e160": Row(**kink(1e160), endings=(gs.OracleError,), ask={"eps": 1e157}),
    "x of size 1e150": Row(
        fun=lambda x: np.abs(x).sum(), jac=np.sign, x0=[1e150, -1e149], ask={"delta": 1e147},
        endings=ANY,
    ),
    "x of size 1e-150": Row(
        fun=lambda x: np.abs(x).sum(), jac=np.sign, x0=[1e-150, -1e-149],
        ask={"delta": 1e-152}, endings=(gs.InputError,),
    ),
    "x of size 1e153": Row(
        fun=lambda x: np.abs(x).sum(), jac=np.sign, x0=[1e153], endings=(gs.InputError,)
    ),
    "tiny eps": Row(**kink(1.0), ask={"eps": 1e-300}, endings=(Status.VERIFIED, *NOT_PROVED)),
    "huge eps": Row(**kink(1.0), ask={"eps": 1e100}),
    "delta below the resolution": Row(**kink(1.0), ask={"delta": 1e-14}, endings=(gs.InputError,)),
    "huge delta": Row(**kink(1.0), ask={"delta": 1e100}),
    "one variable": Row(**kink(1.0, d=1)),
    "equal rows": Row(**rows_of(np.array([[1.0, 2.0]] * 5 + [[0.5, -1.0]]))),
    "zero rows": Row(**rows_of(np.array([[0.0, 0.0], [1.0, 1.0], [0.0, 0.0], [1.0, -1.0]]))),
    "zero function": Row(fun=lambda x: 0.0, jac=np.zeros_like, x0=[1.0, 2.0]),
    "flat on the ball": Row(
        fun=lambda x: max(0.0, np.abs(x).max() - 10.0),
        jac=lambda x: np.zeros_like(x) if np.abs(x).max() < 10.0 else np.eye(2)[np.abs(x).argmax()],
        x0=[1.0, 2.0],
    ),
    "a jump": Row(
        fun=lambda x: float(np.floor(x[0]) + abs(x[1])),
        jac=lambda x: np.array([0.0, np.sign(x[1])]), x0=[2.5, 1.0],
        endings=(Status.VERIFIED, *NOT_PROVED),  # stationary wherever it does not jump
    ),
    "a slope with jumps": Row(
        fun=lambda x: float(x[0] + np.floor(x[0])), jac=np.ones_like, x0=[0.3],
        endings=NOT_PROVED,
    ),
    "sqrt |x|": Row(**slowly(0.5), endings=(Status.VERIFIED, *NOT_PROVED)),
    "|x|^1.0001": Row(**slowly(1.0001), endings=(Status.VERIFIED, *NOT_PROVED)),
    "gradient of another function": Row(
        fun=lambda x: np.abs(x).sum(), jac=lambda x: np.zeros_like(x), x0=[1.0, -2.0],
        endings=(Status.WRONG_GRADIENT,),
    ),
    "gradient of the wrong sign": Row(
        fun=lambda x: np.abs(x).sum(), jac=lambda x: -np.sign(x), x0=[1.0, -2.0],
        endings=(Status.WRONG_GRADIENT,),
    ),
    "gradient twice too long": Row(
        fun=lambda x: float(x @ x + np.abs(x).sum()), jac=lambda x: 2 * (2 * x + np.sign(x)),
        x0=[1.0, -2.0], endings=(Status.WRONG_GRADIENT, Status.VERIFIED),
    ),
    "noise in f": Row(
        **{**kink(1.0), "fun": lambda x: np.abs(x).sum() + 1e-2 * NOISE.standard_normal()},
        endings=(Status.NOT_DETERMINISTIC, Status.WRONG_GRADIENT, Status.VERIFIED),
    ),
    "noise in the gradient": Row(
        fun=lambda x: np.abs(x).sum(), x0=[1.0, -2.0],
        jac=lambda x: np.sign(x) + 1e-1 * NOISE.standard_normal(2),
        endings=(Status.NOT_DETERMINISTIC, Status.WRONG_GRADIENT, Status.NOT_VERIFIED),
    ),
    "without a minimum": Row(
        fun=lambda x: float(x[0] + abs(x[1])), jac=lambda x: np.array([1.0, np.sign(x[1])]),
        x0=[1.0, 1.0], endings=(Status.UNBOUNDED, Status.BALL_TOO_SMALL),
    ),
    "scales 1e6 apart": Row(
        fun=lambda x: float(1e6 * abs(x[0]) + 1e-6 * abs(x[1])),
        jac=lambda x: np.array([1e6, 1e-6]) * np.sign(x), x0=[1.0, 1.0],
    ),
    "a shift of 1e12": Row(
        fun=lambda x: float(1e12 + np.abs(x).sum()), jac=np.sign, x0=[1.0, -2.0],
        endings=(Status.VERIFIED, *NOT_PROVED),
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", ROWS)
def test_row(name: str) -> None:
    row = ROWS[name]
    ask = {**DEFAULT, "rng": 1, "max_calls": 5000, **row.ask}
    refusals = tuple(e for e in row.endings if isinstance(e, type))
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore", gs.PrecisionWarning)
        if refusals:
            with pytest.raises(refusals):
                gs.minimize(row.fun, row.x0, row.jac, **ask)
            return
        res = gs.minimize(row.fun, row.x0, row.jac, **ask)
        assert res.status in row.endings, res.message
        assert res.success == (res.status is Status.VERIFIED)
        if res.certificate is None:
            assert not res.success
            return
        if row.least is not None:
            assert res.certificate.eps >= row.least(res.x, res.certificate.delta) * (1 - 1e-9)
        # Noise and wrong gradients are found by whoever checks; what is sound must pass.
        if res.success:
            assert res.certificate.eps <= ask["eps"]
            assert res.certificate.delta <= ask["delta"]
            assert res.certificate.verify(row.fun, row.jac).ok


@pytest.mark.parametrize("seed", range(8))
def test_a_gradient_that_cheats_at_kinks_only(seed: int) -> None:
    """Automatic differentiation says 0 at 0: a claim that rests on it does not survive."""

    def fun(x: np.ndarray) -> float:
        return float(x[0] + abs(x[1]))

    def jac(x: np.ndarray) -> np.ndarray:
        return np.array([0.0 if x[1] == 0.0 else 1.0, np.sign(x[1])])

    with np.errstate(all="ignore"):
        cert = gs.certify(fun, [1.0, 0.0], jac, delta=1e-3, rng=seed)
    assert cert.eps >= 1.0 - 1e-9


def test_a_million_variables() -> None:
    d = 10**6
    res = gs.minimize(
        lambda x: float(np.abs(x).max()), np.linspace(-1, 1, d),
        lambda x: np.sign(x) * (np.arange(d) == np.abs(x).argmax()),
        eps=0.8, delta=1e-3, rng=0, max_calls=30,
    )  # fmt: skip
    assert res.certificate is None or res.certificate.eps > 0
    assert res.success == (res.status is Status.VERIFIED)
