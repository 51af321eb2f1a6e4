"""Two checkers that share no code, on the same certificates: they must agree.

Random functions over all atoms that proof files know, honest certificates of them, and forged ones:
each is put to `certificate.verify`, and exported and put to `goldstein-check`. Every disagreement
is a bug of one of them, and is printed with the seed that makes it again.

With `--files`, random proof files of `adversary.proof_files` instead, over all that the language
can say, against the truth that an evaluator of its own finds out (`adversary.exact_oracle`). A TRUE
without support is a bug. So is a combination that is said to be too long and is not. What is true
and refused is counted by reason. Files whose function can be written as an expression are put to
the library too.

    python -m benchmarks.differential --cases 2000
    python -m benchmarks.differential --files 50000
"""

from __future__ import annotations

import argparse
import contextlib
import importlib.util
import io
import json
import tempfile
import warnings
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
from benchmarks.adversary.exact_oracle import Document, rational
from benchmarks.adversary.proof_files import ProofFile, files
from tests.atoms import ELEMENTWISE

import goldstein as gs
from goldstein.calculus import Expression
from goldstein.calculus.atoms import row_max
from goldstein.calculus.atoms.piecewise import Elementwise, PiecewisePolynomial
from goldstein.certificates import GoldsteinCertificate, NearCertificate
from goldstein.checker import nodes
from goldstein.checker.enclosed import irrational
from goldstein.checker.enclosed.arrays import FUNCTIONS
from goldstein.checker.sides import Program
from goldstein.errors import GoldsteinError, KinkError

CHECKER = Path(__file__).parents[1] / "src" / "goldstein_check.py"

Rng = np.random.Generator


def load_checker() -> Any:
    """Return the checker as a module, from its file: nothing of the library is involved."""
    spec = importlib.util.spec_from_file_location("goldstein_check", CHECKER)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@dataclass(frozen=True)
class Case:
    """A certificate, the function it is said to be about, and what was done to it."""

    certificate: Any
    function: Expression
    deed: str


# --- random functions ----------------------------------------------------------------------------


def _small(rng: Rng, *shape: int) -> Any:
    """Numbers that often coincide, so that points lie on kinks."""
    return rng.integers(-2, 3, shape) * rng.choice([1.0, 1.0, 0.5])


def _constant_factor(rng: Rng, u: Expression) -> Expression:
    if rng.random() < 0.5:
        return u / Fraction(int(rng.integers(1, 4)), 3)
    return u * _small(rng, *u.shape)


def _product(rng: Rng, u: Expression) -> Expression:
    other = _affine(rng, u.variable, u.size).reshape(*u.shape)
    if rng.random() < 0.5:
        return u * (gs.relu(other) if rng.random() < 0.5 else other)
    return u.reshape(u.size, 1) @ other.reshape(1, u.size)[:, :1] + 0.0


def _affine(rng: Rng, w: Expression, size: int) -> Expression:
    linear: Expression = _small(rng, size, w.size) @ w
    # Without a constant all kinks at 0 meet in one point.
    return linear if rng.random() < 0.5 else linear + _small(rng, size)


def _atom(rng: Rng, u: Expression) -> Expression:
    if rng.random() < 0.4:
        return gs.relu(u) if rng.random() < 0.5 else gs.abs(u)
    names = sorted(ELEMENTWISE)
    kinked = [n for n in names if n not in ("logistic", "softplus", "pseudo_huber", "log_sum")]
    return ELEMENTWISE[str(rng.choice(kinked if rng.random() < 0.8 else names))](u)


def random_function(rng: Rng) -> Expression:
    """Return a random scalar expression of one to four variables."""
    w = gs.Variable(int(rng.integers(1, 5)))
    u: Expression = _affine(rng, w, int(rng.integers(1, 5))) if rng.random() < 0.8 else w
    steps: list[Callable[[Rng, Expression], Expression]] = [
        _atom, _atom, _atom, _constant_factor, _product,
        lambda rng, v: _small(rng, int(rng.integers(1, 4)), v.size) @ v.reshape(v.size),
        lambda rng, v: v + _small(rng, *v.shape),
        lambda rng, v: row_max(v.reshape(1, v.size)) if rng.random() < 0.5 else v,
    ]  # fmt: skip
    for _ in range(int(rng.integers(1, 5))):
        u = steps[int(rng.integers(len(steps)))](rng, u).reshape(-1)
    ends: list[Callable[[Expression], Expression]] = [
        gs.sum, gs.sum, gs.sum, gs.max, gs.norm1, gs.norm2, gs.sum_squares,
        lambda v: gs.softmax_cross_entropy(v.reshape(1, v.size), [0]),
    ]  # fmt: skip
    f = ends[int(rng.integers(len(ends)))](u)
    return f + 0.5 * gs.sum_squares(w) if rng.random() < 0.5 else f


# --- honest and forged certificates --------------------------------------------------------------


def _near(rng: Rng, f: Expression) -> NearCertificate:
    d, k = f.dim, int(rng.integers(1, 4))
    pivot = [Fraction(int(a), int(rng.choice([1, 1, 1, 1, 2, 3]))) for a in rng.integers(-1, 2, d)]
    if rng.random() < 0.3:
        pivot = [Fraction(0)] * d
    x = np.array([float(q) for q in pivot]) + 0.125 * rng.integers(-1, 2, d)
    ways = rng.standard_normal((k, d)) if rng.random() < 0.5 else _small(rng, k, d)
    weights = rng.random(k) + 0.1
    try:
        return NearCertificate.prove(f, x, pivot, ways, weights)
    except GoldsteinError:  # a direction on a kink: a claim that nothing supports
        nothing = np.zeros((k, d))
        return NearCertificate(x, tuple(pivot), 10.0, 1e6, ways, weights, nothing, np.zeros(k))


def _forged_near(rng: Rng, c: NearCertificate, f: Expression) -> Iterator[Case]:
    d = c.x.size
    yield Case(replace(c, eps=c.eps * 0.75), f, "eps lowered")
    yield Case(replace(c, eps=c.eps * 2 + 1e-3, delta=c.delta * 2), f, "a weaker claim")
    yield Case(replace(c, delta=c.delta * 0.75), f, "delta lowered")
    step = Fraction(1, int(rng.choice([1, 2, 2**30, 2**80]))) * int(rng.choice([-1, 1]))
    at = int(rng.integers(d))
    moved = [q + step * (i == at) for i, q in enumerate(c.exact_pivot)]
    yield Case(replace(c, exact_pivot=tuple(moved)), f, "pivot moved")
    ways = c.directions.copy()
    ways[int(rng.integers(len(ways)))] = rng.integers(-1, 2, d)
    yield Case(replace(c, directions=ways), f, "a direction exchanged")
    # The claim is weak: only the kinks decide.
    loose = replace(c, directions=rng.integers(-1, 2, ways.shape), eps=1e6, delta=10.0)
    yield Case(loose, f, "directions of small integers")
    weights = c.weights.copy()
    weights[int(rng.integers(len(weights)))] = rng.choice([-1.0, 0.0, 5.0])
    yield Case(replace(c, weights=weights), f, "a weight changed")
    yield Case(replace(c, x=c.x + rng.choice([1.0, 2.0**-40], d)), f, "x moved")
    yield Case(c, f + _another_term(rng, f), "another function")


def _another_term(rng: Rng, f: Expression) -> Expression:
    """Return a term that makes another function of f."""
    w = f.variable
    return gs.sum(gs.abs(w + _small(rng, w.size))) * float(rng.choice([1.0, 2.0**-20]))


def _goldstein(rng: Rng, f: Expression) -> GoldsteinCertificate | None:
    d, k = f.dim, int(rng.integers(1, 4))
    x = rng.standard_normal(d)
    points = x + rng.uniform(-0.1, 0.1, (k, d))
    try:
        gradients = np.array([f.gradient(y) for y in points])
    except KinkError:
        return None
    made = GoldsteinCertificate.from_gradients(x, points, gradients)
    return replace(made, digest="", eps=max(made.eps, 1e-290))  # enclosures do not prove a 0


def _restated(c: GoldsteinCertificate, f: Expression, **fields: Any) -> GoldsteinCertificate:
    """Alter a certificate; gradients are what they are, where there are any.

    The library also refuses stored gradients that are not those of the function. A proof file has
    none: they are no part of the claim.
    """
    points = fields.get("points", c.points)
    gradients = c.gradients.copy()
    for j, y in enumerate(points):
        with contextlib.suppress(KinkError):
            gradients[j] = f.gradient(y)
    return replace(c, digest="", gradients=gradients, **fields)


def _forged_goldstein(rng: Rng, c: GoldsteinCertificate, f: Expression) -> Iterator[Case]:
    if c.eps > 1e-9:  # below, one checker sees rounded gradients and the other exact ones
        yield Case(_restated(c, f, eps=c.eps * 0.75), f, "eps lowered")
    yield Case(_restated(c, f, delta=c.delta * 0.75), f, "delta lowered")
    points = c.points.copy()
    points[0] = np.round(points[0])
    gap = float(np.linalg.norm(points[0] - c.x)) * 1.001
    moved = _restated(c, f, points=points, delta=max(c.delta, gap))
    yield Case(moved, f, "a point moved")
    other = f + gs.sum(gs.abs(f.variable + _small(rng, f.dim)))
    yield Case(_restated(c, other), other, "another function")


def cases(seed: int) -> list[Case]:
    """Return some certificates of one random function, honest and forged."""
    rng = np.random.default_rng(seed)
    f = random_function(rng)
    near = _near(rng, f)
    found = [Case(near, f, "near"), *_forged_near(rng, near, f)]
    goldstein = _goldstein(rng, f)
    if goldstein is not None:
        found += [Case(goldstein, f, "goldstein"), *_forged_goldstein(rng, goldstein, f)]
    return found


# --- both verdicts -------------------------------------------------------------------------------


def verdicts(case: Case, checker: Any, path: Path) -> tuple[bool, int, str]:
    """Return the library's verdict, the checker's exit code, and what they say."""
    found = case.certificate.verify(case.function)
    said = io.StringIO()
    with contextlib.redirect_stdout(said):
        code = checker.main([str(case.certificate.export(path, case.function))])
    failed = "; ".join(f"{c.name}: {c.message}" for c in found.checks if not c.ok)
    return found.ok, code, f"library: {failed or 'ok'} | checker: {said.getvalue().strip()}"


def run(count: int, first_seed: int = 0) -> tuple[Counter[str], list[str]]:
    """Return how many cases were judged true and false, and all disagreements."""
    checker = load_checker()
    tally: Counter[str] = Counter()
    different: list[str] = []
    seed = first_seed
    with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        while sum(tally.values()) < count:
            for case in cases(seed):
                ok, code, said = verdicts(case, checker, Path(folder) / "proof.json")
                kind = type(case.certificate).__name__
                tally[f"{kind}, {case.deed}: {'true' if ok else 'false'}"] += 1
                if code != (0 if ok else 1):
                    different.append(f"seed {seed}, {kind}, {case.deed}: {said}")
            seed += 1
    return tally, different


# --- proof files against the truth ---------------------------------------------------------------

#: What no file may show.
FAULTS = ("false TRUE", "unsupported TRUE", "another combination", "read", "library: ")


class NotWritten(Exception):
    """The function has no expression with float64 data, or an eps that is no float64 number."""


def floats(texts: list[Any]) -> Any:
    numbers = [rational(text) for text in texts]
    if any(abs(q) > 2**1000 or Fraction(float(q)) != q for q in numbers):
        raise NotWritten
    return np.array([float(q) for q in numbers])


def _joined(parts: list[Expression]) -> Expression:
    return gs.concatenate([part.reshape(1) for part in parts])


def _matrix(node: Document, u: Expression) -> Expression:
    at = node.get("at") or [range(node["width"])] * len(node["rows"])
    table = np.zeros((len(at), node["width"]))
    for i, places in enumerate(at):
        table[i, list(places)] = floats(node["rows"][i]) if "rows" in node else 1.0
    out = (table @ u.reshape(node["width"], node["columns"])).reshape(-1)
    return out + floats(node["offset"]) if "offset" in node else out


def _logarithm(u: Expression, at: Any) -> Expression:
    """log(u) = log(1 + |2 u - 1|) - log 2, where u is more than 1/2."""
    if not (u(at) > 0.75).all():
        raise NotWritten
    return gs.log_sum(2.0 * u - 1.0) - gs.log_sum(0.0 * u + 1.0)


def _one_node(node: Document, args: list[Expression], at: Any) -> Expression:
    u, columns = args[0], node.get("columns", 1)
    rows = [u[i : i + columns] for i in range(0, u.size, columns)]
    match node["op"]:
        case "affine":
            return _matrix(node, u)
        case "add":
            return gs.sum(gs.stack(args), axis=0) if len(args) > 1 else u + 0.0
        case "multiply":
            return args[0] * args[1]
        case "piecewise":
            pieces = [[rational(c) for c in piece] for piece in node["pieces"]]
            breakpoints = [rational(t) for t in node["breakpoints"]]
            return Elementwise(PiecewisePolynomial("piecewise", breakpoints, pieces), u)
        case "max":
            return row_max(u.reshape(-1, columns))
        case "norm2":
            return _joined([gs.norm2(row) for row in rows])
        case "logsumexp":
            logits = [row.reshape(1, columns) for row in rows]
            return _joined([gs.softmax_cross_entropy(z, [0]) + z[0, 0] for z in logits])
    return _logarithm(u, at)


ROWWISE = {"max": nodes.Max, "norm2": irrational.Norm2, "logsumexp": irrational.LogSumExp}


def _node(data: Document, sizes: tuple[int, ...]) -> Any:
    of, size = tuple(data["of"]), sizes[0]
    match data["op"]:
        case "affine":
            columns, width = data["columns"], data["width"]
            at = data.get("at") or [range(width)] * len(data["rows"])
            matrix = np.zeros((len(at), width))
            for i, places in enumerate(at):
                matrix[i, list(places)] = floats(data["rows"][i]) if "rows" in data else 1.0
            offset = floats(data["offset"]) if "offset" in data else None
            return nodes.Affine(of, sizes, len(at) * columns, matrix, columns, offset)
        case "add":
            return nodes.Add(of, sizes, size)
        case "multiply":
            return nodes.Product(of, sizes, size, size, 1)
        case "piecewise":
            most = max(map(len, data["pieces"]))
            padded = [[*piece, *["0"] * (most - len(piece))] for piece in data["pieces"]]
            pieces = tuple(tuple(map(rational, piece)) for piece in padded)
            return nodes.Piecewise(
                of, sizes, size, tuple(map(rational, data["breakpoints"])), pieces
            )
        case "log":
            return irrational.Smooth(of, sizes, size, FUNCTIONS["log"])
    columns = data["columns"]
    return ROWWISE[data["op"]](of, sizes, size // columns, columns)


def program_of(function: list[Document]) -> Program:
    """Return the function of a proof file, node by node, as the kernel has it."""
    found: list[Any] = [nodes.Variable((), (), function[0]["size"])]
    for data in function[1:]:
        found.append(_node(data, tuple(found[a].size for a in data["of"])))
    return Program(found)


def expression_of(function: list[Document], at: Any) -> Expression:
    """Return the function of a proof file as an expression of the library, near a point."""
    values: list[Expression] = [gs.Variable(function[0]["size"])]
    for node in function[1:]:
        values.append(_one_node(node, [values[k] for k in node["of"]], at))
    return gs.sum(values[-1])


def library_says(document: Document) -> bool:
    """Return the library's verdict about a near claim of a proof file."""
    claim, evidence = document["claim"], document["evidence"]
    if claim["kind"] != "near":
        raise NotWritten
    eps, delta, *x = floats([claim["eps"], claim["delta"], *document["x"]])
    ways = np.array([floats(way) for way in evidence["directions"]])
    pivot = tuple(rational(text) for text in evidence["pivot"])
    weights = floats(evidence["weights"])
    nothing = np.zeros(ways.shape), np.zeros(len(ways))
    at = np.array([float(q) for q in pivot])
    certificate = NearCertificate(np.array(x), pivot, delta, eps, ways, weights, *nothing)
    return bool(certificate.verify(expression_of(document["function"], at)).ok)


def judged(file: ProofFile, checker: Any, path: Path) -> tuple[int, str, str]:
    """Return the checker's exit code, what it says, and what is wrong with that."""
    path.write_text(file.text)
    said = io.StringIO()
    with contextlib.redirect_stdout(said):
        code = checker.main([str(path)])
    return code, said.getvalue().strip(), file.fault(code, said.getvalue())


def _library(file: ProofFile, code: int) -> str:
    """Compare with the library: what it says, and whether it may."""
    try:
        ok = library_says(json.loads(file.text))
    except (NotWritten, GoldsteinError):
        return ""
    fault = file.fault(0 if ok else 1)
    if ok and fault:
        return f"library: {fault}"
    if ok != (code == 0):
        return f"the library says {ok}, the checker {code == 0}".lower()
    return "the library agrees"


def run_files(
    count: int, first_seed: int = 0, library: bool = True
) -> tuple[Counter[str], list[str]]:
    """Judge random proof files; return counts, and all faults."""
    checker, tally = load_checker(), Counter[str]()
    faults: list[str] = []
    seed = first_seed
    with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        while tally["files"] < count:
            for file in files(seed):
                code, said, fault = judged(file, checker, Path(folder) / "proof.json")
                other = _library(file, code) if library and file.truth else ""
                truth = file.truth.evidence if file.truth else "malformed"
                tally["files"] += 1
                tally[f"{truth}: {('TRUE', 'FALSE', 'UNREADABLE')[code]}"] += 1
                tally["claims known to be false"] += bool(file.truth and file.truth.false)
                for what in (
                    fault,
                    f"refused: {said.partition(chr(10))[0]}" if fault == "refused" else "",
                    other,
                ):
                    tally[what] += bool(what)
                    if what.startswith(FAULTS):
                        faults.append(f"seed {seed}, {file.what}: {what} | {said} | {file.truth}")
            seed += 1
    return tally, faults


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--cases", type=int, default=2000)
    parser.add_argument("--files", type=int, default=0)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    if options.files:
        tally, different = run_files(options.files, options.seed)
        what = "files", "faults"
    else:
        tally, different = run(options.cases, options.seed)
        what = "certificates", "disagreements"
    for name, count in sorted(tally.items()):
        print(f"{count:6d}  {name}")
    total = tally["files"] or sum(tally.values())
    print(f"{total} {what[0]}, {len(different)} {what[1]}")
    for line in different:
        print(line)


if __name__ == "__main__":
    main()
