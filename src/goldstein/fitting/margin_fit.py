"""Fit one two-class machine: search, certificate, and a guaranteed search if that fails.

Fewer rows than variables: the same problem in the span of the rows. A minimiser's penalised part is
a combination of the rows. Let the columns of Q be an orthonormal basis of their span, so that
Z' = Q R on the penalised variables. In the coordinates s of w = Q s the rows are those of R', and
lengths, margins and the objective stay what they are: the search runs in as many variables as there
are rows. Nothing of that is trusted; certificates are about Z.
"""

import time
from contextlib import suppress
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import linalg

from goldstein.api import certify
from goldstein.api.certify import search_from
from goldstein.certificates import GoldsteinCertificate, near, verifying
from goldstein.checker.arrays import Matrix, Vector
from goldstein.construction.goldstein_claim import Construction
from goldstein.errors import KinkError, NotCertifiableError, OutOfBudget
from goldstein.fitting.fit import NOT_ASKED, Fit, Options, generator_of, near_or_note, noted
from goldstein.fitting.margin_finish import DENSE_LIMIT, dense, dispensable, distinct_rows
from goldstein.fitting.margin_newton import MOST_ON_KINKS, LocalMinimum, minimise_margin
from goldstein.models.margin_svm import MarginProblem, MarginSVM
from goldstein.numerics.budget import Budget
from goldstein.numerics.exact import point_on
from goldstein.numerics.streams import smallest_delta
from goldstein.storage.codec import Arrays
from goldstein.storage.folder import Form

#: Where there is no kink, the point of the certificate is this share of the way out.
_LITTLE = 2.0**-10


#: A row that left its kink is at least this far from it, in units of rho.
_CLEARANCE = 1e-8

#: A single gradient this many times too long is not examined further.
HOPELESS = 1.1

#: Part of delta that scaled points use.
SCALING_REACH = 0.9


def staircase(problem: MarginProblem, found: LocalMinimum, delta: float) -> tuple[Matrix, Vector]:
    """Return ways to leave a minimiser, and positive weights with which gradients there cancel.

    The shares of the active rows stand for them. The ways, k + 1 at most for k distinct rows, are
    short enough that only rows on their kink change piece.
    """
    reach = 0.5 * min(delta, free_radius(problem, found))
    if found.active.size == 0:
        # No kink: one point will do, a little way off, for the gradient at the minimiser itself is
        # all rounding error and would not survive a check that displaces the point.
        little = _LITTLE * reach / (max(1.0, problem.ridge.max()) * np.sqrt(problem.dim))
        return np.full((1, problem.dim), little), np.ones(1)
    rows, group = distinct_rows(dense(problem.Z[found.active]))
    shares = np.zeros(len(rows))
    shares[group] = found.shares
    order = np.argsort(-shares)
    # Sign of the change of margin i along direction j: down, onto the ramp, for the first j rows.
    signs = np.empty((len(rows) + 1, len(rows)))
    signs[:, order] = 1.0 - 2.0 * np.tri(len(rows) + 1, len(rows), -1)
    lengths = np.sqrt(np.einsum("ij,ij->i", rows, rows))
    weights = -np.diff(np.concatenate([[1.0], shares[order], [0.0]]))
    used = weights > 0
    moves = least_norm(rows, (signs[used] * lengths).T).T
    longest = float(np.sqrt(np.einsum("ij,ij->i", moves, moves).max()))
    if longest > 0.0:  # opposite rows may leave no move; the proof will refuse to stay on a kink
        moves *= reach / longest
    return moves, weights[used]


def free_radius(problem: MarginProblem, found: LocalMinimum) -> float:
    """Distance within which no row changes piece except those on their kink.

    A row that is on its kink without carrying a share does not count: points too close together
    would not survive a check that displaces them.
    """
    margin = problem.product(found.v) - problem.shift
    gap = np.minimum(np.abs(margin), np.abs(margin - problem.rho))
    gap[gap <= 1e-9 * problem.rho] = np.inf
    gap[found.active] = np.inf
    return float((gap / np.maximum(problem.row_norms, 1e-300)).min())


def thinned(
    problem: MarginProblem, found: LocalMinimum, eps: float, delta: float
) -> LocalMinimum | None:
    """Return a minimiser moved off some kinks, or None when none can be left.

    A row on its kink carries a share of its slope. Where that share is near 0 or 1, stepping off
    the kink to that side costs little of eps. The exact part of a proof grows fast with the rows
    that stay.
    """
    if found.active.size == 0:
        return None
    leaving = dispensable(problem, found.active, found.shares, eps)
    if leaving.size == 0:
        return None
    rows = dense(problem.Z[found.active])
    side = np.round(found.shares)
    wanted = np.zeros(len(rows))
    # Share 0 lies beyond the kink, share 1 on the ramp before it.
    wanted[leaving] = 1.0 - 2.0 * side[leaving]
    move = least_norm(rows, wanted)
    length = float(np.linalg.norm(move))
    if length == 0.0:
        return None  # rows of zeros: no move takes them off their kink
    move *= 0.5 * min(delta, free_radius(problem, found)) / length
    shift = rows @ move
    sides_reached = (np.sign(shift) == np.sign(wanted))[leaving].all()
    if not sides_reached or np.abs(shift[leaving]).min() < _CLEARANCE * problem.rho:
        return None  # the rows depend on each other, or there is no room between them
    kept = np.setdiff1d(np.arange(len(rows)), leaving)
    return replace(found, v=found.v + move, active=found.active[kept], shares=found.shares[kept])


def goldstein_at(
    model: MarginSVM, found: LocalMinimum, delta: float, seed: int
) -> GoldsteinCertificate | None:
    """Return a Goldstein certificate at the minimiser, or None when a point meets a kink."""
    moves, weights = staircase(model.problem, found, delta)
    return _claim(model, found.v, delta, found.v + moves, seed, "margin-newton", weights)


def _claim(
    model: MarginSVM, v: Vector, delta: float, points: Matrix, seed: int, method: str,
    weights: Vector | None = None,
) -> GoldsteinCertificate | None:  # fmt: skip
    """Return the certificate of v from gradients at points, or None when one meets a kink."""
    try:
        gradients = np.array([model.gradient(y) for y in points])
    except KinkError:
        return None
    meta = {"function": model.name, "method": method, "seed": seed}
    return Construction(model, v, delta, points, gradients, seed).claim(0.0, meta, weights=weights)


def goldstein_by_scaling(
    model: MarginSVM, v: Vector, delta: float, count: int, seed: int
) -> GoldsteinCertificate | None:
    """Return a Goldstein certificate from the points (1 + t) v, or None when one meets a kink.

    Scaling moves all margins near the kink by the same amount. At a minimiser of the smoothed
    objective a row's distance from its kink tells its share; so the part of the points at which the
    row is on the ramp is that share, up to 1 / count. No system is solved for the directions: this
    serves where thousands of rows sit on their kinks.
    """
    length = float(np.linalg.norm(v))
    if length == 0.0:
        return None
    steps = SCALING_REACH * delta / length * (np.arange(1, 2 * count, 2) / count - 1.0)
    return _claim(model, v, delta, v + steps[:, None] * v, seed, "margin-newton, scaled")


def near_at(
    model: MarginSVM, found: LocalMinimum, eps: float, delta: float, budget: Budget | None = None
) -> near.NearCertificate | None:
    """Return a near certificate at the minimiser; its pivot puts the active rows on their kinks.

    Raises
    ------
    OutOfBudget
        When that takes too long.
    """
    budget = budget or Budget()
    problem = model.problem
    if found.active.size == 0 and float(np.linalg.norm(problem.gradient(found.v))) > HOPELESS * eps:
        return None  # a gradient this long is no matter of rounding
    level = Fraction(problem.shift) + Fraction(problem.rho)
    rows, _ = distinct_rows(dense(problem.Z[found.active]))
    pivot = point_on(rows, [level] * len(rows), found.v, delta, pause=budget.require)
    if pivot is None:
        return None
    stairs = staircase(problem, found, delta)
    try:
        return near.NearCertificate.prove(model, found.v, pivot, *stairs, pause=budget.spend)
    except NotCertifiableError:
        return None


#: Rows times variables beyond which the guaranteed search gets few calls unless told otherwise.
LARGE = 10**8
CALLS_WHEN_LARGE = 200

#: Numbers of points tried, one after the other, where many rows share a kink.
SCALINGS = (2, 4, 8, 16)


def _write(place: LocalMinimum) -> tuple[Arrays, dict[str, Any]]:
    arrays: Arrays = {"v": place.v, "active": place.active, "shares": place.shares}
    return arrays, {"iterations": place.iterations}


def _read(arrays: Arrays, fields: dict[str, Any]) -> LocalMinimum:
    active = arrays["active"].astype(np.intp)
    return LocalMinimum(arrays["v"], active, arrays["shares"], int(fields["iterations"]))


def _fits(problem: MarginProblem, place: LocalMinimum) -> bool:
    """Whether a recalled search can be one of this problem; nothing else of it is believed."""
    rows, shares = place.active, place.shares
    return (
        place.v.shape == (problem.dim,)
        and bool(np.isfinite(place.v).all() and np.isfinite(shares).all())
        and rows.shape == shares.shape == (rows.size,)
        and bool(((rows >= 0) & (rows < problem.rows)).all())
    )


#: The end of one search.
_SEARCH = Form("margin search", _write, _read)


def fit_margin(model: MarginSVM, options: Options) -> Fit:
    """Return the best local minimiser of the searches, with its certificates.

    What is kept are the ends of searches, and the answers of a guaranteed one.
    """
    begin = time.perf_counter()
    problem = model.problem
    model.neighbourhood = 2.0 * options.delta
    found = _best_start(problem, options)
    begin = options.begin(begin)
    places = _places(problem, found, options)
    deadline = options.proof_deadline(begin)
    proof, note = None, NOT_ASKED
    if options.near:
        proof, note = _near(model, places, options, Budget(deadline))
        if proof is not None:
            v = proof.x.copy()
            return Fit(v, problem.value(v), proof, proof, found.iterations)
    goldstein = _goldstein(model, found, places, options)
    iterations = found.iterations
    if goldstein is None:
        goldstein, more = _guaranteed_search(model, found, options, begin)
        iterations += more
        deadline = options.proof_deadline(begin)
    if options.near and not note:
        # Rows on their kinks depend on each other: search.
        proof, note = _searched(model, goldstein, options, deadline)
    v = goldstein.x.copy()
    return Fit(v, problem.value(v), goldstein, None, iterations).concluded(proof, note)


def _near(
    model: MarginSVM, places: list[LocalMinimum], options: Options, budget: Budget
) -> tuple[near.NearCertificate | None, str]:
    """Return the first near certificate that is good enough, or None, and a note on its end."""
    try:
        for place in (p for p in places if p.active.size <= MOST_ON_KINKS):
            proof = near_at(model, place, options.eps, options.delta, budget)
            if proof is not None and proof.eps <= options.eps and proof.delta <= options.delta:
                return noted(proof, "proved"), "proved"
    except OutOfBudget as limit:
        return None, f"not proved: the proof {limit}"
    return None, ""


def _searched(
    model: MarginSVM, goldstein: GoldsteinCertificate, options: Options, deadline: float
) -> tuple[near.NearCertificate | None, str]:
    """Search for a pivot where that is affordable: few enough kinks are within reach."""
    problem = model.problem
    if problem.rows * problem.dim > LARGE:
        return None, f"not tried: {problem.rows} rows are too many to search for a pivot"
    distance = np.abs(problem.product(goldstein.x) - problem.shift - problem.rho)
    within = int((distance <= options.delta * problem.row_norms).sum())
    if within > MOST_ON_KINKS:
        return None, f"not tried: {within} kinks are within reach, more than {MOST_ON_KINKS}"
    return near_or_note(model, goldstein, options, deadline)


def _places(problem: MarginProblem, found: LocalMinimum, options: Options) -> list[LocalMinimum]:
    """Return the points to certify, best first: off most kinks, and on all of them."""
    if found.active.size * problem.dim > DENSE_LIMIT:
        return []
    few = thinned(problem, found, options.eps, options.delta)
    return [place for place in (few, found) if place is not None]


def _goldstein(
    model: MarginSVM, found: LocalMinimum, places: list[LocalMinimum], options: Options
) -> GoldsteinCertificate | None:
    """Return a verified certificate that is good enough, or None."""
    delta, seed = options.delta, options.seed
    tries = [partial(goldstein_at, model, place, delta, seed) for place in places]
    for points in SCALINGS if found.active.size == 0 else ():
        tries.append(partial(goldstein_by_scaling, model, found.v, delta, points, seed))
    for make in tries:
        certificate = make()
        if certificate is not None:
            proved: GoldsteinCertificate | None = verifying.as_proved(certificate, model)
            if proved is not None and proved.eps <= options.eps:
                return proved
    return None


def _guaranteed_search(
    model: MarginSVM, found: LocalMinimum, options: Options, begin: float
) -> tuple[GoldsteinCertificate, int]:
    """Return a certificate of the point where the search ended, and its steps."""
    max_calls = options.max_calls
    if max_calls is None and model.problem.rows * model.problem.dim > LARGE:
        max_calls = CALLS_WHEN_LARGE
    # A search that ran off to where float64 cannot see the ball is begun again at the origin.
    start = found.v if options.delta >= smallest_delta(found.v) else np.zeros_like(found.v)
    result = options.searched(model, start, begin, "whole", max_calls=max_calls)
    claim = result.certificate
    if claim is None:
        claim = certify(model, result.x, max_calls=max_calls, **options.asked)
    return claim, result.nit


def _best_start(problem: MarginProblem, options: Options) -> LocalMinimum:
    span, start = row_space(problem), options.start
    if span is not None:
        begin = None if start is None else span.coordinates(start)
        found = _best_start(span.problem, replace(options, start=begin))
        return replace(found, v=span.lift(found.v))

    def search(k: int) -> LocalMinimum:
        rng, begin = generator_of(options, k), start
        minimum = partial(minimise_margin, rng=rng, eps=options.eps, delta=options.delta)
        if k:
            # A path on few rows ends elsewhere; with luck these rows are clean.
            size = min(problem.rows, max(2 * problem.dim, problem.rows // 4, 2))
            begin = minimum(problem.take(np.sort(rng.choice(problem.rows, size, replace=False)))).v
        return minimum(problem, start=begin)

    def kept_search(k: int) -> LocalMinimum:
        return options.kept.part(
            f"start-{k}", _SEARCH, lambda: search(k), holds=lambda place: _fits(problem, place)
        )

    return search_from(range(options.n_init), kept_search, lambda found: problem.value(found.v))


#: The span is used where there are this many times more variables than rows.
WIDE = 2

#: Variables that are reduced at a time, at least.
BLOCK_COLUMNS = 1024

#: Rows whose triangular factor falls off by more than this are left alone.
CONDITION = 1e-7


@dataclass(frozen=True)
class RowSpace:
    """A problem in the span of its rows.

    Attributes
    ----------
    problem : MarginProblem
        The same objective in the coordinates s, and in the variables without penalty after them.
    """

    problem: MarginProblem
    whole: MarginProblem
    triangle: Matrix

    @property
    def _penalised(self) -> NDArray[np.bool_]:
        return self.whole.ridge > 0

    def lift(self, s: Vector) -> Vector:
        """Return the point of the whole space that has coordinates s."""
        count = len(self.triangle)
        # Q = Z' R^-1 need not be formed.
        shares = linalg.solve_triangular(self.triangle, s[:count], check_finite=False)
        v = self.whole.transposed_product(shares)
        v[~self._penalised] = s[count:]
        return v

    def coordinates(self, v: Vector) -> Vector:
        """Return the coordinates of the projection of a point onto the span."""
        penalised = self._penalised
        products = self.whole.product(np.where(penalised, v, 0.0))
        s = linalg.solve_triangular(self.triangle, products, trans="T", check_finite=False)
        return np.concatenate([s, v[~penalised]])


def row_space(problem: MarginProblem) -> RowSpace | None:
    """Return the problem in the span of its rows, or None where that is no gain.

    Examples
    --------
    >>> Z = np.array([[3.0, 4.0, 0.0, 0.0]])
    >>> P = MarginProblem.from_rows(Z, np.ones(1), np.ones(4), rho=1.0)
    >>> small = row_space(P)
    >>> abs(small.problem.Z), small.lift(small.coordinates(np.array([3.0, 4.0, 7.0, 0.0])))
    (array([[5.]]), array([3., 4., 0., 0.]))
    """
    Z, ridge = problem.Z, problem.ridge
    penalised = ridge > 0
    if not isinstance(Z, np.ndarray) or WIDE * problem.rows > penalised.sum():
        return None
    level = float(ridge.max())
    if problem.slope.any() or not (ridge[penalised] == level).all():
        return None
    triangle = _triangle(Z, np.flatnonzero(penalised))
    size = np.abs(np.diag(triangle))
    if not size.min() > CONDITION * size.max():
        return None
    reduced = MarginProblem(
        np.column_stack([triangle.T, Z[:, ~penalised]]), problem.weights,
        np.concatenate([np.full(len(triangle), level), ridge[~penalised]]), problem.rho,
        problem.shift, problem.row_norms, np.zeros(problem.rows + int((~penalised).sum())),
        problem.constant,
    )  # fmt: skip
    return RowSpace(reduced, problem, triangle)


def _triangle(Z: Matrix, columns: NDArray[np.intp]) -> Matrix:
    """Return R of Z' = Q R for some columns of Z, block by block: at once it would copy them."""
    triangle = np.zeros((0, len(Z)))
    step = max(BLOCK_COLUMNS, 2 * len(Z))
    for start in range(0, columns.size, step):
        block = Z[:, columns[start : start + step]].T
        triangle = np.asarray(np.linalg.qr(np.concatenate([triangle, block]), mode="r"))
    return triangle


def least_norm(rows: Matrix, levels: Matrix) -> Matrix:
    """Return X of least norm with rows @ X = levels, as nearly as the rows allow.

    Examples
    --------
    >>> least_norm(np.array([[1.0, 1.0]]), np.array([4.0]))
    array([2., 2.])
    """
    with suppress(linalg.LinAlgError):
        factor = linalg.cho_factor(rows @ rows.T, lower=True, check_finite=False)
        size = np.abs(np.diag(factor[0]))
        if not size.min() <= CONDITION * size.max():
            shares = linalg.cho_solve(factor, levels, check_finite=False)
            return np.asarray((shares.T @ rows).T)
    return np.asarray(np.linalg.pinv(rows) @ levels)
