"""Watching a run: bounds that hold, costs that stay in their share, loggers that get it."""

from __future__ import annotations

import json
import math

import numpy as np
import pytest
import torch
from torch.utils.data import DataLoader, IterableDataset, TensorDataset

import goldstein.torch
from goldstein.errors import InputError, InputTypeError
from goldstein.torch.watching.monitor import Samples, estimate

LOSS = torch.nn.CrossEntropyLoss()


def problem(samples: int = 200) -> tuple[torch.nn.Module, torch.Tensor, torch.Tensor]:
    torch.manual_seed(0)
    inputs = torch.randn(samples, 6)
    labels = (inputs[:, 0] + 0.3 * inputs[:, 1] > 0).long()
    layers = [torch.nn.Linear(6, 8), torch.nn.ReLU(), torch.nn.Dropout(0.5), torch.nn.Linear(8, 2)]
    return torch.nn.Sequential(*layers), inputs, labels


def batches(inputs: torch.Tensor, labels: torch.Tensor) -> list:
    return list(zip(inputs.split(50), labels.split(50), strict=True))


class Clock:
    """Time that passes when it is told to, and a little with every question."""

    def __init__(self, tick: float = 0.0) -> None:
        self.now, self.tick = 0.0, tick

    def __call__(self) -> float:
        self.now += self.tick
        return self.now


def true_norm(model, inputs, labels, delta: float) -> float:
    """A lower estimate of what is bounded: the norm of the full gradient at the weights."""
    model.eval()
    gradients = torch.autograd.grad(LOSS(model(inputs), labels), list(model.parameters()))
    return math.sqrt(sum(float(g.square().sum()) for g in gradients))


def test_the_bound_from_samples_holds_and_tightens() -> None:
    """Smooth at this delta: the bound must exceed the full gradient's norm, in all of 15 draws."""
    model, inputs, labels = problem()
    model.eval()
    data = Samples(batches(inputs, labels))
    truth = true_norm(model, inputs, labels, 1e-6)
    mean = []
    for samples in (64, 160, 200):
        found = [
            estimate(
                model, LOSS, data, delta=1e-6, samples=samples, confidence=0.99,
                rng=np.random.default_rng(seed),
            )
            for seed in range(15 if samples < 200 else 1)
        ]  # fmt: skip
        assert all(e.observed + e.slack >= truth * (1 - 1e-3) for e in found)
        mean.append(np.mean([e.observed + e.slack for e in found]))
    assert mean[0] > mean[1]
    assert found[0].slack == 0.0


def test_all_samples_leave_no_slack() -> None:
    model, inputs, labels = problem(130)
    model.eval()
    seen = estimate(
        model, LOSS, Samples(batches(inputs, labels)), delta=1e-7, samples=130, confidence=0.99,
        rng=np.random.default_rng(0),
    )  # fmt: skip
    assert seen.slack == 0.0
    assert seen.observed == pytest.approx(true_norm(model, inputs, labels, 0.0), rel=1e-3)
    assert math.hypot(*seen.layers.values()) == pytest.approx(seen.observed, rel=1e-6)


def test_the_model_is_left_alone() -> None:
    model, inputs, labels = problem()
    optimizer = goldstein.torch.AdamO2NC(model.parameters(), 0.01)
    LOSS(model(inputs), labels).backward()
    optimizer.step()
    model[2].eval()  # a module of its own mind
    before = {name: t.clone() for name, t in model.state_dict().items()}
    kept = [p.grad.clone() for p in model.parameters()]
    monitor = goldstein.torch.Monitor(
        model, LOSS, batches(inputs, labels), delta=1e-3, optimizer=optimizer, share=math.inf
    )
    monitor.update()
    assert model.training
    assert not model[2].training
    assert all(torch.equal(before[name], t) for name, t in model.state_dict().items())
    assert all(torch.equal(g, p.grad) for g, p in zip(kept, model.parameters(), strict=True))


def test_the_cost_stays_within_the_share(monkeypatch) -> None:
    """An epoch takes 0.3 s, a look 0.05 s and 0.1 ms per sample; looking may take 5 %."""
    model, inputs, labels = problem()
    clock = Clock()

    def slow(*args, samples: int, **kwargs):
        clock.now += 0.05 + 1e-4 * samples
        return estimate(*args, samples=samples, **kwargs)

    monkeypatch.setattr("goldstein.torch.watching.monitor.estimate", slow)
    data = batches(inputs, labels)
    monitor = goldstein.torch.Monitor(model, LOSS, data, delta=1e-3, clock=clock)
    for epoch in range(60):
        clock.now += 0.3
        monitor.update(epoch)
        if epoch > 10:
            assert monitor.cost <= 0.055
    assert 5 <= len(monitor.history) < 30
    assert monitor.history[0].relative_eps >= 1.0


def test_certified_where_it_is_affordable() -> None:
    model, inputs, labels = problem(100)
    data = batches(inputs, labels)
    monitor = goldstein.torch.Monitor(model, LOSS, data, delta=1e-2, share=math.inf)
    first, second = monitor.update(), monitor.update()
    assert first.label == "estimated"
    assert second.label == "conditional"
    assert second.confidence == 1.0
    assert second.eps == goldstein.torch.certify(model, LOSS, data, delta=1e-2).eps
    sparing = goldstein.torch.Monitor(
        model, LOSS, data, delta=1e-2, certified=True, clock=Clock(1e-3)
    )
    assert sparing.update().label == "conditional"
    assert sparing.update() is None  # not affordable again
    never = goldstein.torch.Monitor(model, LOSS, data, delta=1e-2, share=math.inf, certified=False)
    assert {never.update().label, never.update().label} == {"estimated"}


def test_every_and_history(tmp_path) -> None:
    model, inputs, labels = problem()
    loader = DataLoader(TensorDataset(inputs, labels), batch_size=32, shuffle=True)
    monitor = goldstein.torch.Monitor(model, LOSS, loader, delta=1e-3, every=2, share=math.inf)
    seen = [monitor.update(epoch) for epoch in range(4)]
    assert [s is None for s in seen] == [False, True, False, True]
    monitor.save(tmp_path / "history.json")
    saved = json.loads((tmp_path / "history.json").read_text())
    assert [s["epoch"] for s in saved] == [0, 2]
    assert saved[0]["eps"] == seen[0].eps
    assert "epoch 0: loss" in str(seen[0])


def test_tensorboard_gets_the_scalars(tmp_path) -> None:
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    model, inputs, labels = problem()
    monitor = goldstein.torch.Monitor(
        model, LOSS, batches(inputs, labels), delta=1e-3, share=math.inf, writer=tmp_path
    )
    for epoch in range(3):
        monitor.update(epoch)
    monitor._writer.close()
    events = EventAccumulator(str(tmp_path)).Reload()
    written = events.Scalars("goldstein/eps")
    assert [event.step for event in written] == [0, 1, 2]
    assert written[2].value == pytest.approx(monitor.history[2].eps, rel=1e-6)
    assert "goldstein/layers/0.weight" in events.Tags()["scalars"]


def fit(model, inputs, labels, optimizer, stopping) -> tuple[int, goldstein.torch.Monitor]:
    monitor = goldstein.torch.Monitor(
        model, LOSS, batches(inputs, labels), delta=1e-4, share=math.inf, stopping=stopping,
        optimizer=optimizer, certified=False,
    )  # fmt: skip
    for epoch in range(15):
        monitor.update(epoch)
        if monitor.should_stop:
            break
        for a, b in batches(inputs, labels):
            optimizer.zero_grad()
            LOSS(model(a), b).backward()
            optimizer.step()
    return epoch, monitor


def test_stopping_waits_for_small_gradients_and_a_lower_loss() -> None:
    model, inputs, labels = problem()
    model[2].p = 0.0
    optimizer = goldstein.torch.AdamO2NC(model.parameters(), 0.02)
    stopping = goldstein.torch.GoldsteinStopping(0.5, patience=2)
    epoch, monitor = fit(model, inputs, labels, optimizer, stopping)
    assert 1 <= epoch < 14
    assert all(seen.relative_eps <= 0.5 for seen in monitor.history[-2:])

    dead, inputs, labels = problem()
    with torch.no_grad():
        dead[0].bias.fill_(-100.0)  # no unit ever speaks: a tiny gradient, and nothing learned
    balanced = torch.arange(len(labels)) % 2
    optimizer = torch.optim.SGD(dead.parameters(), 1e-9)
    epoch, monitor = fit(dead, inputs, balanced, optimizer, stopping)
    assert not monitor.should_stop or monitor.history[-1].loss < monitor.history[0].loss


def test_schedule_free_optimizers_show_what_they_would_evaluate() -> None:
    calls = []

    class Free(torch.optim.SGD):
        def eval(self) -> None:
            calls.append("eval")

        def train(self) -> None:
            calls.append("train")

    model, inputs, labels = problem()
    optimizer = Free(model.parameters(), 0.1)
    goldstein.torch.Monitor(
        model, LOSS, batches(inputs, labels), delta=1e-3, optimizer=optimizer
    ).update()
    assert calls == ["eval", "train"]


@pytest.mark.parametrize(
    ("settings", "word"),
    [
        ({"delta": 0.0}, "delta"),
        ({"share": -1.0}, "share"),
        ({"every": 0}, "every"),
        ({"confidence": 1.0}, "confidence"),
    ],
)
def test_bad_settings_are_named(settings: dict, word: str) -> None:
    model, inputs, labels = problem()
    with pytest.raises(InputError, match=word):
        goldstein.torch.Monitor(model, LOSS, batches(inputs, labels), **{"delta": 1e-3, **settings})


def test_bad_data_writers_and_stopping_are_named() -> None:
    model, inputs, labels = problem()

    class Endless(IterableDataset):
        def __iter__(self):
            return iter([])

    with pytest.raises(InputTypeError, match="IterableDataset"):
        goldstein.torch.Monitor(model, LOSS, DataLoader(Endless()), delta=1e-3)
    with pytest.raises(InputTypeError, match="DataLoader or a list"):
        goldstein.torch.Monitor(model, LOSS, iter([]), delta=1e-3)
    with pytest.raises(InputTypeError, match="add_scalar"):
        goldstein.torch.Monitor(model, LOSS, batches(inputs, labels), delta=1e-3, writer=3)
    for stop in ((0.0, 1), (1e-3, 0)):
        with pytest.raises(InputError):
            goldstein.torch.GoldsteinStopping(*stop)
