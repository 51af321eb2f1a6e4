"""Random NumPy programs, traced, against NumPy, JAX and sixty digits.

    python -m benchmarks.random_programs 2000 --seed 0

Each program is source text, run four times: by `gs.trace`, by NumPy, by JAX (gradients) and by
mpmath on arrays of long numbers. Four questions: is the value that of NumPy; does the enclosure of
the checker hold the value of sixty digits; is the gradient that of JAX; does the enclosure of the
gradient hold differences of sixty digits? Results: plain_code.md.
"""

from __future__ import annotations

import argparse
import re
import time
import types
from collections import Counter
from fractions import Fraction
from functools import partial
from typing import Any

import numpy as np

import goldstein as gs
from goldstein.checker.enclosed.point import EnclosedPoint
from goldstein.checker.sides import Side, point_at

#: Digits, and the step of differences.
DIGITS, STEP = 60, Fraction(1, 10**20)

#: Of vectors u and v; M is a matrix, c a number, p a positive one.
VECTORS = """
np.abs(u - {c}) | np.abs(u) | np.sin(u) | np.cos(u * {c}) | np.tanh(u) | np.arctan(u) | u ** 2
u ** 3 | np.exp(0.25 * np.tanh(u)) | np.exp(-u ** 2) | np.maximum(u, {c}) | np.minimum(u, v)
np.maximum(u, v) | np.clip(u, -1.0, {p}) | np.sqrt(u ** 2 + {p}) | np.log(1.5 + np.sin(u))
np.log1p(np.exp(u * 0.5)) | 1.0 / (1.0 + u ** 2) | u / (2.0 + np.cos(v))
np.where(u > 0, u, 0.5 * u) | u[::-1] | np.roll(u, 1)
np.where(np.abs(u) <= 1.0, 0.5 * u ** 2, np.abs(u) - 0.5) | np.sort(u) | np.cumsum(u) | M @ u
np.tanh(M @ u) | np.abs(M @ u - {c}) | u + v | u - v | u * v | {c} * u - v | -u | u + {c}
u * {c} / 3 | np.concatenate([u[:1], v[1:]]) | np.outer(u, v).sum(axis=0) * 0.25
np.maximum(np.abs(u), v ** 2) | (1.0 + u ** 2) ** 0.75 | np.hypot(u, 1.0 + v ** 2)
np.where(u >= v, u, v) | np.abs(u) * v | np.stack([u, v]).max(axis=0)
np.stack([u, v, u * v]).sum(axis=0) | np.sqrt(np.stack([u, v]) ** 2 + 1.0)[0]
np.where(u < {c}, {c}, u) | np.append(u[1:], v[0]) | np.abs(np.abs(u) - {p})
np.maximum(u, 0) ** 2
"""
#: Numbers made of vectors.
SCALARS = """
np.sum(u) | np.sum(np.abs(u)) | np.max(u) | np.min(u) | np.mean(u) | np.linalg.norm(u - {c})
u @ v | np.median(u) | np.prod(np.tanh(u)) | np.log(np.sum(np.exp(u))) | np.sum(np.sort(u)[1:])
np.sum(u ** 2) | u[0] * v[-1] | abs(u[0] - np.exp(0.5 * np.tanh(v[1]))) | np.maximum(u[0], v[1])
np.ptp(u) | np.max(np.abs(u)) | np.sum(np.diff(u) ** 2) | np.sum(np.abs(np.diff(u)))
sum(abs(u[i] - v[i]) for i in range(len(u))) | np.sqrt(np.sum(u ** 2) + {p})
np.sum(np.maximum(0.0, 1.0 - u)) | np.max(M @ u) | np.var(u) | u @ (M @ v)
np.linalg.norm(np.stack([u, v]), axis=0).sum() | np.log(np.sum(u ** 2) + {p})
np.sum(np.where(u > v, u, v))
"""
VECTOR_FORMS = [form.strip() for form in VECTORS.replace("\n", "|").split("|") if form.strip()]
SCALAR_FORMS = [form.strip() for form in SCALARS.replace("\n", "|").split("|") if form.strip()]


def program(rng: np.random.Generator) -> tuple[str, dict[str, Any], int]:
    """Source of a function f(x), the constants it speaks of, and the length of x."""
    n, names, lines = int(rng.integers(2, 6)), ["x"], []
    data = {f"M{j}": np.round(rng.standard_normal((n, n)), 2) for j in range(2)}

    def written(form: str) -> str:
        numbers = {"c": round(float(rng.normal()), 2), "p": round(float(rng.uniform(0.2, 2.0)), 2)}
        u, v = (names[i] for i in rng.integers(len(names), size=2))
        text = form.format(**numbers).replace("M @", f"M{rng.integers(2)} @")
        return re.sub(r"\b([uv])\b", lambda found: {"u": u, "v": v}[found[0]], text)

    for j in range(int(rng.integers(1, 5))):
        lines.append(f"    y{j} = {written(VECTOR_FORMS[rng.integers(len(VECTOR_FORMS))])}")
        names.append(f"y{j}")
    terms = [f"({written(SCALAR_FORMS[rng.integers(len(SCALAR_FORMS))])})"
             for _ in range(int(rng.integers(1, 4)))]  # fmt: skip
    return "\n".join(["def f(x):", *lines, f"    return {' + '.join(terms)}"]), data, n


def long_numbers() -> Any:
    """NumPy's functions on arrays of long numbers."""
    import mpmath

    mp = mpmath.mp.clone()
    mp.dps = DIGITS
    entrywise = {name: np.frompyfunc(getattr(mp, name), 1, 1) for name in
                 ("exp", "sin", "cos", "tanh", "sqrt", "log")}  # fmt: skip
    entrywise["arctan"] = np.frompyfunc(mp.atan, 1, 1)
    entrywise["log1p"] = np.frompyfunc(lambda t: mp.log(1 + t), 1, 1)
    entrywise["hypot"] = np.frompyfunc(mp.hypot, 2, 1)

    def median(u: Any) -> Any:
        s = sorted(u)
        return (s[(len(s) - 1) // 2] + s[len(s) // 2]) / 2

    def norm(u: Any, axis: Any = None) -> Any:
        return entrywise["sqrt"](np.sum(u * u, axis=axis))

    def var(u: Any) -> Any:
        return np.mean((u - np.mean(u)) ** 2)

    same = """abs maximum minimum clip where sort cumsum roll concatenate outer stack append sum
        max min mean prod diff ptp"""
    moved = {name: getattr(np, name) for name in same.split()}
    # Numbers of the program that are chosen must be long, too: else they are added as floats.
    longer = np.frompyfunc(mp.mpf, 1, 1)
    for name in ("maximum", "minimum", "clip", "where"):
        moved[name] = partial(lambda choose, *args: longer(choose(*args)), moved[name])
    space = types.SimpleNamespace(**moved, **entrywise, median=median, var=var)
    space.linalg = types.SimpleNamespace(norm=norm)
    return mp, space


def run_in(source: str, data: dict[str, Any], space: Any) -> Any:
    """The function that a source defines, where np means something."""
    names: dict[str, Any] = {"np": space, **data}
    exec(compile(source, "<random program>", "exec"), names)
    return names["f"]


class Compared:
    """Programs so far, and what went wrong."""

    def __init__(self) -> None:
        self.counts: Counter[str] = Counter()
        self.false: list[str] = []
        self.mp, self.space = long_numbers()
        import jax

        self.jax = jax

    def one(self, seed: int) -> None:
        """Draw a program and a point, and ask the four questions."""
        rng = np.random.default_rng([29, seed])
        source, data, n = program(rng)
        x = np.round(rng.standard_normal(n), 3) + 2.0**-30
        f = run_in(source, data, np)
        try:
            F = gs.trace(f, x)
        except TypeError as refusal:
            self.counts[f"refused: {str(refusal)[:60]}"] += 1
            return
        self.counts["traced"] += 1
        plain = float(f(x))
        same = np.isclose(F.value(x), plain, rtol=1e-10, atol=1e-10)  # or both overflow
        self._ask(seed, "value", bool(same))
        long = run_in(source, data, self.space)
        exact = self._long(long, [Fraction(t) for t in x.tolist()])
        try:
            low, high = map(Fraction, point_at(F.program(), x).between())
        except gs.NotCertifiableError:  # a tie of numbers that no enclosure tells apart
            self.counts["undecided"] += 1
            return
        # Sixty digits are rounded, too.
        rest = (1 + abs(exact)) / 10**50
        self._ask(seed, "enclosed value", low - rest <= exact <= high + rest)
        try:
            g = F.gradient(x)
        except gs.KinkError:
            self.counts["on a kink"] += 1
            return
        with self.jax.enable_x64(True):
            theirs = np.asarray(self.jax.grad(run_in(source, data, self.jax.numpy))(x))
        if np.isnan(theirs).any():  # JAX differentiates the root of a norm that stays 0
            self.counts["no gradient of JAX"] += 1
            return
        scale = 1e-9 * (1.0 + np.abs(g).max())
        self._ask(seed, "gradient", bool((np.abs(g - theirs) <= scale).all()))
        self._enclosed_gradient(seed, F, x, long)

    def _enclosed_gradient(self, seed: int, F: Any, x: Any, long: Any) -> None:
        side = Side(EnclosedPoint(F.program(), x), None)
        found = side.gradient()
        mid, rad = (np.asarray(part, dtype=float) for part in (found.mid, found.rad))
        i = seed % x.size
        ends = [[Fraction(t) + (sign * STEP if j == i else 0) for j, t in enumerate(x.tolist())]
                for sign in (1, -1)]  # fmt: skip
        slope = (self._long(long, ends[0]) - self._long(long, ends[1])) / (2 * STEP)
        # What a difference leaves out is less than 1e-25; a kink in between shows as half a jump.
        gap = abs(slope - Fraction(mid[i])) - Fraction(rad[i])
        self._ask(seed, "enclosed gradient", gap <= Fraction(1, 10**15))

    def _long(self, f: Any, x: list[Fraction]) -> Fraction:
        point = np.array([self.mp.mpf(t.numerator) / t.denominator for t in x], dtype=object)
        value = self.mp.mpf(f(point))
        sign, top, power, _ = value._mpf_
        return (-1) ** sign * Fraction(int(top)) * Fraction(2) ** int(power)

    def _ask(self, seed: int, what: str, holds: bool) -> None:
        self.counts[what] += 1
        if not holds:
            self.false.append(f"{what}, seed {seed}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("count", type=int)
    parser.add_argument("--seed", type=int, default=0)
    asked = parser.parse_args()
    compared, begin = Compared(), time.thread_time()
    for seed in range(asked.seed, asked.seed + asked.count):
        compared.one(seed)
    for what, count in compared.counts.most_common():
        print(f"{count:7d} {what}")
    print(
        f"{len(compared.false)} false in {time.thread_time() - begin:.0f} s:", *compared.false[:20]
    )


if __name__ == "__main__":
    main()
