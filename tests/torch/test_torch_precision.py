"""A loss that is computed in float32 cannot resolve a small ball: it is refused, not believed."""

from __future__ import annotations

import pytest
import torch

import goldstein as gs
import goldstein.torch
from goldstein.errors import InputTypeError


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


class Rounded(torch.autograd.Function):
    """The cast is inside a custom function, where no graph shows it."""

    @staticmethod
    def forward(ctx, x):
        return x.float().double()

    @staticmethod
    def backward(ctx, gradient):
        return gradient


class RoundedBackward(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x.clone()

    @staticmethod
    def backward(ctx, gradient):
        return gradient.bfloat16().double()


CASTS = {
    "up again": lambda w: identity(w.float() - 1.0).sum().double(),
    "half inside": lambda w: identity(w.half().double() - 1.0).sum(),
    "a kink decided in float32": lambda w: torch.where(w.float() > 1.0, w, 0.5 * w).sum(),
    "a view": lambda w: w.reshape(1, -1).t().bfloat16().double().sum(),
    "in place": lambda w: torch.zeros(w.shape).copy_(w).double().sum() + w.sum(),
    "custom function": lambda w: Rounded.apply(w).sum(),
}


@pytest.mark.parametrize("kind", sorted(CASTS))
def test_a_coarse_step_is_refused_although_the_loss_is_float64(kind: str) -> None:
    fn = CASTS[kind]
    assert fn(torch.ones(2, dtype=torch.float64)).dtype == torch.float64
    for question in ("value", "gradient"):
        oracle = goldstein.torch.oracle(fn, torch.ones(2))
        with pytest.raises(InputTypeError, match="float"):
            getattr(oracle, question)(oracle.start)
    w = torch.ones(2)
    oracle = goldstein.torch.oracle(lambda: fn(w), w)
    with pytest.raises(InputTypeError, match="float"):
        oracle.gradient(oracle.start)
    assert w.dtype == torch.float32


def test_a_coarse_backward_pass_is_refused() -> None:
    oracle = goldstein.torch.oracle(lambda w: RoundedBackward.apply(w).sum(), torch.ones(2))
    assert oracle.value(oracle.start) == 2.0
    with pytest.raises(InputTypeError, match="bfloat16"):
        oracle.gradient(oracle.start)


def test_a_model_that_casts_down_and_up_again_is_refused() -> None:
    class Hidden(Casting):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return super().forward(x).double()

    data = [(torch.ones(2, 1), torch.zeros(2, 1))]
    with pytest.raises(InputTypeError, match="float32"):
        goldstein.torch.certify(Hidden(), lambda out, _: out.mean(), data, delta=1e-9)


CONSTANTS = torch.tensor([1.0, -2.0])


@pytest.mark.parametrize(
    "fine",
    [
        lambda w: (CONSTANTS.half().float() * w).abs().sum(),
        lambda w: (w * (w > 0).float()).sum(),
        lambda w: (CONSTANTS.bfloat16() * 3.0).float().double() @ w,
        lambda w: w.abs().sum() * torch.tensor(0.5),
        lambda w: (
            torch.linalg.norm(w)
            + torch.sparse.mm(torch.eye(2).double().to_sparse(), w[:, None]).sum()
        ),
    ],
)
def test_constants_of_any_precision_are_fine(fine) -> None:
    oracle = goldstein.torch.oracle(fine, torch.tensor([0.3, -0.7]))
    assert gs.check_gradient(oracle.value, oracle.gradient, oracle.start).ok
