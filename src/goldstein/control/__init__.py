"""Controllers of a given structure: H-infinity norms, spectral abscissae, and proofs.

    design = gs.control.synthesise(Plant(A, B, C), order=0, rng=0)

finds a feedback u = K y that makes the H-infinity norm of the closed loop small, and states three
things: the loop is stable, its norm is below a bound (both proved in rational arithmetic), and K is
nearly stationary (a Goldstein certificate).
"""

from goldstein.control.oracles import AffineMatrix, Plant, abscissa, hinfnorm, radius
from goldstein.control.synthesis import (
    Design,
    NormBound,
    Stability,
    prove_norm,
    prove_stability,
    synthesise,
)

__all__ = [
    "AffineMatrix", "Design", "NormBound", "Plant", "Stability", "abscissa", "hinfnorm",
    "prove_norm", "prove_stability", "radius", "synthesise",
]  # fmt: skip
