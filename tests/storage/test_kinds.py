"""A kind of certificate of one's own: one class, one registration, and everything works with it."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pytest

import goldstein as gs
from goldstein.checker.verification import Verification
from goldstein.reductions.stationarity import (
    _KINDS,
    Attempt,
    Stationarity,
    near_targets,
    register_stationarity,
)
from goldstein.storage.codec import (
    Certificate,
    _registered,
    certificate_kind,
    register,
    save_certificate,
)


@dataclass(frozen=True, eq=False)
class Bounded:
    """A dummy: x is within `delta` of a point with a value at most `eps`."""

    kind: ClassVar[str] = "dummy"

    x: np.ndarray
    eps: float
    delta: float
    label: str = "conditional"

    def verify(self, fun: Any) -> Verification:
        found = Verification(fun.value(self.x), self.delta, "conditional")
        found.add("value", found.eps <= self.eps, f"value {found.eps:g}")
        return found

    def to_record(self) -> tuple[str, dict[str, Any], dict[str, Any]]:
        return self.kind, {"x": self.x}, {"eps": self.eps, "delta": self.delta}

    @classmethod
    def from_record(cls, arrays: dict[str, Any], fields: dict[str, Any]) -> Bounded:
        return cls(**arrays, **fields)

    def content_digest(self) -> str:
        return str(hash((self.x.tobytes(), self.eps, self.delta)))

    def summary(self) -> str:
        return f"value at most {self.eps:g}"


@pytest.fixture
def dummy() -> Any:
    register(Bounded)
    register_stationarity(
        Stationarity(
            "dummy",
            targets=near_targets,
            strengthen=lambda problem, cert, request, deadline: Attempt(
                Bounded(cert.x, problem.f.plain.value(cert.x), request.delta)
            ),
        )
    )
    yield
    _registered.pop("dummy")
    _KINDS.pop("dummy")


@pytest.mark.usefixtures("dummy")
def test_a_kind_of_ones_own(tmp_path: Path) -> None:
    w = gs.Variable(2)
    F = gs.sum(gs.abs(w))
    res = gs.minimize(F, [1.0, 2.0], eps=1e-3, delta=1e-3, stationarity="dummy", rng=0)
    assert res.success
    assert isinstance(res.certificate, Bounded)
    assert isinstance(gs.certify(F, res.x, delta=1e-3, eps=1.0, stationarity="dummy"), Bounded)
    back = gs.load_certificate(save_certificate(res.certificate, tmp_path / "own"))
    assert back.verify(F).ok
    assert back.eps == res.certificate.eps


@pytest.mark.parametrize("name", ["goldstein", "near", "kkt"])
def test_the_kinds_of_the_library_keep_the_protocol(name: str) -> None:
    kind = certificate_kind(name)
    assert kind.kind == name
    for member in ("verify", "to_record", "from_record", "content_digest", "summary"):
        assert callable(getattr(kind, member))
        assert hasattr(Certificate, member)


def test_unknown_kinds_are_named() -> None:
    with pytest.raises(gs.InputError, match=r"goldstein, kkt, minimum, near"):
        certificate_kind("nothing")
    with pytest.raises(gs.InputError, match="'goldstein' or 'minimum' or 'near'"):
        gs.minimize(gs.sum(gs.abs(gs.Variable(1))), [1.0], eps=1.0, delta=1.0, stationarity="x")


def test_remarks_too_deep_for_a_file_are_refused_in_words() -> None:
    deep: list[Any] = []
    for _ in range(100_000):
        deep = [deep]
    with pytest.raises(gs.InputTypeError, match="meta must hold plain"):
        gs.GoldsteinCertificate.from_gradients(
            np.zeros(1), np.zeros((1, 1)), np.ones((1, 1)), meta={"deep": deep}
        )
