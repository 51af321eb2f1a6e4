"""One proof file of each kind: its size, and how long each checker takes for it.

Times are seconds of processor, with the start of the program: `goldstein-check`, the script of
`check.html` run by Node.js, the checker that is proved in Coq.

    python -m benchmarks.proof_table
"""

from __future__ import annotations

import gzip
import os
import subprocess
import sys
import tempfile
import warnings
from collections.abc import Iterator
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
from benchmarks.browser_checker import available, judged
from benchmarks.verified import PROGRAM, ROOT, VERDICTS
from scipy.optimize import LinearConstraint

import goldstein as gs
from goldstein.certificates.minimum import Refutation


def _data(rows: int, columns: int) -> tuple[Any, Any]:
    rng = np.random.default_rng(0)
    X = rng.standard_normal((rows, columns))
    return X, np.sign(X @ rng.standard_normal(columns) + rng.standard_normal(rows))


def _breast_cancer() -> tuple[Any, Any]:
    from sklearn.datasets import load_breast_cancer

    X, y = load_breast_cancer(return_X_y=True)
    return (X - X.mean(0)) / X.std(0), 2.0 * y - 1.0


def claims(folder: Path) -> Iterator[tuple[str, Path]]:
    """Solve problems, and write what is proved about them."""
    target = {"eps": 1e-2, "delta": 1e-2, "rng": 0}

    def written(name: str, found: Any, F: Any, **limits: Any) -> tuple[str, Path]:
        return name, found.export(folder / "proof.json", F, **limits)

    X, y = _breast_cancer()
    F = gs.models.margin_svm(y[:, None] * X, rho=1.0, lam=1e-2)
    for kind in ("near", "goldstein"):
        res = gs.minimize(F, np.zeros(F.dim), stationarity=kind, max_calls=20000, **target)
        yield written(f"{kind}: ramp SVM, breast cancer, 569 x 30", res.certificate, F)
    X, y = _data(100, 10)
    w = gs.Variable(10)
    G = gs.sum(gs.abs(X @ w - y)) + 0.5 * gs.sum_squares(w)
    plane = [LinearConstraint(np.ones((1, 10)), -np.inf, [0.1])]
    limits: dict[str, Any] = {"bounds": [(-1, 1)] * 10, "constraints": plane}
    res = gs.minimize(G, np.zeros(10), stationarity="near", **limits, **target)
    yield written("near-kkt: least deviations, 100 x 10", res.certificate, G, **limits)
    smooth = gs.sum(gs.logistic(y * (X @ w)))
    res = gs.minimize(smooth, np.zeros(10), plus=gs.prox.l1(1.0), **target)
    yield written("plus: logistic loss and l1, 100 x 10", res.certificate, smooth)
    U = gs.Variable(48)
    low = 0.5 * gs.sum_squares(U - _data(8, 6)[0].ravel())
    res = gs.minimize(low, np.zeros(48), plus=gs.prox.nuclear(1.0, (8, 6)), **target)
    yield written("plus: nuclear norm, 8 x 6", res.certificate, low)
    res = gs.minimize(G, np.zeros(10), stationarity="minimum", **target)
    yield written("minimum: least deviations, 100 x 10", res.certificate, G)
    inside = gs.minimize(G, np.zeros(10), stationarity="minimum", **limits, **target)
    title = "minimum among feasible points: least deviations, 100 x 10"
    yield written(title, inside.certificate, G, **limits)
    few, labels = _data(24, 2)
    v = gs.Variable(2)
    ramps = gs.sum(gs.ramp((labels[:, None] * few) @ v, rho=1.0)) / 24 + 0.05 * gs.sum_squares(v)
    tree = gs.minimize(ramps, np.ones(2), stationarity="minimum", **target)
    yield written("minimum by 10 cases: ramp SVM, 24 x 2", tree.certificate, ramps)
    x, point = np.zeros(10), res.x
    own = {"x": x, "point": point, "direction": point - x, "fall": 0.5 * float(G(x) - G(point))}
    lower = Refutation(**own, exact_pivot=tuple(map(Fraction, x.tolist())))
    yield written("refutation: least deviations, 100 x 10", lower, G)


def _cost(command: list[str]) -> tuple[int, float]:
    before = os.times()
    code = subprocess.run(command, capture_output=True, timeout=600).returncode
    after = os.times()
    return code, sum(after[2:4]) - sum(before[2:4])


def main() -> None:
    checker = str(ROOT / "src" / "goldstein_check.py")
    print("| file | kB | .gz, kB | goldstein-check, s | page, s | proved, s |")
    print("|---|---|---|---|---|---|")
    with tempfile.TemporaryDirectory() as name, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for title, path in claims(Path(name)):
            raw = path.read_bytes()
            cells = [f"{len(raw) / 1e3:.0f}", f"{len(gzip.compress(raw)) / 1e3:.0f}"]
            code, seconds = _cost([sys.executable, "-I", checker, str(path)])
            cells.append(f"{VERDICTS[code]} {seconds:.2f}")
            if available():
                before = os.times()
                (said,) = judged([raw.decode()])
                cells.append(f"{said['verdict']} {sum(os.times()[2:4]) - sum(before[2:4]):.2f}")
            if PROGRAM.exists():
                code, seconds = _cost([str(PROGRAM), str(path)])
                cells.append(VERDICTS[code] + (f" {seconds:.2f}" if code < 3 else ""))
            print(f"| {title} | " + " | ".join(cells) + " |", flush=True)


if __name__ == "__main__":
    main()
