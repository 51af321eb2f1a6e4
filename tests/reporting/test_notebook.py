"""What notebooks show: tables that hold the numbers, and nothing that a stranger could inject."""

from __future__ import annotations

from dataclasses import replace
from html.parser import HTMLParser
from typing import Any

import numpy as np
import pytest

import goldstein as gs

EVIL = '<script>alert("1")</script><img src=x onerror=alert(1)>'


class Tags(HTMLParser):
    def __init__(self, html: str) -> None:
        super().__init__()
        self.seen: list[str] = []
        self.feed(html)

    def handle_starttag(self, tag: str, attrs: Any) -> None:
        self.seen.append(tag)
        assert not [name for name, _ in attrs if name.startswith("on")]


PLAIN = {"pre", "table", "caption", "tbody", "tr", "th", "td"}


@pytest.mark.parametrize(
    "name", ["plane", "constrained", "svm", "network", "near_constrained", "plus", "values"]
)
def test_every_kind_is_shown_as_a_table(runs: dict[str, gs.Result], name: str) -> None:
    result = runs[name]
    for thing in (result, result.certificate, result.history):
        assert set(Tags(thing._repr_html_()).seen) <= PLAIN
    shown = result._repr_html_()
    assert "VERIFIED" in shown
    assert f"{result.certificate.eps:.3g}" in shown
    assert result.certificate.label in shown


def test_verifications_curves_and_bounds_are_shown(runs: dict[str, gs.Result]) -> None:
    result = runs["plane"]
    found = result.certificate.verify(result.asked.fun)
    assert all(check.name in found._repr_html_() for check in found.checks)
    curve = gs.stationarity_curve(lambda x: abs(x[0]), [0.01], np.sign, rng=0)
    assert curve._repr_html_().count("<tr>") == 1 + len(curve.deltas)
    stream = gs.SampleStream(lambda x, rng: np.sign(x - rng.uniform(-1, 1, x.size)))
    bound = gs.confidence_bound(
        stream, [0.0], [[-0.01], [0.01]], [0.5, 0.5], samples=100, gradient_bound=1.0,
        rng=np.random.default_rng(0),
    )  # fmt: skip
    assert "estimated" in bound._repr_html_()


def test_text_stays_text(runs: dict[str, gs.Result]) -> None:
    evil = replace(runs["plane"], message=EVIL, method=EVIL)
    assert set(Tags(evil._repr_html_()).seen) <= PLAIN
    found = gs.Verification(0.0, 0.0, "conditional")
    found.add(EVIL, False, EVIL)
    assert set(Tags(found._repr_html_()).seen) <= PLAIN
