"""`stationarity="minimum"`: black boxes of declared curvature, words, pages, and looking around."""

from __future__ import annotations

import math
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.optimize import linprog

import goldstein as gs
from goldstein.construction.minimum import refuted
from goldstein.reductions import stationarity
from goldstein.reductions.stationarity import stationarity_named


def cb2(x: np.ndarray) -> np.ndarray:
    """The pieces of CB2 (Charalambous and Bandler)."""
    a, b = x
    return np.array([a * a + b**4, (2 - a) ** 2 + (2 - b) ** 2, 2 * math.exp(b - a)])


def cb2_gradients(x: np.ndarray) -> np.ndarray:
    a, b = x
    e = 2 * math.exp(b - a)
    return np.array([[2 * a, 4 * b**3], [2 * a - 4, 2 * b - 4], [-e, e]])


def value(x: np.ndarray) -> float:
    return float(cb2(x).max())


def gradient(x: np.ndarray) -> np.ndarray:
    return cb2_gradients(x)[int(cb2(x).argmax())]


HOW: dict[str, Any] = {"eps": 1e-5, "delta": 1e-5, "stationarity": "minimum", "rng": 0}


@pytest.fixture(scope="module")
def boxed() -> gs.MinimumCertificate:
    res = gs.minimize(value, [1.0, -0.1], gradient, curvature=0.0, **HOW)
    assert res.success
    assert "minimum: strict global minimum" in repr(res)
    return res.certificate


def failed(cert: Any) -> set[str]:
    return {check.name for check in cert.verify(value, gradient).checks if not check.ok}


def test_a_convex_black_box_is_global_on_condition(boxed: Any) -> None:
    assert failed(boxed) == set()
    assert (boxed.scope, boxed.label, boxed.curvature) == ("global", "conditional", 0.0)
    assert "if f has curvature 0" in boxed.summary()
    best = 1.952224493870659
    assert boxed.gap < 1e-6
    assert value(boxed.x) - boxed.gap <= best <= value(boxed.x)


FORGED: list[tuple[dict[str, Any], str]] = [
    ({"gap": 0.0}, "gap"),
    ({"gap": -1.0}, "numbers"),
    ({"widths": np.array([0.3, -0.3])}, "box"),
    ({"widths": np.array([1e-9, 1e-9])}, "faces"),
    ({"radius": 1.0}, "box"),
    ({"x": np.array([1.2, 0.9])}, "box"),
    ({"curvature": -50.0}, "scope"),
    ({"curvature": -50.0}, "faces"),
    ({"within": None}, "flags"),
    ({"within": 0.0}, "flags"),
    ({"unique": True}, "flags"),
    ({"strict": False}, "flags"),
    ({"scope": "ball"}, "box"),
    ({"label": "certified"}, "label"),
    ({"delta": 1.0}, "box"),
]


@pytest.mark.parametrize(("fields", "name"), FORGED)
def test_forged_boxes_are_named(boxed: Any, fields: dict[str, Any], name: str) -> None:
    assert name in failed(replace(boxed, **fields))


def test_forged_weights_of_faces_are_named(boxed: Any) -> None:
    for change, name in (
        (lambda w: w[:-1], "numbers"),
        (lambda w: -w, "weights"),
        (lambda w: np.where(np.arange(len(w))[:, None] == 1, 0.0, w), "weights"),
        (lambda w: w[[1, 0, 3, 2, 4]], "faces"),
    ):
        assert name in failed(replace(boxed, weights=change(np.array(boxed.weights))))


def test_files_of_boxes_come_back(boxed: Any, tmp_path: Path) -> None:
    assert failed(gs.load_certificate(boxed.save(tmp_path / "box"))) == set()


def test_a_weakly_convex_black_box_has_a_box() -> None:
    def f(x: np.ndarray) -> float:
        return float(abs(x[0]) + abs(x[1]) - 0.1 * x @ x)

    def g(x: np.ndarray) -> np.ndarray:
        return np.sign(x) - 0.2 * x

    found = gs.certify(f, [0.0, 0.0], g, delta=1e-4, curvature=-0.2, stationarity="minimum", rng=0)
    assert (found.scope, found.label) == ("box", "conditional")
    assert found.verify(f, g).ok
    lower = replace(found, scope="global", radius=math.inf)
    assert "scope" in {c.name for c in lower.verify(f, g).checks if not c.ok}


def strong(x: np.ndarray) -> float:
    return float(abs(x).sum() + x @ x)


def test_a_strongly_convex_black_box_has_one_minimiser_near_x() -> None:
    def g(x: np.ndarray) -> np.ndarray:
        return np.sign(x) + 2 * x

    x = np.array([1e-5, 0.0])  # the minimiser is 0
    how = {"delta": 1e-4, "stationarity": "minimum", "rng": 0}
    found = gs.certify(strong, x, g, curvature=1.0, **how)
    assert (found.scope, found.unique) == ("global", True)
    assert 1e-5 <= found.within <= 0.01
    assert found.verify(strong, g).ok
    nearer = replace(found, within=np.sqrt(2 * found.gap) / 2)
    assert "flags" in {c.name for c in nearer.verify(strong, g).checks if not c.ok}
    convex = gs.certify(strong, x, g, curvature=0.0, **how)
    assert not convex.unique
    alone = replace(convex, unique=True)
    assert "flags" in {c.name for c in alone.verify(strong, g).checks if not c.ok}
    # Only convexity is used in the proof of the faces, but all that was declared must hold.
    bent = replace(found, curvature=3.0)
    assert "cuts" in {c.name for c in bent.verify(strong, g).checks if not c.ok}
    with pytest.raises(gs.GoldsteinError, match="declared curvature 3 is wrong"):
        gs.certify(strong, x, g, curvature=3.0, **how)


@pytest.mark.parametrize("wrong", ["declaration", "gradient"])
def test_a_violated_cut_names_both_causes(wrong: str) -> None:
    def f(x: np.ndarray) -> float:
        return float(abs(x[0]) * (-1 if wrong == "declaration" else 1) + x[1] ** 2)

    def g(x: np.ndarray) -> np.ndarray:
        return np.array([-np.sign(x[0]), 2 * x[1]])

    with pytest.raises(gs.GoldsteinError, match="gradient is"):
        gs.certify(f, [0.0, 0.0], g, delta=1e-3, curvature=0.0, stationarity="minimum", rng=0)


def test_a_flat_box_fails_on_its_faces() -> None:
    def f(x: np.ndarray) -> float:
        return float(max(abs(x[0]), x[1] ** 2 - 1))

    def g(x: np.ndarray) -> np.ndarray:
        return np.array([np.sign(x[0]), 0.0])

    found = gs.certify(f, [0.0, 0.0], g, delta=1e-3, curvature=-1.0, stationarity="minimum", rng=0)
    assert not isinstance(found, gs.MinimumCertificate)


def test_black_boxes_at_saddles_are_stationary_and_no_minima() -> None:
    def f(x: np.ndarray) -> float:
        return float(abs(x[0]) - abs(x[1]) + x[1] ** 2 / 2)

    def g(x: np.ndarray) -> np.ndarray:
        return np.array([np.sign(x[0]), x[1] - np.sign(x[1])])

    found = gs.certify(f, [0.0, 0.0], g, delta=1e-3, rng=0)
    assert "NOT stationary" not in found.summary()
    assert "not a minimum: f falls along" in found.summary()
    denied = gs.certify(f, [0.0, 0.0], g, delta=1e-3, stationarity="minimum", rng=0)
    assert isinstance(denied, gs.Refutation)
    assert denied.verify(f, g).ok
    assert denied.label == "conditional"
    assert not replace(denied, fall=1.0).verify(f, g).ok
    assert not replace(denied, slope=-1.0).verify(f, g).ok
    for label in ("certified", "refuted", "estimated"):  # none of them is for a black box
        with pytest.raises(gs.InputTypeError):
            replace(denied, label=label).verify(f, g)


@pytest.mark.parametrize("bad", [math.nan, math.inf, "convex", True])
def test_declarations_are_numbers(bad: Any) -> None:
    with pytest.raises(gs.InputError, match="curvature"):
        gs.certify(value, [1.0, 1.0], gradient, delta=1e-3, curvature=bad, stationarity="minimum")


def test_looking_around_bounds_the_share() -> None:
    f = lambda x: abs(x[0]) - 0.5 * abs(x[1])  # noqa: E731 - lower on a share 2 atan(1/2) / pi
    true = 1 - 2 * math.atan(2) / math.pi
    seen = gs.look_around(f, [0.0, 0.0], radius=0.5, n=2000, rng=1)
    assert abs(seen.share - true) < 0.04
    assert true <= seen.upper < true + 0.06
    assert seen.lowest < 0
    assert f(seen.point) - f([0.0, 0.0]) == seen.lowest
    none = gs.look_around(lambda x: float(np.abs(x).sum()), np.zeros(3), radius=1.0, n=300, rng=0)
    assert (none.share, none.lowest, none.label) == (0.0, 0.0, "estimated")
    assert none.upper == pytest.approx(1 - 0.05 ** (1 / 300))
    for bad in ({"radius": 0.0}, {"radius": 1.0, "n": 0}, {"radius": 1.0, "confidence": 1.0}):
        with pytest.raises(gs.InputError):
            gs.look_around(f, [0.0, 0.0], **bad)


def test_pages_and_pictures_of_minima(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    x = gs.Variable(2)
    F = abs(x[1] - x[0] ** 2) + (1 - x[0]) ** 2
    res = gs.minimize(F, [-1.2, 1.0], eps=1e-3, delta=1e-3, stationarity="minimum", rng=0)
    assert res.certificate.scope == "global"
    assert "global minimum" in res.report(tmp_path / "page").read_text()
    assert "global minimum" in res.certificate.plot(fun=F).get_title()
    assert res.plot()[1].get_title()


def test_directions_are_tried_while_there_is_time() -> None:
    F, x = gs.max(np.eye(3) @ gs.Variable(3) + np.arange(3.0)), np.zeros(3)
    denied = refuted(F.program(), x, x.tolist(), 0.0)
    assert denied is not None
    assert denied.verify(F).ok
    assert refuted(F.program(), x, x.tolist(), 0.0, deadline=0.0) is None


@pytest.mark.filterwarnings("ignore::goldstein.PrecisionWarning")
def test_a_run_out_of_time_tries_no_further_proof(monkeypatch: Any) -> None:
    """A function that falls for ever is denied a minimum at every stage."""
    rng, tried = np.random.default_rng(0), []
    F = gs.max(rng.standard_normal((100, 1000)) @ gs.Variable(1000))

    def counted(*given: Any) -> Any:
        tried.append(time.perf_counter())
        return prove(*given)

    prove = stationarity_named("minimum").strengthen
    kind = replace(stationarity_named("minimum"), strengthen=counted)
    monkeypatch.setitem(stationarity._KINDS, "minimum", kind)
    begin = time.perf_counter()
    gs.minimize(F, np.ones(1000), max_time=0.5, eps=1e-4, delta=1e-4, stationarity="minimum", rng=0)
    assert sum(t > begin + 0.5 for t in tried) <= 1


@pytest.mark.parametrize("shape", [(40, 5), (120, 25)])
def test_a_vertex_of_absolute_deviations_takes_no_search(shape: tuple[int, int]) -> None:
    rng = np.random.default_rng(1)
    A = rng.standard_normal(shape)
    b = A @ rng.standard_normal(shape[1]) + rng.standard_t(2, shape[0])
    F = gs.norm1(A @ gs.Variable(shape[1]) - b)
    res = gs.minimize(F, np.zeros(shape[1]), eps=1e-6, delta=1e-6, stationarity="minimum", rng=0)
    found = res.certificate
    assert (res.success, found.scope, found.strict) == (True, "global", True)
    assert res.nfev + res.ngev <= 5
    lowest = np.abs(A @ linear_program(A, b) - b).sum()
    assert found.gap <= 1e-7
    assert abs(F.value(res.x) - lowest) <= 1e-9 * lowest


def test_a_point_next_to_the_minimum_has_it_within_delta() -> None:
    """The one next to it is lower, and still what certify was asked about is shown, not denied."""
    rng = np.random.default_rng(3)
    A = rng.standard_normal((40, 4))
    b = A @ rng.standard_normal(4) + rng.standard_normal(40)
    F = gs.norm1(A @ gs.Variable(4) - b)
    x = linear_program(A, b) + 1e-6
    found = gs.certify(F, x, eps=1e-6, delta=1e-3, stationarity="minimum", rng=0)
    assert isinstance(found, gs.MinimumCertificate)
    assert 0 < found.delta <= 1e-3
    assert found.strict


def test_minima_that_are_not_alone_are_searched_for_as_before() -> None:
    """Two equal columns: no vertex is strict, and what a search shows is more than a gap."""
    A = np.repeat(np.random.default_rng(2).standard_normal((30, 3)), 2, axis=1)
    F = gs.norm1(A @ gs.Variable(6) - A[:, 0])
    res = gs.minimize(F, np.ones(6), eps=1e-4, delta=1e-4, stationarity="minimum", rng=0)
    assert res.success
    assert res.ngev > 5
    assert not res.certificate.unique


def linear_program(A: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Return the x of least absolute deviations."""
    n, d = A.shape
    one = np.eye(n)
    c = np.concatenate([np.zeros(d), np.ones(2 * n)])
    limits = [(None, None)] * d + [(0, None)] * (2 * n)
    return linprog(c, A_eq=np.hstack([A, one, -one]), b_eq=b, bounds=limits).x[:d]
