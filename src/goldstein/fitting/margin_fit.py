"""Fit one two-class machine: search, certificate, and a guaranteed search if that fails."""

from __future__ import annotations

import time
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from goldstein.api import certify, minimize
from goldstein.api.starts import search_from, uninterrupted
from goldstein.certificates import GoldsteinCertificate
from goldstein.certificates.near import NearCertificate
from goldstein.certificates.verifying import as_proved
from goldstein.errors import OutOfBudget
from goldstein.fitting.fit import NOT_ASKED, Fit, Options, near_or_note, noted
from goldstein.fitting.margin_certificate import (
    goldstein_at,
    goldstein_by_scaling,
    near_at,
    thinned,
)
from goldstein.fitting.margin_finish import DENSE_LIMIT
from goldstein.fitting.margin_newton import MOST_ON_KINKS, LocalMinimum, minimise_margin
from goldstein.fitting.margin_rowspace import row_space
from goldstein.models.margin_problem import MarginProblem
from goldstein.models.margin_svm import MarginSVM
from goldstein.numerics.ball import smallest_delta
from goldstein.numerics.budget import Budget
from goldstein.numerics.streams import is_state
from goldstein.storage.archive import Arrays
from goldstein.storage.folder import Form

#: Rows times variables beyond which the guaranteed search gets few calls unless told otherwise.
LARGE = 10**8
CALLS_WHEN_LARGE = 200

#: Numbers of points tried, one after the other, where many rows share a kink.
SCALINGS = (2, 4, 8, 16)


def _write(found: tuple[LocalMinimum, Any]) -> tuple[Arrays, dict[str, Any]]:
    place, rng = found
    arrays: Arrays = {"v": place.v, "active": place.active, "shares": place.shares}
    return arrays, {"iterations": place.iterations, "passes": place.passes, "rng": rng}


def _read(arrays: Arrays, fields: dict[str, Any]) -> tuple[LocalMinimum, Any]:
    active = arrays["active"].astype(np.intp)
    counts = fields["iterations"], fields["passes"]
    place = LocalMinimum(arrays["v"], active, arrays["shares"], *map(int, counts))
    return place, fields["rng"]


def _fits(problem: MarginProblem, place: LocalMinimum, state: Any) -> bool:
    """Whether a recalled search can be one of this problem; nothing else of it is believed."""
    rows, shares = place.active, place.shares
    return (
        place.v.shape == (problem.dim,)
        and bool(np.isfinite(place.v).all() and np.isfinite(shares).all())
        and rows.shape == shares.shape == (rows.size,)
        and bool(((rows >= 0) & (rows < problem.rows)).all())
        and is_state(state)
    )


#: The end of one search, and the state of the generator that draws for the next one.
_SEARCH = Form("margin search", _write, _read)


def fit_margin(model: MarginSVM, options: Options) -> Fit:
    """Return the best local minimiser of the searches, with its certificates.

    What is kept are the ends of searches, and the answers of a guaranteed one.
    """
    begin = time.perf_counter()
    problem = model.problem
    model.neighbourhood = 2.0 * options.delta
    found = _best_start(problem, options)
    begin = options.begin(begin)
    places = _places(problem, found, options)
    deadline = options.proof_deadline(begin)
    proof, note = None, NOT_ASKED
    if options.near:
        proof, note = _near(model, places, options, Budget(deadline))
        if proof is not None:
            v = proof.x.copy()
            return Fit(v, problem.value(v), proof, proof, found.iterations)
    goldstein = _goldstein(model, found, places, options)
    iterations = found.iterations
    if goldstein is None:
        goldstein, more = _guaranteed_search(model, found, options, begin)
        iterations += more
        deadline = options.proof_deadline(begin)
    if options.near and not note:
        # Rows on their kinks depend on each other: search.
        proof, note = _searched(model, goldstein, options, deadline)
    v = goldstein.x.copy()
    return Fit(v, problem.value(v), goldstein, None, iterations).concluded(proof, note)


def _near(
    model: MarginSVM, places: list[LocalMinimum], options: Options, budget: Budget
) -> tuple[NearCertificate | None, str]:
    """Return the first near certificate that is good enough, or None, and a note on its end."""
    try:
        for place in (p for p in places if p.active.size <= MOST_ON_KINKS):
            proof = near_at(model, place, options.eps, options.delta, budget)
            if proof is not None and proof.eps <= options.eps and proof.delta <= options.delta:
                return noted(proof, "proved"), "proved"
    except OutOfBudget as limit:
        return None, f"not proved: the proof {limit}"
    return None, ""


def _searched(
    model: MarginSVM, goldstein: GoldsteinCertificate, options: Options, deadline: float
) -> tuple[NearCertificate | None, str]:
    """Search for a pivot where that is affordable: few enough kinks are within reach."""
    problem = model.problem
    if problem.rows * problem.dim > LARGE:
        return None, f"not tried: {problem.rows} rows are too many to search for a pivot"
    distance = np.abs(problem.product(goldstein.x) - problem.shift - problem.rho)
    within = int((distance <= options.delta * problem.row_norms).sum())
    if within > MOST_ON_KINKS:
        return None, f"not tried: {within} kinks are within reach, more than {MOST_ON_KINKS}"
    return near_or_note(model, goldstein, options, deadline)


def _places(problem: MarginProblem, found: LocalMinimum, options: Options) -> list[LocalMinimum]:
    """Return the points to certify, best first: off most kinks, and on all of them."""
    if found.active.size * problem.dim > DENSE_LIMIT:
        return []
    few = thinned(problem, found, options.eps, options.delta)
    return [place for place in (few, found) if place is not None]


def _goldstein(
    model: MarginSVM, found: LocalMinimum, places: list[LocalMinimum], options: Options
) -> GoldsteinCertificate | None:
    """Return a verified certificate that is good enough, or None."""
    delta, seed = options.delta, options.seed
    tries = [partial(goldstein_at, model, place, delta, seed) for place in places]
    for points in SCALINGS if found.active.size == 0 else ():
        tries.append(partial(goldstein_by_scaling, model, found.v, delta, points, seed))
    for make in tries:
        certificate = make()
        if certificate is not None:
            proved: GoldsteinCertificate | None = as_proved(certificate, model)
            if proved is not None and proved.eps <= options.eps:
                return proved
    return None


def _guaranteed_search(
    model: MarginSVM, found: LocalMinimum, options: Options, begin: float
) -> tuple[GoldsteinCertificate, int]:
    """Return a certificate of the point where the search ended, and its steps."""
    max_calls = options.max_calls
    if max_calls is None and model.problem.rows * model.problem.dim > LARGE:
        max_calls = CALLS_WHEN_LARGE
    # A search that ran off to where float64 cannot see the ball is begun again at the origin.
    start = found.v if options.delta >= smallest_delta(found.v) else np.zeros_like(found.v)
    asked: dict[str, Any] = {
        "eps": options.eps, "delta": options.delta, "rng": options.seed, "max_calls": max_calls
    }  # fmt: skip
    run = minimize(
        model, start, max_time=options.time_left(begin), checkpoint=options.kept.journal("whole"),
        **asked,
    )  # fmt: skip
    result = uninterrupted(run)
    return result.certificate or certify(model, result.x, **asked), result.nit


def _best_start(problem: MarginProblem, options: Options) -> LocalMinimum:
    span, start = row_space(problem), options.start
    if span is not None:
        begin = None if start is None else span.coordinates(start)
        found = _best_start(span.problem, replace(options, start=begin))
        return replace(found, v=span.lift(found.v))
    rng = np.random.default_rng(options.seed)
    minimum = partial(minimise_margin, rng=rng, eps=options.eps, delta=options.delta)

    def search(k: int) -> tuple[LocalMinimum, Any]:
        begin = start
        if k:
            # A path on few rows ends elsewhere; with luck these rows are clean.
            size = min(problem.rows, max(2 * problem.dim, problem.rows // 4, 2))
            few = problem.take(np.sort(rng.choice(problem.rows, size, replace=False)))
            begin = minimum(few).v
        return minimum(problem, start=begin), rng.bit_generator.state

    def kept_search(k: int) -> LocalMinimum:
        found, state = options.kept.part(
            f"start-{k}", _SEARCH, lambda: search(k), holds=lambda found: _fits(problem, *found)
        )
        rng.bit_generator.state = state
        return found

    return search_from(range(options.n_init), kept_search, lambda found: problem.value(found.v))
