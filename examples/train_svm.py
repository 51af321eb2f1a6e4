"""The rho-margin SVM on breast cancer data: four optimizers, equal budgets, certified eps.

    python examples/train_svm.py

Same protocol as train_digits.py: a grid of four learning rates on one seed, chosen by the
objective, then medians over fresh seeds. The objective, the mean of the ramp losses plus
a ridge, has kinks in the data and does not interpolate them: a harder test of stationarity.
"""

from __future__ import annotations

import argparse
import contextlib

import numpy as np
import torch
from sklearn.datasets import load_breast_cancer
from train_digits import MAKERS

import goldstein
import goldstein.torch

GRIDS: dict[str, list[float]] = {
    "Adam": [0.005, 0.01, 0.02, 0.03],
    "SGD momentum": [0.01, 0.02, 0.03, 0.1],
    "PSINGD": [0.03, 0.05, 0.1, 0.3],
    "O2NC": [0.01, 0.02, 0.05, 0.1],
}
RIDGE = 1e-2
DELTAS = [1e-2, 1e-1]


def margins() -> torch.Tensor:
    """Return the rows y_i x_i, standardised, with an intercept column."""
    inputs, labels = load_breast_cancer(return_X_y=True)
    inputs = (inputs - inputs.mean(axis=0)) / inputs.std(axis=0)
    inputs = np.column_stack([inputs, np.ones(len(inputs))])
    return torch.tensor(inputs * (2 * labels - 1)[:, None])


def objective(w: torch.Tensor, rows: torch.Tensor) -> torch.Tensor:
    return torch.clamp(1.0 - rows @ w, 0.0, 1.0).mean() + 0.5 * RIDGE * w @ w


def run(
    rows: torch.Tensor, name: str, lr: float, seed: int, options: argparse.Namespace
) -> tuple[float, list[float]]:
    """Return the final objective and the certified eps for each delta."""
    torch.manual_seed(seed)
    w = torch.nn.Parameter(0.1 * torch.randn(rows.shape[1], dtype=torch.float64))
    optimizer = MAKERS[name]([w], lr, seed)
    scheduler = torch.optim.lr_scheduler.LinearLR(optimizer, 1.0, 0.0, total_iters=options.steps)
    draw = torch.Generator().manual_seed(seed)
    for _ in range(options.steps):
        batch = torch.randint(len(rows), (options.batch,), generator=draw)
        optimizer.zero_grad()
        objective(w, rows[batch]).backward()
        optimizer.step()
        scheduler.step()
    centred = isinstance(optimizer, goldstein.torch.PSINGD | goldstein.torch.O2NC)
    with optimizer.at_center() if centred else contextlib.nullcontext():
        oracle = goldstein.torch.oracle(lambda v: objective(v, rows), w)
        eps = [
            goldstein.certify(
                oracle, oracle.start, delta=delta, rng=0, max_calls=options.max_calls
            ).eps
            for delta in DELTAS
        ]
    return oracle.value(oracle.start), eps


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--steps", type=int, default=2000)
    parser.add_argument("--batch", type=int, default=16)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--max-calls", type=int, default=200)
    options = parser.parse_args()
    torch.set_num_threads(1)
    rows = margins()
    print("| optimizer | lr | objective | eps at delta = 0.01 | eps at delta = 0.1 |")
    print("|---|---|---|---|---|")
    for name, grid in GRIDS.items():
        lr = min(grid, key=lambda lr, name=name: run(rows, name, lr, 0, options)[0])
        results = [run(rows, name, lr, seed, options) for seed in range(1, options.seeds + 1)]
        value = np.median([f for f, _ in results])
        eps = np.median([e for _, e in results], axis=0)
        print(f"| {name} | {lr:g} | {value:.5f} | {eps[0]:.2e} | {eps[1]:.2e} |", flush=True)


if __name__ == "__main__":
    main()
