"""The atoms and the arithmetic that expressions are made of, all of them.

>>> import goldstein as gs
>>> x = gs.Variable(2)
>>> gs.atoms.mcp(x, lam=1.0, gamma=2.0).shape
(2,)
"""

from goldstein import calculus
from goldstein.calculus import *  # noqa: F403
from goldstein.calculus.atoms import *  # noqa: F403

#: Not the classes, nor what stands for theory and proofs.
__all__ = [name for name in calculus.__all__ if name.islower() and name not in calculus.FOUND_ABOVE]


def __dir__() -> list[str]:
    return __all__
