"""The untrusted side: searches that propose a point and evidence for it."""

from goldstein.solvers.auto import Auto
from goldstein.solvers.base import Evidence, Request, Solver, State
from goldstein.solvers.bundle import BundlePINGD
from goldstein.solvers.o2nc import O2NC
from goldstein.solvers.pingd import PINGD
from goldstein.solvers.psingd import PSINGD
from goldstein.solvers.values import Values
from goldstein.solvers.zeroth_order import ZerothOrder

#: method name -> solver class; a new solver is one line here.
REGISTRY: dict[str, type[Solver]] = {
    solver.name: solver
    for solver in (
        Auto,
        PINGD,
        BundlePINGD,
        PSINGD,
        O2NC,
        Values,
        ZerothOrder,
    )
}

__all__ = [
    "O2NC",
    "PINGD",
    "PSINGD",
    "REGISTRY",
    "Auto",
    "BundlePINGD",
    "Evidence",
    "Request",
    "Solver",
    "State",
    "Values",
    "ZerothOrder",
]
