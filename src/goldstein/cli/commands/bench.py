"""`goldstein bench`: a quick comparison on the built-in problems, in the terminal."""

import statistics
import time
import warnings
from dataclasses import asdict, dataclass
from typing import Annotated

import numpy as np
import typer
from rich.table import Table
from scipy.optimize import minimize as scipy_minimize

from goldstein import problems
from goldstein.api import certify, minimize
from goldstein.cli.arguments import AsJson, Seed, complete_name
from goldstein.cli.folder import answer, console
from goldstein.errors import InputError
from goldstein.oracles import CountedOracle
from goldstein.problems import Problem
from goldstein.solvers import REGISTRY

#: Small, varied and quick: polyhedral, minimax, chained, eigenvalues, learning.
QUICK = (
    "crescent", "cb3", "mifflin_2", "maxquad", "chained_lq", "chained_cb3_1", "chained_crescent_1",
    "active_faces", "goffin",
)  # fmt: skip
PEERS = {"scipy-bfgs": "BFGS", "scipy-lbfgsb": "L-BFGS-B"}


@dataclass(frozen=True)
class Line:
    """One problem, one method."""

    problem: str
    d: int
    method: str
    certified: bool
    eps: float
    calls: int
    fun: float
    seconds: float


def bench(
    names: Annotated[
        list[str] | None,
        typer.Argument(help="Problems; default a quick few.", autocompletion=complete_name),
    ] = None,
    methods: Annotated[
        str, typer.Option(help="Comma-separated: our methods, scipy-bfgs, scipy-lbfgsb.")
    ] = "auto,bundle,scipy-bfgs",
    level: Annotated[float, typer.Option(help="eps = delta.")] = 1e-3,
    seed: Seed = 0,
    max_calls: Annotated[int, typer.Option(help="Limit on values plus gradients.")] = 20_000,
    as_json: AsJson = False,
) -> None:
    """Compare methods on built-in problems: calls to a certificate, and the bound that was proved.

    A method without certificates has its final point certified; those calls are included.
    """
    chosen = [m.strip() for m in methods.split(",")]
    known = [*sorted(set(REGISTRY) - {"psingd", "o2nc"}), *PEERS]
    for method in chosen:
        if method not in known:
            raise InputError(f"unknown method {method!r}; known: {', '.join(known)}.")
    wanted = [problems.get(name) for name in names or QUICK]
    lines = [_run(p, m, level, seed, max_calls) for p in wanted for m in chosen]
    facts = {"level": level, "runs": [asdict(line) for line in lines]}
    answer(as_json, facts, lambda: _show(lines, chosen, level))


def _run(problem: Problem, method: str, level: float, seed: int, max_calls: int) -> Line:
    begin = time.perf_counter()
    if method in PEERS:
        oracle = CountedOracle(problem)
        with warnings.catch_warnings(), np.errstate(all="ignore"):
            warnings.simplefilter("ignore")
            found = scipy_minimize(
                problem.value, problem.x0, jac=problem.gradient, method=PEERS[method],
                options={"gtol": level, "maxiter": max_calls},
            )  # fmt: skip
        x, fun, calls = np.asarray(found.x), float(found.fun), int(found.nfev + found.njev)
        certificate = certify(oracle, x, delta=level, eps=level, rng=seed)
        eps, calls = certificate.eps, calls + oracle.calls
    else:
        result = minimize(
            problem, problem.x0, eps=level, delta=level, method=method, rng=seed,
            max_calls=max_calls,
        )  # fmt: skip
        fun, calls = result.fun, result.nfev + result.ngev
        eps = np.inf if result.certificate is None else result.certificate.eps
    seconds = time.perf_counter() - begin
    return Line(problem.name, problem.x0.size, method, eps <= level, eps, calls, fun, seconds)


def _show(lines: list[Line], methods: list[str], level: float) -> None:
    shown = Table(title=f"eps = delta = {level:g}", title_justify="left", box=None, pad_edge=False)
    for column in ("problem", "d", "method", "certified", "eps", "calls", "f", "s"):
        shown.add_column(column, justify="left" if column in ("problem", "method") else "right")
    for line in lines:
        shown.add_row(
            line.problem, str(line.d), line.method, "yes" if line.certified else "no",
            f"{line.eps:.2g}", str(line.calls), f"{line.fun:.8g}", f"{line.seconds:.2f}",
        )  # fmt: skip
    shell = console()
    shell.print(shown)
    for method in methods:
        own = [line for line in lines if line.method == method]
        won = [line for line in own if line.certified]
        calls = f", median {statistics.median(w.calls for w in won):.0f} calls" if won else ""
        shell.print(f"{method}: {len(won)} of {len(own)} certified{calls}")
