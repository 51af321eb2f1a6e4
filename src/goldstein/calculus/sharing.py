"""Equal parts of expressions, made twice, become one: what is the same is then seen to be."""

from __future__ import annotations

from typing import Any

import numpy as np

from goldstein.calculus.expression import Expression, in_order

#: Longer arrays are compared by identity.
LONG = 4096


class Sharing:
    """Expressions so far, by what they are.

    Examples
    --------
    >>> from goldstein.calculus import Variable
    >>> w, same = Variable(2), Sharing()
    >>> same(w[0]) is same(w[0])
    True
    """

    def __init__(self) -> None:
        self._known: dict[int, Expression] = {}
        self._made: dict[Any, Expression] = {}

    def __call__(self, root: Expression) -> Expression:
        """Return the expression with its parts shared."""
        made: dict[int, Expression] = {}
        for e in in_order(root, lambda e: () if id(e) in self._known else e.args):
            if id(e) not in self._known:
                for a in e.args:
                    made.setdefault(id(a), self._known.get(id(a), a))
                same = all(made[id(a)] is a for a in e.args)
                args = tuple(id(made[id(a)]) for a in e.args)
                key = (type(e), e.kind, e.name, e.shape, args, _key(e.data)) if args else id(e)
                made[id(e)] = self._made.setdefault(key, e if same else e.rebuilt(made))
                # All that was seen is kept: its number stays its own.
                self._known |= {id(e): made[id(e)], id(made[id(e)]): made[id(e)]}
                made[id(made[id(e)])] = made[id(e)]
                self._made.setdefault(("kept", id(e)), e)
            made[id(e)] = self._known[id(e)]
        return made[id(root)]


def _key(data: Any) -> Any:
    if isinstance(data, tuple):
        return tuple(map(_key, data))
    if isinstance(data, np.ndarray):
        return (data.shape, data.tobytes()) if data.size <= LONG else id(data)
    return data
