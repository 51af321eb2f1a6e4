"""RhoMarginSVC on Dask arrays proves what it proves in memory, and the proof reads chunks only."""

from __future__ import annotations

import pickle
import tracemalloc
from dataclasses import replace
from fractions import Fraction
from typing import Any

import dask
import dask.array as da
import numpy as np
import pytest
from distributed import Client, LocalCluster
from hypothesis import given, settings
from hypothesis import strategies as st

from goldstein.calculus import Variable
from goldstein.calculus.operators import linear
from goldstein.certificates.near import NearCertificate
from goldstein.checker.enclosed.arrays import Enclosure
from goldstein.errors import InputTypeError, KinkError
from goldstein.models.margin_svm import MarginSVM
from goldstein.sklearn import RhoMarginSVC
from goldstein.sklearn.chunked import ChunkedRows

KINDS = ("small", "many rows", "long rows", "wide", "whole numbers", "no intercept", "classes")


def problem(kind: str) -> tuple[dict[str, Any], np.ndarray, np.ndarray]:
    """Small data are proved in rationals, the others in enclosures, long rows without integers."""
    rng = np.random.default_rng(KINDS.index(kind))
    n, d = {"many rows": (12_000, 6), "wide": (1500, 80), "long rows": (2000, 5)}.get(
        kind, (300, 6)
    )
    X = rng.standard_normal((n, d))
    options: dict[str, Any] = {"random_state": 0, "C": 2.0}
    if kind == "long rows":
        X[:100] *= 1000.0
    if kind == "whole numbers":
        X = rng.integers(-2, 3, (n, d)).astype(float)
    if kind == "no intercept":
        options |= {"fit_intercept": False, "shift": -1.0, "rho": 2.0}
    if kind == "classes":
        options["multi_class"] = "ovr"
    score = X[:, 0] + 0.3 * rng.standard_normal(n)
    y = np.digitize(score, [-0.5, 0.5]) if kind == "classes" else (score > 0).astype(int)
    return options, X, y


def assert_same_claim(one: Any, other: Any) -> None:
    assert len(one.certificates_) == len(other.certificates_)
    for a, b in zip(one.certificates_, other.certificates_):
        assert isinstance(a, NearCertificate)
        assert isinstance(b, NearCertificate)
        assert a.label == b.label == "certified"
        # Equal up to rounding: sums over chunks are formed in another order.
        assert a.eps == pytest.approx(b.eps, rel=1e-9, abs=1e-12)
        assert a.delta == pytest.approx(b.delta, abs=1e-11)
    assert one.near_stationarity_ == pytest.approx(other.near_stationarity_, rel=1e-9, abs=1e-11)
    assert one.objective_ == pytest.approx(other.objective_, rel=1e-9)


@pytest.mark.parametrize("kind", KINDS)
def test_chunks_get_the_near_certificate_of_the_fit_in_memory(kind: str) -> None:
    options, X, y = problem(kind)
    memory = RhoMarginSVC(**options).fit(X, y)
    cut = da.from_array(X, chunks=(len(X) // 4 + 7, 3))
    with dask.config.set(scheduler="synchronous"):
        chunks = RhoMarginSVC(**options).fit(cut, y)
        # Whoever holds the rows, in whatever chunks, can check whoever's certificate.
        other = da.from_array(X, chunks=(len(X) // 2, X.shape[1]))
        for machine in (memory, chunks):
            for data in (X, cut, other):
                for k, certificate in enumerate(machine.certificates_):
                    objective = machine.objective(data, y, machine=k)
                    assert certificate.verify(objective).label == "certified"
    assert_same_claim(chunks, memory)


def test_weights_count_in_the_proof() -> None:
    options, X, y = problem("many rows")
    weights = np.random.default_rng(0).integers(0, 3, len(X))
    memory = RhoMarginSVC(**options).fit(X, y, weights)
    cut = da.from_array(X, chunks=(5000, 6))
    chunks = RhoMarginSVC(**options).fit(cut, y, weights)
    assert_same_claim(chunks, memory)
    assert chunks.certificate_.verify(chunks.objective(cut, y, weights)).ok
    assert not chunks.certificate_.verify(chunks.objective(cut, y, weights[::-1])).ok
    copy = pickle.loads(pickle.dumps(chunks.objective(cut, y, weights)))
    assert chunks.certificate_.verify(copy).ok


@pytest.mark.parametrize("kind", ["small", "wide"])
def test_a_certificate_fails_on_other_chunks(kind: str) -> None:
    options, X, y = problem(kind)
    machine = RhoMarginSVC(**options).fit(da.from_array(X, chunks=(100, 6)), y)
    proof = machine.certificate_
    margins = np.where(y == 1, 1.0, -1.0) * (X @ machine.coef_[0] + machine.intercept_[0])
    steep = int(np.argmin(np.abs(margins - 0.5)))
    spoiled = X.copy()
    spoiled[steep] += 0.5
    changed = da.from_array(spoiled, chunks=(100, 6))
    assert not proof.verify(machine.objective(changed, y)).ok
    flipped = np.where(np.arange(len(y)) == steep, 1 - y, y)
    cut = da.from_array(X, chunks=(100, 6))
    assert not proof.verify(machine.objective(cut, flipped)).ok
    assert not replace(proof, eps=0.5 * proof.eps).verify(machine.objective(cut, y)).ok


@pytest.mark.slow
def test_a_cluster_of_processes_proves_the_same_and_the_client_never_holds_the_data() -> None:
    # So wide that half of the data leaves room for the scheduler, which shares this process.
    rows, features, parts = 24_000, 200, 4

    def make(block_info: Any = None) -> np.ndarray:
        begin = block_info[None]["array-location"][0][0]
        return np.random.default_rng(begin).standard_normal((rows // parts, features))

    chunks = da.map_blocks(
        make, chunks=((rows // parts,) * parts, (features,)), dtype=float, meta=np.empty((0, 0))
    )
    y = (chunks[:, 0].compute() + 0.5 * np.random.default_rng(9).standard_normal(rows) > 0) * 1
    with (
        LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=":0") as cluster,
        Client(cluster),
    ):
        held = chunks.persist()
        machine = RhoMarginSVC(random_state=0).fit(held, y)
        tracemalloc.start()
        assert machine.certificate_.verify(machine.objective(held, y)).label == "certified"
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
    assert peak < chunks.nbytes / 2, f"{peak:,} of {chunks.nbytes:,} bytes"
    X = chunks.compute()
    memory = RhoMarginSVC(random_state=0).fit(X, y)
    assert_same_claim(machine, memory)
    assert machine.certificate_.verify(memory.objective(X, y)).ok


def test_the_proof_reads_one_chunk_at_a_time() -> None:
    rows, features, parts = 48_000, 100, 24
    living: list[int] = []

    def make(block_info: Any = None) -> np.ndarray:
        begin = block_info[None]["array-location"][0][0]
        living.append(begin)
        return np.random.default_rng(begin).standard_normal((rows // parts, features))

    chunks = da.map_blocks(
        make, chunks=((rows // parts,) * parts, (features,)), dtype=float, meta=np.empty((0, 0))
    )
    y = np.arange(rows) % 2
    machine = RhoMarginSVC(random_state=0, C=1e-3).fit(chunks.compute(), y)
    living.clear()
    with dask.config.set(scheduler="synchronous"):
        tracemalloc.start()
        found = machine.certificate_.verify(machine.objective(chunks, y))
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
    assert isinstance(machine.certificate_, NearCertificate)
    assert found.label == "certified"
    assert set(living) == set(range(0, rows, rows // parts))
    assert peak < chunks.nbytes / 2, f"{peak:,} of {chunks.nbytes:,} bytes"


def in_chunks(X: np.ndarray, signs: np.ndarray, intercept: bool, size: int) -> ChunkedRows:
    return ChunkedRows(da.from_array(X, chunks=(size, -1)), signs, intercept)


@settings(max_examples=25, deadline=None)
@given(st.integers(0, 10_000), st.integers(1, 12), st.integers(1, 5), st.booleans())
def test_enclosures_over_chunks_contain_the_exact_products(
    seed: int, size: int, columns: int, intercept: bool
) -> None:
    rng = np.random.default_rng(seed)
    n = 12
    X = rng.standard_normal((n, columns)) * 10.0 ** rng.integers(-8, 9, (n, columns))
    signs = rng.choice([-1.0, 1.0], n)
    Z = in_chunks(X, signs, intercept, size)
    exact = [
        [Fraction(s) * Fraction(a) for a in [*row, *([1.0] if intercept else [])]]
        for s, row in zip(signs.tolist(), X.tolist())
    ]
    with dask.config.set(scheduler="synchronous"):
        for matrix, rows in ((Z, exact), (Z.T, [list(c) for c in zip(*exact)])):
            mid = rng.standard_normal(len(rows[0]))
            rad = np.abs(rng.standard_normal(len(rows[0]))) * 10.0 ** rng.integers(-20, 0)
            found = matrix @ Enclosure(mid, rad)
            # The ends of the intervals are the hardest members.
            ends = [
                [Fraction(m) + s * Fraction(r) for m, r in zip(mid.tolist(), rad.tolist())]
                for s in (-1, 0, 1)
            ]
            for member in ends:
                for row, m, r in zip(rows, found.mid.tolist(), found.rad.tolist()):
                    value = sum(a * b for a, b in zip(row, member))
                    assert abs(value - Fraction(m)) <= Fraction(r)
        np.testing.assert_array_equal(Z.toarray(), [[float(a) for a in row] for row in exact])


def test_a_gradient_on_a_kink_is_refused_by_chunks_too() -> None:
    X = np.array([[1.0, 0.0], [0.0, 1.0], [3.0, 1.0]])
    F = MarginSVM(in_chunks(X, np.ones(3), False, 2), 1.0, 1.0)
    with pytest.raises(KinkError):
        F.gradient(np.array([1.0, 0.5]))
    memory = MarginSVM(X, 1.0, 1.0)
    off = np.array([0.25, 0.5])
    np.testing.assert_allclose(F.gradient(off), memory.gradient(off), rtol=1e-14)
    assert F.solver_lipschitz(off, 0.1) >= memory.solver_lipschitz(off, 0.1)


def test_chunks_multiply_the_variable_only() -> None:
    Z = in_chunks(np.ones((3, 2)), np.ones(3), False, 2)
    with pytest.raises(InputTypeError, match="variable itself"):
        linear(Z, 2.0 * Variable(2))
