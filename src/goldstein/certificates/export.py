"""Proof files: a certificate and its function in one JSON file, for somebody who has neither.

docs/proof_files.md describes them; `goldstein-check` decides about them, without this library.
"""

from __future__ import annotations

import gzip
import json
from collections.abc import Callable, Iterable, Sequence
from fractions import Fraction
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from goldstein.checker import nodes
from goldstein.checker.blackbox.perturbed import SAME
from goldstein.checker.enclosed import irrational
from goldstein.checker.enclosed.part import cut
from goldstein.checker.exact import exact_combination
from goldstein.checker.rationals import sqrt_upper, squared_norm
from goldstein.checker.rounding import mean_length, rounding_slack
from goldstein.checker.sides import Program, point_at
from goldstein.errors import GoldsteinError, InputError, InputTypeError
from goldstein.storage.files import replacing

#: Longer integers are written in hexadecimal: their decimal digits take quadratic time.
_DECIMAL_BITS = 3000


def written(value: float | Fraction) -> str:
    """Return a finite number exactly, as text.

    Examples
    --------
    >>> written(3.0), written(0.1), written(Fraction(1, 3)), written(-2.5)
    ('3', '0x1.999999999999ap-4', '1/3', '-0x1.4p+1')
    """
    if isinstance(value, float) and not (value.is_integer() and abs(value) < 2**53):
        mantissa, exponent = value.hex().split("p")
        return mantissa.rstrip("0").rstrip(".") + "p" + exponent
    exact = Fraction(value)
    if exact.denominator == 1:
        return _integer(exact.numerator)
    return f"{_integer(exact.numerator)}/{_integer(exact.denominator)}"


def _integer(value: int) -> str:
    return str(value) if value.bit_length() <= _DECIMAL_BITS else hex(value)


SCHEMA = "goldstein-proof"

#: The nodes that docs/proof_files.md has.
_LANGUAGE = {
    "variable", "affine", "add", "multiply", "piecewise", "max", "norm2", "logsumexp", "log",
}  # fmt: skip


class NoProofFile:
    """A kind of claim that proof files do not hold; `export` says so."""

    kind: ClassVar[str]

    def export(self, path: str | Path, fun: Any = None, **limits: Any) -> Path:
        """Refuse: `goldstein-check` decides what can be derived from a formula, exactly."""
        raise InputTypeError(
            f"a proof file holds an exact claim about a formula, and this is a {self.kind} "
            "certificate: it rests on functions whose answers are believed, or on statistics. Hand "
            "over what certificate.save(...) writes; certificate.verify(...) or `goldstein verify` "
            "checks it."
        )


def export_proof(
    path: str | Path,
    fun: Any,
    cert: Any,
    evidence: dict[str, Any],
    claim: dict[str, Any] | None = None,
    **parts: Any,
) -> Path:
    """Write a proof file, all or nothing; one that ends in .gz is compressed.

    Claimed are eps and delta of the certificate, unless a `claim` is given. `parts` are bounds,
    constraints and terms as docs/proof_files.md has them. The suffix .json is added if there is
    none.
    """
    if not (hasattr(fun, "describe") and hasattr(fun, "dim")):
        raise InputTypeError(
            f"a proof file carries the function, and {type(fun).__name__} cannot be written down; "
            "build the function as a goldstein Expression, or pass a model's objective."
        )
    if fun.dim != len(cert.x):
        raise InputError(f"the certificate has {len(cert.x)} variables, the function {fun.dim}.")
    claim = {"kind": cert.kind, **(claim or {"eps": cert.eps, "delta": cert.delta})}
    names = ("eps", "delta", "gap", "fall")
    numbers = {name: claim[name] for name in names if name in claim}
    if not all(np.isfinite(value) for value in numbers.values()):
        raise InputError(f"the numbers of the claim must be finite to be proved, got {numbers}.")
    target = Path(path)
    if not target.suffix:
        target = target.with_suffix(".json")
    version = 1 if claim["kind"] in ("near", "goldstein") else 2
    given = texts({"claim": claim, "x": cert.x, "evidence": evidence})
    whole = {"schema": SCHEMA, "version": version, **given, **parts}
    lines = [f"{json.dumps(name)}: {json.dumps(part)}" for name, part in whole.items()]
    described = fun.describe()
    functions = [described, *(part["function"] for part in parts.get("constraints", ()))]
    unknown = sorted({str(node["op"]) for nodes in functions for node in nodes} - _LANGUAGE)
    if unknown:
        raise InputTypeError(
            f"proof files have no node for {', '.join(unknown)}; hand over what "
            "certificate.save(...) writes, and the formula: certificate.verify(...) checks it."
        )
    nodes = ",\n".join(json.dumps(node) for node in described)
    text = "{" + ",\n".join([*lines, f'"function": [\n{nodes}\n]']) + "}\n"
    data = text.encode()
    with replacing(target) as file:
        file.write(gzip.compress(data, mtime=0) if target.suffix == ".gz" else data)
    return target


def texts(values: Any) -> Any:
    """Return numbers, or lists and tables of them, as exact texts; words and None stay."""
    if isinstance(values, np.ndarray | np.generic):
        values = values.tolist()
    if isinstance(values, dict):
        return {name: texts(value) for name, value in values.items()}
    if isinstance(values, float | Fraction):
        return written(values) if np.isfinite(float(values)) else None
    return values if values is None or isinstance(values, str | int) else list(map(texts, values))


def proved_eps(fun: Any, cert: Any, eps: float, shift: NDArray[np.float64] | None = None) -> float:
    """Return what exact gradients prove, where rounding alone makes that more than `eps`.

    A certificate bounds a combination of gradients (and of a `shift`) in float64. The exact
    combination is a few units in the last place away, and a proof file is about the exact one.
    """
    points, gradients, weights = cert.points, cert.gradients, cert.weights
    used = np.flatnonzero(weights > 0)
    try:
        program, direction = fun.program(), np.ones((1, points.shape[1]))
        limits = [point_at(program, points[j]).limits(direction) for j in used]
        shares = [Fraction(a) for a in weights[used].tolist()]
        centres = [found.exact[0] if found.exact else found.mid[0] for found in limits]
        mid = exact_combination(shares, centres)
        rad = exact_combination(shares, [found.rad[0] for found in limits])
        total = sum(shares, Fraction(0))
        if shift is not None:
            mid = [m + total * Fraction(a) for m, a in zip(mid, shift.tolist(), strict=True)]
        middle = sqrt_upper(squared_norm(mid) / total**2)
        wide = [abs(m) + r for m, r in zip(mid, rad, strict=True)]
        exact = sqrt_upper(squared_norm(wide) / total**2)
    except (AttributeError, GoldsteinError, OverflowError):
        return eps  # the check will say what is wrong
    mean = mean_length(weights[used], gradients[used])
    slack = rounding_slack(used.size, mean) + SAME * mean
    return max(eps, exact) if middle <= eps + slack else eps


Written = dict[str, Any]


class Writer:
    """The nodes so far, and which of them has the value of each node of the program."""

    def __init__(self, program: Program) -> None:
        self.nodes: list[Written] = [{"op": "variable", "size": program.dim}]
        self.at = [0]
        for node in program.nodes[1:]:
            self.at.append(_WRITERS[type(node)](self, node, [self.at[a] for a in node.of]))

    def add(self, op: str, of: Sequence[int], **data: Any) -> int:
        """Append a node and return its number."""
        self.nodes.append({"op": op, "of": list(of), **data})
        return len(self.nodes) - 1

    def affine(self, of: int, width: int, *, columns: int = 1, **data: Any) -> int:
        return self.add("affine", [of], columns=columns, width=width, **data)

    def gather(self, of: int, width: int, groups: Iterable[Sequence[int]]) -> int:
        """Append sums of entries, one for each group of places."""
        return self.affine(of, width, at=[list(map(int, group)) for group in groups])


def written_nodes(program: Program) -> list[Written]:
    """Return the nodes that compute a function, in order of evaluation, as plain data.

    Every number is exact. Nothing here is trusted: a file that describes another function
    proves something about that function, and says which.
    """
    return Writer(program).nodes


def written_limits(problem: Any) -> Written:
    """Return bounds and constraints as a proof file has them; nothing where there are none."""
    if problem is None:
        return {}
    box, system = problem.box, problem.system
    parts = [
        {"function": written_nodes(part), **texts({"lower": low, "upper": high})}
        for part, low, high in zip(problem.parts, system.lower, system.upper)
    ]
    return {"bounds": texts({"lower": box.lower, "upper": box.upper}), "constraints": parts}


def _affine(out: Writer, node: nodes.Affine, of: list[int]) -> int:
    A, data = node.matrix, {}
    if sparse.issparse(A):
        spans = [slice(*ends) for ends in zip(A.indptr[:-1].tolist(), A.indptr[1:].tolist())]
        table = [A.data[span].tolist() for span in spans]
        data["at"] = [A.indices[span].tolist() for span in spans]
    else:
        table = (A if isinstance(A, np.ndarray) else A.toarray()).tolist()
    divisor = np.ones(node.size) if node.divisor is None else node.divisor
    if node.columns > 1 and node.divisor is not None:
        raise NotImplementedError("a table divided entry by entry")
    if any(a != 1 for row in table for a in row) or node.divisor is not None or "at" not in data:
        by = divisor[:: node.columns].tolist()
        data["rows"] = [[_quotient(a, q) for a in row] for row, q in zip(table, by)]
    if node.offset is not None:
        data["offset"] = [_quotient(c, q) for c, q in zip(node.offset.tolist(), divisor.tolist())]
    return out.affine(of[0], A.shape[1], columns=node.columns, **data)


def _quotient(a: float, q: float) -> str:
    return written(a if q == 1 else Fraction(a) / Fraction(q))


def _add(out: Writer, node: nodes.Node, of: list[int]) -> int:
    return out.add("add", of)


def _product(out: Writer, node: nodes.Product, of: list[int]) -> int:
    if node.inner == 1 and node.sizes == (node.size, node.size):
        return out.add("multiply", of)
    # All products one by one, and their sums.
    _, _, (left, right) = cut(node, np.arange(node.size), None)
    sides = [
        out.gather(argument, size, places[:, None])
        for argument, size, places in zip(of, node.sizes, (left, right))
    ]
    terms = out.add("multiply", sides)
    return out.gather(terms, left.size, np.arange(left.size).reshape(node.size, node.inner))


def _piecewise(out: Writer, node: nodes.Piecewise, of: list[int]) -> int:
    breakpoints = [written(t) for t in node.breakpoints]
    pieces = [[written(c) for c in piece] for piece in node.pieces]
    return out.add("piecewise", of, breakpoints=breakpoints, pieces=pieces)


def _smooth(out: Writer, node: irrational.Smooth, of: list[int]) -> int:
    if node.function.name != "pseudo_huber":
        return out.add(node.function.name, of)
    # |(1, u)| - 1, from rows (1, u).
    size, places = node.size, [[i] for i in range(node.size)]
    at = [place for i in range(size) for place in ([], [i])]
    pairs = out.affine(of[0], size, at=at, offset=["1", "0"] * size)
    norms = out.add("norm2", [pairs], columns=2)
    return out.affine(norms, size, at=places, offset=["-1"] * size)


def _rowwise(out: Writer, node: nodes.Rowwise, of: list[int]) -> int:
    return out.add(node.name, of, columns=node.columns)


def _order(out: Writer, node: nodes.Order, of: list[int]) -> int:
    weights = [[written(c) for c in row] for row in node.weights.tolist()]
    return out.add("order", of, columns=node.columns, weights=weights)


_WRITERS: dict[type, Callable[..., int]] = {
    nodes.Affine: _affine,
    nodes.Add: _add,
    nodes.Product: _product,
    irrational.Smooth: _smooth,
    irrational.LogSumExp: _rowwise,
    nodes.Piecewise: _piecewise,
    nodes.Max: _rowwise,
    irrational.Norm2: _rowwise,
    nodes.Order: _order,
}
