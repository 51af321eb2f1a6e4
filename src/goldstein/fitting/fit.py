"""A fitted model and what is proved about it; and its form in a checkpoint."""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from goldstein.api import minimize
from goldstein.api.certify import search_from, uninterrupted
from goldstein.certificates import GoldsteinCertificate, MinimumCertificate
from goldstein.certificates.near import NearCertificate
from goldstein.checker.arrays import Vector
from goldstein.checker.enclosed.point import work
from goldstein.construction.cases import with_cases
from goldstein.construction.minimum import prove_minimum
from goldstein.errors import GoldsteinError, InputError, NotCertifiableError
from goldstein.reductions.stationarity import attempt_near
from goldstein.result import Result
from goldstein.solvers import Request
from goldstein.storage.codec import Arrays
from goldstein.storage.folder import NO_STORE, Form, Store
from goldstein.storage.records import certificate_from_parts, certificate_parts

#: Seconds that a proof may take beside as many as the fit took; and at least, where the fit is kept
#: in a folder. A fit that resumes is short, and its proof must not be the worse for it.
GRACE, KEPT_GRACE = 2.0, 60.0

#: What `meta["near"]` says where no near certificate was asked for.
NOT_ASKED = "not asked for"

#: Values asked for again differ by no more than this part.
SAME = 1e-9


@dataclass(frozen=True)
class Options:
    """What a fit shall reach, and what it may take.

    Attributes
    ----------
    eps, delta : float
    seed : int
    start : ndarray or None
        Where the first search begins, if not at a start of its own.
    n_init : int
        Searches; the best one counts.
    max_calls, max_time
        Limits, in seconds the latter.
    near : bool
        Whether to look for a near certificate.
    kept : Store
        Where finished parts are kept.
    minimum_work : int
        A minimum is looked for in models of at most this many multiplications.
    """

    eps: float
    delta: float
    seed: int
    start: Vector | None = None
    n_init: int = 1
    max_calls: int | None = None
    max_time: float | None = None
    near: bool = True
    kept: Store = field(default_factory=lambda: NO_STORE)
    minimum_work: int = 20_000

    @property
    def asked(self) -> dict[str, Any]:
        """The question, as `minimize` and `certify` take it."""
        return {"eps": self.eps, "delta": self.delta, "rng": self.seed}

    def searched(self, f: Any, x0: Vector, begin: float, part: str = "", **more: Any) -> Result:
        """Minimise f with what is left of the limits; its journal is that of a `part`."""
        limits = {"max_calls": self.max_calls, "max_time": self.time_left(begin)}
        journal = self.kept.journal(part) if part else None
        return uninterrupted(
            minimize(f, x0, checkpoint=journal, **{**limits, **self.asked, **more})
        )

    def begin(self, now: float) -> float:
        """When the fit began that goes on now, as `time.perf_counter()` tells the time."""
        return now - self.kept.seconds

    def time_left(self, begin: float) -> float | None:
        """Return the seconds that are left of the limit; next to nothing when it has passed."""
        if self.max_time is None:
            return None
        return max(begin + self.max_time - time.perf_counter(), 1e-3)

    def proof_deadline(self, begin: float) -> float:
        """Return when a proof has to end, as `time.perf_counter()` tells the time.

        Without a limit it may take as long as the fit that began at `begin`, and a little more.
        """
        if self.max_time is not None:
            return begin + self.max_time
        now = time.perf_counter()
        as_long = now - begin + GRACE
        return now + (as_long if self.kept.path is None else max(as_long, KEPT_GRACE))


@dataclass(frozen=True)
class Fit:
    """One fitted model.

    Attributes
    ----------
    x : ndarray
        Its parameters.
    value : float
        The mean objective.
    goldstein : GoldsteinCertificate or NearCertificate
        What shows Goldstein stationarity; a near certificate is the stronger claim.
    near : NearCertificate or None
    iterations : int
    minimum : MinimumCertificate or None
        How much lower the objective can be nearby, where that was proved; it is not kept.
    """

    x: Vector
    value: float
    goldstein: GoldsteinCertificate | NearCertificate
    near: NearCertificate | None
    iterations: int
    minimum: MinimumCertificate | None = None

    def holds(self, model: Any) -> bool:
        """Whether the model itself confirms it: a checkpoint is not believed."""
        try:
            there = model.value(self.x)
        except (GoldsteinError, ValueError):  # of another size
            return False
        if not abs(there - self.value) <= SAME * max(1.0, abs(self.value)):
            return False
        claims = {c.content_digest(): c for c in (self.goldstein, self.near) if c is not None}
        return all(
            np.array_equal(claim.x, self.x) and claim.verify(model).ok for claim in claims.values()
        )

    def concluded(self, proof: NearCertificate | None, note: str) -> Fit:
        """Return the fit with a near certificate, or with a note why there is none."""
        if proof is None:
            return replace(self, goldstein=noted(self.goldstein, note))
        return replace(self, near=noted(proof, note))


def _write(fit: Fit) -> tuple[Arrays, dict[str, Any]]:
    arrays: Arrays = {"x": fit.x}
    fields: dict[str, Any] = {"value": fit.value, "iterations": fit.iterations}
    for name in ("goldstein", "near"):
        parts, fields[name] = certificate_parts(name, getattr(fit, name))
        arrays |= parts
    return arrays, fields


def _read(arrays: Arrays, fields: dict[str, Any]) -> Fit:
    certificates = {
        name: certificate_from_parts(name, arrays, fields[name]) for name in ("goldstein", "near")
    }
    if not isinstance(certificates["goldstein"], GoldsteinCertificate | NearCertificate):
        raise InputError("a fit has a Goldstein or a near certificate.")
    if not isinstance(certificates["near"], NearCertificate | None):
        raise InputError("what proves near stationarity is a near certificate.")
    return Fit(
        arrays["x"], float(fields["value"]), iterations=int(fields["iterations"]), **certificates
    )


#: A fit as a part of a longer one that is kept.
FIT = Form("fit", _write, _read)


def whole_fit(options: Options, model: Any, fit: Callable[[], Fit]) -> Fit:
    """Return the fit of a model that is kept, if it was made under these limits; else make it."""
    found = _kept(options, model, "whole", fit)
    return replace(found, minimum=minimum_of(model, found, options))


def _kept(options: Options, model: Any, name: str, fit: Callable[[], Fit]) -> Fit:
    limits = [options.max_calls, options.max_time]
    return options.kept.part(name, FIT, fit, limits, holds=lambda found: found.holds(model))


def best_start(
    options: Options, model: Any, search: Callable[[int], Fit], score: Callable[[Fit], float]
) -> Fit:
    """Return the fit of lowest score among the starts; those that are kept are not made again."""

    def kept_search(k: int) -> Fit:
        return _kept(options, model, f"start-{k}", lambda: search(k))

    return search_from(range(options.n_init), kept_search, score)


def generator_of(options: Options, k: int) -> np.random.Generator:
    """Return what draws the k-th start: it depends on nothing that happened before."""
    return np.random.default_rng([options.seed, k] if k else options.seed)


def minimum_of(model: Any, fit: Fit, options: Options) -> MinimumCertificate | None:
    """Return a proof that the fit is a minimum, where the model is small and one is found."""
    # Rows in chunks are never in one place.
    if not options.near or not hasattr(model, "program"):
        return None
    try:
        program = model.program()
        if work(program) > options.minimum_work:
            return None
        pivot = fit.x.tolist() if fit.near is None else fit.near.exact_pivot
        deadline = time.perf_counter() + GRACE
        found = prove_minimum(program, fit.x, pivot, deadline)
        if found is not None and found.scope == "ball":
            with suppress(NotCertifiableError):
                found, _ = with_cases(program, found, deadline=deadline)
    except GoldsteinError:
        return None
    return found if found is not None and found.growth >= 0 else None


def noted(certificate: Any, near: str) -> Any:
    """Return the certificate with a note on whether near stationarity was proved, and why not."""
    meta = {**certificate.meta, "near": near}
    # A Goldstein certificate hashes its fields; the hash is made again.
    fresh = {"digest": ""} if hasattr(certificate, "digest") else {}
    return replace(certificate, meta=meta, **fresh)


def with_near(model: Any, fit: Fit, options: Options, begin: float) -> Fit:
    """Return a fit with a near certificate, if one was asked for and found, or with a note."""
    if not options.near:
        return fit.concluded(None, NOT_ASKED)
    if not hasattr(model, "program"):
        return fit.concluded(None, "not tried: the exact proof needs all rows in one place")
    deadline = options.proof_deadline(begin)
    return fit.concluded(*near_or_note(model, fit.goldstein, options, deadline))


def near_or_note(
    model: Any, goldstein: Any, options: Options, deadline: float
) -> tuple[NearCertificate | None, str]:
    """Return a near certificate that is good enough, or None, and how the search ended."""
    eps, delta = options.eps, options.delta
    if goldstein.eps > eps:
        return None, f"not tried: eps = {goldstein.eps:.3g} was reached, asked for {eps:g}"
    found = attempt_near(model, goldstein, Request(eps, delta, options.seed), deadline=deadline)
    proof = found.certificate
    good = proof is not None and proof.eps <= eps and proof.delta <= delta
    return proof if good else None, found.note
