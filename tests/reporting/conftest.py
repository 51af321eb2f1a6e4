"""Runs that several tests look at."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
import pytest
from tests.functions import VALLEY_START, valley, valley_gradient

import goldstein as gs


def _plane() -> gs.Result:
    return gs.minimize(valley, VALLEY_START, valley_gradient, eps=1e-3, delta=1e-3, rng=0)


def _constrained() -> gs.Result:
    problem = gs.problems.get("curtis_overton")
    return gs.minimize(problem, [-1.0, 0.1], eps=1e-3, delta=1e-3, rng=0, **problem.limits)


def _svm() -> gs.Result:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(200, 6))
    y = np.sign(X @ rng.normal(size=6) + 0.3 * rng.normal(size=200))
    y[:20] *= -1
    F = gs.models.margin_svm(y[:, None] * X, lam=4.0)
    return gs.minimize(F, F.start(0), eps=1e-3, delta=1e-2, rng=0, stationarity="near")


def _network() -> gs.Result:
    x = np.linspace(-2, 2, 60)[:, None]
    target = np.abs(x[:, 0]) - 0.5 * np.maximum(x[:, 0] - 1, 0)
    N = gs.models.relu_two_layer(x, target, width=8, ridge=1e-2, mean=True)
    return gs.minimize(N, N.start(0), eps=1e-3, delta=1e-2, rng=0, max_calls=4000)


def _near_constrained() -> gs.Result:
    x = gs.Variable(2)
    return gs.minimize(
        gs.sum(abs(x - 2.0)), [0.0, 0.0], eps=1e-3, delta=1e-3, stationarity="near", rng=0,
        bounds=[(0, 1), (None, None)],
    )  # fmt: skip


def _plus() -> gs.Result:
    return gs.minimize(
        lambda x: 0.5 * float((x - [3.0, 0.5]) @ (x - [3.0, 0.5])), [1.0, 1.0],
        lambda x: x - [3.0, 0.5], plus=gs.prox.l1(1.0), eps=1e-6, delta=1e-6, rng=0,
    )  # fmt: skip


def _values() -> gs.Result:
    def f(x: Any) -> float:
        assert x[0] >= 0.1, "asked outside the bounds"
        return float(np.abs(x).sum())

    limits = [(0.1, 1.0), (-1.0, 1.0)]
    return gs.minimize(f, [0.3, -0.2], eps=0.1, delta=0.01, method="values", rng=0, bounds=limits)


def _values_constrained() -> gs.Result:
    """No gradient, neither of the function nor of the constraint."""
    above = {"type": "ineq", "fun": lambda x: x[1] - 1.5}
    return gs.minimize(
        valley, VALLEY_START, "2-point", eps=0.3, delta=0.01, constraints=above, rng=0
    )


@pytest.fixture(scope="session")
def runs() -> dict[str, gs.Result]:
    makers = [
        _plane, _constrained, _svm, _network, _near_constrained, _plus, _values,
        _values_constrained,
    ]  # fmt: skip
    return {make.__name__[1:]: make() for make in makers}


@pytest.fixture(scope="session")
def reports(
    runs: dict[str, gs.Result], tmp_path_factory: pytest.TempPathFactory
) -> dict[str, Path]:
    """Their pages."""
    folder = tmp_path_factory.mktemp("pages")
    return {name: result.report(folder / name) for name, result in runs.items()}


@pytest.fixture(autouse=True)
def no_figures_stay_open() -> Iterator[None]:
    yield
    plt.close("all")


@pytest.fixture(scope="session")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """Headless Chromium, and where its downloads go; skipped loudly where there is none."""
    chromium, chromedriver = shutil.which("chromium"), shutil.which("chromedriver")
    if chromium is None or chromedriver is None:
        why = "NO BROWSER: chromium and chromedriver are missing; `make browser` installs them"
        print(f"\n*** {why} ***", file=sys.__stderr__, flush=True)
        pytest.skip(why)
    from selenium.webdriver import Chrome, ChromeOptions, ChromeService

    options = ChromeOptions()
    options.binary_location = chromium
    for flag in (
        "headless=new", "no-sandbox", "disable-gpu", "disable-quic", "no-first-run",
        "disable-background-networking", "disable-component-update", "disable-sync",
        f"user-data-dir={tmp_path_factory.mktemp('chromium')}",
    ):  # fmt: skip
        options.add_argument(f"--{flag}")
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    driver = Chrome(options=options, service=ChromeService(chromedriver))
    driver.downloads = tmp_path_factory.mktemp("downloads")  # type: ignore[attr-defined]
    driver.execute_cdp_cmd(
        "Browser.setDownloadBehavior",
        {"behavior": "allow", "downloadPath": str(driver.downloads)},  # type: ignore[attr-defined]
    )
    yield driver
    driver.quit()


@pytest.fixture(scope="session")
def axe() -> str:
    """The source of axe-core."""
    source = Path(__file__).parents[2] / ".browser/node_modules/axe-core/axe.min.js"
    if not source.is_file():
        why = "NO AXE-CORE: accessibility is not tested; `make browser` fetches it from npm"
        print(f"\n*** {why} ***", file=sys.__stderr__, flush=True)
        pytest.skip(why)
    return source.read_text()
