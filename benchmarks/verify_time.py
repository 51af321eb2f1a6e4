"""How long verifications take, with these sources and with others, on the same certificates.

    python -m benchmarks.verify_time write certs --source ../old/src   # once
    python -m benchmarks.verify_time time certs --against ../old/src   # medians, and their ratio

Where these sources cannot read files of the others, the same claims are written again for them:

    python -m benchmarks.verify_time again certs --source ../old/src   # makes certs/again

Certificates are files; what they are about is made again here. Both sources have a process of
their own and take turns, so that a busy machine is as busy for both. CPU milliseconds of one
thread; every verification must agree.
"""

from __future__ import annotations

import argparse
import dataclasses
import json
import os
import pickle
import subprocess
import sys
import time
from collections.abc import Callable
from functools import cache, partial
from pathlib import Path
from statistics import median
from typing import Any, NamedTuple

HERE = Path(__file__).parents[1]

#: A round of one case is as many verifications as fit into so many seconds, one at least.
ROUND, ROUNDS = 0.3, 7


class Case(NamedTuple):
    """What a certificate is about, and how it is made."""

    about: Callable[[], tuple[Any, ...]]
    limits: dict[str, Any]
    make: Callable[[], Any]


def searched(about: Callable[[], tuple[Any, ...]], start: Any, limits: Any = None) -> Case:
    """A certificate of `minimize`; `start` has the arguments x0, eps, delta and more."""
    limits = limits or {}

    def make() -> Any:
        import goldstein as gs

        fun, *jac = about()
        return gs.minimize(fun, jac=jac[0] if jac else None, rng=0, **start(), **limits).certificate

    return Case(about, limits, make)


def target(x0: Any, level: float, **more: Any) -> Callable[[], dict[str, Any]]:
    return lambda: {"x0": x0() if callable(x0) else x0, "eps": level, "delta": level, **more}


def problem(name: str, d: int | None = None) -> Case:
    import goldstein as gs

    get = cache(partial(gs.problems.get, name, d))
    return searched(lambda: (get(),), target(lambda: get().x0, 1e-2 if d else 1e-3), get().limits)


def expression(make: Callable[[], Any], x0: Any, level: float = 1e-3, limits: Any = None) -> Case:
    once = cache(make)
    return searched(lambda: (once(),), target(x0, level, stationarity="near"), limits)


def machine(rows: int, columns: int) -> Case:
    """A margin machine fitted by scikit-learn's rules, and its objective as a model."""
    from benchmarks.recorded.functions import classes

    import goldstein as gs
    from goldstein.sklearn import RhoMarginSVC

    X, y = classes(rows, columns)

    def model() -> tuple[Any]:
        import numpy as np

        signed = (2.0 * y - 1.0)[:, None] * np.column_stack([X, np.ones(rows)])
        weights = np.full(rows, 1.0 / rows)
        return (
            gs.models.margin_svm(
                signed, rho=2.0, lam=1.0 / rows, weights=weights, shift=-1.0, intercept=True
            ),
        )

    def make() -> Any:
        fit = RhoMarginSVC(rho=2.0, shift=-1.0, C=1.0, eps=1e-5, random_state=0).fit(X, y)
        if fit.certificate_.kind != "near":
            sys.exit(f"no near certificate of {rows} x {columns}: {fit.certificate_.meta}")
        return fit.certificate_

    return Case(cache(model), {}, make)


def cases() -> dict[str, Case]:
    """Return what is verified, by name."""
    import numpy as np
    from benchmarks.recorded import families as f
    from benchmarks.recorded import functions as g

    import goldstein as gs

    found = {"goldstein 2": searched(lambda: g.VALLEY, target(g.VALLEY_START, 1e-3))}
    for name, d in (("maxq_20", None), ("chained_lq", None), ("active_faces", 200),
                    ("chained_crescent_1", 1000), ("maxq", 200)):  # fmt: skip
        one = problem(name, d)
        found[f"goldstein {one.about()[0].dim}, {name}"] = one
    for name in ("valley in a circle", "deviations, simplex", "distances on a sphere"):
        fun, x0, jac, limits = f.limited()[name]
        found[f"kkt, {name}"] = searched(lambda p=(fun, jac): p, target(x0, 1e-3), limits)
    found["kkt, wong_3_linear"] = problem("wong_3_linear")
    for name, (term, more) in f.terms().items():
        if not more:
            loss = g.squares(30, 6)
            start = target(np.linspace(0.0, 1.0, 6), 1e-3)
            found[f"plus, {name}"] = searched(lambda p=loss: p, start, {"plus": term})
    loss = g.squares(100, 300)
    sparse = {"plus": gs.prox.l1(0.5)}
    found["plus, l1 300"] = searched(lambda: loss, target(np.zeros(300), 1e-2), sparse)
    for rows, columns in ((100, 5), (1000, 20), (20_000, 50)):
        found[f"near, svm {rows} x {columns}"] = machine(rows, columns)
    for name in ("network 12x3", "network 30x4 huber", "three classes 30x3"):
        model = cache(g.MODELS[name])
        found[f"near, {name}"] = expression(model, lambda m=model: m().start(0), 1e-2)
    wide = cache(partial(g.network, 200, 8, 10))
    found["near, network 200x8"] = expression(wide, lambda: wide().start(0), 1e-2)
    for pieces, d in ((20, 5), (200, 10)):
        affine = partial(g.largest_affine, pieces, d)
        found[f"near, largest affine {pieces} x {d}"] = expression(affine, np.linspace(-1, 2, d))
    found["near, valley"] = expression(g.valley_expression, g.VALLEY_START)
    for name in ("hinges, simplex", "hinges, fair"):
        F, x0, limits = f.near_limited()[name]
        found[f"near-kkt, {name}"] = expression(lambda F=F: F, x0, 1e-3, limits)
    bounds = {"bounds": [(-0.05, 0.05)] * 20}
    hinges = cache(partial(g.hinge_sum, 1000, 20))
    found["near-kkt, hinges 1000 x 20"] = expression(hinges, np.zeros(20), 1e-3, bounds)
    return found


def file_of(folder: Path, name: str) -> Path:
    return folder / f"{''.join(c if c.isalnum() else '-' for c in name)}.cert"


def write(folder: Path) -> None:
    """Make and save the certificates that are not there yet."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, case in cases().items():
        if file_of(folder, name).exists():
            continue
        begin = time.process_time()
        found = case.make()
        kind = name.split(",")[0].split(" ")[0]
        if found is None or found.kind != kind:
            print(f"{name}: no certificate of this kind, but {found}", flush=True)
            continue
        found.save(file_of(folder, name))
        print(f"{name}: {time.process_time() - begin:.1f} s, {found.summary()}", flush=True)


def keep_fields(folder: Path) -> None:
    """Write the fields of all certificates, as these sources read them."""
    import goldstein as gs

    found = {}
    for path in sorted(folder.glob("*.cert")):
        one = gs.load_certificate(path)
        names = [field.name for field in dataclasses.fields(one)]
        plain = {n: getattr(one, n) for n in names if n not in ("digest", "term")}
        found[path.name] = one.kind, plain
    (folder / "fields.pickle").write_bytes(pickle.dumps(found))


def write_again(folder: Path) -> None:
    """Make the same claims as certificates of these sources."""
    from goldstein.storage.codec import certificate_kind

    (folder / "again").mkdir(exist_ok=True)
    found = pickle.loads((folder / "fields.pickle").read_bytes())  # of our own making
    for name, case in cases().items():
        path = file_of(folder, name)
        if path.name in found:
            kind, fields = found[path.name]
            term = {"term": case.limits["plus"]} if "plus" in case.limits else {}
            certificate_kind(kind)(**fields, **term).save(folder / "again" / path.name)


def verified(certificate: Any, case: Case) -> bool:
    seed = {} if certificate.kind == "near" else {"seed": 0}
    return bool(certificate.verify(*case.about(), **seed, **case.limits).ok)


def serve(folder: Path) -> None:
    """Verify what is named on standard input, for a while, and answer with milliseconds."""
    import goldstein as gs

    known = cases()
    for line in sys.stdin:
        name = line.strip()
        case, times = known[name], []
        certificate = gs.load_certificate(file_of(folder, name))
        case.about()
        while sum(times) < ROUND or not times:
            begin = time.process_time()
            ok = verified(certificate, case)
            times.append(time.process_time() - begin)
            if not ok:
                break
        print(json.dumps([1e3 * t for t in times] if ok else []), flush=True)


def started(source: Path, *arguments: str, **more: Any) -> subprocess.Popen[str]:
    path = os.pathsep.join([str(source.resolve()), str(HERE)])
    env = {**os.environ, "PYTHONPATH": path, "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
    command = [sys.executable, "-m", "benchmarks.verify_time", *arguments]
    return subprocess.Popen(command, text=True, env=env, **more)


def compare(folder: Path, sources: list[Path]) -> None:
    """Print medians of both sources and their ratio."""
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
    again = folder / "again" if (folder / "again").exists() else folder
    folders = [folder, again][-len(sources) :]
    servers = [started(s, "serve", str(own), **pipes) for s, own in zip(sources, folders)]
    names = [name for name in cases() if file_of(folder, name).exists()]
    heads = ["ms"] if len(sources) == 1 else ["before, ms", "after, ms", "ratio"]
    print("| certificate | " + " | ".join(heads) + " |\n" + "|---" * (1 + len(heads)) + "|")
    ratios = []
    for name in names:
        times: list[list[float]] = [[] for _ in sources]
        for _ in range(ROUNDS):
            for server, mine in zip(servers, times):
                assert server.stdin is not None
                assert server.stdout is not None
                print(name, file=server.stdin, flush=True)
                mine += json.loads(server.stdout.readline())
        cells = [f"{median(mine):.2f}" if mine else "refused" for mine in times]
        if len(sources) == 2 and all(times):
            ratios.append(median(times[1]) / median(times[0]))
            cells.append(f"{ratios[-1]:.2f}")
        print(f"| {name} | " + " | ".join(cells) + " |", flush=True)
    for server in servers:
        server.communicate()
    if ratios:
        print(f"\nratios: median {median(ratios):.2f}, largest {max(ratios):.2f}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("command", choices=["write", "time", "again", "serve", "make", "fields"])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--source", type=Path, default=HERE / "src")
    parser.add_argument("--against", type=Path, help="the sources of before")
    options = parser.parse_args()
    folder = options.folder.resolve()
    if options.command == "write":
        sys.exit(started(options.source, "make", str(folder)).wait())
    if options.command == "again":
        started(options.source, "fields", str(folder)).wait()
        write_again(folder)
    elif options.command == "make":
        write(folder)
    elif options.command == "fields":
        keep_fields(folder)
    elif options.command == "serve":
        serve(folder)
    else:
        compare(folder, [*filter(None, [options.against]), options.source])


if __name__ == "__main__":
    main()
