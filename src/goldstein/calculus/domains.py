"""Is a function defined on a whole ball? Intervals for all nodes, in float64; they may refuse only.

Logarithms, roots and quotients end somewhere, and a claim about a ball speaks of all its points.
"""

from collections.abc import Callable
from typing import Any

import numpy as np
from scipy import sparse

from goldstein.calculus.expression import Expression
from goldstein.checker.arrays import Vector
from goldstein.checker.enclosed import irrational

#: Wider than the rounding errors of one step, relative to the ends.
SLACK = 1e-12

Range = tuple[Vector, Vector]
_RISING: dict[str, Callable[[Vector], Vector]] = {
    "exp": np.exp, "log": np.log, "sqrt": np.sqrt, "tanh": np.tanh, "arctan": np.arctan,
}  # fmt: skip


def undefined_in(fun: Expression, x: Vector, radius: float) -> str:
    """Return what may be undefined within a radius of x, in words; nothing if all is defined.

    Examples
    --------
    >>> from goldstein.calculus import Variable, log, sum
    >>> F = sum(log(Variable(2)))
    >>> undefined_in(F, np.array([1.0, 2.0]), 0.5)
    ''
    >>> undefined_in(F, np.array([1.0, 2.0]), 1.5)
    'log of an argument that is not shown to be positive (from -0.5 on)'
    """
    made, owners = fun._numbered
    if not any(isinstance(node, irrational.Smooth) and node.function.domain for node in made):
        return ""
    known: list[Range] = [(x - radius, x + radius)]
    with np.errstate(all="ignore"):
        for node, owner in zip(made[1:], owners[1:]):
            args = [known[a] for a in node.of]
            low, high = args[0]
            wanted = node.function.domain if isinstance(node, irrational.Smooth) else ""
            if wanted and not (low.min() > 0 or (wanted != "positive" and high.max() < 0)):
                end = f"from {low.min():.6g} on"
                return f"{owner.name} of an argument that is not shown to be {wanted} ({end})"
            ends = _affine(node, args[0], radius) if node.name == "affine" else _range(node, args)
            wide = [SLACK * np.abs(end) + 1e-300 for end in ends]
            known.append((ends[0] - wide[0], ends[1] + wide[1]))
    return ""


def _affine(node: Any, u: Range, radius: float) -> Range:
    mid, rad = (0.5 * (u[0] + u[1])).reshape(-1, node.columns), 0.5 * (u[1] - u[0])
    size = abs(node.matrix)
    reach = np.ravel(size @ rad.reshape(-1, node.columns))
    if node.of == (0,) and node.columns == 1:  # of a ball, not of the box around it
        squares = np.asarray((size.power(2) if sparse.issparse(size) else size**2).sum(axis=1))
        reach = np.minimum(reach, np.sqrt(squares.ravel()) * radius)
    centre = np.ravel(node.matrix @ mid) + (0.0 if node.offset is None else node.offset)
    by = 1.0 if node.divisor is None else np.abs(node.divisor)
    sign = 1.0 if node.divisor is None else np.sign(node.divisor)
    return (sign * centre - reach) / by, (sign * centre + reach) / by


def _powers(low: Vector, high: Vector, k: int) -> Range:
    """u^k; an even power is 0 at least."""
    ends = low**k, high**k
    least = np.where((low < 0) & (high > 0), 0.0, np.minimum(*ends)) if k % 2 == 0 else ends[0]
    return least, np.maximum(*ends)


def _piecewise(node: Any, low: Vector, high: Vector) -> Range:
    levels = [-np.inf, *map(float, node.breakpoints), np.inf]
    least, most = np.full(low.shape, np.inf), np.full(low.shape, -np.inf)
    for piece, start, end in zip(node.pieces, levels, levels[1:]):
        a, b = np.maximum(low, start), np.minimum(high, end)
        sums = [np.full(low.shape, float(piece[0])), np.full(low.shape, float(piece[0]))]
        for k, c in enumerate(map(float, piece[1:]), 1):
            if c:
                ends = [c * part for part in _powers(a, b, k)]
                sums = [sums[0] + np.minimum(*ends), sums[1] + np.maximum(*ends)]
        least = np.where(a <= b, np.minimum(least, sums[0]), least)
        most = np.where(a <= b, np.maximum(most, sums[1]), most)
    return least, most


def _product(node: Any, u: Range, v: Range) -> Range:
    if node.of[0] == node.of[1] and node.inner == 1 and node.shape == (1, 1):
        return _powers(*u, 2)
    (n, m), k = node.shape, node.inner
    (a, r), (b, s) = (
        [part.reshape(-1, *shape) for part in (0.5 * (w[0] + w[1]), 0.5 * (w[1] - w[0]))]
        for w, shape in ((u, (n, k)), (v, (k, m)))
    )
    centre, reach = (a @ b).ravel(), (np.abs(a) @ s + r @ np.abs(b) + r @ s).ravel()
    return centre - reach, centre + reach


def _smooth(name: str, low: Vector, high: Vector) -> Range:
    if name in _RISING:
        return _RISING[name](low), _RISING[name](high)
    if name == "reciprocal":
        return 1.0 / high, 1.0 / low
    if name in ("sin", "cos"):
        mid, rad = getattr(np, name)(0.5 * (low + high)), 0.5 * (high - low)
        return np.maximum(mid - rad, -1.0), np.minimum(mid + rad, 1.0)
    least, most = _powers(low, high, 2)  # pseudo_huber
    return np.sqrt(1.0 + least) - 1.0, np.sqrt(1.0 + most) - 1.0


def _range(node: Any, args: list[Range]) -> Range:
    low, high = args[0]
    if node.name == "add":
        return sum(a for a, _ in args), sum(b for _, b in args)  # type: ignore[return-value]
    if node.name == "piecewise":
        return _piecewise(node, low, high)
    if node.name == "product":
        return _product(node, *args)
    if node.name == "smooth":
        return _smooth(node.function.name, low, high)
    if node.name not in ("max", "norm2", "logsumexp", "order"):
        return np.full(node.size, -np.inf), np.full(node.size, np.inf)
    rows = [end.reshape(-1, node.columns) for end in args[0]]
    if node.name == "max":
        return rows[0].max(axis=1), rows[1].max(axis=1)
    if node.name == "logsumexp":
        return np.logaddexp.reduce(rows[0], axis=1), np.logaddexp.reduce(rows[1], axis=1)
    if node.name == "norm2":
        least, most = _powers(rows[0], rows[1], 2)
        return np.sqrt(least.sum(axis=1)), np.sqrt(most.sum(axis=1))
    up, down = np.maximum(node.weights, 0.0).T, np.minimum(node.weights, 0.0).T
    rows = [np.sort(end, axis=1) for end in rows]
    return (rows[0] @ up + rows[1] @ down).ravel(), (rows[1] @ up + rows[0] @ down).ravel()
