"""Certificates that went through pickles and copies, honest ones and others."""

from __future__ import annotations

import copy
import pickle
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from tests.functions import valley as f
from tests.functions import valley_gradient as grad

import goldstein as gs

X = gs.Variable(2)
F, ONE = gs.sum(gs.abs(X)), {"type": "ineq", "fun": gs.sum(X) - 1.0}
ABOVE = {"type": "ineq", "fun": lambda x: x[1] - 1.5}
SLOPED = {**ABOVE, "jac": lambda x: np.array([0.0, 1.0])}
L1 = gs.prox.l1(0.1)
TASK: dict[str, Any] = {"eps": 1e-2, "delta": 1e-2, "rng": 0}

#: How one is made, and how it is checked.
KINDS: dict[str, tuple[Callable[[], Any], Callable[[Any], Any]]] = {
    "goldstein": (
        lambda: gs.minimize(f, [-1.2, 1.0], grad, **TASK),
        lambda c: c.verify(f, grad),
    ),
    "kkt": (
        lambda: gs.minimize(f, [-1.2, 1.0], grad, constraints=SLOPED, **TASK),
        lambda c: c.verify(f, grad, constraints=SLOPED),
    ),
    "plus": (
        lambda: gs.minimize(f, [-1.2, 1.0], grad, plus=L1, **TASK),
        lambda c: c.verify(f, grad, plus=L1),
    ),
    "near": (
        lambda: gs.minimize(F, [0.3, 0.4], stationarity="near", **TASK),
        lambda c: c.verify(F),
    ),
    "near-kkt": (
        lambda: gs.minimize(F, [0.3, 0.4], stationarity="near", constraints=ONE, **TASK),
        lambda c: c.verify(F, constraints=ONE),
    ),
    "values": (
        lambda: gs.minimize(f, [-1.2, 1.0], method="values", **{**TASK, "eps": 0.3}),
        lambda c: c.verify(f),
    ),
    "values-kkt": (
        lambda: gs.minimize(f, [-1.2, 1.0], "2-point", constraints=ABOVE, **{**TASK, "eps": 0.3}),
        lambda c: c.verify(f, constraints=ABOVE),
    ),
}


@pytest.fixture(scope="module", params=KINDS)
def made(request: Any) -> tuple[Any, Callable[[Any], Any]]:
    make, check = KINDS[request.param]
    certificate = make().certificate
    assert certificate.kind == request.param
    return certificate, check


def through_pickle(certificate: Any) -> Any:
    return pickle.loads(pickle.dumps(certificate))


@pytest.mark.parametrize("way", [through_pickle, copy.copy, copy.deepcopy])
def test_they_come_back_closed(made: tuple[Any, Any], way: Callable[[Any], Any]) -> None:
    certificate, check = made
    back = way(certificate)
    assert check(back).ok
    assert back.content_digest() == certificate.content_digest()
    arrays = [a for a in vars(back).values() if isinstance(a, np.ndarray)]
    if hasattr(back, "exact_pivot"):
        arrays.append(back.pivot)
    assert len(arrays) >= 4
    assert not any(a.flags.writeable for a in arrays)


def test_what_was_derived_does_not_come_along(made: tuple[Any, Any]) -> None:
    certificate, _ = made
    copied = copy.copy(certificate)
    vars(copied)["pivot"] = vars(copied)["normal_of_a_forger"] = np.full(2, 7.0)
    back = through_pickle(copied)
    assert not hasattr(back, "normal_of_a_forger")
    if hasattr(certificate, "pivot"):
        assert (back.pivot == certificate.pivot).all()


def test_pickles_that_no_certificate_can_be_are_refused(made: tuple[Any, Any]) -> None:
    """As the constructor refuses them: verify never sees them."""
    certificate, check = made
    changes: dict[str, Any] = {
        "x": np.zeros(3), "weights": np.zeros((1, 1)), "eps": "0", "delta": None,
        "label": "proved", "meta": [],
    }  # fmt: skip
    for name, value in changes.items():
        copied = copy.copy(certificate)
        vars(copied)[name] = value
        with pytest.raises(gs.GoldsteinError):
            through_pickle(copied)
    copied = copy.copy(certificate)
    del vars(copied)["weights"]
    with pytest.raises(gs.InputError, match="another version"):
        through_pickle(copied)
    smaller = copy.copy(certificate)
    vars(smaller)["delta"] = certificate.delta * (1 - 1e-9) - 1e-300
    assert not check(through_pickle(smaller)).ok
