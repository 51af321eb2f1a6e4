"""CPU time of one optimizer step relative to torch.optim.SGD with momentum.

python benchmarks/torch_step.py --parameters 1000000 --tensors 1
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Callable

import torch

import goldstein.torch

Factory = Callable[[list[torch.nn.Parameter]], torch.optim.Optimizer]

OPTIMIZERS: dict[str, Factory] = {
    "SGD momentum": lambda ps: torch.optim.SGD(ps, lr=1e-3, momentum=0.9),
    "PSINGD": lambda ps: goldstein.torch.PSINGD(ps),
    "O2NC": lambda ps: goldstein.torch.O2NC(ps),
    "AdamO2NC": lambda ps: goldstein.torch.AdamO2NC(ps),
    "Adam": lambda ps: torch.optim.Adam(ps, lr=1e-3),
    "Adam foreach": lambda ps: torch.optim.Adam(ps, lr=1e-3, foreach=True),
    "Adam fused": lambda ps: torch.optim.Adam(ps, lr=1e-3, fused=True),
}


def milliseconds(factory: Factory, parameters: int, tensors: int, steps: int) -> list[float]:
    """Return the CPU time of each step on random gradients; other processes do not count."""
    shares = torch.arange(parameters).tensor_split(tensors)
    params = [torch.nn.Parameter(torch.randn(len(share))) for share in shares]
    for param in params:
        param.grad = torch.randn_like(param)
    optimizer = factory(params)
    times = []
    for _ in range(steps):
        start = time.process_time()
        optimizer.step()
        times.append(1e3 * (time.process_time() - start))
    return times[len(times) // 5 :]


def medians(parameters: int, tensors: int, steps: int, rounds: int = 5) -> dict[str, float]:
    """Return the median step time of each optimizer; rounds are interleaved against drift."""
    times: dict[str, list[float]] = {name: [] for name in OPTIMIZERS}
    for _ in range(rounds):
        for name, factory in OPTIMIZERS.items():
            times[name] += milliseconds(factory, parameters, tensors, steps)
    return {name: statistics.median(values) for name, values in times.items()}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--parameters", type=int, default=1_000_000)
    parser.add_argument("--tensors", type=int, default=1)
    parser.add_argument("--steps", type=int, default=60)
    parser.add_argument("--threads", type=int, default=1)
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    result = medians(options.parameters, options.tensors, options.steps)
    base = result["SGD momentum"]
    adam = result["Adam"]
    print(
        f"{options.parameters} parameters in {options.tensors} tensors, {options.threads} thread(s)"
    )
    for name, value in result.items():
        ratios = f"{value / base:5.2f} x SGD momentum   {value / adam:5.2f} x Adam"
        print(f"{name:14s} {value:8.3f} ms   {ratios}")


if __name__ == "__main__":
    main()
