"""Chains, grids and trees of kinks drawn at random: certified as sums of elements, as black boxes?

    python -m benchmarks.chains                        # 24 functions by seeds nothing was chosen on
    python -m benchmarks.chains --seeds 0 1 2 --dim 1000    # those that settings were chosen on
    python -m benchmarks.chains --plain                # the same functions, as black boxes
    python -m benchmarks.chains --circles              # not convex

A function has one element per edge of a chain, a tree (every vertex hangs on one of the fifty
before it) or a square grid, of three kinds out of these: maxima of a modulus and a square, of three
planes, of two bowls, moduli of differences; with `--circles` one is |x^2 + y^2 - r|. And of 70 %
of the variables |x| or |x - c|, of 70 % a smooth bowl. Seeds 0 and 1000 of "chain" are given:
max(|x_j - x_i - b|, (x_j - 1)^2) and 0.1 |x|. (1e-2, 1e-2), start 0; CPU seconds of the run, proof
included; every certificate has to pass `verify` with another seed.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable

import numpy as np

import goldstein as gs

#: Values and gradients of elements at their variables, one row each.
Kind = Callable[[np.ndarray], tuple[np.ndarray, np.ndarray]]

GRAPHS = ("chain", "tree", "grid")


def edges(graph: str, d: int, rng: np.random.Generator) -> np.ndarray:
    """Pairs of variables, one row each."""
    if graph == "chain":
        return np.arange(d - 1)[:, None] + [0, 1]
    if graph == "tree":
        below = np.arange(1, d)
        back = rng.integers(1, 51, d - 1)
        return np.stack([np.maximum(below - back, 0), below], axis=1)
    side = int(np.sqrt(d))
    place = np.arange(side * side).reshape(side, side)
    across = np.stack([place[:, :-1].ravel(), place[:, 1:].ravel()], axis=1)
    down = np.stack([place[:-1].ravel(), place[1:].ravel()], axis=1)
    return np.concatenate([across, down])


def largest(values: list[np.ndarray], slopes: list[np.ndarray]) -> tuple[np.ndarray, np.ndarray]:
    """The maximum, element by element, and the gradient of the first that attains it."""
    table = np.stack(values)
    which = table.argmax(axis=0)
    everyone = np.arange(which.size)
    return table[which, everyone], np.stack(slopes)[which, everyone]


def step(rng: np.random.Generator, n: int) -> Kind:
    b = rng.standard_normal(n)

    def both(u: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        r, q = u[:, 1] - u[:, 0] - b, u[:, 1] - 1.0
        up = np.tile([-1.0, 1.0], (n, 1))
        return largest([r, -r, q * q], [up, -up, np.stack([0.0 * q, 2.0 * q], 1)])

    return both


def gap(rng: np.random.Generator, n: int) -> Kind:
    b, weight = rng.standard_normal(n), rng.uniform(0.2, 2.0, n)

    def both(u: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        r = u[:, 1] - u[:, 0] - b
        s = weight * np.sign(r)
        return weight * np.abs(r), np.stack([-s, s], axis=1)

    return both


def planes(rng: np.random.Generator, n: int) -> Kind:
    slopes = rng.standard_normal((3, n, 2))
    slopes -= slopes.mean(axis=0)  # bounded below
    heights = rng.standard_normal((3, n))

    def both(u: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        values = (slopes * u).sum(axis=2) + heights
        return largest(list(values), list(slopes))

    return both


def bowls(rng: np.random.Generator, n: int) -> Kind:
    c = rng.standard_normal((2, n, 2))

    def both(u: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        away = [u - c[0], u - c[1]]
        return largest([(a * a).sum(axis=1) for a in away], [2.0 * a for a in away])

    return both


def circle(rng: np.random.Generator, n: int) -> Kind:
    r = rng.uniform(0.5, 1.5, n)

    def both(u: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        y = (u * u).sum(axis=1) - r
        return np.abs(y), 2.0 * np.sign(y)[:, None] * u

    return both


def modulus(rng: np.random.Generator, n: int) -> Kind:
    c, weight = rng.standard_normal(n) * rng.integers(0, 2, n), rng.uniform(0.05, 0.5, n)

    def both(u: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        r = u[:, 0] - c
        return weight * np.abs(r), (weight * np.sign(r))[:, None]

    return both


def bowl(rng: np.random.Generator, n: int) -> Kind:
    c = rng.standard_normal(n)

    def both(u: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        root = np.sqrt(1.0 + (u[:, 0] - c) ** 2)
        return root, ((u[:, 0] - c) / root)[:, None]

    return both


CONVEX = (step, gap, planes, bowls)


def the_chain(d: int, seed: int) -> gs.PartiallySeparable:
    """max(|x_(i+1) - x_i - b_i|, (x_(i+1) - 1)^2), and 0.1 |x_i|."""
    kink = step(np.random.default_rng(seed), d - 1)
    sides = [(lambda u: kink(u)[0], lambda u: kink(u)[1])]
    sides.append((lambda u: 0.1 * np.abs(u[:, 0]), lambda u: 0.1 * np.sign(u)))
    return gs.PartiallySeparable(sides, [np.arange(d - 1)[:, None] + [0, 1], np.arange(d)[:, None]])


def drawn(graph: str, d: int, seed: int, circles: bool = False) -> gs.PartiallySeparable:
    """A function of some kinds of elements, three for pairs and two for variables."""
    rng = np.random.default_rng([seed, GRAPHS.index(graph)])
    pairs = edges(graph, d, rng)
    d = int(pairs.max()) + 1
    which = [CONVEX[j] for j in rng.choice(len(CONVEX), 3, replace=False).tolist()]
    if circles:
        which[0] = circle
    of = rng.integers(0, 3, len(pairs))
    terms, indices = [], []
    for j, kind in enumerate(which):
        rows = pairs[of == j]
        terms.append(kind(rng, len(rows)))
        indices.append(rows)
    for single in (modulus, bowl):
        rows = np.flatnonzero(rng.random(d) < 0.7)[:, None]
        terms.append(single(rng, len(rows)))
        indices.append(rows)
    return gs.PartiallySeparable(
        [(lambda u, t=t: t(u)[0], lambda u, t=t: t(u)[1]) for t in terms], indices, dim=d
    )


def row(name: str, f: gs.PartiallySeparable, plain: bool, max_time: float) -> tuple[bool, str]:
    g = None
    asked = f
    if plain:
        asked, g = f.value, f.gradient  # type: ignore[assignment]
    begin = time.process_time()
    res = gs.minimize(
        asked, np.zeros(f.dim or 0), g, eps=1e-2, delta=1e-2, rng=0, max_time=max_time
    )
    took = time.process_time() - begin
    cert = res.certificate
    ok = bool(res.success)
    if ok and not cert.verify(asked, g, seed=11).ok:
        return False, f"{name:12} CONTRADICTED"
    said = "yes" if ok else f"no ({res.status.name}, {'-' if cert is None else f'{cert.eps:.2g}'})"
    rows = 0 if cert is None else len(cert.weights)
    calls = res.nfev + res.ngev
    return ok, f"{name:12} {said:28} {rows:4} rows {calls:7} calls {took:6.1f} s  f {res.fun:.8g}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seeds", nargs="*", type=int, default=list(range(1000, 1008)))
    parser.add_argument("--graphs", nargs="*", choices=GRAPHS, default=list(GRAPHS))
    parser.add_argument("--dim", type=int, default=10_000)
    parser.add_argument("--circles", action="store_true", help="a third of the pairs: not convex")
    parser.add_argument("--plain", action="store_true", help="as black boxes")
    parser.add_argument("--max-time", type=float, default=60.0, help="wall time of a run")
    given = parser.parse_args()
    proved = total = 0
    for graph in given.graphs:
        for seed in given.seeds:
            special = graph == "chain" and seed % 1000 == 0
            f = (
                the_chain(given.dim, seed)
                if special
                else drawn(graph, given.dim, seed, given.circles)
            )
            ok, said = row(f"{graph} {seed}", f, given.plain, given.max_time)
            proved, total = proved + ok, total + 1
            print(said, flush=True)
    print(f"{proved} of {total} certified")


if __name__ == "__main__":
    main()
