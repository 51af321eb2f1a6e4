"""A loss that is computed in float32 cannot resolve a small ball: it is refused, not believed."""

from __future__ import annotations

import pytest
import torch

import goldstein as gs
import goldstein.torch


def identity(u: torch.Tensor) -> torch.Tensor:
    """Slope 1; automatic differentiation says 0 at 0."""
    return torch.relu(u) - torch.relu(-u)


class Casting(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.weight = torch.nn.Parameter(torch.ones(1))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return identity(self.weight.float() * x.float() - 1.0)


def test_a_function_that_casts_to_float32_is_refused() -> None:
    oracle = goldstein.torch.oracle(lambda w: identity(w.float() - 1.0).sum(), torch.ones(1))
    with pytest.raises(gs.GoldsteinError, match="float32"):
        gs.certify(oracle, oracle.start, delta=1e-9, rng=0)


def test_a_model_that_casts_to_float32_is_refused() -> None:
    data = [(torch.ones(2, 1), torch.zeros(2, 1))]
    with pytest.raises(gs.GoldsteinError, match="float32"):
        goldstein.torch.certify(Casting(), lambda out, _: out.mean(), data, delta=1e-9)


def test_the_same_function_in_float64_is_not_stationary() -> None:
    oracle = goldstein.torch.oracle(lambda w: identity(w - 1.0).sum(), torch.ones(1))
    assert gs.certify(oracle, oracle.start, delta=1e-9, rng=0).eps >= 1.0
