"""What is proved and what is trusted, in one sentence each."""

from __future__ import annotations

from typing import Any

from goldstein.result import minimality

_CLAIMS = {
    "goldstein": "some convex combination of gradients taken within delta = {delta:.3g} of x has "
    "length at most eps = {eps:.3g}: x is ({eps:.3g}, {delta:.3g})-Goldstein stationary",
    "near": "a point within delta = {delta:.3g} of x has a Clarke subgradient of length at most "
    "eps = {eps:.3g}: x is ({eps:.3g}, {delta:.3g})-near stationary",
    "kkt": "gradients of f and of the constraints taken within delta = {delta:.3g} of x cancel up "
    "to eps = {eps:.3g}, with multipliers of the right signs, and no constraint is violated by "
    "more than {feasibility:.3g} at x: x is an ({eps:.3g}, {delta:.3g})-Goldstein-KKT point",
    "plus": "some convex combination of gradients of f taken within delta = {delta:.3g} of x, plus "
    "a subgradient of the term there, has length at most eps = {eps:.3g}",
    "values": "values at random points say, with confidence {confidence:.3g}, that some convex "
    "combination of gradients within delta = {delta:.3g} of x has length at most eps = {eps:.3g}",
    "values-kkt": "values at random points say, with confidence {confidence:.3g}, that gradients "
    "of f and of the constraints within delta = {delta:.3g} of x cancel up to eps = {eps:.3g}, "
    "with multipliers of the right signs; no constraint is violated by more than "
    "{feasibility:.3g} at x",
    "minimum": "{said}: nowhere there is f lower than at x by more than {gap:.3g}",
    "refutation": "{said}",
    "near-kkt": "within delta = {delta:.3g} of x there is a point that satisfies all constraints "
    "exactly and is KKT up to eps = {eps:.3g}",
}

_TRUST = {
    "certified": "the structure of the function is known, signs are exact and bounds are rigorous; "
    "nothing is trusted but the definition of the function and the checker",
    "conditional": "all algebra is checked; the function is trusted to return its own gradient",
    "estimated": "statistics: it holds with the stated confidence, if what they assume is so",
    "refuted": "a rigorous lower bound exceeds the claim",
}


def claim_of(certificate: Any) -> str:
    """Return the claim in one sentence.

    Examples
    --------
    >>> import numpy as np
    >>> import goldstein as gs
    >>> cert = gs.certify(lambda x: abs(x[0]), [0.01], np.sign, delta=0.1, rng=0)
    >>> print(claim_of(cert))
    some convex combination of gradients taken within delta = ... of x has length at most eps = ...:
    x is (...)-Goldstein stationary
    """
    words = _CLAIMS.get(getattr(certificate, "kind", ""))
    if words is None:
        return str(certificate.summary() if hasattr(certificate, "summary") else certificate)
    names = ("eps", "delta", "gap", "feasibility", "confidence")
    numbers = {name: getattr(certificate, name, None) for name in names}
    return words.format(said=minimality(certificate), **numbers)


def trust_of(certificate: Any) -> str:
    """Return what must be believed besides."""
    if certificate.label == "conditional" and getattr(certificate, "kind", "") == "kkt":
        return "all algebra is checked; function and constraints are trusted to return gradients"
    return _TRUST.get(str(certificate.label), "")


def shortfall_of(certificate: Any) -> str:
    """Return what was asked for and is not so, in the words of the certificate; or nothing."""
    said = str(certificate.summary())
    return said.partition("; proved:")[0] if said.startswith("NOT") else ""
