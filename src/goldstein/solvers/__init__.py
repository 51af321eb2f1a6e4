"""The untrusted side: searches that propose a point and evidence for it."""

from goldstein.solvers.auto import Auto
from goldstein.solvers.base import Evidence, Request, Solver, State
from goldstein.solvers.pingd import PINGD, BundlePINGD
from goldstein.solvers.ralg import RAlgorithm
from goldstein.solvers.stochastic import O2NC, PSINGD, AdamO2NC
from goldstein.solvers.values import Values, ZerothOrder

#: method name -> solver class; a new solver is one line here.
REGISTRY: dict[str, type[Solver]] = {
    solver.name: solver
    for solver in (
        Auto,
        PINGD,
        BundlePINGD,
        RAlgorithm,
        PSINGD,
        O2NC,
        AdamO2NC,
        Values,
        ZerothOrder,
    )
}

__all__ = [
    "O2NC",
    "PINGD",
    "PSINGD",
    "REGISTRY",
    "AdamO2NC",
    "Auto",
    "BundlePINGD",
    "Evidence",
    "RAlgorithm",
    "Request",
    "Solver",
    "State",
    "Values",
    "ZerothOrder",
]
