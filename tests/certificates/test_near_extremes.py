"""Numbers at the ends of the range in a near certificate: a verdict in words, never a traceback."""

from __future__ import annotations

import itertools
from dataclasses import fields, replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import goldstein as gs
from goldstein.certificates import NearCertificate, load_certificate
from goldstein.models import margin_svm

LARGE = 1.7e308
#: One function small enough for rationals, and one that is enclosed in float64.
rng = np.random.default_rng(0)
SMALL = gs.norm1(gs.Variable(2))
Z = np.vstack([np.eye(8)[:2], rng.standard_normal((6000, 8))])
WIDE = margin_svm(Z, 0.5, 0.1)
PIVOT = [Fraction(1, 2), Fraction(0), *(Fraction(k, 10) for k in range(6))]


def proofs() -> dict[str, tuple[Any, NearCertificate]]:
    both = [[1.0, 2.0], [-1.0, -2.0]]
    ways = rng.standard_normal((2, 8))
    return {
        "small": (SMALL, NearCertificate.prove(SMALL, [0.1, 0.1], [0, 0], both, [1.0, 1.0])),
        "wide": (WIDE, NearCertificate.prove(WIDE, np.zeros(8), PIVOT, ways, [1.0, 1.0])),
    }


PROOFS = proofs()
kinds = pytest.mark.parametrize("kind", PROOFS)


@kinds
def test_weights_whose_sum_overflows_are_refused_in_words(kind: str) -> None:
    F, proof = PROOFS[kind]
    found = replace(proof, weights=[LARGE, LARGE]).verify(F)
    assert not found.ok
    assert "sum of the weights" in str(found)


@kinds
def test_such_weights_in_a_file(kind: str, tmp_path: Path) -> None:
    F, proof = PROOFS[kind]
    path = replace(proof, weights=[LARGE, LARGE]).save(tmp_path / "huge.cert")
    assert not load_certificate(path).verify(F).ok


@kinds
@pytest.mark.parametrize("size", [2.0**-1000, 2.0**-500, 2.0**500, 2.0**1022])
def test_the_size_of_the_weights_does_not_matter(kind: str, size: float) -> None:
    F, proof = PROOFS[kind]
    found = replace(proof, weights=size * proof.weights).verify(F)
    assert found.ok
    assert found.eps <= proof.eps


@kinds
@pytest.mark.parametrize("field", [f.name for f in fields(NearCertificate)])
def test_every_extreme_number_ends_in_a_verdict(kind: str, field: str, tmp_path: Path) -> None:
    F, proof = PROOFS[kind]
    truth = proof.verify(F).eps
    value = getattr(proof, field)
    extremes = [0.0, -0.0, 5e-324, 1e-310, 1e200, LARGE, -LARGE, np.inf, -np.inf, np.nan]
    if isinstance(value, np.ndarray):
        changes: list[Any] = [np.full(value.shape, e) for e in extremes]
        for e, place in itertools.product(extremes, [0, -1]):
            one = value.copy()
            one.flat[place] = e
            changes.append(one)
    elif field == "exact_pivot":
        changes = [[e] * len(value) for e in extremes]
        changes += [[Fraction(10) ** n] * len(value) for n in (-1000, 400)]
    elif field in ("eps", "delta"):
        changes = [*extremes, 10**400, np.float32(0.5), np.int8(3)]
    else:
        changes = [None, "", 3.0, [], {}, {"a": {1}}, "refuted", "certified"]
    for number, change in enumerate(changes):
        try:
            changed = replace(proof, **{field: change})
            found = changed.verify(F)
            changed.reduce()
            assert load_certificate(changed.save(tmp_path / f"{number}")).verify(F).ok == found.ok
        except gs.GoldsteinError:
            continue
        if found.ok and field in ("eps", "delta", "weights"):
            assert changed.eps >= 0.0
            assert field != "eps" or changed.eps >= truth


@pytest.mark.parametrize("bad", ["a", ["1.0"], [1j], [None], [[1.0], [1.0, 2.0]], object()])
@pytest.mark.parametrize("field", ["x", "pivot", "directions", "weights"])
def test_what_are_no_numbers_is_refused(field: str, bad: Any) -> None:
    given: dict[str, Any] = {
        "x": [0.1, 0.1], "pivot": [0, 0], "directions": [[1.0, 2.0]], "weights": [1.0],
    }  # fmt: skip
    if field == "pivot" and bad == ["1.0"]:
        bad = ["one"]
    with pytest.raises(gs.GoldsteinError):
        NearCertificate.prove(SMALL, **{**given, field: bad})


@pytest.mark.parametrize(
    "change",
    [
        {"weights": [1.0, 1.0]},
        {"weights": [1.0, 0.0]},
        {"directions": [[1.0]]},
        {"directions": [[1.0, 2.0, 3.0]]},
        {"pivot": [0]},
        {"x": [0.1]},
        {"weights": [LARGE, LARGE], "directions": [[1.0, 2.0], [-1.0, -2.0]]},
    ],
)
def test_shapes_that_do_not_fit_are_refused(change: dict[str, Any]) -> None:
    given: dict[str, Any] = {
        "x": [0.1, 0.1], "pivot": [0, 0], "directions": [[1.0, 2.0]], "weights": [1.0],
    }  # fmt: skip
    with pytest.raises(gs.InputError):
        NearCertificate.prove(SMALL, **{**given, **change})
