"""The five tasks of the training study: models, data, losses, budgets."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

import torch
from benchmarks.studies.offline_data import digits, mnist
from torch import nn

Pair = tuple[torch.Tensor, torch.Tensor]


@dataclass(frozen=True)
class Task:
    """What is trained, on what, and for how long.

    Attributes
    ----------
    model : callable
        Makes the model; its weights are drawn from the global seed of PyTorch.
    loss : callable
        Mean over a batch.
    train, test : pairs of tensors
    steps, batch : int
        Gradients, and samples in each.
    accuracy : bool
        Whether the share of right answers is a measure.
    """

    model: Callable[[], nn.Module]
    loss: Callable[[torch.Tensor, torch.Tensor], torch.Tensor]
    train: Pair
    test: Pair
    steps: int
    batch: int
    accuracy: bool = True


def dense(*sizes: int) -> nn.Module:
    """A ReLU network."""
    layers: list[nn.Module] = []
    for before, after in pairwise(sizes):
        layers += [nn.Linear(before, after), nn.ReLU()]
    return nn.Sequential(*layers[:-1])


def convolutional(first: int = 8, second: int = 16) -> nn.Module:
    """Two convolutions and max pooling for images of 8 x 8 pixels."""
    return nn.Sequential(
        nn.Unflatten(1, (1, 8, 8)),
        nn.Conv2d(1, first, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2),
        nn.Conv2d(first, second, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2),
        nn.Flatten(), nn.Linear(4 * second, 10),
    )  # fmt: skip


class Transformer(nn.Module):
    """One block of causal attention over characters."""

    def __init__(self, letters: int, length: int, width: int = 32, heads: int = 2) -> None:
        super().__init__()
        self.heads = heads
        self.letter = nn.Embedding(letters, width)
        self.place = nn.Parameter(0.1 * torch.randn(length, width))
        self.norms = nn.ModuleList(nn.LayerNorm(width) for _ in range(3))
        self.look = nn.Linear(width, 3 * width)
        self.mix = nn.Linear(width, width)
        self.think = nn.Sequential(
            nn.Linear(width, 4 * width), nn.ReLU(), nn.Linear(4 * width, width)
        )
        self.answer = nn.Linear(width, letters)

    def forward(self, text: torch.Tensor) -> torch.Tensor:
        x = self.letter(text) + self.place
        n, length, width = x.shape
        parts = self.look(self.norms[0](x)).view(n, length, 3, self.heads, width // self.heads)
        query, key, value = parts.permute(2, 0, 3, 1, 4)
        seen = nn.functional.scaled_dot_product_attention(query, key, value, is_causal=True)
        x = x + self.mix(seen.transpose(1, 2).reshape(n, length, width))
        x = x + self.think(self.norms[1](x))
        return self.answer(self.norms[2](x)).transpose(1, 2)


def split(data: Pair, test: int, seed: int = 1) -> tuple[Pair, Pair]:
    """Cut off the last rows of shuffled data."""
    order = torch.randperm(len(data[0]), generator=torch.Generator().manual_seed(seed))
    a, b = (part[order] for part in data)
    return (a[:-test], b[:-test]), (a[-test:], b[-test:])


def text(name: str = "training_text.txt", length: int = 32) -> tuple[Pair, int]:
    """Windows of a text, and the number of letters.

    The texts are pages of this project as they were when the study began; the pages change, and
    what is learned must not.
    """
    page = Path(__file__).with_name(name).read_text()
    letters = sorted(set(page))
    codes = torch.tensor([letters.index(c) for c in page])
    count = (len(codes) - 1) // length
    inputs = codes[: count * length].view(count, length)
    return (inputs, codes[1 : count * length + 1].view(count, length)), len(letters)


def robust(seed: int = 2) -> Pair:
    """The diabetes data, standardised; one target in ten is wrong."""
    from sklearn.datasets import load_diabetes

    inputs, targets = load_diabetes(return_X_y=True)
    a = torch.tensor(inputs / inputs.std(0), dtype=torch.float32)
    b = torch.tensor((targets - targets.mean()) / targets.std(), dtype=torch.float32)
    draw = torch.Generator().manual_seed(seed)
    wrong = torch.rand(len(b), generator=draw) < 0.1
    b[wrong] += 10.0 * torch.randn(int(wrong.sum()), generator=draw)
    return a, b[:, None]


def tasks() -> dict[str, Task]:
    """Return the five tasks by name."""
    entropy = nn.functional.cross_entropy
    small, large = split(digits(), 360), split(mnist(), 1000)
    windows, letters = text()
    return {
        "digits": Task(lambda: dense(64, 32, 10), entropy, *small, 1000, 64),
        "mnist": Task(lambda: dense(784, 32, 10), entropy, *large, 1500, 64),
        "convolutional": Task(convolutional, entropy, *small, 800, 64),
        "transformer": Task(
            lambda: Transformer(letters, 32), entropy, *split(windows, 256), 500, 32
        ),
        "robust regression": Task(
            lambda: dense(10, 32, 1), nn.functional.l1_loss, *split(robust(), 100), 1000, 32,
            accuracy=False,
        ),
    }  # fmt: skip
