"""The atoms: functions with known kinks, slopes and constants.

To add one: write it into the file of its family, with its name in `__all__` there, and add an
example to `EXAMPLES` in `tests/atoms.py`; the contract tests pick it up.
"""

from goldstein.calculus.atoms import order, piecewise, smooth
from goldstein.calculus.atoms.order import *  # noqa: F403
from goldstein.calculus.atoms.piecewise import *  # noqa: F403
from goldstein.calculus.atoms.smooth import *  # noqa: F403

__all__: list[str] = []
__all__ += order.__all__
__all__ += piecewise.__all__
__all__ += smooth.__all__
