"""All gradients that a tree has beside a point or in a ball, and how far their hull is from 0.

Beside a point the gradients belong to the cells of an arrangement: at every kink one goes on with
both sides, as long as some direction is on all the sides chosen so far (decided by Fourier and
Motzkin's elimination). A tree of affine pieces is known exactly. In a curved one, two kinks that
touch have gradients between them that no straight direction meets; there a side counts as chosen
also by the directions along the kink, which gives all gradients and perhaps some more: the distance
is a lower bound. In a ball, kinks within reach are taken on both sides, independently: a lower
bound again.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from fractions import Fraction

from benchmarks.adversary.shortest import Row, distance
from benchmarks.adversary.trees import Jet, Tree

#: More gradients than this are not enumerated.
MOST = 400


class TooMany(Exception):
    """The instance has too many cells to be worth its time."""


def feasible(strict: Sequence[Row], weak: Sequence[Row], dim: int) -> bool:
    """Decide whether some v has <a, v> > 0 for all strict and >= 0 for all weak rows.

    Examples
    --------
    >>> F = Fraction
    >>> feasible([(F(1), F(0)), (F(-1), F(1))], [], 2), feasible([(F(1),), (F(-1),)], [], 1)
    (True, False)
    """
    rows = [(tuple(row), True) for row in strict] + [(tuple(row), False) for row in weak]
    for k in range(dim):
        above = [(row, open_) for row, open_ in rows if row[k] > 0]
        below = [(row, open_) for row, open_ in rows if row[k] < 0]
        rest = {(row, open_) for row, open_ in rows if row[k] == 0}
        for a, first in above:
            for b, second in below:
                mixed = tuple(p * -b[k] + q * a[k] for p, q in zip(a, b))
                top = max(map(abs, mixed)) or Fraction(1)
                rest.add((tuple(p / top for p in mixed), first or second))
        rows = list(rest)
    return not any(open_ for _, open_ in rows)


def _possible(rows: list[Row], dim: int, curved: bool) -> bool:
    if not curved:
        return feasible(rows, [], dim)
    units = [
        [Fraction(s if i == k else 0) for i in range(dim)] for k in range(dim) for s in (1, -1)
    ]
    return any(feasible([unit], rows, dim) for unit in units)


def gradients(tree: Tree, point: Row, radius: Fraction = Fraction(0)) -> set[tuple[Fraction, ...]]:
    """Return the gradients beside the point, or those that may be met within `radius` of it."""
    found: set[tuple[Fraction, ...]] = set()
    for gradient in _walk(tree, point, radius, [], []):
        found.add(gradient)
        if len(found) > MOST:
            raise TooMany
    return found


def _walk(
    tree: Tree, point: Row, radius: Fraction, jets: list[Jet], rows: list[Row]
) -> Iterator[tuple[Fraction, ...]]:
    if len(jets) == len(tree.nodes):
        yield jets[-1].gradient
        return
    node = tree.nodes[len(jets)]
    for jet, more in node.branches(point, tree.args(node, jets), radius):
        if not more or _possible([*rows, *more], tree.dim, tree.curved):
            yield from _walk(tree, point, radius, [*jets, jet], [*rows, *more])


def least(tree: Tree, point: Row, radius: Fraction = Fraction(0)) -> float:
    """Return a lower bound of the distance between 0 and the Clarke or the Goldstein set.

    Examples
    --------
    >>> from benchmarks.adversary.trees import Affine, Sum, atom
    >>> x, y = (Affine(((1.0, 0.0), (0.0, 1.0)), (0.0, 0.0), k) for k in range(2))
    >>> tree = Tree(Sum((atom("abs", x), y, atom("relu", Sum((x, y), (1.0, 1.0)))), (1, 2, 1)), 2)
    >>> least(tree, [Fraction(0), Fraction(0)]), least(tree, [Fraction(0), Fraction(1)])
    (2.0, 3.0)
    """
    if radius and _only_kinks_through(tree, point, radius):
        radius = Fraction(0)  # gradients elsewhere in the ball are among those beside its centre
    return distance(sorted(gradients(tree, point, radius)))


def _only_kinks_through(tree: Tree, point: Row, radius: Fraction) -> bool:
    """Whether a tree of affine pieces has no kink in the ball but those through its centre."""
    jets: list[Jet] = []
    for node in tree.nodes:
        args = tree.args(node, jets)
        if node.curved or node.has_kinks_beside(args, radius):
            return False
        # Value and bound of the slope are those of every branch.
        jets.append(next(node.branches(point, args, Fraction(0)))[0])
    return True
