"""Finding, building, scaling, moving and listing problems."""

from __future__ import annotations

import copy
import dataclasses
import math
import pickle
import subprocess
import sys
import tracemalloc
from pathlib import Path

import numpy as np
import pytest

from goldstein import problems
from goldstein.errors import InputError, InputTypeError, MissingExtraError
from goldstein.oracles import CountedOracle, Oracle, as_oracle
from goldstein.problems.forms import DENSE_LIMIT, hilbert_product, hilbert_row
from goldstein.problems.registry import DEFINITIONS

PAGE = Path(__file__).parents[2] / "docs" / "problems.md"

HAARALA = sorted(n for n, d in DEFINITIONS.items() if d.family == "haarala")
TEST29 = sorted(n for n, d in DEFINITIONS.items() if d.family == "test29")


def test_names_are_sorted_snake_case_and_complete() -> None:
    names = problems.names()
    assert names == sorted(names)
    assert all(name.isidentifier() and name == name.lower() for name in names)
    assert len(HAARALA) == 10
    assert len(names) == 121


def test_the_public_suite_has_its_sizes() -> None:
    suite = problems.suite()
    assert len(suite) == 117
    assert len({p.name for p in suite}) == 117
    dims = {p.name: p.dim for p in suite}
    assert dims["maxq"] == 50
    assert dims["maxq_20"] == 20
    assert dims["nesterov_chebyshev_rosenbrock_1"] == 3
    assert {p.name for p in problems.suite("all")} == set(problems.names())
    with pytest.raises(InputError, match="'public', 'all' or 'constrained'"):
        problems.suite("secret")


def test_an_unknown_name_is_answered_with_close_ones() -> None:
    with pytest.raises(InputError, match=r"'chained_cb3_1'.*names\('all'\)"):
        problems.get("chained_cb3")
    with pytest.raises(InputError, match="no name is close"):
        problems.get("###")
    with pytest.raises(InputTypeError, match="string"):
        problems.get(3)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("name", "d", "message"),
    [
        ("maxq", 1, "any d >= 2"),
        ("maxq", -5, "any d >= 2"),
        ("test29_17", 12, "any multiple of 5"),
        ("cb3", 3, "exactly 2 variables"),
        ("blind_deconvolution", 7, "any multiple of 2"),
    ],
)
def test_an_impossible_size_says_what_is_possible(name: str, d: int, message: str) -> None:
    with pytest.raises(InputError, match=message):
        problems.get(name, d=d)


def test_parameters_are_checked() -> None:
    with pytest.raises(InputError, match=r"unknown parameter 'n'.*none"):
        problems.get("maxq", n=4)
    with pytest.raises(InputError, match="delta"):
        problems.get("convex_polyhedron", width=4)
    with pytest.raises(InputTypeError, match="integer"):
        problems.get("maxq", d=4.5)  # type: ignore[arg-type]
    with pytest.raises(InputError, match="1 <= m <= d"):
        problems.get("nesterov_worst", d=4)
    assert problems.get("cb3", d=2).dim == 2
    assert problems.get("maxq", d=np.int64(7)).dim == 7


def test_values_known_for_one_size_are_not_claimed_for_another() -> None:
    assert problems.get("chained_mifflin_2", d=51).best_value is None
    assert problems.get("chained_mifflin_2", d=51).best_value_kind == "none"
    assert problems.get("max_eigenvalue", seed=5).best_value is None
    assert problems.get("maxq", d=51).reference_value is None
    assert problems.get("maxq", d=51).best_value == 0.0


def test_a_problem_is_an_immutable_oracle() -> None:
    problem = problems.get("maxq", d=6)
    assert isinstance(problem, Oracle)
    assert as_oracle(problem) is problem
    assert not problem.knows_kinks
    assert CountedOracle(problem).value(problem.x0) == problem.fun(problem.x0)
    with pytest.raises(dataclasses.FrozenInstanceError):
        problem.best_value = 1.0  # type: ignore[misc]
    with pytest.raises(ValueError, match="read-only"):
        problem.x0[0] = 1.0


@pytest.mark.parametrize("name", problems.names())
def test_calls_do_not_change_their_argument_or_share_memory(name: str) -> None:
    problem = problems.get(name)
    x = problem.x0.copy()
    first = problem.jac(x)
    kept = first.copy()
    problem.jac(x + 1e-3)
    problem.fun(x)
    np.testing.assert_array_equal(x, problem.x0)
    np.testing.assert_array_equal(first, kept)
    assert not np.shares_memory(first, x)
    first[:] = np.nan
    np.testing.assert_array_equal(problem.jac(x), kept)


def test_a_point_of_the_wrong_shape_is_refused() -> None:
    problem = problems.get("cb3")
    with pytest.raises(InputError, match=r"shape \(3,\), expected \(2,\)"):
        problem.fun([1.0, 2.0, 3.0])
    with pytest.raises(InputError, match="expected"):
        problem.jac(1.0)
    assert problem.fun([1, 1]) == 2.0


@pytest.mark.parametrize("name", problems.names())
def test_far_away_the_answer_is_a_float_without_warnings(name: str) -> None:
    problem = problems.get(name)
    for scale in (1e3, 1e200):
        x = np.full(problem.dim, scale)
        x[::2] *= -1.0
        assert isinstance(problem.fun(x), float)
        assert problem.jac(x).shape == (problem.dim,)
        value, gradient = problem.fun_and_jac(x)
        assert isinstance(value, float)
        assert gradient.shape == (problem.dim,)


def test_problems_survive_pickling_and_copying() -> None:
    plain = problems.get("kornowski_shamir", delta=0.25)
    turned = problems.rotated(problems.get("chained_lq", d=5), seed=3)
    for problem in (plain, turned):
        for twin in (pickle.loads(pickle.dumps(problem)), copy.deepcopy(problem)):
            assert twin.name == problem.name
            x = problem.x0 + 0.1
            assert twin.fun(x) == problem.fun(x)


@pytest.mark.parametrize("name", ["maxq", "chained_crescent_2", "test29_6", "dc_9"])
def test_rotation_keeps_values_and_turns_gradients(name: str) -> None:
    plain = problems.get(name)
    turned = problems.rotated(plain, seed=4)
    assert turned.best_value == plain.best_value
    assert turned.fun(turned.x0) == pytest.approx(plain.fun(plain.x0), rel=1e-10)
    rng = np.random.default_rng(1)
    y = turned.x0 + 0.1 * rng.standard_normal(turned.dim)
    value, gradient = turned.fun_and_jac(y)
    assert value == turned.fun(y)
    np.testing.assert_allclose(gradient, turned.jac(y), rtol=1e-13, atol=1e-300)
    u = rng.standard_normal(turned.dim)
    h = 1e-7
    slope = (turned.fun(y + h * u) - turned.fun(y - h * u)) / (2 * h)
    assert slope == pytest.approx(float(gradient @ u), rel=1e-5, abs=1e-5)
    again = problems.rotated(plain, seed=4)
    assert again.fun(y) == value
    assert problems.rotated(plain, seed=5).fun(y) != value


def test_a_rotation_too_large_for_memory_is_refused() -> None:
    with pytest.raises(InputError, match="at most 5000"):
        problems.rotated(problems.get("maxq", d=5001), seed=0)


@pytest.mark.parametrize("name", [*HAARALA, *TEST29])
def test_a_hundred_thousand_variables_cost_linear_memory(name: str) -> None:
    d = 100_000
    problem = problems.get(name, d=d)
    problem.fun_and_jac(problem.x0)
    tracemalloc.start()
    try:
        value, gradient = problem.fun_and_jac(problem.x0)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert np.isfinite(value)
    assert gradient.shape == (d,)
    assert peak < 40 * 8 * d


def test_fast_and_dense_hilbert_products_agree() -> None:
    rng = np.random.default_rng(2)
    for d in (DENSE_LIMIT, DENSE_LIMIT + 1, 1500):
        x = rng.standard_normal(d)
        index = np.arange(d)
        expected = (1.0 / (index[:, None] + index + 1.0)) @ x
        np.testing.assert_allclose(hilbert_product(d)(x), expected, rtol=0, atol=1e-13)


def test_a_long_hilbert_product_is_the_sum_of_its_terms() -> None:
    d = 100_000
    x = np.random.default_rng(2).standard_normal(d)
    found = hilbert_product(d)(x)
    for i in (0, 1, d // 2, d - 1):
        assert math.isclose(found[i], math.fsum(hilbert_row(d, i) * x), abs_tol=1e-12)


def test_importing_builds_nothing_and_imports_no_extra() -> None:
    script = (
        "import sys, goldstein.problems as p; p.names();"
        "bad = {'sklearn', 'torch', 'jax', 'matplotlib'} & set(sys.modules); print(sorted(bad))"
    )
    out = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert out.stdout.strip() == "[]"


def test_missing_scikit_learn_is_explained(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "sklearn", None)
    with pytest.raises(MissingExtraError, match=r'pip install "\.\[sklearn\]"'):
        problems.get("iris_kmeans_3")


def test_the_page_of_problems_is_up_to_date() -> None:
    assert PAGE.read_text(encoding="utf-8") == problems.table()
    assert all(f"`{name}`" in problems.table() for name in problems.names("all"))
