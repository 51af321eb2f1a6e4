"""Which betas, kappa and foresight AdamO2NC should have: runs on tasks apart from the study's.

python -m benchmarks.studies.training_defaults            # all runs; finished ones are not repeated
python -m benchmarks.studies.training_defaults --report   # the table, from what is finished

Smaller networks, parts of the data, other pages and other wrong targets than in `training.py`, and
a seed (10) that it does not use. The learning rate with the smallest final training loss counts;
beside the loss stands the norm of the gradient over all training data.
"""

from __future__ import annotations

import argparse
import json
import math
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import torch
from benchmarks.studies.offline_data import digits, mnist
from benchmarks.studies.training_tasks import (
    Pair,
    Task,
    Transformer,
    convolutional,
    dense,
    robust,
    text,
)
from torch import nn

import goldstein.torch

RESULTS = Path(__file__).with_name("results") / "training_defaults.json"
SEED = 10
RATES = (1e-4, 3e-4, 1e-3, 3e-3, 1e-2, 3e-2, 1e-1)

#: Of the default also those between, which say where a grid of half decades is best placed.
DEFAULT, BETWEEN = (0.9, 0.9, 1.0, 2.0), (5e-4, 1.5e-3, 5e-3, 1.5e-2, 5e-2, 1.5e-1)

#: (b1, b2, kappa, foresight)
SETTINGS = (
    (0.95, 0.9025, 1.0, 0.0), (0.95, 0.9025, 0.5, 0.0), (0.95, 0.9025, 2.0, 0.0),
    (0.9, 0.81, 1.0, 0.0), (0.9, 0.9, 1.0, 0.0), (0.95, 0.95, 1.0, 0.0), (0.9, 0.99, 1.0, 0.0),
    (0.9, 0.99, 2.0, 0.0), (0.95, 0.99, 1.0, 0.0), (0.95, 0.99, 0.5, 0.0), (0.9, 0.999, 1.0, 0.0),
    (0.9, 0.999, 3.0, 0.0), (0.9, 0.9, 1.0, 0.25), (0.9, 0.9, 1.0, 0.5), (0.9, 0.9, 1.0, 1.0),
    (0.95, 0.95, 1.0, 1.0), (0.9, 0.99, 1.0, 1.0), DEFAULT,
)  # fmt: skip


def part(data: Pair, count: int) -> Pair:
    """Draw some rows."""
    order = torch.randperm(len(data[0]), generator=torch.Generator().manual_seed(77))[:count]
    return data[0][order], data[1][order]


def tasks() -> dict[str, Task]:
    """Return the five tasks; nothing is kept for tests."""
    entropy, small = nn.functional.cross_entropy, part(digits(), 700)
    images = part(mnist(), 1800)
    windows, letters = text("training_defaults_text.txt")
    first = tuple(column[:250] for column in robust(seed=22))
    return {
        "digits": Task(lambda: dense(64, 24, 10), entropy, small, small, 1200, 64),
        "mnist": Task(lambda: dense(784, 24, 10), entropy, images, images, 1200, 64),
        "convolutional": Task(lambda: convolutional(6, 10), entropy, small, small, 700, 64),
        "transformer": Task(
            lambda: Transformer(letters, 32, 16), entropy, windows, windows, 500, 32
        ),
        "robust regression": Task(
            lambda: dense(10, 24, 1), nn.functional.l1_loss, first, first, 1200, 32
        ),
    }


def run(task: Task, kind: tuple[float, ...] | None, lr: float) -> tuple[float, float]:
    """Train once (None is Adam); return the loss and the norm of its gradient."""
    torch.manual_seed(SEED)
    model = task.model()
    optimizer: Any = torch.optim.Adam(model.parameters(), lr)
    if kind is not None:
        b1, b2, kappa, foresight = kind
        optimizer = goldstein.torch.AdamO2NC(
            model.parameters(), lr, betas=(b1, b2), kappa=kappa, foresight=foresight, seed=SEED
        )
    decay = torch.optim.lr_scheduler.LinearLR(optimizer, 1.0, 0.0, task.steps)
    draw = torch.Generator().manual_seed(100 + SEED)
    inputs, targets = task.train
    for _ in range(task.steps):
        rows = torch.randint(0, len(inputs), (task.batch,), generator=draw)
        optimizer.zero_grad()
        loss = task.loss(model(inputs[rows]), targets[rows])
        if not math.isfinite(loss.item()):
            return math.inf, math.inf
        loss.backward()
        optimizer.step()
        decay.step()
    with optimizer.at_center() if kind is not None else nullcontext():
        whole = task.loss(model(inputs), targets)
        pieces = torch.autograd.grad(whole, list(model.parameters()))
    return whole.item(), math.hypot(*(piece.norm().item() for piece in pieces))


def report(done: dict[str, Any]) -> None:
    """Print loss and gradient of the best rate."""
    names = list(dict.fromkeys(key.split(" | ")[0] for key in done))
    print(f"| b1, b2, kappa, foresight | {' | '.join(names)} |")
    print("|---" * (1 + len(names)) + "|")
    for kind in dict.fromkeys(key.split(" | ")[1] for key in done):
        cells = []
        for name in names:
            runs = [v for k, v in done.items() if k.split(" | ")[:2] == [name, kind]]
            cells.append("{:.3g}, {:.2g}".format(*min(runs)) if runs else "")
        print(f"| {kind} | {' | '.join(cells)} |")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--report", action="store_true")
    options = parser.parse_args()
    torch.set_num_threads(1)
    done: dict[str, Any] = json.loads(RESULTS.read_text()) if RESULTS.exists() else {}
    for name, task in () if options.report else tasks().items():
        for kind in (None, *SETTINGS):
            for lr in RATES if kind != DEFAULT else (*RATES, *BETWEEN):
                key = f"{name} | {'Adam' if kind is None else kind} | {lr:g}"
                if key not in done:
                    done[key] = run(task, kind, lr)
                    RESULTS.write_text(json.dumps(done, indent=0) + "\n")
    report(done)


if __name__ == "__main__":
    main()
