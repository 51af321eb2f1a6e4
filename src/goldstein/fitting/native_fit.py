"""Fit all classes of a rho-margin machine at once: a smooth path, then a search with guarantee."""

from __future__ import annotations

import math
import time
from typing import Any, NamedTuple

import numpy as np
from scipy.optimize import minimize as smooth_minimize

from goldstein.api import certify, minimize
from goldstein.api.starts import search_from, uninterrupted
from goldstein.certificates import GoldsteinCertificate
from goldstein.certificates.verifying import as_proved
from goldstein.checker.arrays import Vector
from goldstein.errors import KinkError
from goldstein.fitting.fit import NOT_ASKED, Fit, Options, near_or_note
from goldstein.models.margin_problem import Smoothing
from goldstein.models.margin_svm import MulticlassMargin
from goldstein.numerics.streams import is_state
from goldstein.result import Result
from goldstein.storage.codec import Arrays
from goldstein.storage.folder import Form
from goldstein.storage.records import result_from_record, result_record

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


class Search(NamedTuple):
    """The end of one search, its steps, and the state of the generator for the next one."""

    result: Result
    steps: int
    rng: Any


def _write(found: Search) -> tuple[Arrays, dict[str, Any]]:
    arrays, fields = result_record(found.result)
    return arrays, {"result": fields, "steps": found.steps, "rng": found.rng}


def _read(arrays: Arrays, fields: dict[str, Any]) -> Search:
    result = result_from_record(arrays, fields["result"])
    return Search(result, int(fields["steps"]), fields["rng"])


_SEARCH = Form("native search", _write, _read)


def fit_native(model: MulticlassMargin, merged: MulticlassMargin, options: Options) -> Fit:
    """Return the best local minimiser of the searches, with its certificates.

    Parameters
    ----------
    model : MulticlassMargin
        What is minimised and certified.
    merged : MulticlassMargin
        The same function with equal rows put together, on which the search runs.
    options : Options
    """
    begin = time.perf_counter()
    kept, rng = options.kept, np.random.default_rng(options.seed)
    limits: dict[str, Any] = {
        "eps": options.eps, "delta": options.delta, "rng": options.seed,
        "max_calls": options.max_calls,
    }  # fmt: skip

    def search(k: int) -> Search:
        path = PATH if options.start is None or k else SHORT_PATH
        theta, steps = _follow(merged, path, merged.start(rng) if k else options.start)
        run = minimize(
            merged, theta, max_time=options.time_left(options.begin(begin)),
            checkpoint=kept.journal(f"start-{k}"), **limits,
        )  # fmt: skip
        result = uninterrupted(run)
        return Search(result, steps + result.nit, rng.bit_generator.state)

    def kept_search(k: int) -> Search:
        found = kept.part(
            f"start-{k}", _SEARCH, lambda: search(k), options.limits,
            lambda found: found.result.success,
            lambda found: np.shape(found.result.x) == (merged.variable.size,)
            and bool(np.isfinite(found.result.x).all())
            and is_state(found.rng),
        )  # fmt: skip
        rng.bit_generator.state = found.rng
        return found

    best = search_from(range(options.n_init), kept_search, lambda found: found.result.fun)
    x = best.result.x
    goldstein = _certificate(model, best.result) or certify(model, x, **limits)
    fit = Fit(x, model.value(x), goldstein, None, best.steps)
    if not options.near:
        return fit.concluded(None, NOT_ASKED)
    deadline = options.proof_deadline(options.begin(begin))
    return fit.concluded(*near_or_note(model, goldstein, options, deadline))


def _certificate(model: MulticlassMargin, result: Result) -> GoldsteinCertificate | None:
    """Return the certificate of a run with the gradients of the model itself, or None."""
    known = result.certificate
    if known is None:
        return None
    try:
        gradients = np.array([model.gradient(y) for y in known.points])
    except KinkError:
        return None
    certificate = GoldsteinCertificate.from_gradients(
        known.x, known.points, gradients, known.weights, meta=known.meta
    )
    return as_proved(certificate, model) if result.success else certificate


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
