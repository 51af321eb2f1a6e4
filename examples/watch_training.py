"""Watch how stationary a network becomes while it trains, for at most 5 % of the time.

python examples/watch_training.py --figure watch.png

Twenty epochs of a convolutional network on the digits of scikit-learn. After each epoch the monitor
looks at as many random samples as its share of the time allows; at the end all data are certified.
"""

from __future__ import annotations

import argparse

import torch
from sklearn.datasets import load_digits
from torch.utils.data import DataLoader, TensorDataset

import goldstein.torch


def network() -> torch.nn.Module:
    torch.manual_seed(0)
    return torch.nn.Sequential(
        torch.nn.Conv2d(1, 12, 3, padding=1), torch.nn.ReLU(), torch.nn.MaxPool2d(2),
        torch.nn.Conv2d(12, 24, 3, padding=1), torch.nn.ReLU(), torch.nn.MaxPool2d(2),
        torch.nn.Flatten(), torch.nn.Linear(96, 10),
    )  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--epochs", type=int, default=20)
    parser.add_argument("--figure", help="where to draw the curves")
    options = parser.parse_args()
    torch.set_num_threads(1)
    inputs, labels = load_digits(return_X_y=True)
    images = torch.tensor(inputs / 16.0, dtype=torch.float32).view(-1, 1, 8, 8)
    data = DataLoader(TensorDataset(images, torch.tensor(labels)), batch_size=16, shuffle=True)
    model, loss_fn = network(), torch.nn.CrossEntropyLoss()
    optimizer = goldstein.torch.AdamO2NC(model.parameters(), lr=3e-3)
    scheduler = torch.optim.lr_scheduler.LinearLR(optimizer, 1.0, 0.0, options.epochs)
    monitor = goldstein.torch.Monitor(model, loss_fn, data, delta=1e-2, optimizer=optimizer)
    for epoch in range(1, options.epochs + 1):
        for batch, targets in data:
            optimizer.zero_grad()
            loss_fn(model(batch), targets).backward()
            optimizer.step()
        scheduler.step()
        seen = monitor.update(epoch)
        if seen is not None:
            print(seen)
    print(f"watching cost {100 * monitor.cost:.1f} % of the training time")
    with optimizer.at_center():
        certificate = goldstein.torch.certify(model, loss_fn, data, delta=1e-2)
    print(certificate)
    if options.figure:
        draw(monitor, certificate.eps, options.epochs, options.figure)


def draw(monitor: goldstein.torch.Monitor, eps: float, epochs: int, path: str) -> None:
    import matplotlib.pyplot as plt

    seen = monitor.history
    picture, axis = plt.subplots(figsize=(6.5, 3.6), layout="constrained")
    at = [s.epoch for s in seen]
    axis.semilogy(at, [s.eps for s in seen], "o-", label="eps, confidence 0.99")
    axis.semilogy(at, [s.observed for s in seen], ".--", label="observed in the samples")
    axis.semilogy(at, [s.loss for s in seen], "s:", color="grey", label="loss of the samples")
    axis.semilogy([epochs], [eps], "*", markersize=12, label="eps certified over all data")
    axis.set_xlabel("epoch")
    axis.set_title(f"delta = {monitor.delta:g}; watching cost {100 * monitor.cost:.1f} %")
    axis.legend(fontsize=8)
    picture.savefig(path, dpi=110)


if __name__ == "__main__":
    main()
