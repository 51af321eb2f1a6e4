"""Sweeps: one problem per parameter, cold or along a path."""

from __future__ import annotations

import joblib
import numpy as np
import pytest

import goldstein as gs
from goldstein.parallel import sweep

PARAMETERS = [0.0, 0.5, 1.0, 1.5, 2.0, 2.5]


def problem(c):
    """|x - c| + x^2 / 4 in each coordinate: minimised at min(c, 2)."""

    def f(x):
        return float(np.abs(x - c).sum() + (x @ x) / 4)

    def g(x):
        return np.sign(x - c) + x / 2

    return f, g


def run(of=problem, parameters=PARAMETERS, x0=(9.0, 9.0), **options):
    settings = {"eps": 1e-4, "delta": 1e-4, "rng": 0} | options
    return sweep(of, parameters, list(x0), **settings)


def calls(found):
    return sum(r.nfev + r.ngev for r in found.results)


@pytest.mark.parametrize("warm_start", [False, True, 2])
def test_known_answers_cold_and_warm(warm_start):
    found = run(warm_start=warm_start)
    for c, result in zip(PARAMETERS, found.results):
        assert result.success
        assert result.x == pytest.approx(np.full(2, min(c, 2.0)), abs=1e-3)


def test_a_path_costs_fewer_calls_than_cold_starts():
    x0 = np.full(2, 1e4)
    assert calls(run(x0=x0, warm_start=True)) < calls(run(x0=x0))


def test_workers_change_nothing():
    one = run()
    with joblib.parallel_config(backend="threading"):
        two = run(n_jobs=2)
    assert [r.certificate.digest for r in one.results] == [
        r.certificate.digest for r in two.results
    ]


def test_a_parameter_that_fails_is_listed_and_the_path_goes_on():
    def fragile(c):
        if c == 1.0:
            raise OSError("no data")
        return problem(c)

    for warm_start in (False, True):
        found = run(fragile, warm_start=warm_start)
        assert [r is None for r in found.results] == [c == 1.0 for c in PARAMETERS]
        (failure,) = found.failures
        assert (failure.index, failure.start, failure.tries) == (2, 1.0, 2)
        assert "no data" in repr(found)


@pytest.mark.parametrize("warm_start", [False, True])
def test_ctrl_c_ends_the_sweep_not_one_parameter(warm_start):
    asked = []

    def interrupted(c):
        f, g = problem(c)

        def value(x):
            asked.append(c)
            if asked.count(1.0) == 3:
                raise KeyboardInterrupt
            return f(x)

        return value, g

    found = run(interrupted, warm_start=warm_start)
    assert [r is not None for r in found.results] == [True, True] + [False] * 4
    assert max(asked) == 1.0


def test_problems_as_dicts_and_expressions(tmp_path):
    x = gs.Variable(2)
    found = run(lambda c: gs.norm1(x - c), x0=(3.0, 3.0))
    assert found.results[1].x == pytest.approx(np.full(2, 0.5), abs=1e-3)

    def bounded(c):
        f, g = problem(c)
        return {"fun": f, "jac": g, "x0": [5.0, 5.0], "bounds": [(1.0, None)] * 2}

    for _ in range(2):
        found = run(bounded, folder=tmp_path)
        assert found.results[0].x == pytest.approx([1.0, 1.0], abs=1e-6)


def test_a_folder_resumes_and_refuses(tmp_path):
    whole = run(folder=tmp_path, warm_start=2)
    (tmp_path / "000003.search").unlink()
    again = run(folder=tmp_path, warm_start=2)
    assert [r.certificate.digest for r in whole.results] == [
        r.certificate.digest for r in again.results
    ]
    with pytest.raises(gs.InputError, match="stretch was 2 and is 1"):
        run(folder=tmp_path)


@pytest.mark.parametrize(
    ("changed", "words"),
    [
        ({"of": 3}, "must be callable"),
        ({"parameters": []}, "no parameters"),
        ({"warm_start": 0}, "positive int"),
        ({"of": lambda c: 3}, "a pair"),
        ({"of": lambda c: {}}, "without 'fun'"),
    ],
)
def test_bad_input_is_named(changed, words):
    with pytest.raises((gs.InputError, gs.InputTypeError), match=words):
        run(**changed)
