"""Functions and numbers that break searches: what each ends with, and never a false claim.

A row says which endings are allowed. Whatever certificate comes back must verify, and its claim
must be true where the truth is known. The table stands in docs/reliability.md.
"""

from __future__ import annotations

import contextlib
import math
import warnings
import zlib
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pytest
from scipy.optimize import NonlinearConstraint

import goldstein as gs
from goldstein.construction.goldstein_claim import heaviest
from goldstein.numerics.hull import min_norm_weights
from goldstein.numerics.streams import stream, uniform_in_ball
from goldstein.oracles import CountedOracle
from goldstein.oracles.diagnose import resolution_of

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
        jac=lambda x: np.sign(x) * (np.abs(x).max() > 10.0) * np.eye(2)[np.abs(x).argmax()],
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


def _by_bits(x: np.ndarray, share: float) -> bool:
    """Whether a point belongs to a part of space that no search can see."""
    return zlib.crc32(x.tobytes()) < share * 2**32


def _alternating() -> Callable[[np.ndarray], float]:
    """A first entry that depends on how often it was asked for."""
    calls = iter(range(10**9))
    return lambda x: 1.0 if next(calls) % 2 else -1.0


def _of_many_points(
    jac: Callable[[np.ndarray], np.ndarray], x: np.ndarray, delta: float, seed: int
) -> gs.GoldsteinCertificate:
    """What the gradients alone support, nobody asking values."""
    points = [uniform_in_ball(stream(seed, j, "many"), x, 0.9 * delta) for j in range(200)]
    gradients = np.array([jac(y) for y in points])
    weights = min_norm_weights(gradients)
    weights /= weights.sum()
    eps = 1e-9 + float(np.linalg.norm(weights @ gradients))
    return gs.GoldsteinCertificate(x, delta, eps, np.array(points), gradients, weights)


#: What the gradient of x0 + |x1| says about x0, where it is 1. All are right at many points; the
#: wrong ones cancel them, so that a point that is nowhere near stationary looks like one.
LIARS: dict[str, Callable[[], Callable[[np.ndarray], float]]] = {
    "on one side of a kink": lambda: lambda x: 1.0 if x[1] > 0 else -1.0,
    "at every other point": lambda: lambda x: -1.0 if _by_bits(x, 0.5) else 1.0,
    "at one point in ten, and long": lambda: lambda x: -20.0 if _by_bits(x, 0.1) else 1.0,
    "on a sliver": lambda: lambda x: -1.0 if abs(x[1]) < 5e-4 else 1.0,
    "on a thin sliver, and long": lambda: lambda x: -1000.0 if abs(x[1]) < 1e-4 else 1.0,
    "at every other call": _alternating,
}


@pytest.mark.parametrize("name", LIARS)
def test_a_gradient_that_is_wrong_at_some_points(name: str) -> None:
    """Whoever states or verifies asks values around the very points that a claim rests on."""

    def fun(x: np.ndarray) -> float:
        return float(x[0] + abs(x[1]))

    accepted = refused = believed = 0
    for seed in range(6):
        first = LIARS[name]()

        def jac(x: np.ndarray, first: Callable[[np.ndarray], float] = first) -> np.ndarray:
            return np.array([first(x), np.sign(x[1])])

        claims = []
        with warnings.catch_warnings(), contextlib.suppress(gs.GoldsteinError):
            warnings.simplefilter("ignore")
            ask: dict[str, Any] = {"delta": 1e-2, "rng": seed, "max_calls": 2000}
            believed += gs.minimize(fun, [1.0, 0.7], jac, eps=1e-2, **ask).success
            ask["options"] = {"check_gradient": False}
            claims.append(gs.minimize(fun, [1.0, 0.7], jac, eps=1e-2, **ask).certificate)
            claims.append(gs.certify(fun, [0.4, 0.0], jac, delta=1e-2, rng=seed))
        claims.append(_of_many_points(jac, np.array([0.4, 0.0]), 1e-2, seed))
        for claim in claims:
            if claim is not None and claim.eps < 1.0 - 1e-9:
                passed = claim.verify(fun, jac, seed=seed).ok
                accepted, refused = accepted + passed, refused + (not passed)
    assert not believed
    assert not accepted
    # The test means something: claims were stronger than the truth.
    assert refused > 3


@pytest.mark.parametrize("where", ["f", "constraint"])
def test_a_gradient_that_is_wrong_beside_the_bound(where: str) -> None:
    """The same for a KKT claim: x0 - |x1| over a disc, with a sign that depends on x1."""
    wrong = {"f": 0.0, "constraint": 0.0, where: 1.0}

    def turned(x: np.ndarray, share: float) -> float:
        return -1.0 if share and x[1] < 0 else 1.0

    def fun(x: np.ndarray) -> float:
        return float(x[0] + abs(x[1]))

    def jac(x: np.ndarray) -> np.ndarray:
        return np.array([turned(x, wrong["f"]), np.sign(x[1])])

    def slope(x: np.ndarray) -> np.ndarray:
        return np.array([[2.0 * turned(x, wrong["constraint"]), 2.0 * x[1]]])

    plane = NonlinearConstraint(lambda x: 2 * x[0] + x[1] ** 2, -np.inf, 1.0, jac=slope)
    for seed in range(4):
        with warnings.catch_warnings(), contextlib.suppress(gs.GoldsteinError):
            warnings.simplefilter("ignore")
            res = gs.minimize(
                fun, [0.3, 0.2], jac, eps=1e-2, delta=1e-2, rng=seed, constraints=[plane],
                bounds=[(-1e3, 1e3)] * 2, max_calls=2000,
            )  # fmt: skip
            claim = res.certificate
            # Stationary at the lower bound of x0, and nowhere else.
            if claim is not None and claim.eps < 0.9 and res.x[0] > -900:
                limits: dict[str, Any] = {"constraints": [plane], "bounds": [(-1e3, 1e3)] * 2}
                assert not claim.verify(fun, jac, **limits).ok


def test_right_gradients_are_not_accused() -> None:
    """Kinks beside every point, dense kinks, and noise in the values: nothing is contradicted."""
    rng = np.random.default_rng(0)
    A, b = rng.standard_normal((12, 5)), rng.standard_normal(12)
    places = rng.uniform(-1, 1, 20_000)
    noisy = np.random.default_rng(1)
    functions: list[tuple[Any, Any, int]] = [
        (lambda x: np.abs(A @ x - b).sum(), lambda x: A.T @ np.sign(A @ x - b), 5),
        (lambda x: (A @ x - b).max(), lambda x: A[(A @ x - b).argmax()], 5),
        (
            lambda x: np.abs(x[0] - places).mean() + abs(x[1]),
            lambda x: np.array([np.sign(x[0] - places).mean(), np.sign(x[1])]),
            2,
        ),
    ]
    for fun, jac, d in functions:
        for level in (1e-1, 1e-3, 1e-6):
            ask: dict[str, Any] = {"eps": level, "delta": level, "rng": 0, "max_calls": 3000}
            claim = gs.minimize(fun, np.linspace(0.3, 0.9, d), jac, **ask).certificate
            known = heaviest(claim)
            for noise in (0.0, 1e-12, 1e-8):

                def blurred(x: np.ndarray, fun: Any = fun, noise: float = noise) -> float:
                    return float(fun(x) + noise * noisy.standard_normal())

                oracle = CountedOracle(gs.FunctionOracle(blurred, jac))
                for seed in range(10):
                    # Noise may leave nothing resolved; a `ContradictedError` would fail here.
                    with contextlib.suppress(gs.errors.UnresolvedError):
                        resolution_of(oracle, claim.x, claim.delta, seed, known)


def test_a_million_variables() -> None:
    d = 10**6
    res = gs.minimize(
        lambda x: float(np.abs(x).max()), np.linspace(-1, 1, d),
        lambda x: np.sign(x) * (np.arange(d) == np.abs(x).argmax()),
        eps=0.8, delta=1e-3, rng=0, max_calls=30,
    )  # fmt: skip
    assert res.certificate is None or res.certificate.eps > 0
    assert res.success == (res.status is Status.VERIFIED)
