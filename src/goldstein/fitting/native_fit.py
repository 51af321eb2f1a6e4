"""Fit all classes of a rho-margin machine at once: a smooth path, then a search with guarantee."""

import math
import time

import numpy as np
from scipy.optimize import minimize as smooth_minimize

from goldstein.api import certify
from goldstein.checker.arrays import Vector
from goldstein.fitting.fit import Fit, Options, best_start, generator_of, with_near
from goldstein.models.margin_svm import MulticlassMargin, Smoothing

#: Widths of the rounding and places of the flat part, in units of rho: first the hinge loss, which
#: is convex; then the flat part moves in; then the rounding shrinks.
PATH = (
    [(width, math.inf) for width in (1.0, 0.3, 0.1)]
    + [(0.1, give) for give in (8.0, 4.0, 2.0, 1.0, 0.5, 0.2, 0.0)]
    + [(width, 0.0) for width in (0.03, 0.01, 0.003, 0.001)]
)
#: From a start of the caller's the flat part stays where it is.
SHORT_PATH = [(width, give) for width, give in PATH if give == 0.0]

#: Steps per smooth approximation; the search that follows ends what they leave.
STEPS = 100


def fit_native(model: MulticlassMargin, options: Options) -> Fit:
    """Return the best local minimiser of the searches, with its certificates."""
    begin = time.perf_counter()

    def search(k: int) -> Fit:
        path = PATH if options.start is None or k else SHORT_PATH
        start = model.start(generator_of(options, k)) if k else options.start
        theta, steps = _follow(model, path, start)
        result = options.searched(model, theta, options.begin(begin), f"start-{k}")
        goldstein = result.certificate or certify(
            model, result.x, max_calls=options.max_calls, **options.asked
        )
        return Fit(result.x, model.value(result.x), goldstein, None, steps + result.nit)

    best = best_start(options, model, search, lambda fit: fit.value)
    return with_near(model, best, options, options.begin(begin))


def _follow(
    model: MulticlassMargin, path: list[tuple[float, float]], start: Vector | None
) -> tuple[Vector, int]:
    """Minimise smooth approximations, each from the answer of the one before."""
    theta = np.zeros(model.variable.size) if start is None else start
    steps = 0
    for width, give in path:
        found = smooth_minimize(
            model.smooth, theta, args=(Smoothing(width * model.rho, give * model.rho),),
            jac=True, method="L-BFGS-B", options={"maxiter": STEPS},
        )  # fmt: skip
        theta = np.asarray(found.x, dtype=np.float64)
        steps += int(found.nit)
    return theta, steps
