"""Quasi-Newton search for functions with kinks (Lewis and Overton 2013): fast, without guarantee.

BFGS with a weak Wolfe line search works astonishingly well on functions with kinks. Nothing that is
proved rests on it: it proposes points, and its gradients are asked for again before they certify.
Here is its memory and its arithmetic; the decisions are those of `logic.line_search`.

Quasi-Newton metrics H, and the step to the minimum of a model made of linear pieces.

The step is posed by inner products g_i' H g_j of the pieces. In few variables they come from a
factor of H. In more of them what they need is kept up to date: computing it afresh costs a product
of matrices, and a change of H a product of two vectors.
"""

import math
from abc import ABC, abstractmethod

import numpy as np
from scipy.linalg.blas import dger
from scipy.linalg.lapack import dtrtrs

from goldstein.checker.arrays import Matrix, Vector
from goldstein.numerics.hull_problems import factor_of_gram, quadratic_weights
from goldstein.oracles import CountedOracle
from goldstein.solvers.base import drive
from goldstein.solvers.logic import line_search
from goldstein.solvers.memory import GradientMemory
from goldstein.solvers.tuning import TUNING

#: After this many updates J'g is computed afresh for all rows, to forget rounding errors.
_REFRESH = 30


class Metric(ABC):
    """An approximation H of the inverse Hessian, and its products with the rows of a matrix.

    `update` learns from a step s, against the H g that was returned last, and a change y of the
    gradient; `scale` multiplies H by a number; `reset` forgets everything: H is the identity.
    """

    def __init__(self, rows: Matrix) -> None:
        self.rows = rows
        self.dim = rows.shape[1]
        self._stale: set[int] = set()

    @abstractmethod
    def apply(self, g: Vector) -> Vector:
        """Return H g."""

    @abstractmethod
    def columns(self, count: int) -> Matrix | None:
        """Return vectors whose inner products are g_i' H g_j, for the first `count` rows."""

    @abstractmethod
    def combine(self, weights: Vector) -> tuple[Vector, float]:
        """Return H g and g'Hg for the combination g of the first rows."""

    def replaced(self, slot: int) -> None:
        """Take note that a row has been overwritten."""
        self._stale.add(slot)

    def square(self, v: Vector) -> float:
        """Return v'Hv."""
        return float(v.dot(self.apply(v)))

    def minimise(self, errors: Vector) -> tuple[Vector, float]:
        """Minimise the model made of the first rows g, with these errors.

        Returns H g and g'Hg for the combination g of rows that is its solution.
        """
        columns = self.columns(errors.size)
        weights = None if columns is None else quadratic_weights(columns, errors)
        if weights is None:
            weights = np.zeros(errors.size)
            weights[int(errors.argmin())] = 1.0
        return self.combine(weights)


class FactorMetric(Metric):
    """BFGS with a factor of the matrix, H = J J'.

    A step s = -t H g, with J's own coordinates r = -J'g of its direction, changes J by one rank:

        J + s (sqrt(s'y) r/|r| - J'y)' / s'y,

    the inverse of Dennis and Schnabel's update of a factor of the Hessian (Numerical Methods for
    Unconstrained Optimization, 1983, section 9.2). H cannot lose its sign to rounding, and the
    model becomes a problem of least squares. With more variables than rows J'g is kept for each
    row, and least squares see only the inner products of these.
    """

    def __init__(self, rows: Matrix) -> None:
        super().__init__(rows)
        self.factor: Matrix | None = None
        # J'g for the direction -H g that was returned last.
        self._behind: Vector = np.zeros(self.dim)
        self._many = self.dim > len(rows)
        self._columns: Matrix = np.zeros((0, 0))
        self._age = _REFRESH

    def reset(self) -> None:
        self.factor = None
        self._age = _REFRESH

    def apply(self, g: Vector) -> Vector:
        if self.factor is None:
            return g.copy()
        self._behind = g.dot(self.factor)
        image: Vector = self.factor.dot(self._behind)
        return image

    def square(self, v: Vector) -> float:
        if self.factor is None:
            return float(v.dot(v))
        behind = v.dot(self.factor)
        return float(behind.dot(behind))

    def scale(self, factor: float) -> None:
        if self.factor is not None:
            self.factor *= math.sqrt(factor)
            self._columns *= math.sqrt(factor)

    def columns(self, count: int) -> Matrix | None:
        assert self.factor is not None
        if not self._many:
            columns: Matrix = self.factor.T.dot(self.rows[:count].T)
            return columns
        if self._age >= _REFRESH:
            self._columns, self._age = np.asfortranarray(self.factor.T @ self.rows.T), 0
        else:
            for slot in self._stale:
                self._columns[:, slot] = self.rows[slot].dot(self.factor)
        self._stale.clear()
        kept = self._columns[:, :count]
        return factor_of_gram(kept.T @ kept)

    def combine(self, weights: Vector) -> tuple[Vector, float]:
        image = self.apply(weights.dot(self.rows[: weights.size]))
        return image, float(self._behind.dot(self._behind))

    def update(self, s: Vector, y: Vector, sy: float, rows_s: Vector) -> None:
        if self.factor is None:
            # Fortran order lets BLAS work in place.
            self.factor = np.asfortranarray(np.eye(self.dim) * math.sqrt(sy / float(y @ y)))
            self._behind = -s
        square = float(self._behind.dot(self._behind))
        if not 0.0 < square < math.inf:
            return
        change = self._behind * -math.sqrt(sy / square)
        change -= y.dot(self.factor)
        change /= sy
        self.factor = dger(1.0, s, change, a=self.factor, overwrite_a=1)
        if self._age < _REFRESH:
            self._columns = dger(1.0, change, rows_s, a=self._columns, overwrite_a=1)
            self._age += 1


class LimitedMetric(Metric):
    """L-BFGS in the compact form of Byrd, Nocedal and Schnabel (1994): the last pairs only.

    H = c I + [S Y] M [S Y]' needs only inner products between pairs and rows, each computed once.
    """

    def __init__(self, rows: Matrix, pairs: int) -> None:
        super().__init__(rows)
        self.pairs = pairs
        count, dim = rows.shape
        self._s: Matrix = np.zeros((pairs, dim))
        self._y: Matrix = np.zeros((pairs, dim))
        self._sy: Matrix = np.zeros((pairs, pairs))
        self._yy: Matrix = np.zeros((pairs, pairs))
        self._rows_s: Matrix = np.zeros((count, pairs))
        self._rows_y: Matrix = np.zeros((count, pairs))
        self._rows_rows: Matrix = np.zeros((count, count))
        self.reset()

    def reset(self) -> None:
        self._added = 0
        self._order: list[int] = []  # slots of the pairs, oldest first
        self._scale = 1.0

    def update(self, s: Vector, y: Vector, sy: float, rows_s: Vector) -> None:
        slot = self._added % self.pairs
        self._added += 1
        if slot in self._order:
            self._order.remove(slot)
        self._order.append(slot)
        self._s[slot], self._y[slot] = s, y
        used = min(self._added, self.pairs)
        self._sy[slot, :used] = self._y[:used] @ s
        self._sy[:used, slot] = self._s[:used] @ y
        yy = self._y[:used] @ y
        self._yy[slot, :used] = yy
        self._yy[:used, slot] = yy
        self._rows_s[:, slot] = rows_s
        self._rows_y[:, slot] = self.rows @ y
        self._scale = sy / float(yy[slot])

    def scale(self, factor: float) -> None:
        self._scale *= factor

    def apply(self, g: Vector) -> Vector:
        if not self._order:
            return g.copy()
        used = len(self._order)
        return self._image(g, self._s[:used] @ g, self._y[:used] @ g)

    def columns(self, count: int) -> Matrix | None:
        return factor_of_gram(self.products(count))

    def products(self, count: int) -> Matrix:
        """Return g_i' H g_j for the first `count` rows."""
        used = len(self._order)
        for slot in self._stale:
            if slot < count:
                row = self.rows[slot]
                products = self.rows @ row
                self._rows_rows[slot], self._rows_rows[:, slot] = products, products
                self._rows_s[slot, :used] = self._s[:used] @ row
                self._rows_y[slot, :used] = self._y[:used] @ row
        self._stale.clear()
        gram = self._scale * self._rows_rows[:count, :count]
        if used:
            triangle, middle = self._inner()
            solved = dtrtrs(triangle, self._rows_s[:count, self._order].T)[0]
            mixed = self._rows_y[:count, self._order] @ solved
            mixed *= self._scale
            gram += solved.T @ middle @ solved
            gram -= mixed
            gram -= mixed.T
        return gram

    def combine(self, weights: Vector) -> tuple[Vector, float]:
        count, used = weights.size, len(self._order)
        image = g = weights @ self.rows[:count]
        if used:
            image = self._image(
                g, weights @ self._rows_s[:count, :used], weights @ self._rows_y[:count, :used]
            )
        return image, float(image.dot(g))

    def _inner(self) -> tuple[Matrix, Matrix]:
        """Return R, the upper triangle of S'Y, and D + c Y'Y, oldest pair first."""
        order = np.array(self._order)
        triangle = self._sy[order[:, None], order]
        middle = self._scale * self._yy[order[:, None], order]
        middle.flat[:: order.size + 1] += triangle.diagonal()
        return triangle, middle

    def _image(self, g: Vector, s_g: Vector, y_g: Vector) -> Vector:
        """Return H g from g, S'g and Y'g."""
        order = np.array(self._order)
        triangle, middle = self._inner()
        solved = dtrtrs(triangle, s_g[order])[0]
        inner = dtrtrs(triangle, middle @ solved - self._scale * y_g[order], trans=1)[0]
        along_s, along_y = np.empty(order.size), np.empty(order.size)
        along_s[order] = inner
        along_y[order] = solved
        image = g * self._scale
        image += along_s @ self._s[: order.size]
        image -= self._scale * (along_y @ self._y[: order.size])
        return image


class QuasiNewton:
    """A resumable descent: one call of `step` is one line search.

    The direction minimises the model: maximum of the latest linear pieces plus the quasi-Newton
    quadratic (a variable-metric bundle step, Luksan and Vlcek 1999).

    Attributes
    ----------
    x, fx, g : current point, value and gradient (which is not `known` before the first step)
    moved : the last line search led down
    stuck : no descent was found from here
    barren : not even along the gradient
    length : length of the last step
    null_steps : corrections of the model before a step is cut
    limited : its metric is, though there is room for a dense matrix
    steady : there is no noise in its gradients
    gradients, levels : slope of each linear piece, and its value at x
    y, trial, trial_value : the latest trial x + trial p, and f there
    p, slope, reach : the direction, the slope that the model expects along it, and its length
    """

    #: Where it stands, and what it was told; the direction, the trial and the best trial so far.
    x = g = point = found = p = y = best = _step = _change = _rises = np.zeros(0)
    fx = reply = length = trial_value = best_value = math.inf
    steady, known, moved, stuck, barren, scaled = True, False, False, False, False, False
    null_steps = TUNING.null_steps
    #: What the open question is for, and how often it was asked elsewhere.
    phase = aside = 0
    slope, reach, trial, best_trial, best_slot, pieces = 0.0, 0.0, 1.0, 0.0, -1, 0
    #: The bracket, and trials, corrections and looks in a line search.
    low, high, trials, attempt, looks = 0.0, math.inf, 0, 0, 0
    #: Who made the first trial; how often, of late, it was wrong with the model and without.
    first, model_misses, plain_misses = 0, TUNING.guess, TUNING.guess
    #: How far f fell in all, and in a line search of late.
    whole_fall = recent_fall = 0.0
    #: Line searches in a row whose model had to be corrected.
    corrected = 0

    def __init__(
        self,
        dim: int,
        rng: np.random.Generator,
        memory: GradientMemory | None = None,
        *,
        dense_limit: int = TUNING.dense_limit,
        pairs: int = TUNING.pairs,
    ) -> None:
        dense = dim <= dense_limit
        self.dim = dim
        self.capacity = min(dim + 10, TUNING.small if dense else pairs)
        self.limited = not dense
        # With very many kinks it is no gain to go beyond the step of the model.
        self.extrapolates = dense
        self.gradients: Matrix = np.zeros((self.capacity, dim))
        self.levels: Vector = np.zeros(self.capacity)
        self.metric: FactorMetric | LimitedMetric
        if dense:
            self.metric = FactorMetric(self.gradients)
        else:
            self.metric = LimitedMetric(self.gradients, pairs)
        self.rng = rng
        self.memory = memory
        self.noting = memory is not None

    def restart(self, x: Vector, fx: float) -> None:
        """Continue from another point; the metric and the pieces are kept."""
        if self.pieces:
            self._step = x - self.x
            self.shift_pieces()
        self.known = self.known and np.array_equal(x, self.x)
        self.x, self.fx = x, fx
        self.stuck = self.barren = False

    def step(self, oracle: CountedOracle) -> bool:
        """Make one line search; return whether it led down."""
        drive(oracle, self, line_search.begin(self), line_search.told, line_search.kinked)
        return self.moved

    # ---------------------------------------------------------------- where to ask

    def place_trial(self, trial: float) -> None:
        self.y = self.point = self.x + (self.p if trial == 1.0 else trial * self.p)

    def step_aside(self, share: float) -> None:
        radius = share * max(1.0, float(np.abs(self.y).max()))
        self.point = self.y + radius * self.rng.standard_normal(self.y.size)

    def note(self) -> None:
        """Let the other member know of the gradient."""
        assert self.memory is not None
        self.memory.add(self.point, self.found, perturbed=False)

    # ---------------------------------------------------------------- the direction

    def minimise_model(self) -> float:
        count = min(self.pieces, self.capacity)
        # How far each piece lies below f at x; one above it has no place in a convex model.
        errors: Vector = self.fx - self.levels[:count]
        np.maximum(errors, -TUNING.above * errors, out=errors)
        image, fall = self.metric.minimise(errors)
        self.p = -image
        return -fall

    def follow_metric(self) -> float:
        self.p = -self.metric.apply(self.g)
        return float(self.p @ self.g)

    def follow_gradient(self) -> float:
        self.p = -self.g
        return -float(self.g @ self.g)

    def direction_length(self) -> float:
        return math.sqrt(self.p.dot(self.p))

    def largest(self) -> float:
        return float(np.abs(self.x).max())

    # ---------------------------------------------------------------- the model

    def slope_found(self) -> float:
        return float(self.found.dot(self.p))

    def store_piece(self, slot: int, level: float) -> None:
        self.gradients[slot] = self.found
        self.levels[slot] = level
        self.metric.replaced(slot)

    def settle_piece(self, slot: int, level: float) -> None:
        self.levels[slot] = level

    def shift_pieces(self) -> None:
        """x moves by the step."""
        self.find_rises()
        self.levels += self._rises

    def find_rises(self) -> None:
        """How much does each piece rise along the step?"""
        self._rises = self.gradients.dot(self._step)

    def measure_change(self, trial: float) -> float:
        """Return s'y for the step s to the best trial and the change y of the gradient."""
        self._step = self.p if trial == 1.0 else trial * self.p
        self._change = self.found - self.g
        return float(self._step.dot(self._change))

    def change_counts(self) -> bool:
        return bool(self._change.dot(self._change) > 0.0)

    def learn(self, sy: float) -> None:
        self.metric.update(self._step, self._change, sy, self._rises)

    def square_of_gradient(self) -> float:
        """Return g'Hg."""
        return self.metric.square(self.g)

    def square_of_change(self) -> float:
        """Return y'Hy."""
        return self.metric.square(self._change)

    def scale_metric(self, factor: float) -> None:
        self.metric.scale(factor)

    def clear_model(self) -> None:
        self.metric.reset()
