"""`auto` in machine code: the extra `fast`.

`solver` and `machine` need no Numba; the rest describes the search to Numba, and is imported when
machine code is made of it. The solver proposes, as every solver does: its evidence goes through the
same judge, which asks the function again.
"""

from goldstein.solvers.compiled.machine import warm_up
from goldstein.solvers.compiled.solver import CompiledAuto

__all__ = ["CompiledAuto", "warm_up"]
