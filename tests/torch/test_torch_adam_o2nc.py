"""AdamO2NC: its formula, its relation to Adam, what it shares with PyTorch's optimizers."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch

import goldstein.torch
from goldstein.errors import InputError
from goldstein.numerics.streams import mixed_uniform, mixing_key
from goldstein.solvers.stochastic_schedules import adam_o2nc_practice, adam_o2nc_theory
from goldstein.torch.optimizers import device_uniform


def param(*numbers: float) -> torch.nn.Parameter:
    return torch.nn.Parameter(torch.tensor(numbers, dtype=torch.float64))


def centre(optimizer, w) -> np.ndarray:
    with optimizer.at_center():
        return w.detach().numpy().copy()


@pytest.mark.parametrize("foreach", [False, True])
@pytest.mark.parametrize("capturable", [False, True])
@pytest.mark.parametrize(
    ("betas", "foresight"),
    [((0.9, 0.9), 1.0), ((0.9, 0.81), 0.0), ((0.9, 0.999), 0.3), ((0.0, 0.0), 2.0)],
)
def test_iterates_are_the_definition(betas, foresight, capturable: bool, foreach: bool) -> None:
    """S = b1 S + g, V = b2 V + g^2, w -= D clip(kappa (S + foresight g) / sqrt V, -1, 1)."""
    rng = np.random.default_rng(1)
    w = param(1.0, -2.0, 0.5, 3.0)
    optimizer = goldstein.torch.AdamO2NC(
        [w], 0.1, betas=betas, kappa=0.8, foresight=foresight, weight_decay=0.2,
        capturable=capturable, foreach=foreach,
    )  # fmt: skip
    here, s, v = w.detach().numpy().copy(), np.zeros(4), np.zeros(4)
    for t in range(25):
        g = rng.normal(size=4) * 10.0 ** rng.uniform(-8, 8, size=4)
        g[3] = 0.0 if t < 20 else 1.0
        s, v = betas[0] * s + g, betas[1] * v + g**2
        ratio = np.divide(0.8 * (s + foresight * g), np.sqrt(v), out=np.zeros(4), where=v > 0)
        here = (1 - 0.1 * 0.2) * here - 0.1 * np.clip(ratio, -1, 1)
        w.grad = torch.tensor(g)
        optimizer.step()
        np.testing.assert_allclose(centre(optimizer, w), here, rtol=1e-12)


def test_is_adam_without_bias_correction_where_nothing_is_clipped() -> None:
    """lr(Adam) = kappa D sqrt(1 - b2) / (1 - b1); Adam's averages of t steps are divided out."""
    b1, b2, kappa, longest = 0.9, 0.81, 1e-3, 1.0
    ours, theirs = param(1.0, -2.0), param(1.0, -2.0)
    optimizer = goldstein.torch.AdamO2NC([ours], longest, betas=b1, kappa=kappa, foresight=0.0)
    adam = torch.optim.Adam([theirs], lr=1.0, betas=(b1, b2), eps=0.0)
    rng = np.random.default_rng(0)
    for t in range(1, 40):
        ours.grad = torch.tensor(rng.normal(size=2))
        theirs.grad = ours.grad.clone()
        equivalent = kappa * longest * math.sqrt(1 - b2) / (1 - b1)
        adam.param_groups[0]["lr"] = equivalent * (1 - b1**t) / math.sqrt(1 - b2**t)
        optimizer.step()
        adam.step()
    np.testing.assert_allclose(centre(optimizer, ours), theirs.detach().numpy(), rtol=1e-12)


@pytest.mark.parametrize("scale", [1e-30, 1e-18, 1.0, 1e18])
def test_the_scale_of_the_loss_does_not_matter(scale: float) -> None:
    """Also where squares underflow or overflow in float32: a clipped ratio is a clipped ratio."""
    runs = []
    for factor in (1.0, scale):
        w = torch.nn.Parameter(torch.tensor([1.0, -2.0]))
        optimizer = goldstein.torch.AdamO2NC([w], 0.1)
        for t in range(5):
            w.grad = factor * torch.tensor([1.0 + t, -1.0])
            optimizer.step()
        runs.append(w.detach())
    torch.testing.assert_close(runs[0], runs[1], rtol=1e-5, atol=1e-6)


def test_groups_have_their_own_lr_and_decay() -> None:
    a, b = param(1.0), param(1.0)
    groups = [{"params": [a], "lr": 0.1}, {"params": [b], "lr": 0.2, "weight_decay": 0.5}]
    optimizer = goldstein.torch.AdamO2NC(groups, 0.3)
    for w in (a, b):
        w.grad = torch.ones(1, dtype=torch.float64)
    optimizer.step()
    np.testing.assert_allclose([centre(optimizer, a)[0], centre(optimizer, b)[0]], [0.9, 0.7])


def test_draws_on_a_device_are_the_draws_of_the_host() -> None:
    for seed in range(4):
        key = mixing_key(seed, "test")
        for step in (0, 1, 2, 1000, 2**40):
            assert device_uniform(key, torch.tensor(step)).item() == mixed_uniform(key, step)
    drawn = np.array([mixed_uniform(mixing_key(0, "test"), t) for t in range(20_000)])
    assert 0.0 <= drawn.min() < drawn.max() < 1.0
    assert abs(drawn.mean() - 0.5) < 0.01
    assert abs(np.corrcoef(drawn[1:], drawn[:-1])[0, 1]) < 0.03
    assert np.abs(np.histogram(drawn, 20, (0, 1))[0] / 1000 - 1).max() < 0.15


@pytest.mark.parametrize("foreach", [False, True])
def test_a_capturable_step_never_waits_for_the_host(foreach: bool) -> None:
    """Tensors of the meta device have no numbers: reading one back is an error."""
    w = torch.nn.Parameter(torch.zeros(3, device="meta"))
    w.grad = torch.zeros_like(w)
    settings = {"foreach": foreach, "weight_decay": 0.1}
    optimizer = goldstein.torch.AdamO2NC([w], capturable=True, **settings)
    owed, step = (optimizer.param_groups[0][name] for name in ("owed", "step"))
    optimizer.step()
    optimizer.step()
    assert all(t.device.type == "meta" for t in [owed, step, *optimizer.state[w].values()])
    # Replays of a captured graph write to the same memory.
    assert optimizer.param_groups[0]["owed"] is owed
    assert optimizer.param_groups[0]["step"] is step
    with pytest.raises((RuntimeError, NotImplementedError)):
        goldstein.torch.AdamO2NC([w], **settings).step()


def test_capturable_makes_the_same_steps() -> None:
    runs = []
    for capturable in (False, True):
        w = param(1.0, 2.0)
        lr = torch.tensor(0.1, dtype=torch.float64)
        optimizer = goldstein.torch.AdamO2NC([w], lr, weight_decay=0.1, capturable=capturable)
        for _ in range(3):
            w.grad = torch.ones(2, dtype=torch.float64)
            optimizer.step()
        runs.append(w.detach())
    torch.testing.assert_close(*runs, rtol=1e-14, atol=0)


def test_one_cycle_and_lambda_schedules() -> None:
    w = param(3.0, -2.0)
    schedule = adam_o2nc_practice(0.1, 200)
    optimizer = goldstein.torch.AdamO2NC.from_schedule([w], schedule, seed=1)
    decay = torch.optim.lr_scheduler.LambdaLR(optimizer, schedule.shrink)
    for _ in range(200):
        optimizer.zero_grad()
        w.abs().sum().backward()
        optimizer.step()
        decay.step()
    assert np.abs(centre(optimizer, w)).max() < 0.05
    assert optimizer.radius == 0.0
    cycle = torch.optim.lr_scheduler.OneCycleLR(optimizer, max_lr=0.1, total_steps=20)
    for _ in range(10):
        optimizer.step()
        cycle.step()
    assert optimizer.settings["betas"][0] != 0.95


def test_the_theorem_s_schedule_is_the_optimizer_s() -> None:
    schedule = adam_o2nc_theory(0.5, 1.0, scale=2.0, gap=1.0, noise=0.0)
    optimizer = goldstein.torch.AdamO2NC.from_schedule([param(1.0)], schedule)
    assert optimizer.settings["betas"] == schedule.betas
    assert optimizer.settings["foresight"] == 0.0
    assert optimizer.param_groups[0]["lr"] * schedule.window == pytest.approx(1.0)


@pytest.mark.parametrize(
    ("settings", "word"),
    [
        ({"lr": -1.0}, "lr"),
        ({"betas": (1.0, 1.0)}, "betas"),
        ({"betas": (0.9, 0.5)}, "square of the first"),
        ({"betas": (0.9, 1.0)}, "betas"),
        ({"kappa": 0.0}, "kappa"),
        ({"foresight": -1.0}, "foresight"),
        ({"weight_decay": -0.1}, "weight_decay"),
        ({"seed": -1}, "seed"),
    ],
)
def test_bad_settings_are_named(settings: dict, word: str) -> None:
    with pytest.raises(InputError, match=word):
        goldstein.torch.AdamO2NC([param(1.0)], **settings)
