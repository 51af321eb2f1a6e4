"""`auto` in machine code, for objectives that Numba has compiled: the extra `fast`.

Nothing here is imported before a run asks for it with ``options={"compiled": True}``; Numba itself
is imported by that run alone. The solver proposes, as every solver does: its evidence goes through
the same judge, which asks the function again.
"""

from goldstein.solvers.compiled.solver import CompiledAuto

__all__ = ["CompiledAuto"]
