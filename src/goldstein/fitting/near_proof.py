"""Near proofs of fitted models: how long they may take, and what is said where there is none."""

from __future__ import annotations

import time
from dataclasses import replace
from typing import Any

from goldstein.api.near import attempt_near
from goldstein.certificates import GoldsteinCertificate
from goldstein.certificates.near import NearCertificate
from goldstein.storage.folder import NO_STORE, Store

#: Seconds that a proof may take beside as many as the fit took; and at least, where the fit is kept
#: in a folder. A fit that resumes is short, and its proof must not be the worse for it.
GRACE, KEPT_GRACE = 2.0, 60.0

#: What `meta["near"]` says where no near certificate was asked for.
NOT_ASKED = "not asked for"


def proof_deadline(begin: float, max_time: float | None, kept: Store = NO_STORE) -> float:
    """Return when a proof has to end, as `time.perf_counter()` tells the time.

    Without a limit it may take as long as the fit that began at `begin`, and a little more.
    """
    if max_time is not None:
        return begin + max_time
    now = time.perf_counter()
    as_long = now - begin + GRACE
    return now + (as_long if kept.path is None else max(as_long, KEPT_GRACE))


def time_left(begin: float, max_time: float | None) -> float | None:
    """Return the seconds that are left of a limit; next to nothing when it has passed."""
    return None if max_time is None else max(begin + max_time - time.perf_counter(), 1e-3)


def noted(certificate: Any, near: str) -> Any:
    """Return the certificate with a note on whether near stationarity was proved, and why not."""
    meta = {**certificate.meta, "near": near}
    # A Goldstein certificate hashes its fields; the hash is made again.
    fresh = {"digest": ""} if hasattr(certificate, "digest") else {}
    return replace(certificate, meta=meta, **fresh)


def near_or_note(
    model: Any,
    goldstein: GoldsteinCertificate,
    eps: float,
    delta: float,
    seed: int,
    deadline: float,
) -> tuple[NearCertificate | None, str]:
    """Return a near certificate that is good enough, or None, and how the search ended."""
    if goldstein.eps > eps:
        return None, f"not tried: eps = {goldstein.eps:.3g} was reached, asked for {eps:g}"
    found = attempt_near(model, goldstein, eps, delta, seed, deadline=deadline)
    proof = found.certificate
    good = proof is not None and proof.eps <= eps and proof.delta <= delta
    return proof if good else None, found.note
