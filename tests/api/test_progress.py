"""`progress`: a display for people, silence for everything else."""

from __future__ import annotations

import sys
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from tests.functions import norm1
from tests.terminal import shown_on_a_terminal

import goldstein as gs
from goldstein.api.progress import reporter
from goldstein.solvers import State

SCRIPT = """
import sys, time
import numpy as np
if {hide}: sys.modules["rich"] = None
from goldstein.api.progress import reporter
from goldstein.solvers import State
with reporter(True, 1000, 1e-3) as report:
    for calls in (10, 20, 30):
        print("the function says", calls)
        report(State(np.zeros(2), 0.5 * calls, bound=0.25), calls)
        time.sleep(0.15)
print("end")
"""


@pytest.mark.parametrize("hide", [False, True])
def test_a_terminal_sees_calls_value_and_bound(hide: bool) -> None:
    seen, out = shown_on_a_terminal([sys.executable, "-c", SCRIPT.format(hide=hide)])
    for words in ("30", "calls", "f 15", "bound 0.25 -> 0.001"):
        assert words in seen
    assert ("━" in seen) is not hide  # the bar of rich
    assert "Traceback" not in seen
    # What the function prints goes where it would go without a display.
    assert out == "".join(f"the function says {n}\n" for n in (10, 20, 30)) + "end\n"


def test_no_terminal_no_display(capsys: pytest.CaptureFixture[str]) -> None:
    with reporter(True, 100, 1e-3) as report:
        assert report is None
    with reporter(False, 100, 1e-3) as report:
        assert report is None
    assert capsys.readouterr() == ("", "")


def test_a_callable_is_handed_through() -> None:
    seen: list[tuple[float, int]] = []

    def watch(state: State, calls: int) -> None:
        seen.append((state.fx, calls))

    with reporter(watch, 100, 1e-3) as report:
        res = gs.minimize(
            norm1, [1.0, -2.0], np.sign, eps=0.1, delta=0.1, rng=0,
            progress=report or False,
        )  # fmt: skip
    assert seen[-1] == (res.fun, res.nfev + res.ngev)


@pytest.mark.parametrize("wrong", [1, "yes", None])
def test_anything_else_is_refused(wrong: Any) -> None:
    with (
        pytest.raises(TypeError, match="progress must be True, False or a callable"),
        reporter(wrong, 100, 1e-3),
    ):
        pass


def test_a_notebook_without_widgets_gets_a_plain_line(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    kernel = type("ZMQInteractiveShell", (), {})()
    monkeypatch.setitem(sys.modules, "IPython", SimpleNamespace(get_ipython=lambda: kernel))
    monkeypatch.setitem(sys.modules, "ipywidgets", None)
    with reporter(True, 100, 1e-3) as report:
        assert report is not None
        report(State(np.zeros(1), 2.5, bound=0.5), 7)
    assert "7/100 calls   f 2.5   bound 0.5 -> 0.001" in capsys.readouterr().err
