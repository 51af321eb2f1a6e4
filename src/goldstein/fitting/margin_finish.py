"""The end of the search for a rho-margin minimiser: kinks as they are, on the rows in reach of one.

Concave kinks are replaced by their tangents, and the convex problem that is left is solved on the
few rows that can still change piece.
"""

import hashlib
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import linalg, sparse

from goldstein.checker.arrays import Matrix, Vector
from goldstein.models.margin_svm import MarginProblem

Solver = Callable[[Vector, Vector], tuple[Vector, Vector]]

#: Up to this many variables their own system is solved, however few the rows.
SMALL = 100

#: Complementarity gap relative to the sum of q at which to stop, and the most steps.
_GAP, _MOST_STEPS = 1e-13, 60

#: Part of the largest diagonal entry below which a variable counts as free.
WEAK = 1e-6


@np.errstate(divide="ignore", invalid="ignore", over="ignore")
def solve_hinge_qp(
    diagonal: Vector, c: Vector, M: Any, q: Vector, level: float, v: Vector
) -> tuple[Vector, Vector]:
    """Return (v, a): the minimiser and the multipliers, as accurately as floats allow.

    Parameters
    ----------
    diagonal, c, M, q, level
        The problem; M dense or sparse.
    v : ndarray
        Start.

    Examples
    --------
    >>> import numpy as np
    >>> one, zero = np.ones(1), np.zeros(1)
    >>> v, a = solve_hinge_qp(one, zero, np.ones((1, 1)), one, 0.25, zero)
    >>> v.round(9), a.round(9)
    (array([0.25]), array([0.25]))
    """
    if q.size == 0:
        return -c / diagonal, q.copy()
    few = M.shape[0] < M.shape[1] > SMALL
    factored = _row_system(diagonal, M) if few else _column_system(diagonal, M)
    margin = M @ v - level
    a = 0.5 * q
    push = np.maximum(float(np.abs(margin).mean()), 1e-3)
    s = np.maximum(margin, 0.0) + push
    x = s - margin
    best = (np.inf, v, a)
    for _ in range(_MOST_STEPS):
        state = _State(diagonal * v + c - M.T @ a, M @ v - level - s + x, a, q - a, s, x)
        gap = float(a @ s + state.b @ x)
        error = gap + float(np.linalg.norm(state.dual)) + float(np.abs(state.primal) @ q)
        if error < best[0]:
            best = (error, v, a)
        if gap <= _GAP * float(q.sum()) or not np.isfinite(gap):
            break
        solve = factored(state.w)
        if solve is None:
            break
        _, da, ds, dx = state.newton(solve, -a * s, -state.b * x)
        step = state.longest(da, ds, dx)
        ahead = float((a + step * da) @ (s + step * ds) + (state.b - step * da) @ (x + step * dx))
        target = gap / (2 * q.size) * (max(ahead, 0.0) / gap) ** 3
        dv, da, ds, dx = state.newton(
            solve, target - a * s - da * ds, target - state.b * x + da * dx
        )
        step = 0.995 * state.longest(da, ds, dx)
        v, a, s, x = v + step * dv, a + step * da, s + step * ds, x + step * dx
    return best[1], best[2]


@dataclass(frozen=True)
class _State:
    """Residuals and the four positive vectors: multipliers a, b = q - a, slacks s, excesses x."""

    dual: Vector
    primal: Vector
    a: Vector
    b: Vector
    s: Vector
    x: Vector

    @property
    def w(self) -> Vector:
        """Weights of the rows in the normal equations."""
        return 1.0 / (self.s / self.a + self.x / self.b)

    def newton(
        self, solve: Solver, r1: Vector, r2: Vector
    ) -> tuple[Vector, Vector, Vector, Vector]:
        """Return the step whose linearised complementarity has right-hand sides r1 and r2."""
        dv, da = solve(self.dual, r1 / self.a - r2 / self.b - self.primal)
        return dv, da, (r1 - self.s * da) / self.a, (r2 + self.x * da) / self.b

    def longest(self, da: Vector, ds: Vector, dx: Vector) -> float:
        """Return the longest step up to 1 that keeps all four vectors nonnegative."""
        place = np.concatenate([self.a, self.b, self.s, self.x])
        move = np.concatenate([da, -da, ds, dx])
        falling = move < 0
        return float((-place[falling] / move[falling]).min(initial=1.0))


def _inverse_of(H: Matrix, diagonal: Vector) -> Callable[[Vector], Vector] | None:
    """Return what solves with H + diagonal, which is overwritten; None if it is not definite."""
    H[np.diag_indices_from(H)] += diagonal
    try:
        factor = linalg.cho_factor(H, overwrite_a=True, check_finite=False)
    except linalg.LinAlgError:
        return None
    return partial(linalg.cho_solve, factor, check_finite=False)


def _column_system(diagonal: Vector, M: Any) -> Callable[[Vector], Solver | None]:
    """Solve D y - M'z = -dual, M y + z / w = t for (y, z), in the variables y."""

    def factored(w: Vector) -> Solver | None:
        inner = _inverse_of(dense(M.T @ _scaled(M, w[:, None])), diagonal)
        if inner is None:
            return None

        def solve(dual: Vector, t: Vector) -> tuple[Vector, Vector]:
            y = inner(M.T @ (w * t) - dual)
            return y, w * (t - M @ y)

        return solve

    return factored


def _row_system(diagonal: Vector, M: Any) -> Callable[[Vector], Solver | None]:
    """Solve the same in the multipliers z, where the rows are fewer.

    The products of the rows are formed once. Variables with next to no diagonal (an intercept)
    would spoil them; they stay unknowns beside z.
    """
    free = np.flatnonzero(diagonal <= WEAK * diagonal.max())
    inverse = 1.0 / diagonal
    inverse[free] = 0.0
    border, gram = dense(M[:, free]), dense(_scaled(M, inverse) @ M.T)

    def factored(w: Vector) -> Solver | None:
        inner = _inverse_of(gram.copy(), 1.0 / w)
        if inner is None:
            return None
        reduced = inner(border)
        corner = border.T @ reduced + np.diag(diagonal[free])

        def solve(dual: Vector, t: Vector) -> tuple[Vector, Vector]:
            z = inner(t + M @ (inverse * dual))
            beside = np.linalg.solve(corner, border.T @ z - dual[free])
            z -= reduced @ beside
            y = inverse * (M.T @ z - dual)
            y[free] = beside
            return y, z

        return solve

    return factored


#: Most rows whose kink is kept in one convex subproblem.
MOST_HINGES = 1500

#: Entries up to which rows are made dense to put them on their kinks exactly.
DENSE_LIMIT = 2 * 10**7

#: Rows whose triangular factor falls off by more than this count as dependent.
_DEPENDENT = 1e-7

#: How many widths around a kink count as within reach.
REACH = 4.0

#: Part of eps that steps off kinks may use up.
BUDGET = 0.7

#: Most convex subproblems.
_ROUNDS = 60


def settle_on_kinks(
    problem: MarginProblem, v: Vector, u: Vector, width: float, eps: float
) -> tuple[Vector, NDArray[np.intp], Vector, int]:
    """Minimise with the kinks as they are, from v with margins u, rounded by `width` so far.

    Return a local minimiser, the rows on the convex kink there, their shares, and rounds it took.
    The concave kinks are replaced by their tangents at v, which majorises F; so every round lowers
    F. It ends when the rows that changed side no longer matter.
    """
    radius = REACH * width / (float(np.median(problem.row_norms)) or 1.0)
    value = problem.value(v, u)
    best = (np.inf, v, np.zeros(0, dtype=np.intp), np.zeros(0))
    rounds = 0
    while rounds < _ROUNDS:
        convex = _majorised_minimum(problem, v, u, radius)
        rounds += 1
        u_new = problem.product(convex.v)
        value_new = problem.value(convex.v, u_new)
        if value_new <= value + 1e-12 * abs(value):
            residual = _residual(problem, convex, u_new)
            if residual < best[0]:
                best = (residual, convex.v, convex.active, convex.shares)
            if residual <= eps:
                break
        step = _best_step(problem, v, u, convex.v - v, u_new - u, value)
        if step == 0.0:
            if convex.inside:
                break
            radius *= 2.0
            continue
        moved = step * float(np.linalg.norm(convex.v - v))
        v, u = v + step * (convex.v - v), u + step * (u_new - u)
        before, value = value, problem.value(v, u)
        if before - value <= 1e-14 * abs(value) and convex.inside:
            break
        radius = 2.0 * max(radius, moved) if not convex.inside else max(radius, moved)
    _, v, active, shares = best
    # A row of zeros may be on its kink, wherever v is: it pulls nowhere.
    pulls = problem.row_norms[active] > 0.0
    return v, active[pulls], shares[pulls], rounds


@dataclass(frozen=True)
class _Convex:
    """Minimiser of the convex majorant: hinges on `near`, frozen slopes `pull` on other rows."""

    v: Vector
    near: NDArray[np.intp]
    active: NDArray[np.intp]
    shares: Vector
    pull: Vector
    slope: Vector
    inside: bool


def _majorised_minimum(problem: MarginProblem, v: Vector, u: Vector, radius: float) -> _Convex:
    """Minimise the convex majorant at v."""
    margin = u - problem.shift
    distance = np.abs(margin - problem.rho) / np.maximum(problem.row_norms, 1e-300)
    # A row on the flat part costs 1 at most wherever it goes: the constant 1 is its majorant.
    distance[margin <= 0] = np.inf
    near = np.flatnonzero(distance <= radius)
    if near.size > MOST_HINGES:
        near = np.sort(np.argpartition(distance, MOST_HINGES)[:MOST_HINGES])
        radius = float(distance[near].max())
    pull = _frozen_pull(problem, margin, near)
    slope = problem.slope - problem.transposed_product(pull)
    # A weak proximal term keeps the unpenalised intercept from running away.
    hold = np.where(problem.ridge > 0, 0.0, 1e-9 * max(float(problem.ridge.max()), 1e-9))
    level = problem.shift + problem.rho
    M, q = problem.Z[near], problem.weights[near] / problem.rho
    answer, forces = solve_hinge_qp(problem.ridge + hold, slope - hold * v, M, q, level, v)
    gap = M @ answer - level
    shares = forces / q
    on_kink = (shares > 1e-6) & (shares < 1 - 1e-6) & (np.abs(gap) <= 1e-3 * problem.rho)
    chosen = np.flatnonzero(on_kink)
    shares = shares[chosen]
    below = np.where(on_kink, 0.0, np.where(gap < 0, q, 0.0))
    exact = None
    if chosen.size * problem.dim <= DENSE_LIMIT:
        exact = _solve_conditions(
            *distinct_rows(M[chosen]), q[chosen], problem.ridge, slope - M.T @ below, level
        )
    if exact is not None:
        gap_exact = M @ exact[0] - level
        same_side = np.array_equal((gap_exact < 0)[~on_kink], (gap < 0)[~on_kink])
        if same_side and exact[1].min() >= 0.0 and exact[1].max() <= 1.0:
            answer, shares = exact
    inside = bool(np.linalg.norm(answer - v) <= radius)
    return _Convex(answer, near, near[chosen], shares, pull, slope, inside)


def _frozen_pull(problem: MarginProblem, margin: Vector, near: NDArray[np.intp]) -> Vector:
    """The slopes of the rows that are not modelled as hinges."""
    pull = np.where((margin > 0) & (margin < problem.rho), problem.weights / problem.rho, 0.0)
    pull[near] = 0.0
    return pull


def _residual(problem: MarginProblem, convex: _Convex, u: Vector) -> float:
    """Norm of the gradient at the majorant's minimiser once every row has its true side."""
    pull = _frozen_pull(problem, u - problem.shift, convex.active)
    pull[convex.active] = convex.shares * problem.weights[convex.active] / problem.rho
    change = pull - convex.pull
    rows = np.flatnonzero(change)
    rest = problem.ridge * convex.v + convex.slope - problem.Z[rows].T @ change[rows]
    return float(np.linalg.norm(rest))


def _best_step(
    problem: MarginProblem, v: Vector, u: Vector, dv: Vector, du: Vector, value: float
) -> float:
    """Halve or double the step while F falls; costs no product with the data."""

    def at(step: float) -> float:
        return problem.value(v + step * dv, u + step * du)

    step, here = 1.0, at(1.0)
    while here > value:
        step *= 0.5
        if step < 1e-6:
            return 0.0
        here = at(step)
    while step >= 1.0 and step < 64.0:
        farther = at(2.0 * step)
        if farther >= here:
            break
        step, here = 2.0 * step, farther
    return step


def _solve_conditions(
    M: Any, group: NDArray[np.intp], q: Vector, ridge: Vector, constant: Vector, level: float
) -> tuple[Vector, Vector] | None:
    """Solve ridge v + constant = sum_i q_i shares_i m_i, m_i.v = level, for (v, shares).

    M holds the distinct rows and `group` the place of each row among them; rows that are equal get
    equal shares. None when the rows are dependent.
    """
    k, d = M.shape
    if k == 0 or k > d or _are_dependent(M):
        return None
    # Where ridge is 0 (the intercept) the first equation does not determine v: solve both at once.
    penalised = ridge > 0
    inverse = np.where(penalised, 1.0 / np.where(penalised, ridge, 1.0), 0.0)
    free = dense(M[:, np.flatnonzero(~penalised)])
    f = free.shape[1]
    system = np.zeros((k + f, k + f))
    scaled = _scaled(M, inverse)
    system[:k, :k] = dense(scaled @ M.T)
    system[:k, k:] = free
    system[k:, :k] = free.T
    right = np.concatenate([level + scaled @ constant, constant[~penalised]])
    try:
        answer = np.linalg.solve(system, right)
    except np.linalg.LinAlgError:
        return None
    v_new = inverse * (M.T @ answer[:k] - constant)
    v_new[~penalised] = answer[k:]
    if not np.isfinite(v_new).all():
        return None
    return v_new, (answer[:k] / np.bincount(group, q))[group]


def _are_dependent(M: Any) -> bool:
    """True when rows depend on each other, or nearly so."""
    try:
        factor = linalg.cholesky(dense(M @ M.T), lower=True, check_finite=False)
    except linalg.LinAlgError:
        return True
    size = np.diag(factor)
    return bool(size.min() <= _DEPENDENT * size.max())


def dispensable(
    problem: MarginProblem, active: NDArray[np.intp], shares: Vector, eps: float
) -> NDArray[np.intp]:
    """Return places among the active rows whose shares may be rounded to 0 or 1, together.

    Rounding a share changes the gradient by a part of the row's slope; as many rows are taken,
    smallest changes first, as fit into the budget. Equal rows can only leave their kink together.
    """
    rows, group = distinct_rows(problem.Z[active])
    changes = (shares - np.round(shares)) * problem.weights[active] / problem.rho
    factors = np.bincount(group, weights=changes, minlength=rows.shape[0])
    # Lengths of the sums of the first changes, from inner products alone: rows can be long.
    products = factors[:, None] * dense(rows @ rows.T) * factors
    order = np.argsort(np.diag(products), kind="stable")
    products = products[np.ix_(order, order)]
    squares = np.cumsum(2.0 * np.tril(products).sum(axis=1) - np.diag(products))
    size = np.sqrt(np.maximum(squares, 0.0))
    taken = order[: int(np.searchsorted(np.maximum.accumulate(size), BUDGET * eps))]
    if len(order) == len(group):
        return taken
    return np.flatnonzero(np.isin(group, taken))


def distinct_rows(rows: Any) -> tuple[Any, NDArray[np.intp]]:
    """Return the distinct rows and, for each given row, its place among them."""
    places: dict[bytes, int] = {}
    group = np.empty(rows.shape[0], dtype=np.intp)
    for i in range(len(group)):
        # Sorting long rows would take much longer than hashing them.
        group[i] = places.setdefault(_row_key(rows, i), len(places))
    if len(places) == len(group):
        return rows, group
    return rows[np.unique(group, return_index=True)[1]], group


def _row_key(rows: Any, i: int) -> bytes:
    if not sparse.issparse(rows):
        return hashlib.blake2b(rows[i] + 0.0).digest()  # -0 + 0 is 0
    span = slice(rows.indptr[i], rows.indptr[i + 1])
    filled = rows.data[span] != 0
    key = hashlib.blake2b(rows.data[span][filled].tobytes())
    key.update(rows.indices[span][filled].tobytes())
    return key.digest()


def dense(M: Any) -> Any:
    """Return a matrix written out."""
    return M.toarray() if sparse.issparse(M) else M


def _scaled(M: Any, factors: Vector) -> Any:
    """Return M with its columns, or its rows, multiplied by factors."""
    return M.multiply(factors).tocsr() if sparse.issparse(M) else M * factors
