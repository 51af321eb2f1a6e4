"""Two checkers that share no code, on the same certificates: they must agree.

Random functions over all atoms that proof files know, honest certificates of them, and forged ones:
each is put to `certificate.verify`, and exported and put to `goldstein-check`. Every disagreement
is a bug of one of them, and is printed with the seed that makes it again.

    python -m benchmarks.differential --cases 2000
"""

from __future__ import annotations

import argparse
import contextlib
import importlib.util
import io
import tempfile
import warnings
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np

import goldstein as gs
from goldstein.calculus import Expression
from goldstein.calculus.atoms import row_max
from goldstein.calculus.atoms.registry import ELEMENTWISE
from goldstein.certificates import GoldsteinCertificate, NearCertificate
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
    return GoldsteinCertificate.from_gradients(x, points, gradients)


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


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--cases", type=int, default=2000)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    tally, different = run(options.cases, options.seed)
    for what, count in sorted(tally.items()):
        print(f"{count:6d}  {what}")
    print(f"{sum(tally.values())} certificates, {len(different)} disagreements")
    for line in different:
        print(line)


if __name__ == "__main__":
    main()
