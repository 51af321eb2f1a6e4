"""Networks on Dask arrays: the function of the fit in memory, little memory, clear refusals."""

from __future__ import annotations

import tracemalloc
from typing import Any

import dask
import dask.array as da
import numpy as np
import pytest
from distributed import Client, LocalCluster
from scipy import sparse

from goldstein.errors import InputError, InputTypeError
from goldstein.models.networks import BLOCK
from goldstein.sklearn import ReLUNetClassifier, ReLUNetRegressor
from goldstein.sklearn.chunked import aligned_sizes

OPTIONS: dict[str, Any] = {"width": 4, "random_state": 0, "certificate": "goldstein"}


def problem(kind: str, rows: int) -> tuple[Any, np.ndarray, np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    X = rng.standard_normal((rows, 5))
    y = np.abs(X[:, 0]) + X[:, 1] + 0.1 * rng.standard_normal(rows)
    weights = rng.integers(0, 3, rows)
    if kind == "regression":
        return ReLUNetRegressor(**OPTIONS), X, 7.0 + 3.0 * y, weights
    if kind == "robust one layer":
        return ReLUNetRegressor(loss="huber", layers=1, **OPTIONS), X, y, weights
    if kind == "two classes":
        net = ReLUNetClassifier(class_weight="balanced", **OPTIONS)
        return net, X, np.where(y > 1, "high", "low"), weights
    return ReLUNetClassifier(**OPTIONS), X, np.digitize(y, [0.0, 1.0]), weights


def assert_same_function(one: Any, other: Any, x: np.ndarray) -> None:
    """Values and gradients agree up to rounding.

    Not bit for bit: a product's last bit depends on the machine, and on the number of threads.
    """
    for y in (x, x + 0.1 * np.random.default_rng(1).standard_normal(x.size)):
        assert one.value(y) == pytest.approx(other.value(y), rel=1e-12)
        expected = other.gradient(y)
        tolerance = 1e-12 * np.abs(expected).max()
        np.testing.assert_allclose(one.gradient(y), expected, rtol=0, atol=tolerance)


def assert_equivalent_fits(one: Any, other: Any, objectives: list[Any]) -> None:
    """Both searches got what was asked for, and whoever holds the data can check either.

    Rounding errors grow along a search (to 2e-3 in the objective of these problems, where the last
    bits of all sums are drawn at random), so the ends of two searches are not compared closely.
    """
    assert one.objective_ == pytest.approx(other.objective_, rel=1e-2)
    for net in (one, other):
        assert net.goldstein_stationarity_[0] <= net.eps
        assert all(net.certificate_.verify(objective).ok for objective in objectives)


@pytest.mark.parametrize("kind", ["regression", "robust one layer", "two classes", "three classes"])
@pytest.mark.parametrize("rows", [300, 3 * BLOCK + 77])
def test_chunks_are_fitted_like_memory(kind: str, rows: int) -> None:
    net, X, y, weights = problem(kind, rows)
    chunks = da.from_array(X, chunks=(rows // 3, 2))
    memory = type(net)(**net.get_params()).fit(X, y, weights)
    net.fit(chunks, da.from_array(y), weights)
    objectives = [memory.objective(X, y, weights), net.objective(chunks, y, weights)]
    assert_same_function(*objectives, net.parameters_)
    assert_equivalent_fits(net, memory, objectives)
    assert net.certificate_.label == "conditional"
    assert not net.certificate_.verify(net.objective(chunks, y[::-1], weights)).ok
    if kind.endswith("classes"):
        assert net.predict(chunks).tolist() == net.predict(X).tolist()
    else:
        np.testing.assert_allclose(net.predict(chunks), net.predict(X), rtol=1e-12, atol=1e-12)
    assert net.score(chunks, y) == pytest.approx(net.score(X, y), rel=1e-12)


@pytest.mark.slow
def test_a_cluster_of_processes_fits_alike_and_the_client_never_holds_the_data() -> None:
    # So many rows that half of the data leaves room for the scheduler, which shares this process.
    rows, features, parts = 32 * BLOCK, 60, 8

    def make(block_info: Any = None) -> np.ndarray:
        begin = block_info[None]["array-location"][0][0]
        return np.random.default_rng(begin).standard_normal((rows // parts, features))

    chunks = da.map_blocks(
        make,
        chunks=((rows // parts,) * parts, (features,)),
        dtype=np.float64,
        meta=np.empty((0, 0)),
    )
    y = np.random.default_rng(9).standard_normal(rows)
    with (
        LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=":0") as cluster,
        Client(cluster),
    ):
        net = ReLUNetRegressor(**OPTIONS, max_calls=6, eps=10.0)
        held = chunks.persist()
        tracemalloc.start()
        net.fit(held, y)
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        assert peak < chunks.nbytes / 2, f"{peak:,} of {chunks.nbytes:,} bytes"
        spread = net.objective(held, y)
        X = chunks.compute()
        memory = ReLUNetRegressor(**OPTIONS, max_calls=6, eps=10.0).fit(X, y)
        objectives = [spread, memory.objective(X, y)]
        assert_same_function(*objectives, net.parameters_)
        assert_equivalent_fits(net, memory, objectives)


def test_data_larger_than_the_memory_spent_on_it() -> None:
    """One process, chunks made when they are needed: the peak is that of few chunks."""
    sizes = (BLOCK,) * 24
    counted = []

    def make(block_info: Any = None) -> np.ndarray:
        begin = block_info[None]["array-location"][0][0]
        counted.append(begin)
        return np.random.default_rng(begin).standard_normal((BLOCK, 50))

    chunks = da.map_blocks(make, chunks=(sizes, (50,)), dtype=np.float64, meta=np.empty((0, 0)))
    y = np.random.default_rng(9).standard_normal(sum(sizes))
    with dask.config.set(scheduler="synchronous"):
        tracemalloc.start()
        net = ReLUNetRegressor(**OPTIONS, max_calls=6, eps=10.0).fit(chunks, y)
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
    assert peak < chunks.nbytes / 2
    assert len(counted) > 2 * len(sizes)  # read again in every pass, never kept
    assert np.isfinite(net.objective_)


def test_early_stopping_holds_rows_of_the_chunks_aside() -> None:
    net, X, y, _ = problem("two classes", 400)
    net.set_params(early_stopping=True, n_iter_no_change=3)
    memory = type(net)(**net.get_params()).fit(X, y)
    net.fit(da.from_array(X, chunks=(150, 5)), y)
    assert net.objective_ == pytest.approx(memory.objective_, rel=1e-2)
    assert net.score(X, y) == pytest.approx(memory.score(X, y), abs=0.01)


def test_warm_start_and_near_request_on_chunks() -> None:
    net, X, y, _ = problem("regression", 300)
    chunks = da.from_array(X, chunks=(100, 5))
    net.set_params(warm_start=True, certificate="near").fit(chunks, y)
    assert net.near_stationarity_ is None
    steps = net.n_iter_
    assert net.fit(chunks, y).n_iter_ < steps


@pytest.mark.parametrize(
    ("sizes", "expected"),
    [
        ((10,), (10,)),
        ((BLOCK,), (BLOCK,)),
        ((1, 1, 1), (3,)),
        ((BLOCK - 1, BLOCK + 1), (BLOCK, BLOCK)),
        ((0, 3 * BLOCK, 5), (3 * BLOCK, 5)),
        ((10 * BLOCK + 7,), (10 * BLOCK, 7)),
    ],
)
def test_chunks_end_at_multiples_of_the_block(sizes: Any, expected: Any) -> None:
    assert aligned_sizes(sizes) == expected


X = np.random.default_rng(0).standard_normal((40, 2))
Y = np.arange(40) % 2
GOOD = da.from_array(X, chunks=(10, 2))


@pytest.mark.parametrize("estimator", [ReLUNetRegressor, ReLUNetClassifier])
@pytest.mark.parametrize(
    ("rows", "target", "error", "words"),
    [
        (GOOD[GOOD[:, 0] > 0], Y, InputError, "unknown size.*compute_chunk_sizes"),
        (GOOD, Y[:-1], InputError, "40 rows and y has 39"),
        (GOOD, 3.0, InputError, "no known length"),
        (GOOD, np.column_stack([Y, Y]), ValueError, "1d array"),
        (GOOD[:, 0], Y, InputError, "1 dimensions"),
        (GOOD[:, :0], Y, InputError, "shape"),
        (GOOD.astype(object), Y, InputTypeError, "object"),
        (da.from_array(X + 1j), Y, InputTypeError, "complex"),
        (GOOD.map_blocks(sparse.csr_array), Y, InputTypeError, "csr_array"),
        (da.where(GOOD > 1, np.nan, GOOD), Y, InputError, "NaN"),
        (da.where(GOOD > 1, np.inf, GOOD), Y, InputError, "infinity"),
        (GOOD, np.where(Y == 1, np.nan, 0.0), ValueError, "NaN"),
    ],
)
def test_bad_chunks_are_refused(
    estimator: Any, rows: Any, target: Any, error: type[Exception], words: str
) -> None:
    with pytest.raises(error, match=words):
        estimator(**OPTIONS).fit(rows, target)


def test_other_refusals() -> None:
    net = ReLUNetClassifier(**OPTIONS)
    with pytest.raises(InputError, match="solver='auto'"):
        net.set_params(solver="o2nc").fit(GOOD, Y)
    net = ReLUNetClassifier(**OPTIONS).fit(GOOD, Y)
    with pytest.raises(InputError, match=r"3 features.*expecting 2"):
        net.predict(da.ones((5, 3)))
    with pytest.raises(InputError, match="NaN"):
        net.predict(GOOD * np.nan)
    with pytest.raises(InputError, match="sample_weight has 39"):
        net.fit(GOOD, Y, sample_weight=np.ones(39))
