"""Three checkers that share no code, on the same proof files: one verdict.

Random files of every kind, honest and forged (`adversary.proof_files`, `limit_files`,
`minimum_files`, `case_files`), their numbers rounded to float64 where they are none, are put to the
library's kernel, to `goldstein-check` and to the script of `check.html`. The two that read files
must agree. The kernel computes with intervals of float64 numbers: it may refuse what the others
prove, and is counted: a norm that is exactly 0, say, it encloses by 3e-148, which violates an upper
limit of 0; and it looks at supports of entries, too, that f does not depend on. Where it proves an
exact claim that they refuse, the evidence must be known to support it (tied rows that are one
affine function), or a separation of constraints was missing, which a file states and the kernel
finds. Goldstein and plus claims it checks as those of black boxes, with room for rounding.

    python -m benchmarks.three_checkers --seeds 200
"""

from __future__ import annotations

import argparse
import json
import math
import tempfile
import warnings
from collections import Counter
from collections.abc import Iterator
from fractions import Fraction
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
from benchmarks.adversary import case_files, limit_files, minimum_files, proof_files
from benchmarks.adversary.exact_oracle import Document, rational
from benchmarks.browser_checker import CODES, available, judged, python_codes
from benchmarks.differential import NotWritten, expression_of, floats, program_of

from goldstein.certificates import (
    GoldsteinCertificate,
    NearCertificate,
    NearKKTCertificate,
    PlusCertificate,
)
from goldstein.certificates.minimum import MinimumCertificate, Refutation
from goldstein.checker.constrained.limits import Box
from goldstein.checker.constrained.near import ExactProblem
from goldstein.checker.minimum import minimum
from goldstein.checker.minimum.feasible import Feasible
from goldstein.checker.minimum.supports import Sharp, Support
from goldstein.checker.sides import Program
from goldstein.errors import GoldsteinError
from goldstein.prox.term import term_from_record


def _limits(document: Document, at: Any) -> dict[str, Any]:
    """Bounds and constraints as `minimize` takes them."""
    given: dict[str, Any] = {}
    if "bounds" in document:
        sides = [
            [end if text is None else float(floats([text])[0]) for text in document["bounds"][side]]
            for side, end in (("lower", -np.inf), ("upper", np.inf))
        ]
        given["bounds"] = list(zip(*sides))
    given["constraints"] = [
        expression_of(part["function"], at)._compared(
            *(
                end if part[side] is None else float(floats([part[side]])[0])
                for side, end in (("lower", -np.inf), ("upper", np.inf))
            )
        )
        for part in document.get("constraints", [])
    ]
    return given


def kernel_says(document: Document) -> bool:
    """Return the kernel's verdict about a proof file, read as a certificate of the library."""
    claim, evidence = document["claim"], document["evidence"]
    x, kind = floats(document["x"]), claim["kind"]
    numbers = {
        name: None if claim[name] is None else float(floats([claim[name]])[0])
        for name in ("eps", "delta", "gap", "radius", "within", "fall", "global_gap", "violation")
        if name in claim
    }  # fmt: skip
    pivot = tuple(map(rational, evidence.get("pivot", [])))
    vectors = np.array(
        [floats(row) for row in evidence.get("directions", evidence.get("points", []))]
    )
    weights = floats(evidence.get("weights", []))
    if kind == "near":
        nothing = np.zeros(vectors.shape), np.zeros(len(vectors))
        eps, delta = numbers["eps"], numbers["delta"]
        near = NearCertificate(x, pivot, delta, eps, vectors, weights, *nothing)
        return bool(near.verify(program_of(document["function"])).ok)
    if kind == "near-kkt":
        rows = evidence["rows"]
        limits = _limits(document, np.array([float(q) for q in pivot]))
        places = np.array([row["constraint"] for row in rows], dtype=np.int64)
        own = floats([row["weight"] for row in rows])
        multipliers = np.zeros(len(limits["constraints"]))
        np.add.at(multipliers, places, own)
        ways = np.array([floats(row["direction"]) for row in rows]).reshape(len(rows), x.size)
        kkt = NearKKTCertificate(
            x=x, exact_pivot=pivot, directions=vectors, weights=weights, constraint_directions=ways,
            constraint_index=places, constraint_weights=own, normal=floats(evidence["normal"]),
            multipliers=multipliers, **numbers,
        )  # fmt: skip
        return bool(kkt.verify(_Described(document["function"]), **limits, seed=0).ok)
    if kind == "refutation":
        if "bounds" in document or "constraints" in document:
            raise NotWritten
        point = floats(evidence["point"])
        own = {"x": x, "point": point, "direction": point - x, **numbers}
        refutation = Refutation(**own, exact_pivot=tuple(map(Fraction, x.tolist())))
        return bool(refutation.verify(program_of(document["function"])).ok)
    if kind == "minimum":
        return _minimum_says(document, x, pivot, numbers)
    f = expression_of(document["function"], x)
    gradients = np.array([f.gradient(y) for y in vectors])
    shares = weights / weights.sum() if weights.sum() > 0 else weights
    asked = {"x": x, "points": vectors, "gradients": gradients, "weights": shares, **numbers}
    if kind == "goldstein":
        return bool(GoldsteinCertificate(**asked).verify(f, seed=0).ok)
    own = {"subgradient": floats(evidence["subgradient"]), "term": _term(document["term"])}
    return bool(PlusCertificate(**asked, **own).verify(f, seed=0).ok)


class _Described:
    """A function whose program is known, as the library asks for it."""

    def __init__(self, function: list[Document]) -> None:
        self.own = program_of(function)
        self.dim = self.own.dim

    def program(self) -> Program:
        return self.own

    def describe(self) -> Any:
        raise NotImplementedError


def _minimum_says(document: Document, x: Any, pivot: Any, numbers: dict[str, Any]) -> bool:
    claim, evidence = document["claim"], document["evidence"]
    supports = tuple(
        Support(s["node"], s["row"], s["place"], rational(s.get("t", "0")), rational(s["s"]),
                rational(s.get("p", "0"))) for s in evidence["supports"]
    )  # fmt: skip
    sharp = tuple(
        Sharp(s["node"], s["row"], s["one"], s["other"], rational(s["sigma"]))
        for s in evidence["sharp"]
    )
    if (numbers.get("global_gap") is None) != ("cases" not in evidence):
        raise NotWritten  # a certificate has both, or neither
    convexity = evidence["convexity"]
    program, problem = program_of(document["function"]), None
    if None in evidence.get("penalties", ()) or claim.get("violation", "") is None:
        raise NotWritten
    if "penalties" in evidence:
        d, parts = x.size, document.get("constraints", [])
        bounds = document.get("bounds", {"lower": [None] * d, "upper": [None] * d})
        box, system = (
            [np.array([end if q is None else float(floats([q])[0]) for q in row[side]], dtype=float)
             for side, end in (("lower", -np.inf), ("upper", np.inf))]
            for row in (bounds, {side: [p[side] for p in parts] for side in ("lower", "upper")})
        )  # fmt: skip
        inner = [program_of(part["function"]) for part in parts]
        problem = ExactProblem(
            Box(*box), SimpleNamespace(lower=system[0], upper=system[1]), inner, None
        )
        weights = floats(evidence["penalties"])
        limits = Feasible(program, problem, weights)
        found = limits.multipliers(supports)
        numbers |= {
            "penalties": weights,
            "multipliers": found[: len(parts)],
            "normal": found[len(parts) :],
        }
    certificate = MinimumCertificate(
        x=x, exact_pivot=pivot, **numbers | {"radius": numbers["radius"] or math.inf},
        scope=claim["scope"], strict=claim["strict"], unique=claim["unique"],
        reach=math.inf if evidence["reach"] is None else float(floats([evidence["reach"]])[0]),
        growth=float(floats([evidence["growth"]])[0]),
        convexity=None if convexity is None else float(floats([convexity])[0]),
        supports=supports, sharp=sharp, **_tree(evidence.get("cases"), x.size),
    )  # fmt: skip
    if problem is None:
        return bool(certificate.verify(program).ok)
    return bool(minimum.check(certificate, program, problem).ok)  # constraints as programs


def _tree(cases: Document | None, dim: int) -> dict[str, Any]:
    """A tree of cases as a certificate has it."""
    if cases is None:
        return {}
    try:
        tree = cases["tree"]
        for case in tree:
            more = {"entry", "t"} if case["parts"] == 2 else set()
            lists = all(isinstance(case[name], list) for name in ("point", "slopes"))
            whole = all(type(case[name]) is int for name in {"parts", "entry"} & set(case))
            if set(case) != {"point", "slopes", "parts"} | more or not whole:
                raise NotWritten
            if not lists:
                raise NotWritten
        splits = [
            (case["entry"], float(floats([case["t"]])[0])) if case["parts"] == 2
            else ({0: -1.0, 1: -2.0}[case["parts"]], 0.0) for case in tree
        ]  # fmt: skip
        return {
            "case_growth": float(floats([cases["growth"]])[0]),
            "case_points": np.array([floats(case["point"]) for case in tree]).reshape(-1, dim),
            "case_slopes": np.array([floats(case["slopes"]) for case in tree]),
            "case_splits": np.array(splits, dtype=float).reshape(-1, 2),
        }
    except (AttributeError, KeyError, TypeError, ValueError):  # forged: it is no tree
        raise NotWritten from None


def _term(data: Document) -> Any:
    record: dict[str, Any] = {"name": data["name"]}
    if data["name"] == "nuclear":
        record |= {"shape": [data["rows"], data["columns"]]}
    if "groups" in data:
        record["groups"] = data["groups"]
    for side, end in (("lower", -np.inf), ("upper", np.inf)):
        if side in data:
            record[side] = [end if t is None else float(floats([t])[0]) for t in data[side]]
    for name in ("weight", "total"):
        if name in data:
            found = data[name]
            record[name] = (
                floats(found).tolist() if isinstance(found, list) else float(floats([found])[0])
            )
    return term_from_record(record)


def rounded(data: Any, name: str = "") -> Any:
    """Return a document whose numbers are float64, rounded up where they are none."""
    if isinstance(data, dict):
        words = ("kind", "scope", "op", "name", "schema")
        return {key: v if key in words else rounded(v, key) for key, v in data.items()}
    if isinstance(data, list):
        return [rounded(value, name) for value in data]
    if not isinstance(data, str) or name in ("pivot", "breakpoints", "pieces"):
        return data
    q = rational(data)
    near = float(q)
    if Fraction(near) == q:
        return data
    # A little more: the kernel rounds what it recomputes; a gap is derived from the eps stated.
    more = 2.0**-30 if name in ("gap", "within", "global_gap") else 2.0**-36
    return math.nextafter(near + abs(near) * more, math.inf).hex()


def documents(seeds: range) -> Iterator[tuple[str, bool, Any]]:
    """Yield what was done, whether the evidence is known to support the claim, and documents."""
    with tempfile.TemporaryDirectory() as folder:
        for seed in seeds:
            for file in (
                *proof_files.files(seed), *limit_files.files(seed),
                *minimum_files.files(seed, Path(folder)), *case_files.files(seed, Path(folder)),
            ):  # fmt: skip
                if file.truth is not None:
                    document = json.loads(file.text)
                    if document["claim"]["kind"] == "refutation" and seed % 2:
                        # The library refutes without limits.
                        for name in ("bounds", "constraints"):
                            document.pop(name, None)
                    found, shown = rounded(document), file.truth.shown
                    supported = file.truth.evidence == "supports"
                    kind = found["claim"]["kind"]
                    if shown is not None and kind in ("near", "goldstein"):
                        # What is just below may have been rounded to above.
                        supported |= rational(found["claim"]["eps"]) > shown
                    yield f"seed {seed}, {file.what}", supported, found


def compare(seeds: range) -> tuple[Counter[str], list[str]]:
    """Return counts of verdicts by kind, and all that may not be."""
    tally, wrong = Counter[str](), list[str]()
    found = list(documents(seeds))
    texts = [json.dumps(document) for *_, document in found]
    page = judged(texts) if available() else [None] * len(texts)
    for (name, supported, document), (code, said), other in zip(found, python_codes(texts), page):
        shown = document["evidence"]
        kind = document["claim"]["kind"] + " by cases" * ("cases" in shown)
        kind += " among feasible points" * ("penalties" in shown)
        try:
            kernel = "TRUE" if kernel_says(document) else "FALSE"
        except (NotWritten, GoldsteinError, NotImplementedError):
            kernel = "not asked"
        tally[
            f"{kind}: goldstein-check {('TRUE', 'FALSE', 'UNREADABLE')[code]}, kernel {kernel}"
        ] += 1
        if other is not None and CODES[other["verdict"]] != code:
            wrong.append(f"{name}: {said[:200]} | page: {other['verdict']} {other['why'][:200]}")
        exact = kind not in ("goldstein", "plus") and "separation" not in said
        if kernel == "TRUE" and code != 0 and exact and not supported:
            wrong.append(f"{name}: kernel TRUE | {said[:200]} | {json.dumps(document)}")
    return tally, wrong


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=200)
    parser.add_argument("--first", type=int, default=0)
    options = parser.parse_args()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        tally, wrong = compare(range(options.first, options.first + options.seeds))
    for name, count in sorted(tally.items()):
        print(f"{count:6d}  {name}")
    print(f"{sum(tally.values())} files, {len(wrong)} disagreements")
    for line in wrong[:20]:
        print(line)


if __name__ == "__main__":
    main()
