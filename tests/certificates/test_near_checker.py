"""The checker of near certificates: what it proves, and everything it must refuse."""

from __future__ import annotations

import sys
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from tests.limits import limiting_gradients

import goldstein.calculus as gc
from goldstein.certificates import load_certificate
from goldstein.certificates.near import NearCertificate
from goldstein.errors import CertificateFileError, InputError, InputTypeError, NotCertifiableError
from goldstein.models import margin_svm, relu_two_layer


@pytest.fixture
def absolute():
    return gc.sum(gc.abs(gc.Variable(1)))


@pytest.fixture
def proof(absolute):
    return NearCertificate.prove(absolute, [0.05], [0], [[1.0], [-1.0]], [0.5, 0.5])


def test_absolute_value_at_a_twentieth(absolute, proof):
    assert (proof.eps, proof.delta) == (0.0, 0.05)
    found = proof.verify(absolute)
    assert found.ok
    assert found.label == "certified"


def test_delta_is_rounded_up():
    F = gc.norm1(gc.Variable(2))
    cert = NearCertificate.prove(F, [0.1, 0.1], [0, 0], [[1.0, 2.0], [-1.0, -2.0]], [1.0, 1.0])
    assert Fraction(cert.delta) ** 2 >= 2 * Fraction(0.1) ** 2
    assert cert.verify(F).ok
    short = replace(cert, delta=float(np.nextafter(cert.delta, 0)))
    assert Fraction(short.delta) ** 2 < 2 * Fraction(0.1) ** 2
    assert not short.verify(F).ok


@pytest.mark.parametrize(
    "change",
    [
        {"weights": np.array([0.9, 0.1])},
        {"weights": np.array([1.5, -0.5])},
        {"weights": np.array([0.0, 0.0])},
        {"weights": np.array([np.nan, 0.5])},
        {"directions": np.array([[1.0], [1.0]])},
        {"directions": np.array([[1.0], [0.0]])},
        {"directions": np.array([[1.0], [np.inf]])},
        {"exact_pivot": (Fraction(1, 10**40),)},
        {"exact_pivot": (Fraction(-1, 10**400),)},
        {"x": np.array([0.06])},
        {"x": np.array([np.nan])},
        {"delta": 0.04999},
        {"delta": -0.05},
        {"eps": -1.0},
        {"eps": float("nan")},
        {"delta": float("nan")},
    ],
    ids=str,
)
def test_tampered_evidence_is_refused(absolute, proof, change):
    assert not replace(proof, **change).verify(absolute).ok


def test_the_stored_gradients_are_not_believed(absolute):
    bad = NearCertificate.prove(absolute, [0.05], [0.01], [[1.0]], [1.0])
    lie = replace(bad, gradients=np.zeros((1, 1)), errors=np.zeros(1), eps=0.0)
    found = lie.verify(absolute)
    assert not found.ok
    assert found.eps == 1.0


def test_another_function_is_noticed(proof):
    w = gc.Variable(1)
    assert not proof.verify(gc.sum(gc.relu(w)) + gc.sum(w)).ok
    assert not proof.verify(gc.sum(gc.abs(gc.Variable(2)))).ok


def test_black_boxes_are_refused(proof):
    assert proof.verify(lambda x: abs(x[0])).ok  # read from its code
    with pytest.raises(InputTypeError, match="chooses by value"):
        proof.verify(lambda x: x[0] if x[0] > 0 else -x[0])


def test_shapes_are_checked():
    with pytest.raises(InputError):
        NearCertificate([0.0], (Fraction(0),), 0.0, 0.0, [[1.0, 2.0]], [1.0], [[1.0]], [0.0])


@pytest.mark.parametrize("scale", [5e-324, 1e-310, 1e-200, 1e-20, 1.0, 1e20, 1e150])
def test_scales(scale):
    F = gc.sum(gc.abs(np.array([[scale]]) @ gc.Variable(1)))
    cert = NearCertificate.prove(F, [0.0], [0], [[1.0], [-1.0]], [1.0, 1.0])
    assert cert.eps == 0.0
    assert cert.verify(F).ok
    away = NearCertificate.prove(F, [1.0], [1], [[1.0]], [1.0])
    assert away.eps == scale


def test_overflow_is_refused_not_certified():
    rng = np.random.default_rng(0)
    Z = 1e200 * rng.standard_normal((80, 80))
    F = margin_svm(Z, 1.0, 1.0)
    G = 1e200 * gc.sum_squares(Z @ gc.Variable(80))
    y = rng.standard_normal(80)
    with pytest.raises(NotCertifiableError):
        NearCertificate.prove(G, y, y, [np.ones(80)], [1.0])
    cert = NearCertificate.prove(F, y, y, [np.ones(80)], [1.0])
    assert cert.eps >= 0.9 * np.linalg.norm(F.gradient(y))


def test_denormal_data_decide_signs_exactly():
    # The second row differs from the first by one denormal: only one of them is on its kink.
    F = gc.sum(gc.relu(np.array([[1.0, 0.0], [1.0, 5e-324]]) @ gc.Variable(2)))
    (g, _), *_ = limiting_gradients(F, [0.0, 1.0], [[-1.0, 0.0]])
    assert [float(v) for v in g] == [1.0, 5e-324]


@pytest.mark.parametrize("arithmetic", ["rational", "enclosure"])
def test_both_arithmetics_agree(arithmetic, monkeypatch):
    monkeypatch.setattr(
        "goldstein.checker.enclosed.point.RATIONAL_WORK", 10**9 if arithmetic == "rational" else 0
    )
    rng = np.random.default_rng(1)
    F = relu_two_layer(rng.standard_normal((12, 3)), rng.standard_normal(12), 2)
    theta = F.start(0)
    cert = NearCertificate.prove(F, theta, theta, [np.ones(theta.size)], [1.0])
    true = float(np.linalg.norm(F.gradient(theta)))
    assert cert.eps == pytest.approx(true, rel=1e-12)
    exact = limiting_gradients(F, theta, [np.ones(theta.size)])[0]
    assert (max(exact[1]) == 0) == (arithmetic == "rational")


def test_without_flint_the_rational_route_is_the_same(monkeypatch):
    F = margin_svm([[1.0, 2.0], [0.5, -1.0], [3.0, 0.1]], 0.7, 0.3)
    args = ([0.1, 0.2], [Fraction(1, 3), Fraction(1, 7)], [[1.0, 0.5]], [1.0])
    with_flint = NearCertificate.prove(F, *args)
    monkeypatch.setitem(sys.modules, "flint", None)
    fresh = margin_svm([[1.0, 2.0], [0.5, -1.0], [3.0, 0.1]], 0.7, 0.3)
    assert NearCertificate.prove(fresh, *args).eps == with_flint.eps


def test_reduce_keeps_the_claim(absolute):
    F = gc.norm1(gc.Variable(2))
    ways = [[1, 1], [1, -1], [-1, 1], [-1, -1]]
    cert = NearCertificate.prove(F, [0.01, 0.0], [0, 0], ways, [0.25] * 4)
    small = cert.reduce()
    assert len(small.weights) <= 3
    assert small.eps <= 1e-15
    assert small.verify(F).ok


def test_files(tmp_path, absolute, proof):
    path = proof.save(tmp_path / "one")
    again = load_certificate(path)
    assert isinstance(again, NearCertificate)
    assert again.exact_pivot == proof.exact_pivot
    assert again.verify(absolute).ok
    blob = bytearray(path.read_bytes())
    blob[len(blob) // 2] ^= 1
    path.write_bytes(bytes(blob))
    with pytest.raises(CertificateFileError):
        load_certificate(path)


def test_a_changed_record_is_refused(proof):
    _, arrays, fields = proof.to_record()
    with pytest.raises(InputError, match="changed"):
        NearCertificate.from_record(arrays, {**fields, "eps": 1e-9})
    with pytest.raises((InputError, ValueError)):
        NearCertificate.from_record(arrays, {**fields, "pivot": ["nonsense"]})


class TestTraps:
    """Points where naive rules prove what is false."""

    def test_s1(self):
        F = margin_svm([[1.0, 0.0], [0.0, 1.0], [1.0, 1.0]])
        rng = np.random.default_rng(0)
        ways = rng.standard_normal((50, 2))
        for weights in rng.dirichlet(np.ones(50), size=20):
            cert = NearCertificate.prove(F, [0.01, 0.99], [0, 1], ways, weights)
            assert Fraction(cert.eps) ** 2 >= Fraction(1, 5)
            assert cert.delta == pytest.approx(0.0141421, abs=1e-6)

    def test_n1(self):
        w = gc.Variable(1)
        F = 0.5 * gc.sum_squares(gc.relu(w) + 1.0) + 0.5 * gc.sum_squares(gc.relu(-w) - 1.0)
        for share in (0.0, 0.25, 0.5, 1.0):
            cert = NearCertificate.prove(F, [0.0], [0], [[1.0], [-1.0]], [share, 1.0 - share])
            assert cert.eps == 1.0

    def test_n2(self):
        d = gc.Variable(2)
        trap = gc.relu(d[0]) + gc.relu(d[1]) - gc.relu(d[0] + d[1])
        # The box contains (1/2, 1/2) + ...; the true set is |g1| + |g2| <= 1.
        F = trap + gc.sum(d) * 0.75
        rng = np.random.default_rng(1)
        for _ in range(20):
            cert = NearCertificate.prove(
                F, [0.0, 0.0], [0, 0], rng.standard_normal((30, 2)), rng.random(30)
            )
            assert cert.eps >= 0.5 / np.sqrt(2) - 1e-12

    def test_relu_minus_relu(self):
        # relu(x) - relu(-x) is x: automatic differentiation says 0 at the kink.
        w = gc.Variable(1)
        F = gc.sum(gc.relu(w) - gc.relu(-w))
        cert = NearCertificate.prove(F, [0.0], [0], [[1.0], [-1.0]], [0.5, 0.5])
        assert cert.eps == 1.0
