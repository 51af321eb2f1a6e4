"""The runs that are recorded, by family, those that need NumPy and SciPy only.

A family yields names and functions of a seed; each returns the fields that somebody would see. No
run has a limit in seconds.
"""

from __future__ import annotations

import pickle
import tempfile
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from benchmarks.recorded.fields import (
    Fields,
    of_certificate,
    of_error,
    of_result,
    of_verification,
    plain,
)
from benchmarks.recorded.functions import (
    ATOMS,
    DISTANCES,
    EXPRESSIONS,
    MODELS,
    VALLEY,
    VALLEY_START,
    Asked,
    chain,
    deviations,
    hinge_sum,
    regression,
    squares,
    valley,
    valley_slope,
    with_atom,
)
from scipy.optimize import LinearConstraint, NonlinearConstraint

import goldstein as gs

Task = Callable[[int], Fields]
Tasks = Iterator[tuple[str, Task]]

#: Families by name: what makes their tasks, and how many seeds are of use.
FAMILIES: dict[str, tuple[Callable[[], Tasks], int]] = {}

#: Problems with more variables are left to the family of many.
MOST_VARIABLES = 60


def family(most_seeds: int = 100) -> Callable[[Callable[[], Tasks]], Callable[[], Tasks]]:
    """Make a family known by the name of its function (a decorator)."""

    def register(tasks: Callable[[], Tasks]) -> Callable[[], Tasks]:
        FAMILIES[tasks.__name__] = tasks, most_seeds
        return tasks

    return register


def small_problems(most: int = MOST_VARIABLES) -> list[Any]:
    return [p for p in map(gs.problems.get, gs.problems.names()) if p.dim <= most]


def checked(certificate: Any, fun: Any, jac: Any = None, **limits: Any) -> Fields:
    """Verify with what the check of this kind takes of the arguments of a run."""
    if certificate is None:
        return {}
    taken = {
        "kkt": ("bounds", "constraints"), "near-kkt": ("bounds", "constraints"),
        "values": ("bounds",), "values-kkt": ("bounds", "constraints"), "plus": ("plus",),
    }.get(certificate.kind, ())  # fmt: skip
    given = {key: value for key, value in limits.items() if key in taken}
    if "bounds" in limits:
        given.pop("plus", None)  # the term has the bounds in it
    about = (fun,) if jac is None or certificate.kind.startswith("values") else (fun, jac)
    try:
        return of_verification(certificate, *about, **given)
    except gs.GoldsteinError as refused:
        return {"verify.error": f"{type(refused).__name__}: {refused}"}


def solved(
    fun: Any, x0: Any, jac: Any = None, *, eps: float = 1e-3, delta: float = 1e-3, **request: Any
) -> Fields:
    """Minimise, verify, and return all that can be seen of both."""
    asked = Asked(fun, jac) if callable(jac) else None
    about = (fun, jac) if asked is None else (asked.fun, asked.jac)
    res = gs.minimize(about[0], x0, about[1], eps=eps, delta=delta, **request)
    seen = of_result(res) if asked is None else {**of_result(res), **asked.fields()}
    limits = {key: request[key] for key in ("bounds", "constraints", "plus") if key in request}
    if res.status.name == "INFEASIBLE":
        lacking = gs.Violation(limits.pop("constraints"), res.x)
        return {**seen, **checked(res.certificate, lacking, **limits)}
    return {**seen, **checked(res.certificate, fun, jac if callable(jac) else None, **limits)}


@family()
def plain_auto() -> Tasks:
    for p in small_problems():
        yield f"{p.name} 1e-3", lambda s, p=p: solved(p, p.x0, rng=s, max_calls=3000)
        fine = {"eps": 1e-6, "delta": 1e-6, "max_calls": 1500}
        yield (
            f"{p.name} 1e-6",
            lambda s, p=p, fine=fine: solved(p.value, p.x0, p.gradient, rng=s, **fine),
        )


@family()
def compiled() -> Tasks:
    names = ("cb3", "crescent", "maxq_20", "maxquad", "chained_lq", "chained_cb3_1", "rosen_suzuki",
             "ferrier_1", "watson", "max_exponentials", "polak_6", "mxhilb")  # fmt: skip
    for p in map(gs.problems.get, names):
        for level in (1e-3, 1e-6):
            request = {"eps": level, "delta": level, "max_calls": 2000}
            request["options"] = {"compiled": True}
            yield (
                f"{p.name} {level:g}",
                lambda s, p=p, request=request: solved(p, p.x0, rng=s, **request),
            )


@family()
def bounds() -> Tasks:
    for p in small_problems(30):
        size = 0.3 * np.maximum(1.0, np.abs(p.x0))
        sides = np.arange(p.dim)
        lower = np.where(sides % 3 == 2, -np.inf, p.x0 - size)
        upper = np.where(sides % 4 == 3, np.inf, p.x0 + 2.0 * size)
        box = list(zip(lower.tolist(), upper.tolist()))
        yield p.name, lambda s, p=p, box=box: solved(p, p.x0, rng=s, bounds=box, max_calls=800)


def circle(x: np.ndarray) -> float:
    return x @ x


def circle_slope(x: np.ndarray) -> np.ndarray:
    return 2.0 * x[None, :]


def corner(x: np.ndarray) -> float:
    return max(2**0.5 * x[0], 2 * x[1])


def corner_slope(x: np.ndarray) -> np.ndarray:
    first = 2**0.5 * x[0] > 2 * x[1]
    return np.array([[2**0.5, 0.0] if first else [0.0, 2.0]])


def limited() -> dict[str, tuple[Any, Any, Any, dict[str, Any]]]:
    """Return function, start, gradient and limits by name, as SciPy writes them."""
    inside = NonlinearConstraint(circle, -np.inf, 1.0, jac=circle_slope)
    ring = NonlinearConstraint(circle, 0.5, 1.0, jac=circle_slope)
    sphere = NonlinearConstraint(circle, 4.0, 4.0, jac=circle_slope)
    below = NonlinearConstraint(corner, -np.inf, 1.0, jac=corner_slope)
    planes = LinearConstraint(np.random.default_rng(0).standard_normal((4, 6)), -np.inf, np.ones(4))
    whole = LinearConstraint(np.ones((1, 6)), 1.0, 1.0)
    half = {"type": "ineq", "fun": lambda x: x[0] + x[1] - 1.0, "jac": lambda x: np.ones((1, 2))}
    apart = [LinearConstraint([[1.0, 0.0]], 1.0, np.inf), LinearConstraint([[1.0, 0.0]], -3, -1.0)]
    nothing = NonlinearConstraint(circle, -np.inf, 0.0, jac=circle_slope)
    six = np.linspace(-1.0, 1.0, 6)
    positive = [(0.0, None)] * 6
    two = (valley, VALLEY_START, valley_slope)
    return {
        "valley in a circle": (*two, {"constraints": inside}),
        "valley in a ring": (*two, {"constraints": ring}),
        "valley below a corner": (*two, {"constraints": below}),
        "valley in a half space": (*two, {"constraints": half}),
        "valley, bounds and corner": (
            *two, {"constraints": [below, half], "bounds": [(-2, 0.6)] * 2}
        ),
        "valley, no point": (*two, {"constraints": apart}),
        "valley, degenerate": (*two, {"constraints": nothing}),
        "distances on a sphere": (DISTANCES[0], np.ones(5), DISTANCES[1], {"constraints": sphere}),
        "distances, planes": (DISTANCES[0], six, DISTANCES[1], {"constraints": planes}),
        "deviations, simplex": (
            deviations(20, 6)[0], six, deviations(20, 6)[1],
            {"constraints": whole, "bounds": positive},
        ),
        "squares, simplex": (
            squares(20, 6)[0], six, squares(20, 6)[1], {"constraints": whole, "bounds": positive}
        ),
    }  # fmt: skip


@family()
def constraints() -> Tasks:
    for p in map(gs.problems.get, gs.problems.names("constrained")):
        for level in (1e-3, 1e-6):
            request = {"eps": level, "delta": level, "max_calls": 1500, **p.limits}
            yield (
                f"{p.name} {level:g}",
                lambda s, p=p, request=request: solved(p, p.x0, rng=s, **request),
            )
    for name, (fun, x0, jac, limits) in limited().items():
        given = partial(solved, fun, x0, jac, max_calls=1500, **limits)
        yield name, lambda s, given=given: given(rng=s)
        if name in ("valley in a circle", "distances, planes", "valley below a corner"):
            start = np.zeros(len(x0))
            always = partial(solved, fun, start, jac, max_calls=1500, **limits)
            yield (
                f"{name}, feasible",
                lambda s, always=always: always(rng=s, options={"feasible": True}),
            )
        if name in ("valley in a circle", "deviations, simplex"):
            yield f"{name}, bundle", lambda s, given=given: given(rng=s, method="bundle")


def terms() -> dict[str, tuple[Any, dict[str, Any]]]:
    """Return terms for six variables, and what goes with them."""
    weights = np.array([0.5, 0.1, 0.0, 0.3, 1.0, 0.2])
    return {
        "l1": (gs.prox.l1(0.3), {}),
        "l1 weights": (gs.prox.l1(weights), {}),
        "groups": (gs.prox.group_l2(0.5, [[0, 1], [2, 3], [4]]), {}),
        "nuclear": (gs.prox.nuclear(0.5, (2, 3)), {}),
        "box": (gs.prox.box(-0.5, 1.0), {}),
        "simplex": (gs.prox.simplex(2.0), {}),
        "l1 and bounds": (gs.prox.l1(0.2), {"bounds": [(-1.0, 1.5)] * 6}),
    }


@family()
def plus() -> Tasks:
    losses = {"squares": squares(30, 6), "deviations": deviations(20, 6), "distances": DISTANCES}
    for name, (term, more) in terms().items():
        for loss, (fun, jac) in losses.items():
            request = {"plus": term, "max_calls": 1200, **more}
            yield (
                f"{loss} + {name}",
                lambda s, fun=fun, jac=jac, request=request: solved(
                    fun, np.linspace(0.0, 1.0, 6), jac, rng=s, **request
                ),
            )
    for name in ("l1", "box", "l1 and bounds"):
        term, more = terms()[name]
        yield f"hinges + {name}, near", partial(_near_plus, term, more)


def _near_plus(term: Any, more: dict[str, Any], seed: int) -> Fields:
    res = gs.minimize(
        hinge_sum(30, 6), np.zeros(6), eps=1e-3, delta=1e-3, stationarity="near", rng=seed,
        plus=term, max_calls=1500, **more,
    )  # fmt: skip
    return of_result(res)


def noisy(fun: Any, size: float) -> Any:
    """Return the function with noise that is the same in every run."""
    rng = np.random.default_rng(11)
    return lambda x: fun(x) + size * rng.standard_normal()


@family()
def values() -> Tasks:
    coarse = {"eps": 0.3, "delta": 1e-2, "max_calls": 8000}
    for name in ("cb3", "lq", "dem", "wf", "evd52", "rosenbrock", "clarke_trap"):
        p = gs.problems.get(name)
        for jac in ("2-point", "3-point"):
            yield f"{name} {jac}", lambda s, p=p, j=jac: solved(p.value, p.x0, j, rng=s, **coarse)
        box = list(zip(p.x0 - 0.5, p.x0 + 1.0))
        yield (
            f"{name}, bounds",
            lambda s, p=p, box=box: solved(p.value, p.x0, "2-point", rng=s, bounds=box, **coarse),
        )
    for size in (1e-6, 1e-3, 3e-2):
        yield (
            f"valley, noise {size:g}",
            lambda s, size=size: _noisy_values(size, s, coarse),
        )
    for name in (
        "valley in a circle", "valley below a corner", "distances, planes", "valley, no point"
    ):  # fmt: skip
        fun, x0, jac, limits = limited()[name]
        c = limits["constraints"]
        if isinstance(c, NonlinearConstraint):
            c = NonlinearConstraint(c.fun, c.lb, c.ub)
        request = {"constraints": c, **coarse}
        yield f"{name}, values", partial(_values_of, fun, x0, "2-point", request)
        yield f"{name}, gradient of f", partial(_values_of, fun, x0, jac, request)
    for name in ("cb3", "lq", "clarke_trap"):
        p = gs.problems.get(name)
        yield (
            f"{name} zeroth-order",
            lambda s, p=p: solved(p.value, p.x0, rng=s, method="zeroth-order", **coarse),
        )


def _values_of(fun: Any, x0: Any, jac: Any, request: dict[str, Any], seed: int) -> Fields:
    return solved(fun, x0, jac, rng=seed, **request)


def _noisy_values(size: float, seed: int, request: dict[str, Any]) -> Fields:
    res = gs.minimize(noisy(valley, size), VALLEY_START, "2-point", rng=seed, **request)
    return {**of_result(res), **checked(res.certificate, noisy(valley, size))}


@family()
def near() -> Tasks:
    request = {"stationarity": "near", "max_calls": 1500}
    for name, make in EXPRESSIONS.items():
        for level in (1e-3, 1e-6):
            yield f"{name} {level:g}", partial(_expression, make, level, request)
        yield f"{name}, no leaps", partial(_expression, make, 1e-3, {"options": {"leaps": False}})
        yield f"{name}, goldstein", partial(_expression, make, 1e-3, {"max_calls": 1500})
    for name, model in MODELS.items():
        yield name, partial(_model, model, request)
        yield f"{name}, goldstein", partial(_model, model, {"max_calls": 1500})


def _expression(make: Any, level: float, request: dict[str, Any], seed: int) -> Fields:
    F, x0 = make()
    return solved(F, x0, eps=level, delta=level, rng=seed, **{"max_calls": 1500, **request})


def _model(make: Any, request: dict[str, Any], seed: int) -> Fields:
    F = make()
    return solved(F, F.start(seed), eps=1e-2, delta=1e-2, rng=seed, **request)


@family(3)
def atoms() -> Tasks:
    for name in ATOMS:
        yield name, partial(_atom, name, "near")
        yield f"{name}, goldstein", partial(_atom, name, "goldstein")


@family(1)
def atoms_at_kinks() -> Tasks:
    for name in ATOMS:
        yield name, partial(_at_kink, name)


def _atom(name: str, kind: str, seed: int) -> Fields:
    x0 = np.random.default_rng(seed).uniform(-1.0, 1.0, 3)
    request = {"stationarity": kind, "max_calls": 600, "rng": seed}
    try:
        return solved(with_atom(name), x0, eps=1e-4, delta=1e-4, **request)
    except gs.GoldsteinError as refused:
        return of_error(refused)


def _at_kink(name: str, seed: int) -> Fields:
    F, x = with_atom(name), [0.5, 0.0, -0.25]
    found = stated(F, x, delta=0.3, eps=0.1, stationarity="near", rng=seed)
    return {**found, "value": plain(F.value(np.asarray(x)))}


def near_limited() -> dict[str, tuple[Any, Any, dict[str, Any]]]:
    """Return expressions, starts and limits that are linear or expressions."""
    w = gs.Variable(2)
    valley_, five = EXPRESSIONS["valley"]()[0], hinge_sum(40, 5)
    fair = LinearConstraint(regression(1, 5, 3)[0], -0.01, 0.01)
    return {
        "valley, bounds": (valley_, VALLEY_START, {"bounds": [(-2.0, 0.5), (None, 2.0)]}),
        "valley, half space": (valley_, VALLEY_START, {"constraints": [w[0] + w[1] <= 1.0]}),
        "valley, corner": (
            valley_, VALLEY_START, {"constraints": [gs.maximum(w[0], 2.0 * w[1]) <= 1.0]}
        ),
        "valley, line": (valley_, VALLEY_START, {"constraints": [w[0] - 2.0 * w[1] == 0.25]}),
        "hinges, fair": (five, np.zeros(5), {"constraints": fair, "bounds": [(-0.3, 0.3)] * 5}),
        "hinges, simplex": (
            five, np.zeros(5),
            {"constraints": LinearConstraint(np.ones((1, 5)), 1, 1), "bounds": [(0.0, None)] * 5},
        ),
    }  # fmt: skip


@family()
def near_constraints() -> Tasks:
    for name in near_limited():
        for level in (1e-3, 1e-6):
            yield f"{name} {level:g}", partial(_near_limited, name, level, "near")
        yield f"{name}, goldstein", partial(_near_limited, name, 1e-3, "goldstein")


def _near_limited(name: str, level: float, kind: str, seed: int) -> Fields:
    F, x0, limits = near_limited()[name]
    request = {"eps": level, "delta": level, "stationarity": kind, "max_calls": 1500}
    return solved(F, x0, rng=seed, **request, **limits)


@family()
def methods() -> Tasks:
    names = ("cb3", "maxq_20", "crescent", "chained_lq", "max_affine", "rosen_suzuki")
    for method in ("pingd", "bundle", "psingd", "o2nc", "adam-o2nc"):
        for p in map(gs.problems.get, names):
            request = {"method": method, "max_calls": 1000, "eps": 1e-2, "delta": 1e-2}
            yield (
                f"{method} {p.name}",
                lambda s, p=p, request=request: solved(p, p.x0, rng=s, **request),
            )
    for method in ("psingd", "o2nc", "adam-o2nc"):
        yield f"{method}, finite sum", partial(_finite_sum, method)
        yield f"{method}, stream", partial(_stream, method)


def _finite_sum(method: str, seed: int) -> Fields:
    A, b = regression(40, 5)
    terms = gs.FiniteSum(
        lambda x, i: np.sign(A[i] @ x - b[i])[:, None] * A[i], n=40, batch_size=8,
        value_i=lambda x, i: np.abs(A[i] @ x - b[i]), vectorized=True,
    )  # fmt: skip
    return solved(terms, np.zeros(5), eps=0.1, delta=0.1, method=method, rng=seed, max_calls=600)


def _stream(method: str, seed: int) -> Fields:
    def slope(x: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        return np.sign(x - np.arange(x.size)) + 0.1 * rng.standard_normal(x.size)

    res = gs.minimize(
        slope, np.zeros(4), eps=0.1, delta=0.1, method=method, rng=seed, max_calls=600
    )
    return of_result(res)


@family()
def separable() -> Tasks:
    for d in (50, 1000):
        F, start = chain(d)
        request = {"eps": 1e-2, "delta": 1e-2, "max_calls": 200}
        yield f"chain {d}", lambda s, F=F, x=start, r=request: solved(F, x, rng=s, **r)
        request = {**request, "max_calls": 60, "options": {"elements": False}}
        yield f"chain {d} as a whole", lambda s, F=F, x=start, r=request: solved(F, x, rng=s, **r)


@family(2)
def many() -> Tasks:
    request = {"eps": 1e-2, "delta": 1e-2, "max_calls": 300}
    for p in map(gs.problems.get, gs.problems.names()):
        if p.dim > MOST_VARIABLES:
            yield p.name, lambda s, p=p: solved(p, p.x0, rng=s, **request)
    for name in ("maxq", "chained_lq", "chained_cb3_2", "active_faces", "chained_crescent_1"):
        p = gs.problems.get(name, d=2000)
        yield f"{name} 2000", lambda s, p=p: solved(p, p.x0, rng=s, **request)
        box = {"bounds": [(-1.5, 1.2)] * 2000, "max_calls": 60}
        yield (
            f"{name} 2000, bounds",
            lambda s, p=p, r={**request, **box}: solved(p, np.clip(p.x0, -1.5, 1.2), rng=s, **r),
        )
    fun, jac = squares(100, 2000)
    sparse = {**request, "plus": gs.prox.l1(0.5), "max_calls": 200}
    yield "squares + l1 2000", lambda s: solved(fun, np.zeros(2000), jac, rng=s, **sparse)


def stated(fun: Any, x: Any, jac: Any = None, **request: Any) -> Fields:
    """Certify, verify, and return all that can be seen of both."""
    try:
        found = gs.certify(fun, x, jac, **request)
    except gs.NotCertifiableError as refused:
        return of_error(refused)
    limits = {key: request[key] for key in ("bounds", "constraints") if key in request}
    seen = checked(found, fun, jac if callable(jac) else None, **limits)
    return {**of_certificate(found), **seen}


@family()
def certify() -> Tasks:
    names = ("cb3", "crescent", "maxq_20", "chained_lq", "rosen_suzuki", "el_attar", "k_median",
             "max_affine", "smallest_enclosing_ball", "lewis_wylie_sum")  # fmt: skip
    for p in map(gs.problems.get, names):
        yield f"{p.name}, start", lambda s, p=p: stated(p, p.x0, delta=1e-2, rng=s)
        yield f"{p.name}, answer", partial(_certify_answer, p)
    for name, make in EXPRESSIONS.items():
        for kind in ("goldstein", "near"):
            yield f"{name}, {kind}", partial(_certify_expression, make, kind)
    for name in near_limited():
        for kind in ("goldstein", "near"):
            yield f"{name}, {kind}", partial(_certify_limited, name, kind)
    for name, (fun, _, jac, limits) in limited().items():
        at = {2: [0.5, 0.25], 5: np.full(5, 0.8**0.5), 6: np.full(6, 1 / 6)}
        if "no point" not in name:
            yield name, partial(_certify_at, fun, jac, at, limits)
    for name in ("cb3", "lq", "clarke_trap"):
        p = gs.problems.get(name)
        request = {"delta": 1e-2, "eps": 0.3, "max_calls": 2500}
        yield (
            f"{name}, values",
            lambda s, p=p, r=request: stated(p.value, p.x0, "2-point", rng=s, **r),
        )
    yield "result of another", partial(_certify_result)


def _certify_answer(p: Any, seed: int) -> Fields:
    x = gs.minimize(p, p.x0, eps=1e-4, delta=1e-4, rng=0, max_calls=2000).x
    return stated(p, x, delta=1e-3, eps=1e-3, rng=seed)


def _certify_expression(make: Any, kind: str, seed: int) -> Fields:
    F, x0 = make()
    x = gs.minimize(F, x0, eps=1e-3, delta=1e-3, rng=0, max_calls=1500).x
    return stated(F, x, delta=1e-2, eps=1e-3, stationarity=kind, rng=seed)


def _certify_limited(name: str, kind: str, seed: int) -> Fields:
    F, x0, limits = near_limited()[name]
    x = gs.minimize(F, x0, eps=1e-3, delta=1e-3, rng=0, max_calls=1500, **limits).x
    return stated(F, x, delta=1e-2, eps=1e-3, stationarity=kind, rng=seed, **limits)


def _certify_at(fun: Any, jac: Any, at: Any, limits: Any, seed: int) -> Fields:
    size = 5 if fun is DISTANCES[0] and "NonlinearConstraint" in repr(limits) else None
    size = size or (2 if fun is valley else 6)
    return stated(fun, at[size], jac, delta=1e-2, rng=seed, **limits)


def _certify_result(seed: int) -> Fields:
    res = {"x": np.array([1.0 + 1e-6, 1.0])}
    found = gs.certify_result(res, *VALLEY, delta=1e-3, bounds=[(None, 1.0)] * 2, rng=seed)
    return of_certificate(found)


@family()
def curve() -> Tasks:
    for p in map(gs.problems.get, ("cb3", "maxq_20", "crescent", "el_attar", "chained_lq")):
        yield p.name, partial(_curve, p)


def _curve(p: Any, seed: int) -> Fields:
    x = gs.minimize(p, p.x0, eps=1e-3, delta=1e-3, rng=0, max_calls=2000).x
    found = gs.stationarity_curve(p, x, rng=seed)
    target = gs.suggest_target(p, p.x0, rng=seed)
    looked = gs.check_gradient(p, None, p.x0, rng=seed)
    return {
        "eps": plain(found.eps), "deltas": plain(found.deltas),
        "target": repr(target), "gradient": repr(looked),
    }  # fmt: skip


@family()
def tools() -> Tasks:
    for name, make in EXPRESSIONS.items():
        yield name, partial(_explained, make)
    yield "confidence", _confidence
    yield "gap", _gap


def _explained(make: Any, seed: int) -> Fields:
    """Return what is said about an expression without a run."""
    F, x0 = make()
    asks: dict[str, Callable[[], Any]] = {
        "explain": lambda: str(F.explain()), "describe": lambda: str(F.describe()),
        "target": lambda: repr(gs.goldstein_target(F, eps=0.1, delta=0.1)),
        "distance": lambda: repr(gs.clarke_distance(F, [0] * len(x0), seed=seed)),
        "span": lambda: repr(gs.span_test(F, [1] * len(x0))),
        "gradient": lambda: plain(F.gradient(np.asarray(x0) + 0.01)),
    }  # fmt: skip
    found: Fields = {}
    for name, ask in asks.items():
        try:
            found[name] = ask()
        except gs.GoldsteinError as refused:
            found[name] = f"{type(refused).__name__}: {refused}"
    return found


def _confidence(seed: int) -> Fields:
    stream = gs.SampleStream(lambda x, rng: np.sign(x - rng.uniform(-1, 1, x.size)))
    found = gs.confidence_bound(
        stream, [0.0], [[-0.01], [0.01]], [0.5, 0.5], samples=2000, gradient_bound=1.0,
        rng=np.random.default_rng(seed),
    )  # fmt: skip
    return {"eps": plain(found.eps), "said": repr(found)}


def _gap(seed: int) -> Fields:
    fun, x0, jac, limits = limited()["deviations, simplex"]
    res = gs.minimize(fun, x0, jac, eps=1e-3, delta=1e-3, rng=seed, **limits)
    gap = res.certificate.gap(fun, jac, radius=1.0, constraints=limits["constraints"])
    return {"gap": plain(gap)}


@family()
def search() -> Tasks:
    request = {"eps": 1e-3, "delta": 1e-3, "max_calls": 600}
    box = {"bounds": [(-2.0, 0.8)] * 2}
    circle_ = {"constraints": limited()["valley in a circle"][3]["constraints"]}
    blind = {"method": "values", "eps": 0.5, "delta": 1e-2, "max_calls": 4000}
    for name, more in {
        "valley": {}, "bounds": box, "constraints": circle_, "values": blind,
        "bundle": {"method": "bundle"},
    }.items():  # fmt: skip
        yield name, partial(_search, {**request, **more})


def _search(request: dict[str, Any], seed: int) -> Fields:
    run, asked = gs.Search(VALLEY_START, rng=seed, **request), Asked(*VALLEY)
    count = 0
    while (question := run.ask()) is not None:
        if question.value:
            run.tell(value=asked.fun(question.point))
        else:
            run.tell(gradient=asked.jac(question.point))
        count += 1
        if count == 40 and "constraints" not in request:
            run = pickle.loads(pickle.dumps(run))
    return {**of_result(run.result), **asked.fields()}


@family()
def checkpoint() -> Tasks:
    sphere = limited()["distances on a sphere"][3]
    for name, more in {
        "plain": {}, "bounds": {"bounds": [(0.0, 2.5)] * 5}, "constraints": sphere,
        "near": {"stationarity": "near"},
    }.items():  # fmt: skip
        yield name, partial(_resumed, more)


def _resumed(more: dict[str, Any], seed: int) -> Fields:
    about: Any = (hinge_sum(40, 5), None) if "stationarity" in more else DISTANCES
    request = {"eps": 1e-4, "delta": 1e-4, "rng": seed, **more}
    x0 = np.linspace(1.0, 2.0, 5)
    with tempfile.TemporaryDirectory() as folder:
        journal = Path(folder) / "run.journal"
        cut = gs.minimize(about[0], x0, about[1], checkpoint=journal, max_calls=30, **request)
        asked = Asked(*about) if about[1] else None
        fun, jac = about if asked is None else (asked.fun, asked.jac)
        # The name of the function is part of what a journal belongs to.
        with tempfile.TemporaryDirectory() as other:
            whole = gs.minimize(fun, x0, jac, checkpoint=Path(other) / "run.journal", **request)
        res = gs.minimize(about[0], x0, about[1], checkpoint=journal, max_calls=3000, **request)
    first = {f"cut.{key}": value for key, value in of_result(cut).items()}
    same = of_result(whole)["x"] == of_result(res)["x"]
    more = {} if asked is None else asked.fields()
    return {**of_result(res), **first, **more, "as in one go": same}


@family()
def layouts() -> Tasks:
    target = np.arange(6.0).reshape(2, 3)
    yield (
        "matrix",
        lambda s: solved(
            lambda X: np.abs(X - target).sum(), np.ones((2, 3)), lambda X: np.sign(X - target),
            rng=s,
        ),
    )  # fmt: skip
    yield "dict", _in_a_dict
    yield "list", _in_a_list


def _in_a_dict(seed: int) -> Fields:
    res = gs.minimize(
        lambda p: abs(p["a"]).sum() + abs(p["b"] - 1.0).sum(),
        {"a": np.ones(2), "b": np.zeros((2, 2))},
        lambda p: {"a": np.sign(p["a"]), "b": np.sign(p["b"] - 1.0)},
        eps=1e-3, delta=1e-3, rng=seed,
    )  # fmt: skip
    return {**of_result(res), "message": res.message}


def _in_a_list(seed: int) -> Fields:
    res = gs.minimize(
        lambda p: abs(p[0]).sum() + abs(p[1] - 1.0).sum(), [np.ones(2), np.zeros(3)],
        lambda p: [np.sign(p[0]), np.sign(p[1] - 1.0)], eps=1e-3, delta=1e-3, rng=seed,
    )  # fmt: skip
    return of_result(res)


@family()
def arguments() -> Tasks:
    both = {"jac": True}
    for name, more in {
        "no check": {"options": {"check_gradient": False}},
        "no go on": {"options": {"go_on": False}},
        "lipschitz": {"lipschitz": 10.0}, "memory": {"options": {"max_memory": 10_000_000}},
        "stopped": {"callback": lambda x: valley(x) < 0.1}, "map": {"workers": map},
    }.items():  # fmt: skip
        yield name, lambda s, m=more: solved(valley, VALLEY_START, valley_slope, rng=s, **m)
    yield (
        "relative",
        lambda s: of_result(
            gs.minimize(valley, VALLEY_START, valley_slope, rel_eps=1e-4, delta=1e-3, rng=s)
        ),
    )
    yield (
        "both at once, args",
        lambda s: of_result(
            gs.minimize(
                lambda x, a: (a * valley(x), a * valley_slope(x)), VALLEY_START, **both,
                args=(3.0,), eps=1e-3, delta=1e-3, rng=s,
            )
        ),
    )  # fmt: skip


@family()
def failures() -> Tasks:
    slope = valley_slope
    calls = {"n": 0}

    def twice(x: np.ndarray) -> np.ndarray:
        calls["n"] += 1
        return slope(x) * (1.0 + 0.3 * (calls["n"] % 2))

    for name, (fun, jac) in {
        "wrong gradient": (valley, lambda x: slope(x) + [0.3, 0.0]),
        "wrong sign": (valley, lambda x: -slope(x)),
        "another each time": (valley, twice),
        "unbounded": (lambda x: -abs(x).sum() * 1e3, lambda x: -np.sign(x) * 1e3),
        "not a number there": (lambda x: valley(x) if x[0] < 0.5 else np.nan, slope),
        "raises": (lambda x: 1 / 0, slope),
        "of another shape": (valley, lambda x: np.ones(3)),
        "a jump": (lambda x: valley(x) + (x[0] > 0), slope),
    }.items():
        yield name, partial(_failing, fun, jac, calls)


def _failing(fun: Any, jac: Any, calls: dict[str, int], seed: int) -> Fields:
    calls["n"] = 0
    try:
        res = gs.minimize(fun, VALLEY_START, jac, eps=1e-3, delta=1e-3, rng=seed, max_calls=1000)
    except gs.GoldsteinError as error:
        return of_error(error)
    return of_result(res)


@family(1)
def refusals() -> Tasks:
    """What does not go together, and what is said then."""
    F = EXPRESSIONS["valley"]()[0]
    box, term = {"bounds": [(-2, 2)] * 2}, {"plus": gs.prox.l1(0.1)}
    circle_ = {"constraints": limited()["valley in a circle"][3]["constraints"]}
    near_, blind, folder = (
        {"stationarity": "near"},
        {"jac": "2-point"},
        {"checkpoint": "run.journal"},
    )
    for name, request in {
        "near of a function": near_, "near from values": {**near_, **blind},
        "plus and constraints": {**term, **circle_}, "plus and checkpoint": {**term, **folder},
        "groups and bounds": {"plus": gs.prox.group_l2(0.1, [[0, 1]]), **box},
        "workers and bounds": {"workers": map, **box}, "workers and plus": {"workers": map, **term},
        "workers and checkpoint": {"workers": map, **folder},
        "values and plus": {**blind, **term}, "no delta": {"delta": None}, "eps < 0": {"eps": -1.0},
        "no eps": {"eps": None}, "unknown method": {"method": "newton"},
        "unknown option": {"options": {"speed": 9}},
        "differences for bundle": {"method": "bundle", **blind},
        "feasible without constraints": {"options": {"feasible": True}},
        "callback": {"callback": 3}, "tiny delta": {"delta": 1e-30},
        "bounds": {"bounds": [(1, 0)] * 2}, "three bounds": {"bounds": [(0, 1)] * 3},
        "constraints": {"constraints": 7},
        "unknown kind": {"stationarity": "clarke"}, "no gradient": {"jac": None},
    }.items():  # fmt: skip
        yield name, partial(_refused, valley, valley_slope, request)
    for name, request in {
        "expression, near, constraint of a function": {**near_, **circle_},
        "expression, near, groups": {**near_, "plus": gs.prox.group_l2(0.1, [[0, 1]])},
        "expression, near, bundle": {**near_, "method": "o2nc"},
    }.items():
        yield name, partial(_refused, F, None, request)


def _refused(fun: Any, jac: Any, request: dict[str, Any], seed: int) -> Fields:
    asked = {"jac": jac, "eps": 1e-2, "delta": 1e-2, "rng": seed, "max_calls": 400, **request}
    if "checkpoint" not in asked:
        return _said(fun, asked)
    with tempfile.TemporaryDirectory() as folder:
        return _said(fun, {**asked, "checkpoint": Path(folder) / asked["checkpoint"]})


def _said(fun: Any, asked: dict[str, Any]) -> Fields:
    try:
        return of_result(gs.minimize(fun, VALLEY_START, **asked))
    except (gs.GoldsteinError, TypeError, ValueError) as error:
        return of_error(error)
