"""Structured H-infinity synthesis: stabilise, then make the norm small, from several starts.

Stability and norms proved in rational arithmetic: a matrix that anybody can check.

`verify` forms the closed loop of the float64 numbers of plant and feedback in rationals, without
rounding, and looks for positive pivots.
"""

import contextlib
import importlib
import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import linalg

from goldstein.api import certify, minimize
from goldstein.api.certify import uninterrupted
from goldstein.certificates import GoldsteinCertificate, KKTCertificate
from goldstein.checker.arrays import Matrix, Vector
from goldstein.control.oracles import HInfNorm, Plant, System, abscissa, peak_gain
from goldstein.errors import GoldsteinError, InputError, OracleError
from goldstein.numerics.streams import seed_from, stream
from goldstein.result import Result, Status

#: Bits that a matrix of a proof keeps: enough for the inequality, and few for the pivots.
BITS = 40

#: Parts of the room between norm and bound that the Riccati equation may use, as tried.
SHARES = (0.5, 0.1, 0.9, 0.01)

#: Disturbances that move the states less than this do not limit what may be added.
NO_PATH = 1e-8

#: A matrix of `Fraction`.
Exact = NDArray[np.object_]


@dataclass(frozen=True, eq=False)
class Stability:
    """Proof that x' = (A + B K C) x is stable: P > 0 and A'P + PA < 0, a Lyapunov matrix."""

    K: Matrix
    P: Matrix

    def verify(self, plant: Plant) -> bool:
        """Check both inequalities in rational arithmetic."""
        if not _is_about(self, plant):
            return False
        A, P = plant.closed_loop(self.K, exact).A, exact(self.P)
        left = A.T @ P
        return is_symmetric(P) and is_positive(P) and is_positive(-left - left.T)


@dataclass(frozen=True, eq=False)
class NormBound:
    """Proof that the loop is stable with H-infinity norm below `gamma`: the bounded real lemma.

    With P > 0 the matrix [[A'P + PA, PB, C'], [B'P, -gamma, D'], [C, D, -gamma]] is negative.
    """

    K: Matrix
    P: Matrix
    gamma: float

    def verify(self, plant: Plant) -> bool:
        """Check both inequalities in rational arithmetic."""
        if not (_is_about(self, plant) and 0.0 < self.gamma < math.inf):
            return False
        A, B, C, D = plant.closed_loop(self.K, exact)
        P, g = exact(self.P), Fraction(self.gamma)
        left, PB = A.T @ P, P @ B
        (z, w), one = D.shape, exact(np.eye(max(D.shape)))
        total = np.block([
            [left + left.T, PB, C.T], [PB.T, -g * one[:w, :w], D.T], [C, D, -g * one[:z, :z]]
        ])  # fmt: skip
        return is_symmetric(P) and is_positive(P) and is_positive(-total)


def _is_about(claim: Stability | NormBound, plant: Plant) -> bool:
    """Whether the matrices of a claim are real, finite and of the sizes of the plant."""
    if np.iscomplexobj(claim.K) or np.iscomplexobj(claim.P):
        return False
    K, P = np.asarray(claim.K, dtype=float), np.asarray(claim.P, dtype=float)
    sizes = K.shape == (plant.B.shape[1], len(plant.C)) and P.shape == plant.A.shape
    return sizes and bool(np.isfinite(K).all() and np.isfinite(P).all())


def exact(M: Any) -> Exact:
    """Return a matrix of floats in rationals."""
    return np.vectorize(Fraction, otypes=[object])(np.asarray(M, dtype=float))


def is_symmetric(M: Exact) -> bool:
    return bool((M == M.T).all())


def is_positive(M: Exact) -> bool:
    """Return whether a symmetric matrix is positive definite: all pivots are positive.

    Examples
    --------
    >>> is_positive(exact([[2.0, 1.0], [1.0, 1.0]])), is_positive(exact([[1.0, 1.0], [1.0, 1.0]]))
    (True, False)
    """
    rows = M.copy()
    for k, pivot in enumerate(rows):
        if pivot[k] <= 0:
            return False
        below = k + 1 + np.flatnonzero(rows[k + 1 :, k])
        rows[below, k:] -= np.outer(rows[below, k] / pivot[k], pivot[k:])
    return True


def prove_stability(plant: Plant, K: Matrix) -> Stability | None:
    """Return a proof that K makes the plant stable, or None."""
    A = plant.closed_loop(K).A
    if not np.linalg.eigvals(A).real.max() < 0.0:
        return None
    P = linalg.solve_continuous_lyapunov(A.T, -np.eye(len(A)))
    claims = (Stability(np.array(K), _rounded(P, bits)) for bits in (BITS, 52))
    return next((claim for claim in claims if claim.verify(plant)), None)


def prove_norm(plant: Plant, K: Matrix, gamma: float) -> NormBound | None:
    """Return a proof that the norm of the closed loop is below gamma, or None."""
    loop = plant.closed_loop(K)
    if not np.linalg.eigvals(loop.A).real.max() < 0.0:
        return None
    found = (_bounded_real(loop, gamma, share) for share in SHARES)
    rounded = (_rounded(P, bits) for P in found if P is not None for bits in (BITS, 52))
    claims = (NormBound(np.array(K), P, float(gamma)) for P in rounded)
    return next((claim for claim in claims if claim.verify(plant)), None)


def _bounded_real(system: System, gamma: float, share: float) -> Matrix | None:
    """Return P with room in the inequality: of the Riccati equation for more output, less gamma."""
    # In balanced coordinates; powers of two round nothing on the way back.
    A, (scale, _) = linalg.matrix_balance(system.A, permute=False, separate=True)
    level = gamma * (1.0 - 0.5e-6)
    size = math.sqrt(level)
    B, C = system.B / scale[:, None] / size, system.C * scale / size
    D = system.D / level  # the norm is below 1 now
    # Half of the room is left to w and z; what may be added to C'C is a part of the other half.
    one = np.eye(len(A))
    inner = peak_gain(System(A, B, one, np.zeros(B.shape)))[0]
    Q = C.T @ C + share * 1e-6 / max(inner, NO_PATH) ** 2 * one
    try:
        P = linalg.solve_continuous_are(A, B, Q, D.T @ D - np.eye(B.shape[1]), s=C.T @ D)
    except (linalg.LinAlgError, ValueError):
        return None
    return P / scale / scale[:, None] if np.isfinite(P).all() else None


def _rounded(P: Matrix, bits: int) -> Matrix:
    """Return a symmetric matrix with few bits per entry, relative to its rows and columns."""
    P = (P + P.T) / 2.0
    if bits >= 52:
        return P
    root = np.sqrt(np.maximum(np.abs(np.diag(P)), 1e-300))
    unit = 2.0 ** (np.floor(np.log2(np.outer(root, root))) - bits)
    return np.round(P / unit) * unit


#: The proved bound is the norm times this.
ROOM = 1.0 + 1e-6

#: Most calls of the stabilising phase, per start; and an abscissa that is low enough for it.
CALLS_TO_STABILISE, ENOUGH = 2_000, -0.1

#: Where gains are at their limit, the balls are as many times larger.
ROUGHER = 100.0


@dataclass(frozen=True, eq=False)
class Design:
    """A controller, and what is known of it.

    Attributes
    ----------
    K : ndarray
        The feedback u = K y; with states [[D, C], [B, A]] of the controller.
    norm : float
        H-infinity norm of the closed loop, in float64.
    stability : Stability or None
        Proof by a Lyapunov matrix, in rationals.
    bound : NormBound or None
        Proof by a bounded real matrix that the norm is below `bound.gamma` = norm (1 + 1e-6).
    certificate : GoldsteinCertificate, KKTCertificate or None
        How stationary the norm is at K, given that it and its gradient are computed rightly (the
        label is "conditional"); a KKT certificate where gains are at the limit `largest`: among
        those that are not larger.
    result : Result
        Of the best search.
    plant : Plant
        With the states of the controller.
    order : int
    norms : list of float
        What the other starts ended with.
    """

    K: Matrix
    norm: float
    stability: Stability | None
    bound: NormBound | None
    certificate: GoldsteinCertificate | KKTCertificate | None
    result: Result
    plant: Plant
    order: int
    norms: list[float]

    def __repr__(self) -> str:
        proofs = {"stability": self.stability, "norm": self.bound}
        proved = " and ".join(name for name, proof in proofs.items() if proof is not None)
        shape = "x".join(map(str, self.K.shape))
        return f"<Design norm {self.norm:.6g}, order {self.order}, K {shape}; proved: {proved}>"

    def controller(self) -> tuple[Matrix, Matrix, Matrix, Matrix]:
        """Return A, B, C, D of the controller."""
        m, p = (size - self.order for size in self.K.shape)
        return self.K[m:, p:], self.K[m:, :p], self.K[:m, p:], self.K[:m, :p]

    def to_control(self) -> Any:
        """Return the controller as a `control.StateSpace`; needs the package `control`."""
        return importlib.import_module("control").ss(*self.controller())


def synthesise(
    plant: Plant, order: int = 0, structure: ArrayLike | None = None, *, starts: int = 4,
    eps: float = 1e-4, delta: float = 1e-4, max_calls: int = 5_000, largest: float = 1e3,
    x0: ArrayLike | None = None, rng: Any = None,
) -> Design:  # fmt: skip
    """Return a stabilising feedback of a given structure whose H-infinity norm is small.

    The problem is not convex: the best of several starts is kept, and nothing is said about others.

    Parameters
    ----------
    plant : Plant
    order : int
        States of the controller; 0 is static output feedback.
    structure : array_like of bool, optional
        Free entries of K, or of [[D, C], [B, A]]; default all.
    starts : int
        Random starts; the first is 0.
    eps, delta : float
        Stationarity to reach.
    max_calls : int
        Per start.
    largest : float
        Entries of K are not larger: some norms fall as long as the gain grows. Where the best
        search comes that far it is continued with these bounds, and the certificate is about them.
    x0 : array_like, optional
        A first start, in the free entries.
    rng : int, Generator or None

    Examples
    --------
    >>> design = synthesise(Plant([[1.0]], [[1.0]], [[1.0]]), rng=0)
    >>> design.stability.verify(design.plant), design.bound.verify(design.plant)
    (True, True)
    >>> bool(design.norm < design.bound.gamma < 1.01 * design.norm)
    True
    """
    if isinstance(order, bool) or not isinstance(order, int) or order < 0:
        raise InputError(f"order must be an integer >= 0, got {order!r}.")
    plant = plant.with_states(order)
    norm, seed = HInfNorm(plant, structure), seed_from(rng)
    draws = stream(seed, 0, "control")
    first = np.zeros(norm.loop.dim) if x0 is None else np.array(x0, dtype=float).ravel()
    if first.size != norm.loop.dim:
        raise InputError(f"x0 must have the {norm.loop.dim} free entries, got {first.size}.")
    points = [first, *(draws.standard_normal(norm.dim) for _ in range(starts - 1))]
    asked: dict[str, Any] = {"eps": eps, "delta": delta, "rng": seed, "max_calls": max_calls}
    limits = [(-largest, largest)] * norm.loop.dim
    ready = (stabilised(norm, np.clip(point, -largest, largest), limits, seed) for point in points)
    stable = [found for found in ready if found is not None]
    found_from = (searched(norm, start, largest, asked) for start in stable)
    runs = [run for run in found_from if run is not None]
    if stable and not runs:
        raise InputError("every search ended next to instability; give x0, or a smaller delta.")
    if not runs:
        raise InputError(
            f"no stabilising feedback was found from {starts} starts; raise `starts`, `order` or "
            "`largest`, or give x0. That none exists is not said."
        )
    best, inside = min(runs, key=lambda run: run[0].fun)
    x, claim = best.x, best.certificate
    if best.status is Status.STOPPED:
        rougher = {**asked, "delta": ROUGHER * delta}
        continued = searched(norm, inside, largest, rougher, bounds=limits)
        x, claim = inside, None
        if continued is not None:
            best, x, claim = continued[0], continued[0].x, continued[0].certificate
    K, value = norm.loop.gain(x), norm.value(x)
    # Float64 cannot sample a ball that is too small beside x, nor see steps below its rounding.
    around = delta * max(1.0, float(np.linalg.norm(x)))
    for factor in (1.0, 10.0, 100.0):
        if claim is None:
            with contextlib.suppress(GoldsteinError):
                claim = certify(norm, x, eps=eps, delta=factor * around, rng=seed)
    return Design(
        K, value, prove_stability(plant, K), prove_norm(plant, K, value * ROOM), claim, best, plant,
        order, sorted(float(run.fun) for run, _ in runs),
    )  # fmt: skip


def searched(
    norm: HInfNorm, start: Vector, largest: float, asked: dict[str, Any], **limits: Any
) -> tuple[Result, Vector] | None:
    """Search from a stable feedback; where unstable ones are nearer than delta, in smaller balls.

    A norm that does not see the last stable eigenvalue falls right up to instability. Return also
    the last feedback whose entries were not too large.
    """
    last = start

    def too_large(x: Vector) -> bool:
        nonlocal last
        large = bool(np.abs(x).max() > largest)
        last = last if large else x.copy()
        return large

    for smaller in (1.0, 1e-2, 1e-4):
        with contextlib.suppress(OracleError):
            how = {**asked, "delta": smaller * asked["delta"]}
            return uninterrupted(minimize(norm, last, callback=too_large, **how, **limits)), last
    return None


def stabilised(
    norm: HInfNorm, start: Vector, limits: list[tuple[float, float]], seed: int
) -> Vector | None:
    """Return a feedback with a stable loop near a start, by its spectral abscissa, or None."""
    x, largest = start, limits[0][1]
    for bounds in (None, limits):
        if math.isfinite(norm.value(x)) and np.abs(x).max() <= largest:
            return x
        x = minimize(
            abscissa(norm.loop, ENOUGH), np.clip(x, -largest, largest), eps=1e-3, delta=1e-4,
            rng=seed, max_calls=CALLS_TO_STABILISE, bounds=bounds,
        ).x  # fmt: skip
    return x if math.isfinite(norm.value(x)) else None
