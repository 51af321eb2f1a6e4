"""A few of the functions as people write them; all of them are in benchmarks/plain_code.md."""

from __future__ import annotations

import pytest
from benchmarks.plain_code import FUNCTIONS, REFUSED, run

FEW = [
    "kink on exp",
    "enclosing ball",
    "entropy kink",
    "Huber",
    "CVaR",
    "total variation",
    "arctan",
]


@pytest.mark.parametrize("name", FEW)
def test_plain_code_is_minimised_and_proved_near(name: str) -> None:
    res = run(name)
    assert res.success
    assert res.gradient_source == "traced"
    assert res.certificate.label == "certified"
    assert res.certificate.verify(FUNCTIONS[name][1]).ok


@pytest.mark.parametrize("name", REFUSED)
def test_what_cannot_be_read_is_refused(name: str) -> None:
    with pytest.raises(TypeError, match="None could be derived from the code of fun"):
        run(name)
