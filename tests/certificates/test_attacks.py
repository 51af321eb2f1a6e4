"""Attempts to get a false claim out of the certificate layer, each of which must fail."""

from __future__ import annotations

import copy
import json
import math
import pickle
import random
import struct
import tracemalloc
import zipfile
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.sparse.linalg import aslinearoperator
from tests.limits import limiting_gradients

import goldstein as gs
from goldstein import calculus as c
from goldstein.certificates import NearCertificate
from goldstein.checker.enclosed.arrays import Enclosure
from goldstein.construction.near.kinks import Kinks
from goldstein.numerics.hull import min_norm_weights
from goldstein.storage import codec as files
from goldstein.storage.codec import npy
from goldstein.storage.journal import seed_in

# --- an independent evaluator: exact dual numbers ------------------------------------------------


class OnKink(Exception):
    """The point does not show a gradient."""


class Dual:
    """An exact value and an exact gradient."""

    def __init__(self, value: Fraction, slope: list[Fraction]) -> None:
        self.value, self.slope = value, slope

    def __add__(self, other: Dual) -> Dual:
        return Dual(self.value + other.value, [a + b for a, b in zip(self.slope, other.slope)])

    def times(self, factor: Any) -> Dual:
        q = Fraction(factor)
        return Dual(self.value * q, [a * q for a in self.slope])

    def __mul__(self, other: Dual) -> Dual:
        pairs = zip(self.slope, other.slope)
        return Dual(self.value * other.value, [a * other.value + self.value * b for a, b in pairs])


Exact = Callable[[Dual], Dual]


def piecewise(breaks: list[Any], pieces: list[list[Any]]) -> Exact:
    def apply(u: Dual) -> Dual:
        if u.value in breaks and any(u.slope):
            raise OnKink
        coefficients = pieces[sum(u.value > t for t in breaks)]
        value = slope = Fraction(0)
        for a in reversed(coefficients):
            value, slope = value * u.value + Fraction(a), slope * u.value + value
        return Dual(value, [slope * a for a in u.slope])

    return apply


R = Fraction(0.1)  # a parameter that is not a dyadic decimal: its float is what counts
ATOMS: dict[str, tuple[Callable[[Any], Any], Exact]] = {
    "relu": (c.relu, piecewise([0], [[0], [0, 1]])),
    "abs": (c.abs, piecewise([0], [[0, -1], [0, 1]])),
    "leaky": (lambda u: c.leaky_relu(u, 0.1), piecewise([0], [[0, R], [0, 1]])),
    "no kink": (lambda u: c.leaky_relu(u, 1.0), piecewise([], [[0, 1]])),
    "ramp": (lambda u: c.ramp(u, rho=0.1), piecewise([0, R], [[1], [1, -1 / R], [0]])),
    "hinge": (c.hinge, piecewise([1], [[1, -1], [0]])),
    "pinball": (lambda u: c.pinball(u, 0.1), piecewise([0], [[0, R - 1], [0, R]])),
    "tube": (lambda u: c.eps_insensitive(u, 0.1), piecewise([-R, R], [[-R, -1], [0], [-R, 1]])),
    "capped": (
        lambda u: c.capped_l1(u, 0.1),
        piecewise([-R, 0, R], [[R], [0, -1], [0, 1], [R]]),
    ),
    "clip": (c.hard_tanh, piecewise([-1, 1], [[-1], [0, 1], [1]])),
    "soft": (lambda u: c.soft_threshold(u, 0.1), piecewise([-R, R], [[R, 1], [0], [-R, 1]])),
    "huber": (
        lambda u: c.huber(u, 0.1),
        piecewise([-R, R], [[-R * R / 2, -R], [0, 0, Fraction(1, 2)], [-R * R / 2, R]]),
    ),
    "mcp": (
        lambda u: c.mcp(u, 0.1, 2.0),
        piecewise(
            [-2 * R, 0, 2 * R],
            [[R * R], [0, -R, -Fraction(1, 4)], [0, R, -Fraction(1, 4)], [R * R]],
        ),
    ),
    "square": (c.square, piecewise([], [[0, 0, 1]])),
}


def integers(rng: random.Random, *shape: int) -> np.ndarray:
    flat = [float(rng.randint(-2, 2)) for _ in range(math.prod(shape))]
    return np.array(flat).reshape(shape)


def product(matrix: np.ndarray, u: list[Dual]) -> list[Dual]:
    zero = Dual(Fraction(0), [Fraction(0)] * len(u[0].slope))
    return [sum((x.times(a) for a, x in zip(row, u)), zero) for row in matrix.tolist()]


def random_function(rng: random.Random, d: int) -> tuple[Any, Callable[[list[Dual]], Dual]]:
    """Integer data with repeated and dependent rows, atoms nested, kinks that cancel."""
    rows = rng.randint(1, 4)
    A = integers(rng, rows, d)
    if rows > 1 and rng.random() < 0.5:
        A[1] = rng.choice([1, -1, 2, 0]) * A[0]
    if rows > 2 and rng.random() < 0.5:
        A[2] = A[0] + A[1]
    shift = integers(rng, rows) * rng.choice([0.0, 1.0, 0.1])
    u = A @ gs.Variable(d) + shift

    def exact(x: list[Dual]) -> list[Dual]:
        return [Dual(e.value + Fraction(b), e.slope) for e, b in zip(product(A, x), shift.tolist())]

    stages: list[Callable[[list[Dual]], list[Dual]]] = [exact]
    for _ in range(rng.randint(1, 3)):
        move = rng.random()
        atom, dual = ATOMS[rng.choice(list(ATOMS))]
        if move < 0.6:
            u = atom(u)
            stages.append(lambda e, dual=dual: [dual(x) for x in e])
        elif move < 0.8:
            B = integers(rng, rng.randint(1, 3), u.size)
            u = B @ u
            stages.append(lambda e, B=B: product(B, e))
        else:
            u = u * atom(u)
            stages.append(lambda e, dual=dual: [x * dual(x) for x in e])
    largest = u.size > 1 and rng.random() < 0.25

    def total(x: list[Dual]) -> Dual:
        for stage in stages:
            x = stage(x)
        if not largest:
            return product(np.ones((1, len(x))), x)[0]
        top = max(e.value for e in x)
        tied = [e for e in x if e.value == top]
        if any(e.slope != tied[0].slope for e in tied):
            raise OnKink
        return tied[0]

    return (gs.max(u) if largest else gs.sum(u)), total


def gradients_around(
    exact: Callable[[list[Dual]], Dual], y: np.ndarray, rng: random.Random, count: int
) -> list[tuple[list[int], list[Fraction]]]:
    """Exact gradients at points next to y: elements of the subdifferential, up to 1e-50."""
    d, found = y.size, []
    for _ in range(count):
        v = [rng.randint(-999, 999) for _ in range(d)]
        x = [
            Dual(Fraction(a) + Fraction(b, 10**60), [Fraction(int(i == k)) for k in range(d)])
            for i, (a, b) in enumerate(zip(y.tolist(), v))
        ]
        try:
            found.append((v, exact(x).slope))
        except OnKink:
            continue
    return found


def distance(gradients: list[list[Fraction]]) -> float:
    G = np.array([[float(a) for a in g] for g in gradients])
    weights = min_norm_weights(G)
    return float(np.linalg.norm(weights @ G) / weights.sum())


@pytest.mark.parametrize("seed", range(45))
def test_random_functions_agree_with_exact_differentiation(seed: int) -> None:
    rng = random.Random(seed)
    d = rng.randint(1, 3)
    F, exact = random_function(rng, d)
    for y in (np.zeros(d), np.clip(integers(rng, d), -1, 1), integers(rng, d) * 0.1):
        around = gradients_around(exact, y, rng, 25)
        if not around:
            continue
        try:
            g = F.gradient(y)
        except gs.KinkError:
            pass
        else:
            for _, true in around:
                np.testing.assert_allclose(g, [float(a) for a in true], rtol=1e-9, atol=1e-9)
        for v, true in around[:4]:
            try:
                ((mid, rad),) = limiting_gradients(F, y, [v])
            except gs.NotCertifiableError:
                continue
            assert all(
                abs(m - t) <= r + Fraction(1, 10**40)
                for m, r, t in zip(mid, rad, true, strict=True)
            )
        bounds = c.clarke_distance(F, y)
        shown = distance([g for _, g in around])
        assert bounds.lower <= shown + 1e-8 * (1.0 + shown)
        assert bounds.lower <= bounds.upper
        if bounds.upper < shown - 1e-8 * (1.0 + shown):
            shown = distance([g for _, g in gradients_around(exact, y, rng, 1000)])
        assert bounds.upper >= shown - 1e-7 * (1.0 + shown)


@pytest.mark.parametrize("seed", range(12))
def test_a_claim_below_the_truth_never_verifies(seed: int) -> None:
    """Take a proved certificate and ask for a little more than it proves."""
    rng = random.Random(seed)
    d = rng.randint(1, 3)
    F, exact = random_function(rng, d)
    y = np.clip(integers(rng, d), -1, 1)
    ways = [v for v, _ in gradients_around(exact, y, rng, 4)]
    if not ways:
        return
    try:
        cert = NearCertificate.prove(F, y + 0.25, y.tolist(), ways, np.ones(len(ways)))
    except gs.NotCertifiableError:
        return
    assert cert.verify(F).label == "certified"
    for field in ("eps", "delta"):
        if getattr(cert, field) > 0:
            less = math.nextafter(getattr(cert, field), 0.0)
            bold = copy.copy(cert)
            object.__setattr__(bold, field, math.nextafter(less, 0.0) * (1 - 1e-12))
            assert not bold.verify(F).ok, field


# --- kinks that cancel, and numbers at the ends of the range --------------------------------------


def test_kinks_that_cancel_are_not_differentiated_by_the_sum_rule() -> None:
    w = gs.Variable(1)
    identity = gs.sum(gs.relu(w) - gs.relu(-w))
    nothing = gs.sum(gs.relu(w) + gs.relu(-w) - gs.abs(w))
    for F, slope in ((identity, 1), (nothing, 0)):
        limits = limiting_gradients(F, [0], [[1.0], [-1.0]])
        assert [mid for mid, _ in limits] == [[slope], [slope]]
        assert not c.span_test(F, [0]).holds
        assert c.clarke_distance(F, [0]).upper == slope


@pytest.mark.parametrize("size", [1.6e-162, 1.5e-170, 5e-324, 1e-300, 1.0, 1e200, 1e308])
def test_a_norm_has_slope_one_at_every_scale(size: float) -> None:
    F = gs.norm2(gs.Variable(2))
    assert np.linalg.norm(F.gradient(np.array([size, 0.0]))) == 1.0
    diagonal = F.gradient(np.array([size, -size]))
    np.testing.assert_allclose(diagonal, [math.sqrt(0.5), -math.sqrt(0.5)], rtol=1e-15)
    assert F.value(np.array([0.0, size])) == size


def test_pseudo_huber_does_not_vanish_far_out() -> None:
    F = gs.sum(gs.pseudo_huber(gs.Variable(1), 1e-10))
    assert F.gradient(np.array([1e308]))[0] == 1e-10
    assert F.value(np.array([1e300])) == pytest.approx(1e290)


def test_products_of_large_and_subnormal_numbers_are_enclosed() -> None:
    rng = np.random.default_rng(0)
    for _ in range(200):
        A = rng.uniform(-1, 1, (1, 3)) * 2.0 ** rng.integers(900, 1015, (1, 3))
        x = rng.uniform(-1, 1, 3) * 2.0 ** rng.integers(-1070, -1000, 3).astype(float)
        true = sum(Fraction(a) * Fraction(b) for a, b in zip(A[0].tolist(), x.tolist()))
        for made in (A @ Enclosure(x), Enclosure(A) @ Enclosure(x)):
            assert abs(Fraction(float(made.mid[0])) - true) <= Fraction(float(made.rad[0]))


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_overflowing_slopes_are_refused_in_words() -> None:
    F = 1e300 * gs.sum(1e300 * gs.relu(gs.Variable(300)))
    with pytest.raises(gs.NotCertifiableError, match="overflow"):
        c.clarke_distance(F, [0] * 300)


def test_gradients_lost_in_rounding_do_not_verify() -> None:
    w = gs.Variable(1)
    F = 1e16 * gs.sum(w) + gs.sum(w) - 1e16 * gs.sum(w)  # the identity; in floats constant
    with pytest.raises(gs.NotCertifiableError, match="lost to rounding"):
        gs.certify(F, [0.0], delta=1.0, rng=0)
    point = np.array([[0.5]])
    cert = gs.GoldsteinCertificate.from_gradients(
        np.zeros(1), point, np.array([F.gradient(point[0])])
    )
    found = cert.verify(F)
    assert not found.ok
    assert [check.name for check in found.checks if not check.ok] == ["gradients", "bound"]
    assert found.eps >= 1.0
    assert gs.certify(gs.sum(gs.abs(w)), [0.0], delta=1.0, rng=0).verify(gs.sum(gs.abs(w))).ok


# --- the ball and the displaced points ------------------------------------------------------------


def flat_claim(x: list[float], point: list[float], delta: float) -> gs.GoldsteinCertificate:
    zero = np.zeros((1, len(x)))
    return gs.GoldsteinCertificate(
        x=np.array(x), delta=delta, eps=0.0, points=np.array([point]), gradients=zero,
        weights=np.ones(1),
    )  # fmt: skip


def test_the_radius_is_compared_exactly() -> None:
    def constant(x: np.ndarray) -> float:
        return 0.0

    three_four_five = flat_claim([0.0, 0.0], [3.0, 4.0], 5.0)
    assert three_four_five.verify(constant, np.zeros_like).ok
    short = flat_claim([0.0, 0.0], [3.0, 4.0], math.nextafter(5.0, 0.0))
    assert not short.verify(constant, np.zeros_like).ok
    diagonal = flat_claim([0.0, 0.0], [1.0, 1.0], math.sqrt(2.0))  # rounded up: holds
    assert diagonal.verify(constant, np.zeros_like).ok == (Fraction(math.sqrt(2.0)) ** 2 >= 2)


@pytest.mark.parametrize("delta", [1e-2, 1e-4, 1e-5])
def test_a_kink_behind_a_constant_is_noticed(delta: float) -> None:
    """(x + 1) - 1 hides tiny displacements of 0 from relu(u) - relu(-u), whose slope is 1."""

    def gradient(x: np.ndarray) -> np.ndarray:
        u = (x + 1.0) - 1.0
        return (u > 0) * 1.0 + (-u > 0) * 1.0

    def value(x: np.ndarray) -> float:
        return float(((x + 1.0) - 1.0).sum())

    for seed in range(5):  # at 1e-5 three draws of 2,000 are too short to be seen
        assert not flat_claim([0.0], [0.0], delta).verify(value, gradient, seed=seed).ok


# --- state ---------------------------------------------------------------------------------------


def test_answers_are_copies() -> None:
    w = gs.Variable(2)
    x = np.array([1.0, 2.0])
    for F in (gs.sum(gs.abs(w)), w[:1], gs.abs(w)):
        kept = np.array(F(x))
        answer = F(x)
        answer += 100.0
        assert np.array_equal(F(x), kept)


@pytest.mark.parametrize(
    "duplicate", [copy.copy, copy.deepcopy, lambda F: pickle.loads(pickle.dumps(F))]
)
def test_copies_do_not_share_what_is_kept_by_identity(duplicate: Callable[[Any], Any]) -> None:
    w = gs.Variable(2)
    x = np.array([1.5, -2.0])
    for F in (gs.sum(gs.abs(w)) + gs.sum_squares(w), gs.max(w), gs.models.margin_svm(np.eye(2))):
        F.value(x), F.gradient(x), Kinks(F).examine([0, 1])
        again = duplicate(F)
        assert again.value(x) == F.value(x)
        assert np.array_equal(again.gradient(x), F.gradient(x))
        ways = [[1.0, 0.5], [-1.0, -0.5]]
        assert limiting_gradients(again, [0, 1], ways) == (limiting_gradients(F, [0, 1], ways))


def test_changing_the_data_afterwards_changes_nothing() -> None:
    X, labels = np.array([[1.0, 2.0], [0.0, 1.0], [1.0, 1.0]]), np.array([0, 1, 2])
    target, signs = np.array([1.0, 0.0, 2.0]), np.array([1.0, -1.0, 1.0])
    makers: list[Callable[[], Any]] = [
        lambda: gs.models.relu_two_layer(X, labels, 2, loss="logistic"),
        lambda: gs.models.relu_two_layer(X, target, 2),
        lambda: gs.models.relu_one_layer(X, target, 2, output_weights=signs[:2]),
        lambda: gs.models.margin_svm(X, weights=target),
        lambda: gs.sum(gs.abs(X @ gs.Variable(2) - target) * signs),
        lambda: gs.max_affine(X, target, gs.Variable(2)),
    ]
    for make in makers:
        F = make()
        x = np.random.default_rng(0).standard_normal(F.dim)
        before = F.value(x), F.gradient(x)
        kept = [a.copy() for a in (X, labels, target, signs)]
        for a in (X, labels, target, signs):
            a[...] = 0
        F.value(x + 1.0)  # forget what was kept for x
        assert (F.value(x), F.gradient(x).tolist()) == (before[0], before[1].tolist())
        for a, old in zip((X, labels, target, signs), kept):
            a[...] = old


def test_a_view_of_read_only_data_cannot_change_the_function() -> None:
    Z = 2.0 * np.eye(2)
    view = Z[:]
    Z.setflags(write=False)
    x = np.array([0.3, 0.4])
    F = gs.models.margin_svm(Z)
    before = F.value(x), F.tree.value(x)
    view[0, 0] = 100.0
    F.value(x + 1.0), F.tree.value(x + 1.0)
    assert (F.value(x), F.tree.value(x)) == before


def test_a_large_operator_without_entries_is_refused_in_words() -> None:
    w = gs.Variable(300)
    F = gs.sum(c.linear(aslinearoperator(np.eye(300)), w)) + gs.sum(gs.abs(w))
    with pytest.raises(gs.NotCertifiableError, match="LinearOperator"):
        NearCertificate.prove(F, np.zeros(300), [0] * 300, [np.ones(300)], [1.0])


def test_the_largest_of_nothing_is_refused() -> None:
    with pytest.raises(gs.GoldsteinError, match="at least one entry"):
        gs.max(gs.Variable(2)[:0])


# --- files ---------------------------------------------------------------------------------------


@pytest.fixture
def near() -> NearCertificate:
    F = gs.sum(gs.abs(gs.Variable(1)))
    return NearCertificate.prove(F, [0.05], [0], [[1.0], [-1.0]], [0.5, 0.5])


def forge(cert: NearCertificate, path: Path, arrays: Any = None, **changes: Any) -> Path:
    """Write a certificate with other content and a correct hash of the file."""
    kind, own, fields = cert.to_record()
    blobs = {f"{k}.npy": npy(v) for k, v in {**own, **(arrays or {})}.items()}
    header: dict[str, Any] = {
        "schema": 1, "kind": kind, "arrays": sorted(own), "fields": {**fields, **changes},
    }  # fmt: skip
    header["sha256"] = files.digest(header, blobs)
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("header.json", json.dumps(header))
        for name, blob in blobs.items():
            archive.writestr(name, blob)
    return path


HOSTILE: list[dict[str, Any]] = [
    {"delta": "0.05"}, {"delta": None}, {"delta": True}, {"delta": math.inf}, {"delta": 10**400},
    {"eps": "0"}, {"eps": math.nan}, {"eps": []}, {"label": 3}, {"meta": []}, {"extra": 1},
    *({"exact_pivot": pivot} for pivot in (
        "0x0/0x1", [0], [], ["0x1/0x0"], ["1/2/3"], ["x/y"], [""], ["0x1/0x" + "f" * 10**7],
    )),
    {"arrays": {"weights": np.array([[0.5], [0.5]])}}, {"arrays": {"x": np.array([np.nan])}},
    {"arrays": {"weights": np.array([1, 1])}}, {"arrays": {"x": np.array([[0.05]])}},
]  # fmt: skip


@pytest.mark.parametrize("number", range(len(HOSTILE)))
def test_hostile_near_files_are_refused(near: NearCertificate, tmp_path: Path, number: int) -> None:
    with pytest.raises(gs.CertificateFileError):
        gs.load_certificate(forge(near, tmp_path / "bad.cert", **HOSTILE[number]))
    assert gs.load_certificate(forge(near, tmp_path / "good.cert")).eps == near.eps


def test_denominators_without_common_factors_are_refused(tmp_path: Path) -> None:
    d = 2000
    cert = NearCertificate(
        x=np.zeros(d), exact_pivot=(Fraction(0),) * d, delta=1.0, eps=1.0,
        directions=np.ones((1, d)), weights=np.ones(1), gradients=np.ones((1, d)),
        errors=np.zeros(1),
    )  # fmt: skip
    rng = random.Random(0)
    pivot = [f"0x1/{hex(rng.getrandbits(2000) | 1)}" for _ in range(d)]
    with pytest.raises(gs.CertificateFileError, match="common denominator"):
        gs.load_certificate(forge(cert, tmp_path / "coprime.cert", exact_pivot=pivot))


@pytest.mark.parametrize("how", [zipfile.ZIP_DEFLATED, zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA])
def test_a_file_that_lies_about_its_size_does_not_fill_the_memory(
    near: NearCertificate, tmp_path: Path, how: int
) -> None:
    with zipfile.ZipFile(near.save(tmp_path / "good.cert")) as archive:
        content = {name: archive.read(name) for name in archive.namelist()}
    bomb = tmp_path / "bomb.cert"
    small, big = len(content["x.npy"]), len(content["x.npy"]) + 50 * 2**20
    with zipfile.ZipFile(bomb, "w", how) as archive:
        for name, blob in content.items():
            archive.writestr(name, blob.ljust(big, b"\0") if name == "x.npy" else blob)
    lie = bomb.read_bytes().replace(struct.pack("<I", big), struct.pack("<I", small))
    bomb.write_bytes(lie)
    tracemalloc.start()
    try:
        with pytest.raises(gs.CertificateFileError):
            gs.load_certificate(bomb)
        assert tracemalloc.get_traced_memory()[1] < 10 * 2**20
    finally:
        tracemalloc.stop()


def test_weights_in_a_column_are_refused() -> None:
    with pytest.raises(gs.GoldsteinError, match="shape"):
        gs.GoldsteinCertificate(
            x=np.zeros(1), delta=1.0, eps=1.0, points=np.ones((2, 1)), gradients=np.ones((2, 1)),
            weights=np.array([[0.5], [0.5]]),
        )  # fmt: skip


@pytest.mark.parametrize("line", [b"[1]", b"null", b"{", b'{"seed": "x"}', b"[" * 100_000])
def test_a_checkpoint_without_a_seed_has_none(tmp_path: Path, line: bytes) -> None:
    path = tmp_path / "run"
    path.write_bytes(b"goldstein journal 1\n" + line + b"\n")
    assert seed_in(path) is None
