"""Pictures: in the Axes that was given, in the user's style, showing what is true."""

from __future__ import annotations

import pickle
import subprocess
import sys
from typing import Any

import matplotlib as mpl
import matplotlib.pyplot as plt
import numpy as np
import pytest
from matplotlib.axes import Axes
from matplotlib.colors import to_rgb

import goldstein as gs
from goldstein.reporting.geometry import geometry_of
from goldstein.reporting.pictures import (
    draw_bound,
    draw_calls,
    draw_value,
    draw_violation,
    hull_of,
    thinned,
)
from goldstein.reporting.svg import Palette
from goldstein.result import History

NAMES = [
    "plane", "constrained", "svm", "network", "near_constrained", "plus", "values",
    "values_constrained",
]  # fmt: skip


@pytest.mark.parametrize("name", NAMES)
def test_a_result_draws_itself(runs: dict[str, gs.Result], name: str) -> None:
    course, certificate = runs[name].plot()
    assert isinstance(course, Axes)
    assert isinstance(certificate, Axes)
    assert course.get_xlabel() == "calls of f and its gradient"
    course.figure.canvas.draw()


@pytest.mark.parametrize("name", NAMES)
def test_axes_that_are_given_are_used_and_returned(runs: dict[str, gs.Result], name: str) -> None:
    result = runs[name]
    figure, axes = plt.subplots(1, 5)
    assert result.plot(ax=axes[0]) is axes[0]
    assert result.certificate.plot(ax=axes[1]) is axes[1]
    assert result.history.plot(ax=axes[2]) is axes[2]
    assert list(result.certificate.plot(ax=axes[3:])) == list(axes[3:])
    assert plt.get_fignums() == [figure.number]


@pytest.mark.parametrize("name", ["near_constrained", "values_constrained"])
def test_multipliers_are_counted_in_whole_numbers(runs: dict[str, gs.Result], name: str) -> None:
    """Those of the bounds where there are no others."""
    ax = runs[name].plot()[1]
    low, high = ax.get_xlim()
    ticks = [tick for tick in ax.get_xticks() if low <= tick <= high]
    assert ticks == [0] if name == "values_constrained" else ticks == [0, 1]
    assert any(bar.get_height() != 0 for bar in ax.patches)


def test_a_flat_curve_has_no_slope() -> None:
    def said(*eps: float) -> list[str]:
        curve = gs.StationarityCurve(np.array([1e-3, 1e-2]), np.array(eps), [])
        return [text.get_text() for text in curve.plot().texts]

    assert said(1.85e-13, 1.8499e-13) == []
    assert said(1e-2, 1e-3) == ["slope -1"]


def test_a_curve_draws_itself() -> None:
    curve = gs.stationarity_curve(lambda x: abs(x[0]), [0.01], np.sign, rng=0)
    _, ax = plt.subplots()
    assert curve.plot(ax=ax) is ax
    assert (ax.get_xscale(), ax.get_yscale()) == ("log", "log")


def test_what_is_no_axes_is_refused(runs: dict[str, gs.Result]) -> None:
    with pytest.raises(gs.InputError, match="one Axes"):
        runs["plane"].history.plot(ax="axes")
    with pytest.raises(gs.InputError, match="3 entries"):
        runs["plane"].plot(ax=plt.subplots(1, 3)[1])
    with pytest.raises(gs.InputError, match="zoom"):
        runs["plane"].certificate.plot(zoom=-1.0)


def test_the_users_style_is_respected(runs: dict[str, gs.Result]) -> None:
    with plt.style.context("dark_background"):
        ax = runs["plane"].history.plot()
        own = mpl.rcParams["axes.prop_cycle"].by_key()["color"]
        assert to_rgb(ax.get_lines()[0].get_color()) == to_rgb(own[0])
    assert runs["plane"].history.plot().get_lines()[0].get_color() == Palette().point


def _contrast(one: str, other: str) -> float:
    """How differently bright two colours are, as WCAG defines it."""

    def light(colour: str) -> float:
        c = np.array(to_rgb(colour))
        return float([0.2126, 0.7152, 0.0722] @ np.where(c > 0.03928, ((c + 0.055) / 1.055) ** 2.4,
                                                         c / 12.92))  # fmt: skip

    low, high = sorted([light(one), light(other)])
    return (high + 0.05) / (low + 0.05)


#: Linear RGB as seen without one kind of cone (Viénot, Brettel and Mollon, 1999).
_BLIND = {
    "protan": [[0.1124, 0.8876, 0.0], [0.1124, 0.8876, 0.0], [0.0040, -0.0040, 1.0]],
    "deutan": [[0.2927, 0.7073, 0.0], [0.2927, 0.7073, 0.0], [-0.0223, 0.0223, 1.0]],
}


@pytest.mark.parametrize("kind", _BLIND)
def test_colour_blind_readers_can_tell_the_colours_apart(kind: str) -> None:
    colours = Palette()
    names = ["point", "gradient", "shortest", "constraint", "other"]
    seen = np.array([np.array(to_rgb(getattr(colours, n))) ** 2.2 for n in names])
    seen = np.clip(seen @ np.array(_BLIND[kind]).T, 0, 1) ** (1 / 2.2)
    gaps = np.linalg.norm(seen[:, None] - seen[None], axis=2)[np.triu_indices(len(names), 1)]
    assert gaps.min() > 0.1
    red_and_green = np.array([[1.0, 0, 0], [0, 0.5, 0]]) ** 2.2  # the classical mistake
    worst = np.clip(red_and_green @ np.array(_BLIND[kind]).T, 0, 1) ** (1 / 2.2)
    assert gaps.min() > 0.5 * np.linalg.norm(worst[0] - worst[1])


@pytest.mark.parametrize("name", ["plane", "constrained", "svm", "network"])
def test_the_picture_is_a_projection_of_what_is_certified(
    runs: dict[str, gs.Result], name: str
) -> None:
    certificate = runs[name].certificate
    seen = geometry_of(certificate)
    assert np.allclose(seen.basis @ seen.basis.T, np.eye(2), atol=1e-9)
    if certificate.kind == "goldstein":
        # Lengths in the plane never exceed the true ones, and that of the shortest is the claim.
        assert np.linalg.norm(seen.rest) <= certificate.eps * (1 + 1e-9)
        true = np.linalg.norm(certificate.weights @ certificate.gradients)
        assert np.isclose(np.linalg.norm(seen.rest), true)
        away = np.linalg.norm(seen.points - seen.centre, axis=1)
        assert (away <= certificate.delta * (1 + 1e-9)).all()
    if certificate.x.size == 2:
        assert np.array_equal(seen.centre, certificate.x)
        assert np.array_equal(seen.gradients, certificate.gradients)
    if certificate.kind == "kkt":
        total = seen.mean + sum(push for _, push in seen.pushes)
        assert np.linalg.norm(total) <= certificate.eps * (1 + 1e-9)


def test_one_variable_and_one_gradient() -> None:
    certificate = gs.certify(lambda x: 2 * x[0], [1.0], lambda x: np.array([2.0]), delta=0.1, rng=0)
    points, gradients = certificate.plot(fun=lambda x: 2 * x[0])
    gradients.figure.canvas.draw()
    assert points.get_xlim()[0] < 1.0 < points.get_xlim()[1]


def test_the_hull_of_points_on_a_line_is_its_ends() -> None:
    line = np.outer([0.3, 1.0, 0.0, 0.7], [1.0, 2.0])
    ends = hull_of(line)
    assert sorted(map(tuple, ends)) == [(0.0, 0.0), (1.0, 2.0)]
    corners = np.array([[0.0, 0], [1, 0], [0, 1], [0.2, 0.2]])
    assert {tuple(p) for p in hull_of(corners)} == {(0, 0), (1, 0), (0, 1)}


def test_a_function_that_fails_away_from_x_costs_only_its_level_lines() -> None:
    def picky(x: Any) -> float:
        if abs(x[0] - 1.0) > 1e-9:
            raise ValueError("only at 1")
        return 0.0

    certificate = gs.certify(lambda x: abs(x).sum(), [1.0, 0.0], np.sign, delta=0.1, rng=0)
    certificate.plot(fun=picky)


def test_thin_series_keep_their_extremes() -> None:
    rng = np.random.default_rng(0)
    series = rng.normal(size=100_000)
    kept = thinned({"a": np.arange(100_000.0), "b": series}, 1000)
    assert len(kept["a"]) <= 1000
    assert kept["b"].min() == series.min()
    assert kept["b"].max() == series.max()
    assert kept["a"][[0, -1]].tolist() == [0.0, 99_999.0]
    assert (np.diff(kept["a"]) > 0).all()
    assert np.array_equal(series[kept["a"].astype(int)], kept["b"])


ODD = {
    "nan": [np.nan] * 5, "infinite": [np.inf] * 5, "negative": [-1.0, -2.0, -3.0, -4.0, -5.0],
    "zero": [0.0] * 5, "mixed": [np.nan, np.inf, -np.inf, 0.0, 1.0],
    "huge": [1e308, -1e308, 1e300, 1.0, 0.0], "tiny": [5e-324] * 5,
}  # fmt: skip


@pytest.mark.parametrize("values", ODD.values(), ids=ODD)
@pytest.mark.parametrize("times", [[0.0, 0.1, 0.2, 0.3, 0.4], [0.0] * 5, [np.nan] * 5])
def test_odd_histories_are_drawn(values: list[float], times: list[float]) -> None:
    history = History([1, 2, 3, 4, 5], values, values, [1e-3] * 5, times, np.abs(values).tolist())
    history.plot().figure.canvas.draw()
    for draw in (draw_value, draw_calls, draw_violation, lambda ax, h: draw_bound(ax, h, 1e-3)):
        _, ax = plt.subplots()
        draw(ax, history)
        ax.figure.canvas.draw()
        plt.close("all")


def test_a_monitor_draws_eps_beside_the_loss() -> None:
    torch = pytest.importorskip("torch")
    import goldstein.torch

    torch.manual_seed(0)
    data = [(torch.randn(16, 2), torch.randn(16, 1)) for _ in range(4)]
    model = torch.nn.Linear(2, 1)
    monitor = goldstein.torch.Monitor(
        model, torch.nn.L1Loss(), data, delta=1e-3, share=float("inf"), certified=False
    )
    looks = [monitor.update(epoch=k) for k in range(3)]
    ax = monitor.plot()
    loss, eps = ax.get_lines()
    assert loss.get_ydata().tolist() == [look.loss for look in looks]
    assert eps.get_ydata().tolist() == [look.eps for look in looks]
    assert monitor._repr_html_().count("<tr>") == 4


def test_a_pickled_result_still_draws_itself(runs: dict[str, gs.Result]) -> None:
    back = pickle.loads(pickle.dumps(runs["plane"]))
    assert back.asked.fun is None
    assert back.asked.eps == 1e-3
    back.plot()


def test_without_matplotlib_the_error_names_the_extra() -> None:
    code = (
        "import sys; sys.modules['matplotlib'] = None\n"
        "import numpy as np, goldstein as gs\n"
        "res = gs.minimize(lambda x: abs(x[0]), [1.0], np.sign, eps=.1, delta=.1, rng=0)\n"
        "for call in (res.plot, res.certificate.plot, res.history.plot,\n"
        "             lambda: res.report('/nowhere.html')):\n"
        "    try: call()\n"
        "    except gs.MissingExtraError as e: assert '[report]' in str(e), e\n"
        "    else: print('no error')\n"
        "assert 'VERIFIED' in res._repr_html_()\n"
    )
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert ran.stdout == ""
